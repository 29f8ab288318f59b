//! The heap of waiting tasks by due time. Invariants: entries come out in the order due, higher
//! priority, order of adding; at most half of a large heap is tombstones; it knows no clock, lock
//! or thread, and never looks into a task but to ask whether it still waits.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use crate::clock::Timestamp;
use crate::line::Line;

/// Whether an entry still means something. A cancelled task's does not, nor one in whose place another
/// was made: it is a tombstone.
pub(crate) trait Live: Sized {
    fn is_live(entry: &Entry<Self>) -> bool;
}

/// One waiting task: 32 bytes, compared without looking at the task.
#[derive(Debug)]
pub(crate) struct Entry<T> {
    pub(crate) due: Timestamp,
    pub(crate) priority: i32,
    /// Tells the task's entry from those that it had before.
    pub(crate) ticket: u16,
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

/// Up to this size a heap is rebuilt at once, which takes less than a tenth of a millisecond.
const AT_ONCE: usize = if cfg!(test) { 128 } else { 4096 };

/// How many entries of a retiring heap each call looks at. A call adds one tombstone at the most,
/// so the retiring heap is empty long before the other half can fill with tombstones.
const STEP: usize = 8;

/// Of so many entries a retiring heap asks at once whether they are live. Their tasks are in no cache,
/// and to wait for all of them together takes hardly longer than to wait for one.
const LOOK: usize = 32;

/// After so many entries a retiring heap gives memory back: in pieces of a tenth of a millisecond,
/// for to return a gigabyte in one call takes as long as the rebuild that is being avoided.
const GIVE_BACK: usize = if cfg!(test) { 64 } else { 1 << 14 };

/// Up to this length a line gives way to an entry that comes before all of it.
const SHORT: usize = if cfg!(test) { 8 } else { 256 };

/// A heap of entries, some of them tombstones.
///
/// Many tasks come in the order in which they go: those that are due at once, and those that are
/// due one fixed delay after they were added. They stand in *line*: an entry that belongs behind the
/// last one is put there, and everything else goes into the heap proper. To join a line and to leave
/// it takes a tenth of what a large heap takes.
///
/// Rebuilding ten million entries takes a tenth of a second, and the heap lies behind a lock. So a
/// long line is swept piece by piece, and a large heap is *retired*: its array, which is in heap order,
/// is emptied from its end, a few entries a call, into a new heap. An array in heap order stays so when
/// its end is cut off, and until it is empty the head is the earlier one of the two.
#[derive(Debug)]
pub(crate) struct DueHeap<T> {
    /// The first to go in front.
    line: Line<Entry<T>>,
    entries: BinaryHeap<Entry<T>>,
    /// In the order of `BinaryHeap`'s array: each entry before its two children.
    retiring: Vec<Entry<T>>,
    /// In all three.
    tombstones: usize,
    /// Tombstones that were taken out. What a task still holds of a user is dropped with it, so
    /// they are dropped by [`DueHeap::take_gone`]'s caller, who holds no lock.
    gone: Vec<Entry<T>>,
}

impl<T> Default for DueHeap<T> {
    fn default() -> Self {
        Self {
            line: Line::default(),
            entries: BinaryHeap::new(),
            retiring: Vec::new(),
            tombstones: 0,
            gone: Vec::new(),
        }
    }
}

impl<T: Live> DueHeap<T> {
    pub(crate) fn push(&mut self, entry: Entry<T>) {
        // The greatest comes first.
        if self.line.back().is_none_or(|last| entry < *last) {
            self.line.push_back(entry);
        } else {
            self.push_aside(entry);
        }
        if self.is_retiring() {
            self.step(STEP);
        }
    }

    /// Adds an entry that does not join the line as it is.
    fn push_aside(&mut self, entry: Entry<T>) {
        if self.line.len() <= SHORT && self.line.front().is_some_and(|first| entry > *first) {
            self.entries.extend(std::iter::from_fn(|| self.line.pop_front()));
            self.line.push_back(entry);
        } else {
            self.entries.push(entry);
        }
    }

    /// The due time of the earliest live entry. Tombstones before it are dropped.
    pub(crate) fn head_due(&mut self) -> Option<Timestamp> {
        self.head().map(|entry| entry.due)
    }

    /// The earliest live entry. Tombstones before it are dropped.
    pub(crate) fn head(&mut self) -> Option<&Entry<T>> {
        // Without tombstones there is no need to look at a task, which another thread may work on.
        while self.tombstones > 0 && self.peek().is_some_and(|head| !T::is_live(head)) {
            let gone = self.pop();
            self.gone.extend(gone);
            self.tombstones -= 1;
        }
        self.peek()
    }

    /// Takes the earliest live entry out if it is due.
    #[inline]
    pub(crate) fn pop_due(&mut self, now: Timestamp) -> Option<Entry<T>> {
        if self.tombstones > 0 || !self.is_line() {
            return self.pop_due_of_all(now);
        }
        if self.line.front()?.due > now {
            return None;
        }
        self.line.pop_front()
    }

    fn pop_due_of_all(&mut self, now: Timestamp) -> Option<Entry<T>> {
        if self.head_due()? > now {
            return None;
        }
        let entry = self.pop();
        self.reconsider();
        entry
    }

    /// The due time of the second entry, or an earlier one: a tombstone counts.
    pub(crate) fn second_due(&self) -> Option<Timestamp> {
        // A binary heap's second smallest is one of the root's two children.
        let heaps = self.entries.iter().take(3).chain(self.retiring.iter().take(3));
        let (mut first, mut second) = (None, None);
        for due in self.line.iter().take(2).chain(heaps).map(|entry| entry.due) {
            if first.is_none_or(|first| due < first) {
                second = first.replace(due);
            } else if second.is_none_or(|second| due < second) {
                second = Some(due);
            }
        }
        second
    }

    /// An entry became a tombstone.
    pub(crate) fn note_tombstone(&mut self) {
        self.tombstones += 1;
        self.reconsider();
    }

    /// How many entries a rebuild has still to look at, or a few more.
    pub(crate) fn left_to_rebuild(&self) -> usize {
        self.retiring.len() + self.line.left_to_sweep()
    }

    /// Whether a rebuild goes on. [`DueHeap::step`] finishes it sooner.
    pub(crate) fn is_retiring(&self) -> bool {
        !self.retiring.is_empty() || !self.line.is_swept()
    }

    /// When more than half are tombstones, the heap is rebuilt without them, so that a cancel costs
    /// O(1) amortised and a heap of cancelled tasks stays small.
    fn reconsider(&mut self) {
        if self.is_retiring() {
            self.step(STEP);
            return;
        }
        let size = self.line.len() + self.entries.len();
        if size <= SMALL || self.tombstones <= size / 2 {
            return; // not worth it yet
        }
        self.line.begin_sweep();
        if self.line.len() <= AT_ONCE {
            while !self.line.is_swept() {
                self.sweep();
            }
        }
        let entries = std::mem::take(&mut self.entries).into_vec();
        if entries.len() <= AT_ONCE {
            let live: Vec<_> = entries.into_iter().filter_map(|entry| self.keep(entry)).collect();
            self.entries = live.into();
        } else {
            // All the room at once: growing would copy a heap of this size in one call.
            let live = (size - self.tombstones).min(entries.len());
            self.entries = BinaryHeap::with_capacity(live + AT_ONCE);
            self.retiring = entries;
        }
    }

    /// The entry, if it is live.
    fn keep(&mut self, entry: Entry<T>) -> Option<Entry<T>> {
        if T::is_live(&entry) {
            return Some(entry);
        }
        self.tombstones -= 1;
        self.gone.push(entry);
        None
    }

    /// Takes the tombstones out of the next piece of the line.
    fn sweep(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        line.sweep(|entry| self.keep(entry));
        self.line = line;
    }

    /// Moves up to `count` entries out of the retiring heap, and sweeps a piece of the line.
    pub(crate) fn step(&mut self, count: usize) {
        if !self.line.is_swept() {
            self.sweep();
        }
        let end = self.retiring.len().saturating_sub(count);
        while self.retiring.len() > end {
            let start = end.max(self.retiring.len().saturating_sub(LOOK));
            let live = self.retiring[start..].iter().map(T::is_live);
            let live = live.enumerate().fold(0_u32, |all, (n, live)| all | u32::from(live) << n);
            for n in (0..self.retiring.len() - start).rev() {
                self.move_out(live >> n & 1 != 0);
            }
        }
    }

    /// Moves the last entry out of the retiring heap.
    fn move_out(&mut self, live: bool) {
        let Some(entry) = self.retiring.pop() else { return };
        if live {
            self.entries.push(entry);
        } else {
            self.tombstones -= 1;
            self.gone.push(entry);
        }
        if self.retiring.len().is_multiple_of(GIVE_BACK) {
            self.retiring.shrink_to_fit();
        }
    }

    /// Whether there is anything to take by [`DueHeap::take_gone`].
    pub(crate) fn has_gone(&self) -> bool {
        !self.gone.is_empty()
    }

    /// The tombstones that were taken out, to be dropped with no lock held.
    pub(crate) fn take_gone(&mut self) -> Vec<Entry<T>> {
        std::mem::take(&mut self.gone)
    }

    /// Adds tombstones of another heap to those that are to be dropped.
    pub(crate) fn bury(&mut self, gone: Vec<Entry<T>>) {
        self.gone.extend(gone);
    }

    /// Whether there is no entry, dead or alive.
    pub(crate) fn is_empty(&self) -> bool {
        self.line.is_empty() && self.is_line()
    }

    /// Live entries.
    pub(crate) fn len(&self) -> usize {
        self.line.len() + self.entries.len() + self.retiring.len() - self.tombstones
    }

    /// The first entries of the three.
    fn firsts(&self) -> [Option<&Entry<T>>; 3] {
        [self.line.front(), self.entries.peek(), self.retiring.first()]
    }

    /// Whether all of them stand in line.
    fn is_line(&self) -> bool {
        self.entries.is_empty() && self.retiring.is_empty()
    }

    fn peek(&self) -> Option<&Entry<T>> {
        if self.is_line() {
            return self.line.front();
        }
        let [line, entries, retiring] = self.firsts();
        line.max(entries).max(retiring) // the greatest comes first, and `None` last
    }

    fn pop(&mut self) -> Option<Entry<T>> {
        if self.is_line() {
            return self.line.pop_front();
        }
        let [line, entries, retiring] = self.firsts();
        if line > entries && line > retiring {
            return self.line.pop_front();
        }
        if entries >= retiring {
            return self.entries.pop();
        }
        let head = self.retiring.swap_remove(0);
        sift_down(&mut self.retiring);
        Some(head)
    }
}

/// Restores the order of a heap whose root was replaced.
fn sift_down<T>(heap: &mut [Entry<T>]) {
    let mut parent = 0;
    loop {
        let children = 2 * parent + 1..heap.len().min(2 * parent + 3);
        let Some(greatest) = children.max_by(|&a, &b| heap[a].cmp(&heap[b])) else {
            return;
        };
        if heap[parent] >= heap[greatest] {
            return;
        }
        heap.swap(parent, greatest);
        parent = greatest;
    }
}

#[cfg(test)]
mod tests;
