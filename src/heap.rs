//! The heap of waiting tasks by due time. Invariants: entries come out in the order due, higher
//! priority, order of adding; at most half of a large heap is tombstones; it knows no clock, lock
//! or thread, and never looks into a task but to ask whether it still waits.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::clock::Timestamp;

/// Whether an entry still means something. A cancelled task's does not: it is a tombstone.
pub(crate) trait Live {
    fn is_live(&self) -> bool;
}

/// One waiting task: 32 bytes, compared without looking at the task.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) due: Timestamp,
    pub(crate) priority: i32,
    pub(crate) sequence: u64,
    pub(crate) task: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (Timestamp, Reverse<i32>, u64) {
        (self.due, Reverse(self.priority), self.sequence)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    /// The other way round: `BinaryHeap` gives its greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Below this size tombstones cost nothing worth a rebuild.
const SMALL: usize = 64;

/// A heap of entries, some of them tombstones.
#[derive(Debug)]
pub(crate) struct DueHeap<T> {
    entries: BinaryHeap<Entry<T>>,
    tombstones: usize,
}

impl<T> Default for DueHeap<T> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), tombstones: 0 }
    }
}

impl<T: Live> DueHeap<T> {
    pub(crate) fn push(&mut self, entry: Entry<T>) {
        self.entries.push(entry);
    }

    /// The due time of the earliest live entry. Tombstones before it are dropped.
    pub(crate) fn head_due(&mut self) -> Option<Timestamp> {
        self.head().map(|entry| entry.due)
    }

    /// The earliest live entry. Tombstones before it are dropped.
    pub(crate) fn head(&mut self) -> Option<&Entry<T>> {
        while self.entries.peek().is_some_and(|head| !head.task.is_live()) {
            self.entries.pop();
            self.tombstones = self.tombstones.saturating_sub(1);
        }
        self.entries.peek()
    }

    /// Takes the earliest live entry out if it is due.
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Entry<T>> {
        if self.head_due()? > now {
            return None;
        }
        self.entries.pop()
    }

    /// The due time of the second entry, or an earlier one: a tombstone counts.
    pub(crate) fn second_due(&self) -> Option<Timestamp> {
        // A binary heap's second smallest is one of the root's two children.
        self.entries.as_slice().iter().skip(1).take(2).map(|entry| entry.due).min()
    }

    /// An entry became a tombstone. When more than half are, the heap is rebuilt without them, so
    /// that a cancel costs O(1) amortised and a heap of cancelled tasks stays small.
    pub(crate) fn note_tombstone(&mut self) {
        self.tombstones += 1;
        let size = self.entries.len();
        if size > SMALL && self.tombstones > size / 2 {
            self.entries.retain(|entry| entry.task.is_live());
            self.entries.shrink_to(2 * self.entries.len());
            self.tombstones = 0;
        }
    }

    /// Live entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len().saturating_sub(self.tombstones)
    }
}

#[cfg(test)]
mod tests;
