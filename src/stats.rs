//! What a scheduler counts. Invariant: each number only grows, and counts one kind of move.

use crate::state::TaskState;
use crate::sync::{AtomicU64, Ordering};

/// A scheduler's numbers at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Threads in the pool.
    pub workers: usize,
    /// Tasks that wait: for their due time, or for a worker.
    pub waiting: usize,
    /// Jobs that run now.
    pub running: usize,
    /// Runs that ended, retries included.
    pub runs: u64,
    /// Those of them that failed.
    pub failures: u64,
    /// Tasks that ended as DONE.
    pub done: u64,
    /// Tasks that ended as FAILED.
    pub failed: u64,
    /// Tasks that were cancelled.
    pub cancelled: u64,
    /// Slots that passed without a run.
    pub missed: u64,
}

/// Counted by many threads, read by anybody. Relaxed throughout: each is a number on its own.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    runs: AtomicU64,
    failures: AtomicU64,
    done: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    missed: AtomicU64,
}

impl Counts {
    pub(crate) fn ran(&self, failed: bool) {
        self.runs.fetch_add(1, Ordering::Relaxed);
        if failed {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn missed(&self, slots: u64) {
        self.missed.fetch_add(slots, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self, state: TaskState) {
        let counter = match state {
            TaskState::Done => &self.done,
            TaskState::Failed => &self.failed,
            _ => &self.cancelled,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stats(&self, workers: usize, waiting: usize, running: usize) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            workers,
            waiting,
            running,
            runs: read(&self.runs),
            failures: read(&self.failures),
            done: read(&self.done),
            failed: read(&self.failed),
            cancelled: read(&self.cancelled),
            missed: read(&self.missed),
        }
    }
}
