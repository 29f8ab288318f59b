//! One attempt: which task, which of its runs, since when. Invariant: it is fixed from the start to the
//! end of the run, and tells events and deadlines apart from those of another run of the task.

use crate::clock::Timestamp;
use crate::record::TaskRef;

/// A run that has begun.
#[derive(Clone)]
pub(crate) struct Attempt {
    pub(crate) task: TaskRef,
    pub(crate) due: Timestamp,
    pub(crate) started: Timestamp,
    /// Which run of the task it is, from 1.
    pub(crate) run: u64,
    /// Which attempt at its slot, from 1.
    pub(crate) nth: u64,
}
