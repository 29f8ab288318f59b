//! What a scheduler counts. Invariant: each number only grows, and counts one kind of move.

use crate::info::Ran;
use crate::lateness::{Lateness, Starts};
use crate::state::TaskState;

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
    /// Tasks that wait and are paused.
    pub paused: usize,
    /// Due tasks that found their group full, and wait for a place in it.
    pub crowded: usize,
    /// How late runs started, and why.
    pub lateness: Lateness,
    /// Jobs that still run though they were given up as stuck.
    pub stuck: usize,
}

/// What happened since the scheduler was made. Guarded by the queue's lock.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) starts: Starts,
    runs: u64,
    failures: u64,
    done: u64,
    failed: u64,
    cancelled: u64,
    missed: u64,
}

impl Totals {
    pub(crate) fn new() -> Self {
        let starts = Starts::new();
        Self { starts, runs: 0, failures: 0, done: 0, failed: 0, cancelled: 0, missed: 0 }
    }

    /// A task ended, with its last run if a run was its end.
    pub(crate) fn add(&mut self, end: TaskState, ran: Option<&Ran>) {
        match end {
            TaskState::Done => self.done += 1,
            TaskState::Failed => self.failed += 1,
            _ => self.cancelled += 1,
        }
        if let Some(ran) = ran {
            self.add_run(ran, 0);
        }
    }

    /// A run ended, and `missed` slots passed before the next one.
    pub(crate) fn add_run(&mut self, ran: &Ran, missed: u64) {
        self.runs += 1;
        self.failures += u64::from(ran.error().is_some());
        self.missed += missed;
    }

    /// Slots passed while a task was paused.
    pub(crate) fn add_missed(&mut self, missed: u64) {
        self.missed += missed;
    }

    /// The rest of `now`, which says what there is at the moment. Called without the lock.
    pub(crate) fn stats(self, now: Stats) -> Stats {
        let Self { starts, runs, failures, done, failed, cancelled, missed } = self;
        let lateness = starts.lateness();
        Stats { runs, failures, done, failed, cancelled, missed, lateness, ..now }
    }
}
