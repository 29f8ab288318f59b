//! Who sleeps, and until when: the wake-up protocol.
//!
//! Invariant (C, *covered*): while any worker is idle, any task is in the heap, and the scheduler is not
//! paused, then
//!
//! - a worker is on its way to the queue, or
//! - some idle worker is armed (its alarm set) at or before the head's due time.
//!
//! So no due time passes unnoticed, and at most one thread is woken for it. Whoever may break the
//! invariant restores it in the same critical section, by [`Idle::summon`]:
//!
//! - who adds a task: it may be due before every alarm;
//! - who resumes a paused scheduler: nobody had an alarm;
//! - who takes a task: it may have been the armed one, and the next head has none;
//! - who comes and finds nothing to take: it arms itself, or finds the head covered;
//! - who leaves for good.
//!
//! Two workers are kept armed, on the two earliest due times. With one armed (leader and
//! followers), the leader must wake a follower before it runs what it took: two wake-ups a task.
//! With two, the second already has its alarm, and one wake-up a task is enough. A summoned worker
//! that takes a task and sees another one due summons the next, so a burst wakes the pool like a
//! chain, each link only if it is still needed.
//!
//! The lost wake-up, and why there is none: a worker looks at the heap, decides to sleep, and in
//! that moment a task is added. Looking and going to sleep are one critical section, and the
//! worker is in this list before it ends; so the adder, who needs the same lock, either adds
//! before the look or finds the sleeper here. The bell is rung after unlocking: the sleeper was
//! taken off the list under the lock, so nobody else counts on it, and a bell that rings early
//! finds it either asleep or on the way to see that it is off the list.

use crate::clock::Timestamp;

/// The workers that are not running a job, all guarded by the queue's lock.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    /// At most two, the earlier alarm first.
    armed: Vec<(Timestamp, usize)>,
    /// Those without an alarm; the last to come is the first to go, for its caches are warm.
    asleep: Vec<usize>,
    /// Those summoned, or woken by their alarm, that have not come to the queue yet.
    on_way: usize,
}

const ARMED: usize = 2;

impl Idle {
    pub(crate) fn is_empty(&self) -> bool {
        self.armed.is_empty() && self.asleep.is_empty()
    }

    /// `worker` goes to sleep. Says what to set its alarm to, if it gets one. `second` is the due
    /// time after the head's.
    pub(crate) fn enter(
        &mut self,
        worker: usize,
        head: Option<Timestamp>,
        second: Option<Timestamp>,
    ) -> Option<Timestamp> {
        let covered = |due: Timestamp| self.armed.first().is_some_and(|&(at, _)| at <= due);
        let alarm = match head {
            Some(due) if !covered(due) => Some(due),
            Some(_) if self.armed.len() < ARMED => second,
            _ => None,
        };
        match alarm {
            Some(at) => {
                let place = self.armed.partition_point(|&(other, _)| other <= at);
                self.armed.insert(place, (at, worker));
            }
            None => self.asleep.push(worker),
        }
        alarm
    }

    /// `worker` woke. `true` if by itself: it was still on the list, and is off it now.
    pub(crate) fn leave(&mut self, worker: usize) -> bool {
        if let Some(at) = self.armed.iter().position(|&(_, armed)| armed == worker) {
            self.armed.remove(at);
            return true;
        }
        if let Some(at) = self.asleep.iter().rposition(|&asleep| asleep == worker) {
            self.asleep.remove(at);
            return true;
        }
        false
    }

    /// One more is on its way, by itself.
    pub(crate) fn depart(&mut self) {
        self.on_way += 1;
    }

    /// One that was on its way is here.
    pub(crate) fn arrive(&mut self) {
        self.on_way -= 1;
    }

    pub(crate) fn someone_comes(&self) -> bool {
        self.on_way > 0
    }

    /// Whether somebody will look at the queue at `due` or before. `alarms_count` where an alarm
    /// rings when the clock shows its time, whoever moves the clock.
    pub(crate) fn covers(&self, due: Timestamp, alarms_count: bool) -> bool {
        self.someone_comes()
            || (alarms_count && self.armed.first().is_some_and(|&(alarm, _)| alarm <= due))
    }

    /// Takes one sleeper off the list, whom the caller then wakes: one without an alarm while
    /// fewer than two have one, else the one with the latest.
    pub(crate) fn summon(&mut self) -> Option<usize> {
        let worker = if self.armed.len() < ARMED { self.asleep.pop() } else { None };
        let worker = worker.or_else(|| self.armed.pop().map(|(_, worker)| worker))?;
        self.on_way += 1;
        Some(worker)
    }

    /// Takes all sleepers off the list, whom the caller then wakes.
    pub(crate) fn summon_all(&mut self) -> Vec<usize> {
        let armed = self.armed.drain(..).map(|(_, worker)| worker);
        let all: Vec<usize> = armed.chain(self.asleep.drain(..)).collect();
        self.on_way += all.len();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    #[test]
    fn the_two_earliest_due_times_are_armed_and_the_rest_sleep() {
        let mut idle = Idle::default();
        assert_eq!(idle.enter(0, Some(at(10)), Some(at(20))), Some(at(10)));
        assert_eq!(idle.enter(1, Some(at(10)), Some(at(20))), Some(at(20)));
        assert_eq!(idle.enter(2, Some(at(10)), Some(at(20))), None);
        assert!(idle.covers(at(10), true) && !idle.covers(at(9), true));
    }

    #[test]
    fn an_earlier_head_takes_the_latest_alarm() {
        let mut idle = Idle::default();
        idle.enter(0, Some(at(10)), Some(at(20)));
        idle.enter(1, Some(at(10)), Some(at(20)));
        idle.enter(2, Some(at(10)), Some(at(20)));
        assert_eq!(idle.summon(), Some(1), "worker 0 keeps watch over 10");
        assert!(idle.covers(at(5), true), "worker 1 is on its way");
        idle.arrive();
        assert_eq!(idle.enter(1, Some(at(5)), Some(at(10))), Some(at(5)));
    }

    #[test]
    fn who_was_summoned_is_off_the_list() {
        let mut idle = Idle::default();
        idle.enter(0, None, None);
        assert_eq!(idle.summon(), Some(0));
        assert!(!idle.leave(0));
        assert_eq!(idle.summon(), None);
    }
}
