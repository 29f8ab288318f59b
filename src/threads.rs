//! The threads of a scheduler. Invariant: all are started together, with the first task; what
//! cannot be started is tried again with the next one.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::announcer;
use crate::error::Error;
use crate::inside::{Place, enter};
use crate::shared::Shared;
use crate::surroundings::Surroundings;
use crate::sync::{AtomicBool, Ordering, SmallMutex};
use crate::worker;

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
        if self.complete.load(Ordering::Acquire) { Ok(()) } else { self.start_workers(shared) }
    }

    #[cold]
    fn start_workers(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), Error> {
        let mut started = self.started.lock();
        while started.workers.len() < shared.workers {
            let worker = started.workers.len();
            let live = move |shared: &Shared, surroundings: &dyn Surroundings| {
                worker::live(shared, worker, surroundings);
            };
            let handle = self.spawn(shared, &worker.to_string(), live)?;
            started.workers.push(handle);
        }
        self.complete.store(true, Ordering::Release);
        Ok(())
    }

    fn spawn(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        name: &str,
        live: impl FnOnce(&Shared, &dyn Surroundings) + Send + 'static,
    ) -> Result<JoinHandle<()>, Error> {
        // Counted before it starts: a shutdown in between must wait for it.
        if !shared.queue.enlist() {
            return Err(Error::SchedulerClosed);
        }
        let (inside, threads) = (Arc::clone(shared), Arc::clone(self));
        // Inside for life: what runs there is not only jobs, but also what their values do when
        // they are dropped.
        let place = Place::of(shared.identity());
        Builder::new()
            .name(format!("{}-{name}", shared.name))
            .stack_size(STACK)
            .spawn(move || enter(place, || live(&inside, &*threads.surroundings)))
            .map_err(|cause| {
                shared.queue.delist();
                Error::SpawnWorker(cause)
            })
    }

    /// Starts the thread that sends DUE while all workers are busy, if it does not run yet.
    pub(crate) fn start_announcer(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), Error> {
        let mut started = self.started.lock();
        // In a drain the workers send what is left.
        if started.announcer.is_none() && shared.queue.is_open() {
            started.announcer = Some(self.spawn(shared, "due", announcer::live)?);
        }
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
