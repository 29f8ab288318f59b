//! The heap against a sorted list, and the promises about tombstones.

use std::cell::Cell;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;

/// A task that is nothing but whether it still waits.
#[derive(Clone, Debug)]
struct Flag(Rc<Cell<bool>>);

thread_local! {
    /// How often it was asked whether an entry is live.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

impl Live for Flag {
    fn is_live(entry: &Entry<Self>) -> bool {
        ASKED.set(ASKED.get() + 1);
        entry.task.0.get()
    }
}

/// The heap, beside it all live entries by their key, sorted, and their flags.
#[derive(Default)]
struct Pair {
    heap: DueHeap<Flag>,
    list: Vec<((i64, i64, u64), Flag)>,
    sequence: u64,
}

impl Pair {
    fn push(&mut self, due: i64, priority: i32) {
        self.sequence += 1;
        let (sequence, flag) = (self.sequence, Flag(Rc::new(Cell::new(true))));
        let task = flag.clone();
        let (due_at, ticket) = (Timestamp::from_nanos(due), 0);
        self.heap.push(Entry { due: due_at, priority, ticket, sequence, task });
        let key = (due, -i64::from(priority), sequence);
        let place = self.list.partition_point(|(other, _)| *other < key);
        self.list.insert(place, (key, flag));
    }

    /// Cancels the entry at `place` of the list.
    fn cancel(&mut self, place: usize) {
        let (_, flag) = self.list.remove(place);
        flag.0.set(false);
        self.heap.note_tombstone();
    }

    fn pop(&mut self, now: i64) {
        let popped = self.heap.pop_due(Timestamp::from_nanos(now));
        let popped = popped.map(|e| (e.due.as_nanos(), -i64::from(e.priority), e.sequence));
        let due = self.list.first().is_some_and(|((due, ..), _)| *due <= now);
        assert_eq!(popped, due.then(|| self.list.remove(0).0));
    }

    /// How many entries there are, tombstones included.
    fn size(&self) -> usize {
        self.heap.line.len() + self.heap.entries.len() + self.heap.retiring.len()
    }

    /// For how many there is room.
    fn room(&self) -> usize {
        self.heap.line.capacity() + self.heap.entries.capacity() + self.heap.retiring.capacity()
    }

    fn check(&mut self) {
        assert_eq!(self.heap.len(), self.list.len());
        let second = self.list.get(1).map(|((due, ..), _)| *due);
        let head = self.list.first().map(|((due, ..), _)| *due);
        assert_eq!(self.heap.head_due().map(Timestamp::as_nanos), head);
        // Tombstones may make it look earlier, so that somebody wakes up for nothing; never later.
        let seen = self.heap.second_due().map(Timestamp::as_nanos);
        assert!(second.is_none_or(|second| seen.is_some_and(|seen| seen <= second)));
        let retires = self.heap.is_retiring();
        let (size, live) = (self.size(), self.list.len());
        if size == live {
            assert_eq!(seen, second);
        }
        assert!(retires || size - live <= SMALL.max(size / 2), "{live} of {size}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(i64, i32),
    Pop(i64),
    /// Which one of the live entries, from 0 to 1.
    Cancel(f64),
    CancelMany(f64, usize),
}

fn any_step() -> impl Strategy<Value = Step> {
    let due = prop_oneof![-5..50_i64, any::<i64>()];
    prop_oneof![
        8 => (due.clone(), prop_oneof![-1..=1_i32, any::<i32>()]).prop_map(|(d, p)| Step::Push(d, p)),
        2 => due.prop_map(Step::Pop),
        3 => (0.0..1.0_f64).prop_map(Step::Cancel),
        1 => (0.0..1.0_f64, 0..200_usize).prop_map(|(at, n)| Step::CancelMany(at, n)),
    ]
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share of a short list"
)]
fn place(share: f64, length: usize) -> usize {
    (share * length as f64) as usize
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn any_steps_do_what_a_sorted_list_does(
        start in 0..300_i64, steps in prop::collection::vec(any_step(), 1..300),
    ) {
        let mut pair = Pair::default();
        (0..start).for_each(|n| pair.push(n * 7_919 % 301, 0));
        for step in steps {
            match step {
                Step::Push(due, priority) => pair.push(due, priority),
                Step::Pop(now) => pair.pop(now),
                Step::Cancel(share) if !pair.list.is_empty() => {
                    pair.cancel(place(share, pair.list.len()));
                }
                Step::Cancel(_) => {}
                Step::CancelMany(share, many) => {
                    for _ in 0..many.min(pair.list.len()) {
                        pair.cancel(place(share, pair.list.len()));
                    }
                }
            }
            pair.check();
        }
        while !pair.list.is_empty() {
            pair.pop(i64::MAX);
        }
        pair.pop(i64::MAX);
        pair.check();
    }
}

#[test]
fn a_heap_of_cancelled_entries_stays_small() {
    let mut pair = Pair::default();
    pair.push(0, 0);
    for n in 1..100_000 {
        pair.push(n, 0);
        pair.cancel(1);
        assert!(pair.size() <= SMALL + 1);
    }
    assert!(!pair.heap.is_retiring());
    assert!(pair.room() <= 8 * SMALL, "nor does it keep the room");
    assert_eq!(pair.heap.len(), 1);
}

#[test]
fn a_crowd_that_is_cancelled_gives_its_room_back() {
    let mut pair = Pair::default();
    (0..100_000).for_each(|n| pair.push(n, 0));
    while pair.list.len() > 10 {
        pair.cancel(pair.list.len() - 1);
    }
    assert!(pair.room() < 1_000);
}

#[test]
fn an_entry_is_as_small_as_its_key_allows() {
    assert_eq!(size_of::<Entry<usize>>(), 32);
}

/// Those that run leave the tombstones behind, which then are more than half.
#[test]
fn tombstones_are_not_left_behind_by_those_that_run() {
    let mut pair = Pair::default();
    (0..10_000).for_each(|n| pair.push(n, 0));
    for _ in 0..4_900 {
        pair.cancel(pair.list.len() - 1);
    }
    while !pair.list.is_empty() {
        pair.pop(i64::MAX);
        pair.check();
    }
}

/// Every thread waits for a call that looks at many tasks, and these are in no cache.
#[test]
fn no_call_looks_at_many_entries_however_many_there_are() {
    // What is looked at as soon as it is worth it, of the line and of the rest; and then in steps.
    const MOST: usize = 2 * AT_ONCE + STEP;
    let check = |pair: &mut Pair, call: &dyn Fn(&mut Pair)| {
        ASKED.set(0);
        call(pair);
        let asked = ASKED.get();
        assert!(asked <= MOST, "{asked} of {}", pair.size());
    };
    let mut pair = Pair::default();
    (0..5_000).for_each(|n| check(&mut pair, &|pair| pair.push(2 * n, 0))); // in line
    (0..5_000).for_each(|n| check(&mut pair, &|pair| pair.push(n * 7_919 % 9_998, 0)));
    assert!(pair.heap.line.len() > 10 * MOST && pair.heap.entries.len() > 10 * MOST);
    for n in 0..12_000 {
        // From the middle: the head is live.
        check(&mut pair, &|pair| pair.cancel(pair.list.len() / 2));
        if n % 4 == 0 {
            check(&mut pair, &|pair| pair.push(n * 7_919 % 10_007, 0));
        }
    }
}

/// To grow would copy the whole heap in one call, and every thread would wait.
#[test]
fn a_rebuild_takes_the_room_that_it_needs_before_it_moves_anything() {
    let mut pair = Pair::default();
    (0..10_000).for_each(|n| pair.push(n * 7_919 % 10_007, 0));
    while pair.heap.retiring.is_empty() {
        pair.cancel(pair.list.len() - 1);
    }
    let room = pair.heap.entries.capacity();
    while !pair.heap.retiring.is_empty() {
        pair.heap.step(STEP);
    }
    assert_eq!(pair.heap.entries.capacity(), room);
    assert!(room < 2 * pair.list.len());
}
