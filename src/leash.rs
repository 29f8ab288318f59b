//! What is left of a run for those who keep it. Invariant: it refers to nothing of the task. A job
//! that fails may keep its run in a local variable, which the error's traceback keeps: if the run
//! kept the task, and the task keeps the error, that would be a circle that nobody can collect.

use crate::sync::{AtomicBool, Ordering};

/// Whether one run was told to stop.
#[derive(Debug, Default)]
pub(crate) struct Leash(AtomicBool);

impl Leash {
    pub(crate) fn new(stopped: bool) -> Self {
        Self(AtomicBool::new(stopped))
    }

    // Relaxed: it is a flag alone. Who sleeps on it looks under the queue's lock, which whoever
    // pulls holds.
    pub(crate) fn pull(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_pulled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
