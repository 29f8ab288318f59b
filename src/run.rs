//! What a job sees of its run. Invariant: it can be kept and asked after the run, and then still
//! tells the truth.

use std::any::Any;
use std::cell::RefCell;
use std::convert::Infallible;
use std::fmt;
use std::mem;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::attempt::Attempt;
use crate::clock::{Alarm, Timestamp, Waker, deadline, instant};
use crate::error::Error;
use crate::id::TaskId;
use crate::inside::Identity;
use crate::job::{Job, Outcome, run_contained};
use crate::leash::Leash;
use crate::nap::{Look, Sleeper};
use crate::patience::Patience;
use crate::record::TaskRef;
use crate::slack::precisely;
use crate::state::{CancelOutcome, Control, ControlOutcome};
use crate::sync::{Generation, Signal};
use crate::timeout::Interrupt;

/// One execution of a task, as its job sees it.
///
/// A clone can be kept, and asked from any thread: it goes on telling of this run, and keeps
/// neither the task's result nor its error alive.
#[derive(Clone)]
pub struct Run {
    of: Of,
    host: Weak<dyn Host>,
    made_in: Generation,
    due: Timestamp,
    now: Timestamp,
    attempt: u64,
    number: u64,
    deadline: Option<Timestamp>,
}

/// The task that is run.
enum Of {
    /// As its worker has it, for as long as the run lasts.
    Running(TaskRef),
    /// As anybody else may keep it.
    Kept { id: TaskId, number: u64, leash: Arc<Leash> },
    /// None: the worker has ended it, and nobody sees what is left.
    Over,
}

impl Clone for Of {
    fn clone(&self) -> Self {
        match self {
            Self::Running(task) => {
                Self::Kept { id: task.id(), number: task.number, leash: task.leash() }
            }
            Self::Kept { id, number, leash } => {
                Self::Kept { id: id.clone(), number: *number, leash: Arc::clone(leash) }
            }
            Self::Over => Self::Over,
        }
    }
}

/// The scheduler, as its tasks see it.
pub(crate) trait Host: Send + Sync {
    /// Looks whether a run that sleeps on the clock goes on doing so; `None` if it does not.
    fn look(&self, sleeper: &Sleeper<'_>, patience: &mut Patience) -> Option<Look>;

    /// Has `waker` called once when the sleeper is to look again; `None` if that is now.
    fn nap(&self, sleeper: &Sleeper<'_>, look: Look, waker: Waker) -> Option<u64>;

    /// Takes back a waker that was not called.
    fn end_nap(&self, key: u64);

    /// The time on its clock.
    fn now(&self) -> Timestamp;

    /// Cancels a task.
    fn cancel(&self, task: &TaskRef) -> CancelOutcome;

    /// Drops what a cancelled task ended with if, besides the caller, only the queue keeps the task.
    fn release(&self, task: &TaskRef);

    /// Shows what a cancelled task ended with if, besides the caller, only the queue keeps the task.
    fn visit_outcome(&self, task: &TaskRef, show: &mut dyn FnMut(&dyn Any));

    /// Whether the task depends on one that cannot end before the calling code returns.
    fn is_behind_caller(&self, task: &TaskRef) -> bool;

    /// Has a run of a task's interrupted by that.
    fn set_interrupt(&self, task: u64, run: u64, interrupt: Arc<dyn Interrupt>);

    /// The name of a group.
    fn group(&self, group: u16) -> String;

    /// Run control over a task.
    fn control(&self, task: &TaskRef, control: Control) -> Result<ControlOutcome, Error>;
}

/// Which scheduler it is, even if it is gone.
pub(crate) fn identity(host: &Weak<dyn Host>) -> Identity {
    Identity(host.as_ptr().addr())
}

impl Run {
    fn new(
        attempt: Attempt,
        host: Weak<dyn Host>,
        made_in: Generation,
        deadline: Option<Timestamp>,
    ) -> Self {
        let Attempt { task, due, started: now, run: number, nth: attempt } = attempt;
        Self { of: Of::Running(task), host, made_in, due, now, attempt, number, deadline }
    }

    /// Makes it the next run of the same worker.
    fn renew(&mut self, attempt: Attempt, deadline: Option<Timestamp>) {
        let Attempt { task, due, started, run, nth } = attempt;
        self.of = Of::Running(task);
        (self.due, self.now, self.number, self.attempt) = (due, started, run, nth);
        self.deadline = deadline;
    }

    fn is_over(&self) -> bool {
        matches!(self.of, Of::Over)
    }

    /// The task's id.
    #[must_use]
    pub fn id(&self) -> TaskId {
        match &self.of {
            Of::Running(task) => task.id(),
            Of::Kept { id, .. } => id.clone(),
            Of::Over => unreachable!("nobody sees it"),
        }
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

    /// When the time of this run is up, if its task has a [`Task::timeout`](crate::Task::timeout).
    #[must_use]
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Whether the task was cancelled, its scheduler shut down, or the time of the run was up while it
    /// went on.
    #[must_use]
    pub fn stop_requested(&self) -> bool {
        match &self.of {
            Of::Running(task) => task.state.must_stop(),
            Of::Kept { leash, .. } => leash.is_pulled(),
            Of::Over => true,
        }
    }

    /// Sleeps for `duration` on the scheduler's clock, or until the run is told to stop. Returns
    /// [`Run::stop_requested`]. In a forked child, and without a scheduler, it returns at once; for a
    /// run that is kept after its end, when the scheduler closes.
    #[must_use]
    pub fn wait(&self, duration: Duration) -> bool {
        let done: Result<bool, Infallible> = self.wait_with(duration, |asleep| {
            asleep.block();
            Ok(())
        });
        done.unwrap_or_else(|never| match never {})
    }

    /// [`Run::wait`] for callers with a way of blocking of their own: `block` returns when it is to be
    /// looked again whether the sleep is over, or with an error, which ends the wait.
    ///
    /// # Errors
    /// What `block` answers.
    pub fn wait_with<E>(
        &self,
        duration: Duration,
        mut block: impl FnMut(&Asleep<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        if self.check_process().is_ok()
            && let Some(host) = self.host.upgrade()
        {
            let is_stopping = &|| self.stop_requested();
            let (task, whole_run) = (self.task_number(), self.is_current());
            let mut patience = Patience::default();
            let deadline = host.now() + duration;
            let sleeper = Sleeper { task, whole_run, deadline, is_stopping };
            // Each time anew: it may be a fork that ended the stretch before.
            while self.check_process().is_ok()
                && let Some(look) = host.look(&sleeper, &mut patience)
            {
                block(&Asleep { run: self, host: &*host, sleeper: &sleeper, look })?;
            }
        }
        Ok(self.stop_requested())
    }

    /// Has `interrupt` asked if the run outlives its task's timeout: at once, if it has. It takes the
    /// place of one that was given before. After the job's end it is let go.
    ///
    /// For a job that blocks where it does not see [`Run::stop_requested`], and can be made to return.
    /// Without a timeout, or in a run that has ended, nothing is done.
    ///
    /// ```
    /// use duetime::{Interrupt, Run, Scheduler, Task};
    /// use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
    /// use std::{io::Read, sync::Arc, time::Duration};
    /// struct Close(TcpStream);
    /// impl Interrupt for Close {
    ///     fn interrupt(&self) {
    ///         drop(self.0.shutdown(Shutdown::Both));
    ///     }
    /// }
    /// let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    /// let address = silent.local_addr()?;
    /// let scheduler = Scheduler::new();
    /// let fetch = Task::new(scheduler.now(), move |run: &Run| {
    ///     let mut stream = TcpStream::connect(address)?;
    ///     run.set_interrupt(Arc::new(Close(stream.try_clone()?)));
    ///     stream.read(&mut [0]) // for ever
    /// });
    /// let fetch = fetch.timeout(Duration::from_millis(10)).interrupt(true);
    /// assert!(scheduler.schedule(fetch)?.result(None).is_err());
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_interrupt(&self, interrupt: Arc<dyn Interrupt>) {
        if self.deadline.is_some()
            && let Some(host) = self.host.upgrade()
            && self.check_process().is_ok()
        {
            host.set_interrupt(self.task_number(), self.number, interrupt);
        }
    }

    /// Whether this is the process in which the run goes on, and not a fork of it.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn check_process(&self) -> Result<(), Error> {
        self.made_in.check()
    }

    fn task_number(&self) -> u64 {
        match &self.of {
            Of::Running(task) => task.number,
            Of::Kept { number, .. } => *number,
            Of::Over => 0,
        }
    }

    /// Whether it is a run of `task`, of the scheduler at `host`.
    pub(crate) fn is_of(&self, task: &TaskRef, host: &Weak<dyn Host>) -> bool {
        self.task_number() == task.number && Weak::ptr_eq(&self.host, host)
    }

    /// Whether the calling thread is the one that is in the middle of this run.
    #[must_use]
    pub fn is_current(&self) -> bool {
        current(|run| {
            let same = run.task_number() == self.task_number() && run.number == self.number;
            same && Weak::ptr_eq(&run.host, &self.host)
        })
    }
}

/// A stretch of a run's sleep on its scheduler's clock.
pub struct Asleep<'a> {
    run: &'a Run,
    host: &'a dyn Host,
    sleeper: &'a Sleeper<'a>,
    look: Look,
}

/// Names a waker for [`Asleep::forget`].
#[derive(Clone, Copy, Debug)]
pub struct NapKey(u64);

impl Asleep<'_> {
    /// How long to sleep at most; `None` where only the waker ends the sleep.
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.until().map(|until| until.saturating_duration_since(instant()))
    }

    /// Has `waker` called once when the run is to stop, or its clock was moved; `None` if that is
    /// now.
    pub fn when_over(&self, waker: Waker) -> Option<NapKey> {
        self.host.nap(self.sleeper, self.look, waker).map(NapKey)
    }

    /// Takes a waker back that was not called.
    pub fn forget(&self, key: NapKey) {
        if self.run.check_process().is_ok() {
            self.host.end_nap(key.0);
        }
    }

    fn until(&self) -> Option<Instant> {
        match self.look.alarm {
            Alarm::At(instant) => Some(instant),
            Alarm::After(time) => deadline(Some(time)),
            Alarm::Never => None,
        }
    }

    fn block(&self) {
        let signal = Arc::new(Signal::default());
        let waker = Arc::clone(&signal);
        if let Some(key) = self.when_over(Box::new(move || waker.give())) {
            precisely(self.look.alarm, || signal.wait(self.until()));
            self.forget(key);
        }
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
    /// The run of the job that this thread is in, or what is left of the last one.
    static CURRENT: RefCell<Option<Run>> = const { RefCell::new(None) };
}

/// The run that the calling code is part of, if it is part of one. A child that a job forks is
/// not.
///
/// ```
/// assert!(duetime::current_run().is_none());
/// ```
#[must_use]
pub fn current_run() -> Option<Run> {
    let here = |run: &&Run| !run.is_over() && run.check_process().is_ok();
    CURRENT.try_with(|run| run.borrow().as_ref().filter(here).cloned()).ok().flatten()
}

/// Asks the run that this thread is in the middle of; `false` if there is none.
fn current(question: impl FnOnce(&Run) -> bool) -> bool {
    let ask = |run: &RefCell<Option<Run>>| match &*run.borrow() {
        Some(run) => !run.is_over() && question(run),
        None => false,
    };
    CURRENT.try_with(ask).unwrap_or(false)
}

/// Runs `job` as the run of `attempt` of the worker's scheduler at `host`; gives the task back.
pub(crate) fn run_job(
    job: &mut dyn Job,
    attempt: Attempt,
    deadline: Option<Timestamp>,
    host: &Weak<dyn Host>,
    made_in: Generation,
) -> (Outcome, TaskRef) {
    CURRENT.with(|current| {
        match &mut *current.borrow_mut() {
            // Workers that count references run by run would wait for one another.
            Some(run) => run.renew(attempt, deadline),
            first => *first = Some(Run::new(attempt, Weak::clone(host), made_in, deadline)),
        }
        let outcome = match &*current.borrow() {
            Some(run) => run_contained(job, run),
            None => unreachable!("set above"),
        };
        match current.borrow_mut().as_mut().map(|run| mem::replace(&mut run.of, Of::Over)) {
            Some(Of::Running(task)) => (outcome, task),
            _ => unreachable!("set above, and a run that is kept is another one"),
        }
    })
}

/// Whether the calling code is part of a run of one of `those` tasks of a scheduler, by its number.
pub(crate) fn inside_run_of_any(scheduler: Identity, those: impl Fn(u64) -> bool) -> bool {
    current(|run| identity(&run.host) == scheduler && those(run.task_number()))
}

/// Whether the calling code is part of a run of `task`.
pub(crate) fn inside_run_of(task: &TaskRef) -> bool {
    current(|run| matches!(&run.of, Of::Running(running) if TaskRef::ptr_eq(running, task)))
}
