//! Run control, as owners of a scheduler and holders of a task have it. Invariant: each call answers
//! with what it found, in the one step in which it did what it did.

use crate::clock::Timestamp;
use crate::error::Error;
use crate::handle::TaskHandle;
use crate::id::TaskId;
use crate::registry::Holder;
use crate::scheduler::Scheduler;
use crate::state::{Control, ControlOutcome};

/// By id; and the scheduler as a whole.
impl Scheduler {
    /// Makes the waiting task of this id due at `due` instead.
    ///
    /// A series goes on from there: its grid moves with it. A retry is only made at another time. A
    /// paused task stays paused.
    ///
    /// What this and the other calls of run control answer:
    ///
    /// | the task is | answer | `reschedule`, `run_now` | `pause_task`, `resume_task` |
    /// |---|---|---|---|
    /// | waiting, paused or not | `Applied` | done | done |
    /// | running | `Running` | nothing is done | its run goes on; done for what follows |
    /// | finished | `Finished` | nothing is done | nothing is done |
    /// | not known | `Unknown` | nothing is done | nothing is done |
    ///
    /// Of a call and the start of a run, one comes first: `Applied` says that no run started before
    /// the task was as the call wants it.
    ///
    /// ```
    /// use duetime::{ControlOutcome, FixedRate, ManualClock, Scheduler, Task};
    /// use std::time::Duration;
    /// let clock = ManualClock::new();
    /// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
    /// let minutes = |n: u64| clock.now() + Duration::from_secs(60 * n);
    /// let tick = Task::new(minutes(10), || ()).recurrence(FixedRate::new(Duration::from_secs(600)));
    /// let tick = scheduler.schedule(tick.id("tick"))?;
    /// assert_eq!(scheduler.reschedule("tick", minutes(3))?, ControlOutcome::Applied);
    /// clock.advance(Duration::from_secs(60 * 3))?;
    /// assert_eq!((tick.info().runs, tick.due()), (1, minutes(10))); // three and ten
    /// # Ok::<_, duetime::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SchedulerClosed`] if the task waits and the scheduler was shut down;
    /// [`Error::Forked`].
    pub fn reschedule(
        &self,
        id: impl Into<TaskId>,
        due: Timestamp,
    ) -> Result<ControlOutcome, Error> {
        self.control(id, Control::Reschedule(due))
    }

    /// Makes the waiting task of this id due now, if it is not yet.
    ///
    /// This is one more run of a series, before the slot that it waited for, and does not count for
    /// [`Task::max_runs`](crate::Task::max_runs); slots that pass during it are missed by the series'
    /// rule. A retry or a one-off task is only made sooner. A paused task is run once, and stays
    /// paused. A running task is not run again. One that depends on others is due now, and runs when they
    /// are done.
    ///
    /// For the answers see [`Scheduler::reschedule`].
    ///
    /// # Errors
    /// As [`Scheduler::reschedule`].
    pub fn run_now(&self, id: impl Into<TaskId>) -> Result<ControlOutcome, Error> {
        self.control(id, Control::RunNow)
    }

    /// Holds the task of this id: no run of it starts until it is resumed.
    ///
    /// It still counts as waiting, but is not due, so nobody waits for it to run: a drain cancels it. A
    /// run that goes on is not disturbed; what follows it is held. A task that depends on others is held
    /// when they are done; if one of them fails, it is cancelled all the same.
    ///
    /// For the answers see [`Scheduler::reschedule`].
    ///
    /// # Errors
    /// As [`Scheduler::reschedule`].
    pub fn pause_task(&self, id: impl Into<TaskId>) -> Result<ControlOutcome, Error> {
        self.control(id, Control::Pause)
    }

    /// Lets the task of this id go on, if it was paused.
    ///
    /// If its due time has passed, a series whose rule skips slots goes on with the first that has
    /// not passed; those before it are missed, the one that it waited for included. Any other task
    /// runs now, late.
    ///
    /// For the answers see [`Scheduler::reschedule`].
    ///
    /// # Errors
    /// As [`Scheduler::reschedule`].
    pub fn resume_task(&self, id: impl Into<TaskId>) -> Result<ControlOutcome, Error> {
        self.control(id, Control::Resume)
    }

    fn control(&self, id: impl Into<TaskId>, control: Control) -> Result<ControlOutcome, Error> {
        let shared = self.checked()?;
        let holder = shared.queue.lock().registry.find(&id.into());
        match holder {
            Some(Holder::Live(task)) => shared.control(&task, control),
            Some(Holder::Finished(_)) => Ok(ControlOutcome::Finished),
            None => Ok(ControlOutcome::Unknown),
        }
    }

    /// Starts nothing until [`Scheduler::resume`]. Runs that go on are not disturbed, and tasks are
    /// scheduled as ever; DUE events are sent on time. Nothing counts as due meanwhile: a drain
    /// cancels all that waits. Again is no error.
    ///
    /// # Errors
    /// [`Error::SchedulerClosed`] after a shutdown; [`Error::Forked`].
    pub fn pause(&self) -> Result<(), Error> {
        let shared = self.checked()?;
        shared.queue.set_paused(true, shared.clock.now())
    }

    /// Starts what is due again. To the tasks the pause was as a time in which all workers were busy.
    ///
    /// # Errors
    /// As [`Scheduler::pause`].
    pub fn resume(&self) -> Result<(), Error> {
        let shared = self.checked()?;
        shared.queue.set_paused(false, shared.clock.now())
    }

    /// Whether it was paused, and not resumed.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.checked().is_ok_and(|shared| shared.queue.lock().paused)
    }
}

impl TaskHandle {
    /// Makes the task due at `due` instead; see [`Scheduler::reschedule`].
    ///
    /// # Errors
    /// As there.
    pub fn reschedule(&self, due: Timestamp) -> Result<ControlOutcome, Error> {
        self.control(Control::Reschedule(due))
    }

    /// Makes the task due now; see [`Scheduler::run_now`].
    ///
    /// # Errors
    /// As there.
    pub fn run_now(&self) -> Result<ControlOutcome, Error> {
        self.control(Control::RunNow)
    }

    /// Holds the task; see [`Scheduler::pause_task`].
    ///
    /// # Errors
    /// As there.
    pub fn pause(&self) -> Result<ControlOutcome, Error> {
        self.control(Control::Pause)
    }

    /// Lets the task go on; see [`Scheduler::resume_task`].
    ///
    /// # Errors
    /// As there.
    pub fn resume(&self) -> Result<ControlOutcome, Error> {
        self.control(Control::Resume)
    }

    /// Whether the task was paused, and not resumed.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.info().paused
    }

    fn control(&self, control: Control) -> Result<ControlOutcome, Error> {
        self.check_process()?;
        // A scheduler that is gone has cancelled all that waited.
        let host = self.host.upgrade();
        host.map_or(Ok(ControlOutcome::Finished), |host| host.control(&self.record, control))
    }
}
