//! Runs that sleep on the scheduler's clock. Invariant: a nap is on the list exactly while its
//! thread may sleep; who ends it takes it off the list, so that the run counts as awake at once.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::sync::Condvar;

/// Guarded by the queue's lock.
#[derive(Default)]
pub(crate) struct Naps(Vec<Nap>);

#[derive(Clone)]
pub(crate) struct Nap {
    /// The number of the task.
    pub(crate) task: u64,
    /// Whether the job itself sleeps, and not another thread that it gave its run to.
    pub(crate) whole_run: bool,
    pub(crate) deadline: Timestamp,
    pub(crate) bell: Arc<Condvar>,
}

/// Who wants to sleep.
pub(crate) struct Sleeper<'a> {
    /// The number of its task.
    pub(crate) task: u64,
    /// As for a [`Nap`].
    pub(crate) whole_run: bool,
    pub(crate) is_stopping: &'a dyn Fn() -> bool,
}

impl Naps {
    /// How many runs sleep.
    pub(crate) fn runs(&self) -> usize {
        self.0.iter().filter(|nap| nap.whole_run).count()
    }

    pub(crate) fn begin(&mut self, nap: &Nap) {
        self.0.push(nap.clone());
    }

    /// The sleeper itself takes its nap off the list, if nobody did.
    pub(crate) fn end(&mut self, nap: &Nap) {
        self.0.retain(|other| !Arc::ptr_eq(&other.bell, &nap.bell));
    }

    /// Ends the naps of a task; the caller rings the bells.
    pub(crate) fn end_of(&mut self, task: u64) -> Vec<Arc<Condvar>> {
        self.0.extract_if(.., |nap| nap.task == task).map(|nap| nap.bell).collect()
    }

    /// Ends the naps that are over; the caller rings the bells.
    pub(crate) fn end_due(&mut self, now: Timestamp) -> Vec<Arc<Condvar>> {
        self.0.extract_if(.., |nap| nap.deadline <= now).map(|nap| nap.bell).collect()
    }

    /// Ends the naps of threads that only keep a run; the caller rings the bells.
    pub(crate) fn end_left(&mut self) -> Vec<Arc<Condvar>> {
        self.0.extract_if(.., |nap| !nap.whole_run).map(|nap| nap.bell).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.0.iter().map(|nap| nap.deadline).min()
    }
}
