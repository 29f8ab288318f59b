//! A scheduler's threads, with what they work on. Invariant: a crew outlives its scheduler for as long
//! as one of its threads runs, so that the end of a program can wait for it; it keeps no scheduler
//! open.

use std::sync::{Arc, Weak};

use crate::closing::close;
use crate::error::Error;
use crate::handle::TaskHandle;
use crate::manual_clock::ManualClock;
use crate::shared::Shared;
use crate::surroundings::Plain;
use crate::threads::Threads;

/// The threads of a scheduler, for whoever has to wait for them even when the scheduler itself is
/// gone: a scheduler that is dropped leaves its running jobs behind.
///
/// ```
/// use duetime::Scheduler;
/// use std::sync::mpsc;
/// let (sender, receiver) = mpsc::channel();
/// let scheduler = Scheduler::new();
/// let crew = scheduler.crew().clone();
/// drop(scheduler);
/// let waits = crew.when_ended(move || sender.send(()).unwrap())?.is_some();
/// assert!(!waits || receiver.recv().is_ok());
/// # Ok::<_, duetime::Error>(())
/// ```
#[derive(Clone)]
pub struct Crew {
    pub(crate) shared: Arc<Shared>,
    pub(crate) threads: Arc<Threads>,
}

/// Names a waker for [`Crew::forget_waker`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WakerKey(pub(crate) u64);

impl Crew {
    /// Refuses new tasks, cancels the waiting ones (with `drain` all but those that are due) and
    /// tells the running ones to stop. Waits for nothing.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn close(&self, drain: bool) -> Result<(), Error> {
        self.shared.check_process()?;
        close(&self.shared, drain);
        Ok(())
    }

    /// Has `waker` called once when the scheduler was closed and its last job has ended; `None` if
    /// that was before.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn when_ended(
        &self,
        waker: impl FnOnce() + Send + 'static,
    ) -> Result<Option<WakerKey>, Error> {
        self.shared.check_process()?;
        Ok(self.shared.queue.when_exited(Box::new(waker)).map(WakerKey))
    }

    /// Takes a waker back that was not called yet.
    pub fn forget_waker(&self, key: WakerKey) {
        if self.shared.check_process().is_ok() {
            self.shared.queue.forget_waker(key.0);
        }
    }

    /// Waits for the threads themselves, once the last job has ended, as [`Crew::when_ended`] told.
    /// Called by one of them, it returns at once.
    pub fn join(&self) {
        if self.shared.check_process().is_ok() && !self.shared.is_inside() {
            self.threads.join();
        }
    }

    /// Whether the scheduler was closed and its last job has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let ours = self.shared.check_process().is_ok();
        ours && self.shared.queue.lock().registry.is_closed() && self.shared.queue.is_deserted()
    }

    /// A reference that keeps nothing.
    #[must_use]
    pub fn downgrade(&self) -> WeakCrew {
        WeakCrew(Arc::downgrade(&self.shared), Arc::downgrade(&self.threads))
    }
}

/// A reference to a crew that does not keep it.
#[derive(Clone)]
pub struct WeakCrew(Weak<Shared>, Weak<Threads>);

impl WeakCrew {
    /// Whether neither the scheduler nor one of its threads nor a run of it lives.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// Whether a task is of this scheduler.
    ///
    /// ```
    /// use duetime::Scheduler;
    /// use std::time::Duration;
    /// let (one, other) = (Scheduler::new(), Scheduler::new());
    /// let task = one.after(Duration::from_secs(60), || ())?;
    /// assert!(one.crew().downgrade().has(&task) && !other.crew().downgrade().has(&task));
    /// # Ok::<_, duetime::Error>(())
    /// ```
    #[must_use]
    pub fn has(&self, task: &TaskHandle) -> bool {
        task.host.as_ptr().addr() == self.0.as_ptr().addr()
    }

    /// Whether the scheduler is on this clock.
    ///
    /// ```
    /// use duetime::{ManualClock, Scheduler};
    /// let clock = ManualClock::new();
    /// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
    /// let crew = scheduler.crew().downgrade();
    /// assert!(crew.is_on(&clock) && !crew.is_on(&ManualClock::new()));
    /// # Ok::<_, duetime::Error>(())
    /// ```
    #[must_use]
    pub fn is_on(&self, clock: &ManualClock) -> bool {
        self.0.upgrade().is_some_and(|shared| clock.drives(Arc::as_ptr(&shared).addr()))
    }

    /// The crew, if the scheduler, one of its threads or a run of it still lives.
    #[must_use]
    pub fn upgrade(&self) -> Option<Crew> {
        // Without threads there may still be a run that went on elsewhere.
        let threads = self.1.upgrade().unwrap_or_else(|| Arc::new(Threads::new(Box::new(Plain))));
        Some(Crew { shared: self.0.upgrade()?, threads })
    }
}
