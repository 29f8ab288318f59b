//! A scheduled task as its holder sees it. Invariant: a handle keeps the task's result alive and
//! nothing else: no job runs because of it, and no scheduler lives on.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::clock::{Timestamp, deadline};
use crate::ending::{Ended, Watch};
use crate::error::Error;
use crate::id::TaskId;
use crate::info::TaskInfo;
use crate::inside::{Place, enter, holds};
use crate::job::{JobError, Value, contain, discard};
use crate::record::TaskRef;
use crate::run::{Host, Run, identity, inside_run_of};
use crate::state::{CancelOutcome, TaskState};
use crate::sync::{Generation, Signal};

/// How a task ended, for whoever asks for its result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// Its last run failed.
    Failed(JobError),
    /// It was cancelled.
    Cancelled,
    /// It has not ended within the timeout.
    Timeout,
    /// The call was made by the task's own job, or by a listener that the task waits for: it would
    /// wait for itself.
    InsideJob,
    /// The task belongs to the process that was forked.
    Forked,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::Cancelled => f.write_str("the task was cancelled"),
            Self::Timeout => f.write_str("the task has not ended within the timeout"),
            Self::InsideJob => {
                f.write_str("a job or listener cannot wait for a task that waits for it")
            }
            Self::Forked => Error::Forked.fmt(f),
        }
    }
}

impl std::error::Error for TaskError {}

/// A scheduled task, as the caller holds it. Clones are of the same task. Dropping it changes
/// nothing but that the task's result is no longer kept.
#[derive(Clone)]
pub struct TaskHandle {
    pub(crate) record: TaskRef,
    pub(crate) host: Weak<dyn Host>,
    pub(crate) made_in: Generation,
}

impl Drop for TaskHandle {
    /// With the last handle goes what only a handle can ask for. A cancelled task's entry stays in the
    /// queue for a while, and would keep it.
    fn drop(&mut self) {
        if self.state() == TaskState::Cancelled
            && let Some(host) = self.host_of_last()
        {
            host.release(&self.record);
        }
    }
}

impl TaskHandle {
    /// The scheduler, if of a cancelled task it seems to have the entry, and nobody else anything but
    /// this handle.
    fn host_of_last(&self) -> Option<Arc<dyn Host>> {
        let is_last = self.state() == TaskState::Cancelled && TaskRef::count(&self.record) == 2;
        let is_wanted = is_last && self.record.keeps_anything() && self.check_process().is_ok();
        if is_wanted { self.host.upgrade() } else { None }
    }
}

/// Names a watcher for [`TaskHandle::unwatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WatchKey(u64);

impl TaskHandle {
    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.record.id()
    }

    /// Where the task is in its life.
    #[must_use]
    pub fn state(&self) -> TaskState {
        self.record.state.get()
    }

    /// When the task is due, or was due last.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.record.due()
    }

    /// The task's priority.
    #[must_use]
    pub fn priority(&self) -> i32 {
        self.record.priority
    }

    /// The task's group, if it is of one; `None` also if the scheduler is gone.
    #[must_use]
    pub fn group(&self) -> Option<String> {
        let (group, _) = self.record.bonds();
        Some(self.host.upgrade()?.group(group?))
    }

    /// The ids of the tasks that it depends on, whether they have ended or not.
    ///
    /// ```
    /// # let scheduler = duetime::Scheduler::new();
    /// use duetime::Task;
    /// let build = scheduler.schedule(Task::new(scheduler.now(), || ()).id("build"))?;
    /// let test = scheduler.schedule(Task::new(scheduler.now(), || ()).depends_on([&build]))?;
    /// assert_eq!(test.depends_on(), ["build".into()]);
    /// # Ok::<_, duetime::Error>(())
    /// ```
    #[must_use]
    pub fn depends_on(&self) -> Vec<TaskId> {
        self.record.bonds().1.map_or_else(Vec::new, |ids| ids.to_vec())
    }

    /// Whether this is the process in which the task was scheduled, and not a fork of it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<(), Error> {
        self.made_in.check()
    }

    /// All that is known of the task.
    #[must_use]
    pub fn info(&self) -> TaskInfo {
        self.record.info()
    }

    /// The time on the scheduler's clock; `None` if the scheduler is gone.
    #[must_use]
    pub fn now(&self) -> Option<Timestamp> {
        Some(self.host.upgrade()?.now())
    }

    /// The next `count` due times, as if each run ended in the instant in which it is due; fewer
    /// if the series ends before. The first is that of the run that waits, a retry included; while
    /// the task runs, that of the run that follows if this one ends now and is not retried. None
    /// for a task that has ended or was told to stop. Jitter is left out of all but the first.
    ///
    /// Nothing is run and nothing changes; a recurrence of your own is asked, on this thread.
    ///
    /// ```
    /// use duetime::{FixedRate, ManualClock, Scheduler, Timestamp};
    /// use std::time::Duration;
    /// let scheduler = Scheduler::builder().clock(ManualClock::new()).build()?;
    /// let tick = scheduler.every(FixedRate::new(Duration::from_nanos(30)), || ())?;
    /// let at = Timestamp::from_nanos;
    /// assert_eq!(tick.preview(3)?, [at(30), at(60), at(90)]);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`TaskError::Failed`] with the recurrence's error, [`TaskError::Forked`].
    pub fn preview(&self, count: usize) -> Result<Vec<Timestamp>, TaskError> {
        self.check_process().map_err(|_| TaskError::Forked)?;
        let ahead = self.record.ahead();
        let now = self.now().unwrap_or(Timestamp::MIN);
        let dues = ahead.preview(count, now).map_err(TaskError::Failed);
        // It may be the last to hold the user's rule.
        discard(ahead);
        dues
    }

    /// What [`Task::label`](crate::Task::label) put on the task.
    #[must_use]
    pub fn label(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        self.record.label()
    }

    /// The same; if there is none, it is `label` from now on.
    #[doc(hidden)]
    #[must_use]
    pub fn label_or(&self, label: Arc<dyn Any + Send + Sync>) -> Arc<dyn Any + Send + Sync> {
        self.record.label_or(label)
    }

    /// Why its last failed run failed; also of a series that goes on.
    #[must_use]
    pub fn last_error(&self) -> Option<JobError> {
        self.record.last_error()
    }

    /// Whether the calling code is part of a run of this task.
    #[must_use]
    pub fn is_current(&self) -> bool {
        inside_run_of(&self.record)
    }

    /// Whether `run` is one of this task's.
    #[must_use]
    pub fn is_task_of(&self, run: &Run) -> bool {
        run.is_of(&self.record, &self.host)
    }

    /// Whether the task cannot end before the calling code returns: its own job, or a listener
    /// that is being told of it, or those of a task that it depends on; in a listener for DUE that
    /// goes for every task of the scheduler, for nothing starts meanwhile.
    #[must_use]
    pub fn waits_for_caller(&self) -> bool {
        let held = || holds(identity(&self.host), &self.record);
        let behind = || self.host.upgrade().is_some_and(|host| host.is_behind_caller(&self.record));
        !self.state().is_end() && (self.is_current() || held() || behind())
    }

    /// Shows what the task ended with (a [`Value`] or a [`JobError`]) and its label, if this handle
    /// is the only one that keeps them; for a garbage collector. `show` must only look.
    #[doc(hidden)]
    pub fn visit_outcome(&self, show: &mut dyn FnMut(&dyn Any)) {
        if TaskRef::is_unique(&self.record) {
            self.record.visit_outcome(show);
        } else if let Some(host) = self.host_of_last() {
            host.visit_outcome(&self.record, show);
        }
    }

    /// Lets go of what [`TaskHandle::visit_outcome`] shows.
    #[doc(hidden)]
    pub fn drop_outcome(&self) {
        if TaskRef::is_unique(&self.record) {
            drop(self.record.take_outcome());
        } else if let Some(host) = self.host_of_last() {
            host.release(&self.record);
        }
    }

    /// Cancels the task; see [`Scheduler::cancel`](crate::Scheduler::cancel).
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn cancel(&self) -> Result<CancelOutcome, Error> {
        self.check_process()?;
        // A scheduler that is gone has cancelled all that waited.
        let host = self.host.upgrade();
        Ok(host.map_or(CancelOutcome::Finished, |host| host.cancel(&self.record)))
    }

    /// How the task ended: its result, or why there is none. `None` if it has not ended.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<Value, TaskError>> {
        Some(match self.record.ended()? {
            Ended::Done(value) => Ok(value),
            Ended::Failed(error) => Err(TaskError::Failed(error)),
            Ended::Cancelled => Err(TaskError::Cancelled),
        })
    }

    /// Waits for the end of the task and gives its result: that of the last run.
    ///
    /// # Errors
    /// See [`TaskError`].
    pub fn result(&self, timeout: Option<Duration>) -> Result<Value, TaskError> {
        if self.check_process().is_err() {
            return Err(TaskError::Forked);
        }
        if self.waits_for_caller() {
            return Err(TaskError::InsideJob);
        }
        if !self.wait(timeout) {
            return Err(TaskError::Timeout);
        }
        self.outcome().unwrap_or(Err(TaskError::Timeout))
    }

    /// Waits for the end of the task; `false` if `timeout` came first. Where waiting would be for
    /// ever it gives `false` at once: if [`TaskHandle::waits_for_caller`], and in a forked child.
    #[must_use]
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        if self.check_process().is_err() || self.waits_for_caller() {
            return false;
        }
        let deadline = deadline(timeout);
        let signal = Arc::new(Signal::default());
        let waker = Arc::clone(&signal);
        let Ok(key) = self.watch(move |_: &Self| waker.give()) else {
            return true;
        };
        let ended = signal.wait(deadline);
        if !ended {
            self.unwatch(key);
        }
        ended
    }

    /// Has `watcher` called once, after the task ended, on the thread that ended it.
    ///
    /// # Errors
    /// The watcher, if the end was before: then it was not called and never will be.
    pub fn watch<W: Watcher>(&self, watcher: W) -> Result<WatchKey, W> {
        let bound = Bound { watcher, host: Weak::clone(&self.host), made_in: self.made_in };
        let key = self.record.watch(Box::new(bound)).map_err(|back| {
            let back: Box<dyn Any> = back;
            back.downcast::<Bound<W>>().map_or_else(|_| unreachable!("as given"), |b| b.watcher)
        })?;
        Ok(WatchKey(key))
    }

    /// Takes a watcher back that was not called yet.
    pub fn unwatch(&self, key: WatchKey) -> bool {
        self.record.unwatch(key.0).is_some()
    }

    /// Has `callback` called once when the task has ended; at once, on this thread, if it has.
    pub fn on_done<W: Watcher>(&self, callback: W) {
        if let Err(callback) = self.watch(callback) {
            let place = Place::telling(identity(&self.host), &self.record);
            drop(enter(place, || contain(|| callback.ended(self))));
        }
    }
}

/// Who wants to know of a task's end. Closures of one `&TaskHandle` are watchers too.
pub trait Watcher: Any + Send {
    /// The task ended. Called once, with no lock held.
    fn ended(self, task: &TaskHandle);
}

impl<F: FnOnce(&TaskHandle) + Send + 'static> Watcher for F {
    fn ended(self, task: &TaskHandle) {
        self(task);
    }
}

/// A watcher with what it takes to make the handle that it is given.
struct Bound<W> {
    watcher: W,
    host: Weak<dyn Host>,
    made_in: Generation,
}

impl<W: Watcher> Watch for Bound<W> {
    fn ended(self: Box<Self>, record: &TaskRef) {
        let Self { watcher, host, made_in } = *self;
        watcher.ended(&TaskHandle { record: record.clone(), host, made_in });
    }

    fn shown(&self) -> &dyn Any {
        &self.watcher
    }
}

impl fmt::Debug for TaskHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskHandle")
            .field("id", &self.id())
            .field("state", &self.state())
            .field("due", &self.due())
            .field("group", &self.group())
            .field("depends_on", &self.depends_on())
            .finish_non_exhaustive()
    }
}
