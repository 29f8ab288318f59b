//! The scheduler as its owner sees it. Invariant: its last reference gone, its threads end.
//!
//! ```text
//!  build() ──▶ open ──shutdown(drain)──▶ draining ──nothing due──▶ closed ──last job ends──▶ ended
//!               │                            │                       ▲
//!               └────────shutdown()──────────┴───────────────────────┘
//! ```

use std::any::Any;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::admission::{Admitted, admit, admit_all, admit_and_bring};
use crate::builder::Builder;
use crate::clock::{Timestamp, check_duration};
use crate::crew::Crew;
use crate::error::Error;
use crate::event::{EventKind, Listener, ListenerId};
use crate::handle::TaskHandle;
use crate::id::TaskId;
use crate::info::TaskInfo;
use crate::into_job::IntoJob;
use crate::links::Links;
use crate::record::TaskRef;
use crate::recurrence::Recurrence;
use crate::registry::Holder;
use crate::shared::Shared;
use crate::state::{CancelOutcome, TaskState};
use crate::stats::Stats;
use crate::task::Task;

/// Runs tasks when they are due, on a pool of worker threads.
///
/// Clones are of the same scheduler. When the last one is dropped it shuts down without waiting.
///
/// ```
/// use duetime::Scheduler;
/// use std::time::Duration;
/// let scheduler = Scheduler::new();
/// let hello = scheduler.after(Duration::from_millis(1), || "hello".len() == 5)?;
/// assert!(hello.result(None).is_ok());
/// # Ok::<_, duetime::Error>(())
/// ```
#[derive(Clone)]
pub struct Scheduler {
    owner: Arc<Owner>,
}

/// What only the owners hold: with the last of them the scheduler ends.
struct Owner {
    crew: Crew,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let shared = &self.crew.shared;
        if self.crew.close(false).is_ok() {
            shared.listeners.clear(|now| shared.listen(now));
        } else {
            // In a forked child the threads do not exist, nor do those that may hold the locks:
            // nothing may be joined, detached or dropped.
            std::mem::forget(self.crew.clone());
        }
    }
}

impl Scheduler {
    /// A scheduler with four workers on the system's monotonic clock.
    #[must_use]
    #[expect(clippy::missing_panics_doc, reason = "the defaults are in bounds")]
    pub fn new() -> Self {
        Self::builder().build().expect("the defaults are in bounds")
    }

    /// A scheduler with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn own(crew: Crew) -> Self {
        Self { owner: Arc::new(Owner { crew }) }
    }

    /// The scheduler's threads, for who has to wait for them and not for the scheduler.
    #[must_use]
    pub fn crew(&self) -> &Crew {
        &self.owner.crew
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.crew().shared
    }

    /// The scheduler's state, for a call that is refused in a forked child.
    pub(crate) fn checked(&self) -> Result<&Arc<Shared>, Error> {
        self.shared().check_process()?;
        Ok(self.shared())
    }

    /// Schedules a task.
    ///
    /// # Errors
    /// [`Error::DuplicateTask`] if the scheduler knows the id, [`Error::SchedulerClosed`] after a
    /// shutdown, [`Error::InvalidValue`] for a rule out of bounds,
    /// [`Error::UnknownGroup`], [`Error::SpawnWorker`] if the system gives no threads,
    /// [`Error::Forked`]. Of what the task depends on,
    /// [`Error::UnknownTask`] if the scheduler does not know it, [`Error::DependencyCycle`] if it is
    /// the task itself, [`Error::InvalidValue`] if it is a series without an end or another
    /// scheduler's. The task is then not scheduled.
    pub fn schedule(&self, mut task: Task) -> Result<TaskHandle, Error> {
        if task.depends_on.is_some() {
            return self.schedule_all(vec![task]).map(|mut handles| handles.remove(0));
        }
        let shared = self.checked()?;
        task.prepare(&shared.groups)?;
        self.crew().threads.start(shared)?;
        if task.is_timed() {
            self.crew().threads.start_watch(shared)?;
        }
        if !shared.listeners.anybody() {
            return admit_and_bring(shared, task).map(|record| shared.handle(record));
        }
        let record = admit(shared, task)?;
        let handle = shared.handle(record.clone());
        shared.emit_next(EventKind::Scheduled, &record);
        shared.check_process()?; // a listener may have forked
        shared.bring(record);
        Ok(handle)
    }

    /// Schedules a task in place of the one that has its id: a waiting one is cancelled, a
    /// finished one forgotten.
    ///
    /// # Errors
    /// As [`Scheduler::schedule`]; [`Error::TaskRunning`] if the holder of the id runs.
    pub fn replace(&self, task: Task) -> Result<TaskHandle, Error> {
        self.replace_all(vec![task]).map(|mut handles| handles.remove(0))
    }

    /// Schedules all of the tasks or, on an error, none. They may depend on each other, whatever their
    /// order.
    ///
    /// # Errors
    /// As [`Scheduler::schedule`]; [`Error::DependencyCycle`] if they depend on each other in a
    /// circle.
    pub fn schedule_all(&self, tasks: Vec<Task>) -> Result<Vec<TaskHandle>, Error> {
        self.schedule_and_hold(tasks, false)
    }

    /// Schedules all of the tasks in place of those that have their ids or, on an error, none.
    ///
    /// # Errors
    /// As [`Scheduler::replace`].
    pub fn replace_all(&self, tasks: Vec<Task>) -> Result<Vec<TaskHandle>, Error> {
        self.schedule_and_hold(tasks, true)
    }

    fn schedule_and_hold(&self, tasks: Vec<Task>, replace: bool) -> Result<Vec<TaskHandle>, Error> {
        let mut handles = Vec::new();
        self.schedule_with(tasks, replace, |all| handles = all)?;
        Ok(handles)
    }

    /// [`Scheduler::schedule_all`] or [`Scheduler::replace_all`]. `accepted` is given the handles
    /// once nothing can be refused any more, before any listener is told of the tasks
    /// and before any of them can run.
    ///
    /// # Errors
    /// As those.
    pub fn schedule_with(
        &self,
        mut tasks: Vec<Task>,
        replace: bool,
        accepted: impl FnOnce(Vec<TaskHandle>),
    ) -> Result<(), Error> {
        let shared = self.checked()?;
        let (mut timed, mut linked) = (false, false);
        for task in &mut tasks {
            task.prepare(&shared.groups)?;
            timed |= task.is_timed();
            linked |= task.depends_on.is_some();
        }
        self.crew().threads.start(shared)?;
        if timed {
            self.crew().threads.start_watch(shared)?;
        }
        let links = if linked { Links::of(&mut tasks)? } else { Links::default() };
        let Admitted { mut records, replaced, told } = admit_all(shared, tasks, &links, replace)?;
        accepted(records.iter().map(|record| shared.handle(record.clone())).collect());
        for task in &replaced {
            shared.complete_taken(task, told);
        }
        if shared.listeners.wants(EventKind::Scheduled) {
            records.iter().for_each(|task| shared.emit_next(EventKind::Scheduled, task));
        }
        shared.check_process()?;
        if linked {
            shared.block(&mut records);
        }
        shared.bring_all(records);
        Ok(())
    }

    /// Schedules `job` once, `delay` from now.
    ///
    /// # Errors
    /// As [`Scheduler::schedule`]; [`Error::InvalidValue`] for a delay above 100 years.
    pub fn after<Kind>(
        &self,
        delay: Duration,
        job: impl IntoJob<Kind>,
    ) -> Result<TaskHandle, Error> {
        check_duration("delay", delay)?;
        self.schedule(Task::new(self.now() + delay, job))
    }

    /// Schedules `job` again and again, the first time one step of `rule` from now.
    ///
    /// # Errors
    /// As [`Scheduler::schedule`].
    pub fn every<Kind>(
        &self,
        rule: impl Recurrence,
        job: impl IntoJob<Kind>,
    ) -> Result<TaskHandle, Error> {
        rule.check()?;
        let now = self.now();
        let first = rule.next_due(now, now).ok().flatten().map_or(now, |next| next.due);
        self.schedule(Task::new(first, job).recurrence(rule))
    }

    /// Cancels the task of this id.
    ///
    /// | the task is | answer | effect |
    /// |---|---|---|
    /// | waiting | `Cancelled` | it never runs again, and its job is dropped at once |
    /// | running | `Stopping` | this run finishes; no retry and no next slot follows |
    /// | finished | `Finished` | none |
    /// | not known | `Unknown` | none |
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn cancel(&self, id: impl Into<TaskId>) -> Result<CancelOutcome, Error> {
        let shared = self.checked()?;
        let holder = shared.queue.lock().registry.find(&id.into());
        Ok(match holder {
            Some(Holder::Live(task)) => shared.handle(task).cancel()?,
            Some(Holder::Finished(_)) => CancelOutcome::Finished,
            None => CancelOutcome::Unknown,
        })
    }

    /// The live task of this id.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn get(&self, id: impl Into<TaskId>) -> Result<Option<TaskHandle>, Error> {
        let shared = self.checked()?;
        let holder = shared.queue.lock().registry.find(&id.into());
        Ok(match holder {
            Some(Holder::Live(task)) => Some(shared.handle(task)),
            _ => None,
        })
    }

    /// What is known of the task of this id, live or finished.
    ///
    /// # Errors
    /// [`Error::UnknownTask`], [`Error::Forked`].
    pub fn info(&self, id: impl Into<TaskId>) -> Result<TaskInfo, Error> {
        let id = id.into();
        let shared = self.checked()?;
        let holder = shared.queue.lock().registry.find(&id);
        match holder {
            Some(Holder::Live(task)) => Ok(task.info()),
            Some(Holder::Finished(info)) => Ok(info),
            None => Err(Error::UnknownTask(id)),
        }
    }

    /// What is known of all tasks in `state`, or of all.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn tasks(&self, state: Option<TaskState>) -> Result<Vec<TaskInfo>, Error> {
        let room = self.checked()?.queue.lock();
        let finished: Vec<TaskInfo> = room.registry.finished().collect();
        let mut live: Vec<TaskRef> = room.registry.live().cloned().collect();
        drop(room);
        live.sort_by_key(|task| task.number);
        let all = finished.into_iter().chain(live.iter().map(|task| task.info()));
        Ok(all.filter(|info| state.is_none_or(|state| info.state == state)).collect())
    }

    /// Forgets a finished task, so that its id is free.
    ///
    /// # Errors
    /// [`Error::UnknownTask`]; [`Error::TaskWaiting`] or [`Error::TaskRunning`] for a live task;
    /// [`Error::Forked`].
    pub fn forget(&self, id: impl Into<TaskId>) -> Result<(), Error> {
        let id = id.into();
        let mut room = self.checked()?.queue.lock();
        match room.registry.find(&id) {
            Some(Holder::Finished(_)) => {
                room.registry.forget(&id);
                Ok(())
            }
            Some(Holder::Live(task)) if task.state.get() == TaskState::Running => {
                Err(Error::TaskRunning(id))
            }
            Some(Holder::Live(_)) => Err(Error::TaskWaiting(id)),
            None => Err(Error::UnknownTask(id)),
        }
    }

    /// How many worker threads it has.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.shared().workers
    }

    /// What its threads are called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// The time on the scheduler's clock.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.shared().clock.now()
    }

    /// When the earliest waiting task is due, of those that are not paused. One that waits for others
    /// is not due before they end, so it does not count.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn next_due(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.checked()?.queue.lock().next_due())
    }

    /// Says that the clock was moved, for clocks that do not say so themselves.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wake(&self) -> Result<(), Error> {
        crate::clock::Driven::moved(&**self.checked()?);
        Ok(())
    }

    /// The scheduler's numbers.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn stats(&self) -> Result<Stats, Error> {
        Ok(self.checked()?.queue.stats())
    }

    /// Has `listener` told of events of these kinds, from now on.
    ///
    /// # Errors
    /// [`Error::SpawnWorker`] if a listener for DUE needs a thread that the system does not give;
    /// [`Error::Forked`].
    pub fn add_listener(
        &self,
        listener: impl Listener,
        kinds: &[EventKind],
    ) -> Result<ListenerId, Error> {
        let shared = self.checked()?;
        // Where nobody but the mover moves the clock, the mover sends DUE.
        if kinds.contains(&EventKind::Due) && shared.queue.moves_by_itself() {
            self.crew().threads.start_announcer(shared)?;
        }
        Ok(shared.listeners.add(Arc::new(listener), kinds, |now| shared.listen(now)))
    }

    /// Removes a listener; `false` if it was removed before.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn remove_listener(&self, id: ListenerId) -> Result<bool, Error> {
        let shared = self.checked()?;
        Ok(shared.listeners.remove(id, |now| shared.listen(now)))
    }

    /// A reference that does not keep the scheduler open.
    #[must_use]
    pub fn downgrade(&self) -> WeakScheduler {
        WeakScheduler(Arc::downgrade(&self.owner))
    }

    /// Whether this is the process in which it was made, and not a fork of it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<(), Error> {
        self.checked().map(drop)
    }

    /// Removes all listeners.
    #[doc(hidden)]
    pub fn clear_listeners(&self) {
        self.shared().listeners.clear(|now| self.shared().listen(now));
    }

    /// Shows every user value that only the scheduler owns (waiting jobs, rules, listeners,
    /// watchers, the clock), for a garbage collector that has to see them. `show` must only look.
    #[doc(hidden)]
    pub fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Ok(shared) = self.checked() {
            shared.visit(show);
        }
    }
}

/// A reference to a scheduler that does not keep it open.
#[derive(Clone)]
pub struct WeakScheduler(Weak<Owner>);

impl WeakScheduler {
    /// The scheduler, if somebody still has it.
    #[must_use]
    pub fn upgrade(&self) -> Option<Scheduler> {
        self.0.upgrade().map(|owner| Scheduler { owner })
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}
