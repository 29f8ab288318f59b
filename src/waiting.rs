//! Waiting for a scheduler: for quiet, and for the end. Invariant: every wait ends by an event, and
//! none is begun by a thread that the scheduler itself waits for.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::deadline;
use crate::closing::Shutdown;
use crate::crew::WakerKey;
use crate::error::Error;
use crate::scheduler::Scheduler;
use crate::sync::Signal;

impl Scheduler {
    /// Waits until nothing runs and nothing is due, and the listeners have been told of it all;
    /// `false` if `timeout` came first.
    ///
    /// # Errors
    /// [`Error::InsideJob`] from a job, listener or callback of this scheduler; [`Error::Forked`].
    pub fn wait_idle(&self, timeout: Option<Duration>) -> Result<bool, Error> {
        let deadline = deadline(timeout);
        let signal = Arc::new(Signal::default());
        let waker = Arc::clone(&signal);
        let Some(key) = self.when_idle(move || waker.give())? else {
            return Ok(true);
        };
        let idle = signal.wait(deadline);
        if !idle {
            self.forget_waker(key);
        }
        Ok(idle)
    }

    /// Has `waker` called once when nothing runs and nothing is due; `None` if that is now.
    ///
    /// # Errors
    /// As [`Scheduler::wait_idle`].
    pub fn when_idle(
        &self,
        waker: impl FnOnce() + Send + 'static,
    ) -> Result<Option<WakerKey>, Error> {
        let shared = self.checked()?;
        if shared.is_inside() {
            return Err(Error::InsideJob("wait_idle"));
        }
        let key = shared.queue.when_quiet(shared.clock.now(), false, Box::new(waker));
        Ok(key.map(WakerKey))
    }

    /// Takes a waker back that was not called yet.
    pub fn forget_waker(&self, key: WakerKey) {
        self.crew().forget_waker(key);
    }

    /// Shuts down and waits for the running jobs to end. See [`Scheduler::shutdown_with`].
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn shutdown(&self) -> Result<bool, Error> {
        self.shutdown_with(Shutdown::wait())
    }

    /// Refuses new tasks, tells running jobs to stop and cancels waiting tasks. Says whether all
    /// jobs have ended. From a job, listener or callback of its own it never waits. May be called
    /// again.
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn shutdown_with(&self, how: Shutdown) -> Result<bool, Error> {
        let deadline = deadline(how.timeout);
        let crew = self.crew();
        crew.close(how.drain)?;
        let signal = Arc::new(Signal::default());
        let waker = Arc::clone(&signal);
        let Some(key) = crew.when_ended(move || waker.give())? else {
            crew.join();
            return Ok(true);
        };
        let ended = how.wait && !self.is_inside() && signal.wait(deadline);
        if ended {
            crew.join();
        } else {
            crew.forget_waker(key);
        }
        Ok(ended)
    }

    /// Whether the calling code is such that the scheduler cannot end, or be idle, before it
    /// returns: a job, a listener or a callback, or the `Drop` of a value that a task held.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.shared().is_inside()
    }

    /// Whether it was shut down and its last job has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.crew().has_ended()
    }

    /// Whether it was shut down.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.checked().is_ok_and(|shared| shared.queue.lock().registry.is_closed())
    }
}
