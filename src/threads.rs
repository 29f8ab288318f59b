//! The threads of a scheduler. Invariant: all are started together, with the first task; what
//! cannot be started is tried again with the next one.

use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use crate::announcer;
use crate::closing::close;
use crate::enforcer;
use crate::error::Error;
use crate::inside::{Place, enter};
use crate::shared::Shared;
use crate::surroundings::Surroundings;
use crate::sync::{AtomicBool, Ordering, SmallMutex};
use crate::watchdog;
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

/// The life of a worker.
fn work_as(worker: usize) -> impl FnOnce(&Shared, &dyn Surroundings) + Send + 'static {
    move |shared, surroundings| worker::live(shared, worker, surroundings)
}

#[derive(Default)]
struct Started {
    /// One a worker; `None` for one that is stuck, and was not replaced.
    workers: Vec<Option<JoinHandle<()>>>,
    announcer: Option<JoinHandle<()>>,
    watchdog: Option<JoinHandle<()>>,
    enforcer: Option<JoinHandle<()>>,
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
            let handle = self.spawn(shared, &worker.to_string(), work_as(worker))?;
            started.workers.push(Some(handle));
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
        self.spawn_counted(shared, name, live).inspect_err(|_| shared.queue.delist())
    }

    fn spawn_counted(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        name: &str,
        live: impl FnOnce(&Shared, &dyn Surroundings) + Send + 'static,
    ) -> Result<JoinHandle<()>, Error> {
        let (inside, threads) = (Arc::clone(shared), Arc::clone(self));
        // Inside for life: what runs there is not only jobs, but also what their values do when
        // they are dropped.
        let place = Place::of(shared.identity());
        Builder::new()
            .name(format!("{}-{name}", shared.name))
            .stack_size(STACK)
            .spawn(move || enter(place, || live(&inside, &*threads.surroundings)))
            .map_err(Error::SpawnWorker)
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

    /// Starts those that watch over timeouts, if they do not run yet.
    pub(crate) fn start_watch(self: &Arc<Self>, shared: &Arc<Shared>) -> Result<(), Error> {
        let mut started = self.started.lock();
        if started.enforcer.is_none() {
            let threads = Arc::clone(self);
            let live = move |shared: &Shared, surroundings: &dyn Surroundings| {
                enforcer::live(shared, surroundings, &|worker, replace| {
                    threads.relieve(shared, worker, replace);
                    if shared.queue.is_lost() {
                        close(shared, false); // nobody is left to drain it
                    }
                });
            };
            started.enforcer = Some(self.spawn(shared, "late", live)?);
        }
        // Where nobody but the mover moves the clock, the mover sees whose time is up.
        if started.watchdog.is_none() && shared.queue.moves_by_itself() {
            let watch = |shared: &Shared, _: &dyn Surroundings| watchdog::live(shared);
            started.watchdog = Some(self.spawn(shared, "watch", watch)?);
        }
        Ok(())
    }

    /// Lets go of a worker that is stuck, and with `replace` makes another in its place.
    fn relieve(self: &Arc<Self>, shared: &Shared, worker: usize, replace: bool) {
        let mut started = self.started.lock();
        let Some(place) = started.workers.get_mut(worker) else { return };
        *place = None;
        let Some(shared) = shared.me.upgrade().filter(|_| replace) else { return };
        match self.spawn_counted(&shared, &worker.to_string(), work_as(worker)) {
            Ok(handle) => *place = Some(handle),
            Err(_) => shared.queue.lock().vacate(worker),
        }
    }

    /// Waits for the threads to be gone. Only after the queue said that the workers ended, and
    /// not from one of them.
    pub(crate) fn join(&self) {
        let _joining = self.joining.lock();
        let started = std::mem::take(&mut *self.started.lock());
        let Started { workers, announcer, watchdog, enforcer } = started;
        let others = [announcer, watchdog, enforcer];
        for handle in workers.into_iter().chain(others).flatten() {
            // A worker that panicked has said so already.
            drop(handle.join());
        }
    }
}
