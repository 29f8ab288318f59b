//! What a worker has to tell the queue when it comes back to it. Invariant: each debt is paid once, in
//! the first critical section that can.

use crate::door::Side;
use crate::ending::Ended;
use crate::info::Ran;
use crate::record::TaskRef;

/// What a worker owes the queue since it last held the lock.
#[derive(Default)]
pub(crate) struct Owed {
    /// Which worker it is.
    pub(crate) worker: usize,
    /// It was woken and is on its way.
    pub(crate) arrival: bool,
    /// Where it is, for the door of its surroundings.
    pub(crate) side: Side,
    /// Its run is over.
    pub(crate) run: bool,
    /// The group of that run.
    pub(crate) group: Option<u16>,
    /// The task of that run is to be ended.
    pub(crate) last: Option<Last>,
    /// What it took out of the queue has been told.
    pub(crate) telling: bool,
    /// How often it knows the clock to have been moved by hand.
    pub(crate) moves: u64,
}

/// A task's last run.
pub(crate) struct Last {
    pub(crate) task: TaskRef,
    pub(crate) ran: Ran,
    pub(crate) ended: Ended,
}
