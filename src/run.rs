//! What a job sees of its run. Invariant: it can be kept and asked after the run, and then still
//! tells the truth.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Weak;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::job::{Job, Outcome, run_contained};
use crate::record::TaskRef;
use crate::state::CancelOutcome;
use crate::sync::Generation;

/// One execution of a task, as its job sees it.
#[derive(Clone)]
pub struct Run {
    pub(crate) task: TaskRef,
    pub(crate) host: Weak<dyn Host>,
    pub(crate) due: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) attempt: u64,
    pub(crate) number: u64,
}

/// The scheduler, as its tasks see it.
pub(crate) trait Host: Send + Sync {
    /// Sleeps until the run is told to stop, or until `duration` has passed on the clock.
    fn sleep(&self, task: &TaskRef, duration: Duration);

    /// The time on its clock.
    fn now(&self) -> Timestamp;

    /// Cancels a task.
    fn cancel(&self, task: &TaskRef) -> CancelOutcome;
}

impl Run {
    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        self.task.id()
    }

    /// When this run was due.
    #[must_use]
    pub fn due(&self) -> Timestamp {
        self.due
    }

    /// What the clock showed when the run started.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// 1 for the first run of a slot, 2 for its first retry, and so on.
    #[must_use]
    pub fn attempt(&self) -> u64 {
        self.attempt
    }

    /// 1 for the task's first run, and so on.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Whether the task was cancelled, or its scheduler shut down, since the run started.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        self.task.state.is_stopping()
    }

    /// Sleeps for `duration` on the scheduler's clock, or until the run is told to stop. Returns
    /// [`Run::stop_requested`].
    #[must_use]
    pub fn wait(&self, duration: Duration) -> bool {
        if let Some(host) = self.host.upgrade() {
            host.sleep(&self.task, duration);
        }
        self.stop_requested()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id())
            .field("due", &self.due)
            .field("now", &self.now)
            .field("attempt", &self.attempt)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

thread_local! {
    /// The run of the job that this thread is in.
    static CURRENT: RefCell<Option<Run>> = const { RefCell::new(None) };
    /// How many listeners and callbacks this thread is in.
    static TELLING: Cell<u32> = const { Cell::new(0) };
    /// The process in which it went into them. A child that one of them forks is in none.
    static ENTERED: Cell<Option<Generation>> = const { Cell::new(None) };
}

/// The run that the calling code is part of, if it is part of one.
///
/// ```
/// assert!(duetime::current_run().is_none());
/// ```
#[must_use]
pub fn current_run() -> Option<Run> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs `job` as `run`; gives the task back.
pub(crate) fn run_job(job: &mut dyn Job, run: Run) -> (Outcome, TaskRef) {
    ENTERED.set(Some(Generation::current()));
    CURRENT.set(Some(run));
    let outcome = CURRENT.with_borrow(|run| match run {
        Some(run) => run_contained(job, run),
        None => unreachable!("set above, and taken only below"),
    });
    match CURRENT.take() {
        Some(run) => (outcome, run.task),
        None => unreachable!("set above"),
    }
}

/// Runs a listener or callback.
pub(crate) fn tell<T>(code: impl FnOnce() -> T) -> T {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            TELLING.set(TELLING.get() - 1);
        }
    }
    ENTERED.set(Some(Generation::current()));
    TELLING.set(TELLING.get() + 1);
    let _leave = Leave;
    code()
}

/// Whether this thread is inside a job, a listener or a callback, where waiting for the scheduler
/// to be quiet would wait for itself.
#[must_use]
pub fn inside() -> bool {
    ENTERED.get() == Some(Generation::current())
        && (TELLING.get() > 0 || CURRENT.with_borrow(Option::is_some))
}

/// Whether the calling code is part of a run of `task`.
pub(crate) fn inside_run_of(task: &TaskRef) -> bool {
    CURRENT.with_borrow(|run| run.as_ref().is_some_and(|run| TaskRef::ptr_eq(&run.task, task)))
}
