//! When workers stood ready and had to wait for their surroundings. Invariant: the time waited grows
//! while at least one stands at the door, as the clock does, and else not at all.
//!
//! It is one measure for the whole pool. What matters to a due task is whether any worker stood ready,
//! not whether it was the one that took the task at last: a worker that is inside takes what others
//! wait outside for, and still it was the door that kept it.

use crate::clock::Timestamp;

/// Where a worker is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Side {
    /// There is no door, or no time passes before it.
    #[default]
    Nowhere,
    /// Inside, or asleep.
    Inside,
    /// It is ready, and waits to be let in.
    Outside,
}

/// Guarded by the queue's lock.
pub(crate) struct Door {
    /// Workers that stand there.
    standing: usize,
    /// When the first of them came, or the last one went in.
    since: Timestamp,
    /// Nanoseconds waited until then.
    total: u64,
    /// What had been waited at each such turn, the latest last. The older, the fewer are kept.
    turns: Vec<(Timestamp, u64)>,
    /// The stretch that was looked up last: a burst of tasks asks for it again and again.
    found: Option<Stretch>,
}

/// From one turn to the next.
#[derive(Clone, Copy)]
struct Stretch {
    from: Timestamp,
    to: Timestamp,
    /// Nanoseconds waited until it begins, and until it ends.
    before: u64,
    after: u64,
}

/// The most that are kept.
const TURNS: usize = 128;

impl Door {
    pub(crate) fn new() -> Self {
        let turns = Vec::with_capacity(TURNS);
        Self { standing: 0, since: Timestamp::MIN, total: 0, turns, found: None }
    }

    /// A worker comes to the door.
    pub(crate) fn come(&mut self, now: Timestamp) {
        if self.standing == 0 {
            self.turn(now.max(self.since)); // a clock may go back
        }
        self.standing += 1;
    }

    /// One goes in.
    pub(crate) fn enter(&mut self, now: Timestamp) {
        self.standing -= 1;
        if self.standing == 0 {
            let now = now.max(self.since);
            self.total += now.nanos_since(self.since);
            self.turn(now);
        }
    }

    fn turn(&mut self, now: Timestamp) {
        self.since = now;
        self.found = None;
        if self.turns.len() == TURNS {
            self.thin_out(now);
        }
        self.turns.push((now, self.total));
    }

    /// Drops at least half of the turns: those that a quarter of their age, or less, parts from the next
    /// one. So what is lost of a run's lateness is small beside it, whether it was long or short.
    fn thin_out(&mut self, now: Timestamp) {
        let mut next = now;
        self.turns.reverse();
        self.turns.retain(|&(turn, _)| {
            let keeps = next.nanos_since(turn) >= now.nanos_since(next) / 4;
            next = if keeps { turn } else { next };
            keeps
        });
        self.turns.truncate(TURNS / 2);
        self.turns.reverse();
    }

    /// For how many nanoseconds of that time somebody stood there.
    pub(crate) fn waited(&mut self, from: Timestamp, to: Timestamp) -> u64 {
        if self.standing == 0 && from >= self.since {
            return 0;
        }
        self.until(to).saturating_sub(self.until(from))
    }

    /// Nanoseconds waited until `time`. Where turns were dropped, the wait is taken to be the end of its
    /// stretch.
    fn until(&mut self, time: Timestamp) -> u64 {
        if time >= self.since {
            let still = if self.standing > 0 { time.nanos_since(self.since) } else { 0 };
            return self.total + still;
        }
        let known = self.found.filter(|found| (found.from..found.to).contains(&time));
        let Stretch { to, before, after, .. } = known.unwrap_or_else(|| self.find(time));
        after.saturating_sub(to.nanos_since(time)).max(before)
    }

    /// The stretch of a time before the last turn. Before the first one nothing was waited.
    #[cold]
    fn find(&mut self, time: Timestamp) -> Stretch {
        let next = self.turns.partition_point(|&(turn, _)| turn <= time);
        let (to, after) = self.turns[next];
        let (from, before) =
            next.checked_sub(1).map_or((Timestamp::MIN, after), |at| self.turns[at]);
        *self.found.insert(Stretch { from, to, before, after })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn stood(door: &mut Door, from: i64, to: i64) {
        door.come(at(from));
        door.enter(at(to));
    }

    #[test]
    fn what_is_asked_for_is_the_part_in_which_somebody_stood_there() {
        let mut door = Door::new();
        assert_eq!(door.waited(at(0), at(100)), 0);
        stood(&mut door, 10, 20);
        stood(&mut door, 30, 40);
        let mut waited = |from, to| door.waited(at(from), at(to));
        assert_eq!((waited(0, 100), waited(0, 35), waited(15, 35)), (20, 15, 10));
        assert_eq!((waited(20, 30), waited(40, 100), waited(33, 37)), (0, 0, 4));
    }

    #[test]
    fn who_still_stands_there_counts_and_two_count_as_one() {
        let mut door = Door::new();
        door.come(at(10));
        door.come(at(15));
        assert_eq!((door.waited(at(0), at(18)), door.waited(at(12), at(18))), (8, 6));
        door.enter(at(20));
        assert_eq!(door.waited(at(0), at(25)), 15);
        door.enter(at(30));
        assert_eq!((door.waited(at(0), at(99)), door.waited(at(25), at(99))), (20, 5));
    }

    #[test]
    fn a_clock_that_goes_back_takes_nothing_away() {
        let mut door = Door::new();
        stood(&mut door, 10, 20);
        stood(&mut door, 5, 3);
        assert_eq!(door.waited(at(0), at(100)), 10);
        stood(&mut door, 15, 22);
        assert_eq!((door.waited(at(0), at(100)), door.waited(at(30), at(25))), (12, 0));
    }

    #[test]
    fn a_long_story_takes_no_more_memory_and_keeps_its_sums() {
        let mut door = Door::new();
        for round in 0..10_000 {
            stood(&mut door, 10 * round, 10 * round + 4);
            assert!(door.turns.len() <= TURNS);
        }
        assert_eq!(door.turns.capacity(), TURNS);
        for late in [10, 20, 100, 1000, 10_000, 50_000] {
            let waited = door.waited(at(100_000 - late), at(100_000)).cast_signed();
            assert!((waited - 4 * late / 10).abs() <= late / 8, "{waited} of {late}");
        }
        assert_eq!(door.waited(at(99_980), at(99_994)), 8, "what is new is exact");
    }
}
