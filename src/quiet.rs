//! Who waits for the queue to be quiet, or deserted. Invariant: a waker is called once, with no lock
//! held, or taken back.

use crate::clock::{Rest, Timestamp, Waker};
use crate::queue::TaskQueue;

impl TaskQueue {
    /// Whether nothing but sleeping runs is in hand and nothing is due; and what comes next.
    pub(crate) fn quiet(&self, now: Timestamp) -> Option<Rest> {
        let mut room = self.lock();
        room.is_quiet(now, true).then(|| Rest { next: room.next_step(now) })
    }

    /// Has `waker` called once when nothing is in hand and nothing is due; `None` if that is now.
    pub(crate) fn when_quiet(
        &self,
        now: Timestamp,
        despite_naps: bool,
        waker: Waker,
    ) -> Option<u64> {
        let mut room = self.lock();
        if room.is_quiet(now, despite_naps) {
            drop(room);
            drop(waker);
            return None;
        }
        Some(room.wakers.add_quiet(despite_naps, waker))
    }

    /// Has `waker` called once when the last worker and the last run ended; `None` if that was
    /// before.
    pub(crate) fn when_exited(&self, waker: Waker) -> Option<u64> {
        let mut room = self.lock();
        if room.is_deserted() {
            return None;
        }
        Some(room.wakers.add_exit(waker))
    }

    /// Takes back a waker of either kind.
    pub(crate) fn forget_waker(&self, key: u64) {
        let mut room = self.lock();
        let waker = room.wakers.remove(key);
        drop(room);
        drop(waker);
    }
}
