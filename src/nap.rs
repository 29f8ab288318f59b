//! Runs that sleep on the scheduler's clock. Invariant: a nap is on the list exactly while its
//! thread may sleep; who ends it takes it off the list, so that the run counts as awake at once.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::record::TaskRef;
use crate::sync::Condvar;

/// Guarded by the queue's lock.
#[derive(Default)]
pub(crate) struct Naps(Vec<Nap>);

struct Nap {
    task: TaskRef,
    deadline: Timestamp,
    bell: Arc<Condvar>,
}

impl Naps {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn begin(&mut self, task: &TaskRef, deadline: Timestamp, bell: &Arc<Condvar>) {
        self.0.push(Nap { task: task.clone(), deadline, bell: Arc::clone(bell) });
    }

    /// Ends the nap of `task`, if it takes one; the caller rings the bell.
    pub(crate) fn end(&mut self, task: &TaskRef) -> Option<Arc<Condvar>> {
        let at = self.0.iter().position(|nap| TaskRef::ptr_eq(&nap.task, task))?;
        Some(self.0.swap_remove(at).bell)
    }

    /// Ends the naps that are over; the caller rings the bells.
    pub(crate) fn end_due(&mut self, now: Timestamp) -> Vec<Arc<Condvar>> {
        self.0.extract_if(.., |nap| nap.deadline <= now).map(|nap| nap.bell).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.0.iter().map(|nap| nap.deadline).min()
    }
}
