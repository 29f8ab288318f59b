//! The threads of a scheduler. Invariant: all are started together, with the first task; what
//! cannot be started is tried again with the next one.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::error::Error;
use crate::room::Phase;
use crate::shared::Shared;
use crate::sync::{AtomicBool, Ordering, SmallMutex};
use crate::worker::{self, Surroundings};

/// As much stack as a main thread usually has, where std gives a quarter of it: a recursion that
/// Python allows must not end the process on a worker. Only what is used takes memory.
const STACK: usize = 8 << 20;

/// Each of the workers keeps it too: as long as one runs, there is something to wait for.
pub(crate) struct Threads {
    surroundings: Box<dyn Surroundings>,
    /// Whether all workers run. Set once; Acquire and Release order it after their start.
    complete: AtomicBool,
    started: SmallMutex<Started>,
    /// Held while the threads are joined: who comes second waits for them as the first does.
    joining: SmallMutex<()>,
}

#[derive(Default)]
struct Started {
    workers: Vec<JoinHandle<()>>,
    announcer: Option<JoinHandle<()>>,
}

impl Threads {
    pub(crate) fn new(surroundings: Box<dyn Surroundings>) -> Self {
        Self {
            surroundings,
            complete: AtomicBool::new(false),
            started: SmallMutex::default(),
            joining: SmallMutex::default(),
        }
    }

    /// Starts the workers that do not run yet.
    pub(crate) fn start(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), Error> {
        if self.complete.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut started = self.started.lock();
        while started.workers.len() < shared.workers {
            let handle = self.spawn(shared, started.workers.len())?;
            started.workers.push(handle);
        }
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    fn spawn(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        worker: usize,
    ) -> Result<JoinHandle<()>, Error> {
        let name = format!("{}-{worker}", shared.name);
        let (shared, threads) = (Arc::clone(shared), Arc::clone(self));
        // Counted before it starts: a shutdown in between must wait for it.
        if !shared.queue.enlist() {
            return Err(Error::SchedulerClosed);
        }
        let queue_owner = Arc::clone(&shared);
        Builder::new()
            .name(name)
            .stack_size(STACK)
            .spawn(move || worker::live(&shared, worker, &*threads.surroundings))
            .map_err(|cause| {
                queue_owner.queue.delist();
                Error::SpawnWorker(cause)
            })
    }

    /// Starts the thread that sends DUE while all workers are busy, if it does not run yet.
    pub(crate) fn start_announcer(&self, shared: &Arc<Shared>) -> Result<(), Error> {
        let mut started = self.started.lock();
        if started.announcer.is_some() || shared.queue.phase() == Phase::Closed {
            return Ok(());
        }
        let name = format!("{}-due", shared.name);
        let shared = Arc::clone(shared);
        let handle = Builder::new()
            .name(name)
            .spawn(move || {
                while shared.queue.sleep_announcer(&|| shared.clock.now()) {
                    shared.announce_due(shared.clock.now());
                }
            })
            .map_err(Error::SpawnWorker)?;
        started.announcer = Some(handle);
        Ok(())
    }

    /// Waits for the threads to be gone. Only after the queue said that the workers ended, and
    /// not from one of them.
    pub(crate) fn join(&self) {
        let _joining = self.joining.lock();
        let started = std::mem::take(&mut *self.started.lock());
        for handle in started.workers.into_iter().chain(started.announcer) {
            // A worker that panicked has said so already.
            drop(handle.join());
        }
    }
}
