//! Runs that go on after their job returned. Invariant: such a run ends exactly once: by what its
//! [`Completion`] is given or, when that is dropped without, as failed.

use std::fmt;

use crate::job::{JobError, NeverEnded, Outcome, contain};

/// A job's answer that its run is not over: it goes on elsewhere, and no worker is held meanwhile.
///
/// The task stays RUNNING until the [`Completion`] is given an outcome; only then retries, the
/// next slot and the listeners take their course, as for any run. Whoever moves a manual clock waits
/// for its end; so it must not sleep in [`Run::wait`](crate::Run::wait), which waits for that clock.
///
/// ```
/// use duetime::{Completion, Later, Scheduler, Value};
/// use std::{sync::mpsc, thread, time::Duration};
///
/// let (send, receive) = mpsc::channel::<(u64, Completion)>();
/// thread::spawn(move || {
///     // All three go on at once, though there is one worker.
///     let under_way: Vec<_> = receive.iter().take(3).collect();
///     under_way.into_iter().for_each(|(n, completion)| completion.finish(Value::new(n * n)));
/// });
/// let scheduler = Scheduler::builder().workers(1).build()?;
/// let mut tasks = Vec::new();
/// for n in 0..3 {
///     let send = send.clone();
///     tasks.push(scheduler.after(Duration::ZERO, move || {
///         let send = send.clone();
///         Later::new(move |completion| send.send((n, completion)).expect("somebody is there"))
///     })?);
/// }
/// assert_eq!(tasks[2].result(None).unwrap().downcast_ref(), Some(&4_u64));
/// # Ok::<_, duetime::Error>(())
/// ```
pub struct Later(Box<dyn FnOnce(Completion) + Send>);

impl Later {
    /// `launch` is called once, on the worker, when the job has returned, to hand the completion
    /// to whoever ends the run. If it panics, the run has failed.
    pub fn new(launch: impl FnOnce(Completion) + Send + 'static) -> Self {
        Self(Box::new(launch))
    }

    pub(crate) fn launch(self, completion: Completion) {
        (self.0)(completion);
    }
}

impl From<Later> for Outcome {
    fn from(later: Later) -> Self {
        Self::Later(later)
    }
}

impl fmt::Debug for Later {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Later")
    }
}

/// What a run that goes on elsewhere is ended with, from any thread.
pub struct Completion {
    /// Gone with the end.
    run: Option<Box<dyn Unfinished>>,
}

/// Called when a run that goes on elsewhere is told to stop.
pub(crate) type StopHook = Box<dyn FnOnce() + Send>;

/// A run after its job returned, as its completion sees it.
pub(crate) trait Unfinished: Send {
    /// Ends the run. `gave_way`: it ends because it was told to stop.
    fn end(self: Box<Self>, outcome: Outcome, gave_way: bool);

    /// Has `hook` called once the run is told to stop; gives it back if it was.
    fn on_stop(&self, hook: StopHook) -> Option<StopHook>;

    /// Whether the run was given up as stuck.
    fn is_stuck(&self) -> bool;
}

impl Completion {
    pub(crate) fn new(run: impl Unfinished + 'static) -> Self {
        Self { run: Some(Box::new(run)) }
    }

    /// Ends the run. With an [`Outcome::Later`] it goes on, and that is launched here.
    pub fn finish(mut self, outcome: impl Into<Outcome>) {
        match outcome.into() {
            Outcome::Later(later) => later.launch(self),
            outcome => self.end(outcome, false),
        }
    }

    /// Ends the run as failed, because it was told to stop and gave way: its task is CANCELLED. If
    /// nobody told it to, it is a failure like any other.
    pub fn give_way(mut self, error: JobError) {
        self.end(Outcome::Failed(error), true);
    }

    /// Has `hook` called once, when the task is cancelled, the scheduler shut down, or the run's time
    /// up; at once if that was before. It is called on the thread that does so, with no lock held. A later hook
    /// takes the place of one that was not called. After the end none is called.
    pub fn on_stop(&self, hook: impl FnOnce() + Send + 'static) {
        if let Some(hook) = self.try_on_stop(Box::new(hook)) {
            drop(contain(hook));
        }
    }

    /// The same for a caller who holds a lock: `hook` is given back if it is to be called at once.
    #[doc(hidden)]
    #[must_use]
    pub fn try_on_stop(&self, hook: StopHook) -> Option<StopHook> {
        self.run.as_ref().and_then(|run| run.on_stop(hook))
    }

    /// Whether the run was given up as stuck, long after its timeout: its task has ended, and what the
    /// run ends with is of no use any more.
    #[must_use]
    pub fn is_stuck(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.is_stuck())
    }

    fn end(&mut self, outcome: Outcome, gave_way: bool) {
        if let Some(run) = self.run.take() {
            run.end(outcome, gave_way);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        self.end(Outcome::Failed(JobError::new(NeverEnded {})), false);
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}
