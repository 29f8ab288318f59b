//! How threads sleep on the queue: workers, the thread that sends DUE, and runs that wait on the clock.
//! Invariant: nobody sleeps over a task that is due, whatever moves the clock, for a reading that is out
//! of date is made again (see [`Room::has_moved`]); the wake-up protocol is [`crate::idle`]'s.

use std::time::Duration;

use crate::clock::{Alarm, Timestamp, Waker};
use crate::job::discard;
use crate::nap::{Look, Sleeper};
use crate::owed::Owed;
use crate::patience::Patience;
use crate::queue::{TaskQueue, call};
use crate::room::{PIECE, Phase, Room, SHARE};
use crate::sync::MutexGuard;

/// How long a worker leaves a rebuild to the calls that go on with it, before it looks again.
const REST: Duration = Duration::from_millis(10);

impl TaskQueue {
    /// The time, read with no lock held, and the lock; of a clock that was not moved in between.
    /// `moves`: those that the caller knows of.
    pub(crate) fn look_up(
        &self,
        moves: &mut u64,
        now: &dyn Fn() -> Timestamp,
    ) -> (Timestamp, MutexGuard<'_, Room>) {
        loop {
            let time = now();
            let room = self.lock();
            if !room.has_moved(moves) {
                return (time, room);
            }
        }
    }

    /// Puts a worker to sleep until a task is due at the clock's time or the queue closes. The
    /// clock is read with no lock held.
    pub(crate) fn sleep(&self, owed: &mut Owed, now: &dyn Fn() -> Timestamp) {
        let mut patience = Patience::default();
        let mut share = None;
        loop {
            let (time, mut room) = self.look_up(&mut owed.moves, now);
            if room.is_over() || room.head_for_workers().is_some_and(|due| due <= time) {
                if !owed.arrival {
                    room.idle.depart();
                    owed.arrival = true;
                }
                room.stop_tending(&mut share);
                room.come_to_door(time, owed);
                return;
            }
            if room.wants_hand(&mut share) {
                drop(room);
                share = Some(self.rebuild());
                continue;
            }
            room.settle(time, owed);
            let wakers = room.quiet_wakers(time);
            if !wakers.is_empty() {
                self.unlock(room, time);
                call(wakers);
                continue;
            }
            let limit = share.map(|_| REST);
            self.doze(room, time, owed, &mut patience, limit);
        }
    }

    /// An idle worker's share of a rebuild; says how much is left. It holds the lock many times, and
    /// not for long: who waits for longer than a few microseconds is put to sleep, and loses a
    /// hundred times as much.
    fn rebuild(&self) -> usize {
        let mut left = usize::MAX;
        for _ in 0..SHARE / PIECE {
            let mut room = self.lock();
            room.rebuild();
            left = room.left_to_rebuild();
            let gone = room.take_gone();
            drop(room);
            discard(gone);
            if left == 0 {
                break;
            }
        }
        left
    }

    /// A worker is about to leave its surroundings, only to let others in.
    pub(crate) fn come_to_door(&self, now: Timestamp, owed: &mut Owed) {
        self.lock().come_to_door(now, owed);
    }

    /// One stretch of sleep, of `limit` at the most. Afterwards the worker is off the list of the idle.
    fn doze<'a>(
        &'a self,
        mut room: MutexGuard<'a, Room>,
        now: Timestamp,
        owed: &mut Owed,
        patience: &mut Patience,
        limit: Option<Duration>,
    ) {
        let worker = owed.worker;
        let (head, second) = (room.head_for_workers(), room.second_due());
        let due = room.idle.enter(worker, head, second);
        let alarm = due.map_or(Alarm::Never, |due| self.pace.alarm(now, due));
        let alarm = patience.stretch(alarm, now);
        let alarm = limit.map_or(alarm, |limit| alarm.within(limit));
        room = crate::slack::precisely(alarm, || self.bells[worker].wait(room, alarm));
        let by_itself = room.idle.leave(worker);
        owed.arrival = !by_itself;
    }

    /// The announcer's sleep: until a task is due whose DUE event was not sent. `false` when the
    /// queue closes.
    pub(crate) fn sleep_announcer(&self, now: &dyn Fn() -> Timestamp) -> bool {
        let mut patience = Patience::default();
        let mut moves = self.lock().moves;
        loop {
            let (time, mut room) = self.look_up(&mut moves, now);
            if room.phase != Phase::Open {
                return false; // the workers send what is left
            }
            // While others send, they send all; afterwards it looks again.
            let due = if room.announcing == 0 { room.waiting.head_due() } else { None };
            if due.is_some_and(|due| due <= time) {
                return true;
            }
            let alarm = due.map_or(Alarm::Never, |due| self.pace.alarm(time, due));
            let alarm = patience.stretch(alarm, time);
            room.announcer = Some(due.unwrap_or(Timestamp::MAX));
            let bell = &self.bells[self.bells.len() - 1];
            room = crate::slack::precisely(alarm, || bell.wait(room, alarm));
            room.announcer = None;
        }
    }

    /// Looks at the clock for a run that sleeps on it; `None` if its sleep is over.
    pub(crate) fn look(
        &self,
        sleeper: &Sleeper<'_>,
        patience: &mut Patience,
        now: &dyn Fn() -> Timestamp,
    ) -> Option<Look> {
        let moves = self.lock().moves;
        let time = now();
        if self.lock().has_slept(sleeper, time) {
            return None;
        }
        let alarm = patience.stretch(self.pace.alarm(time, sleeper.deadline), time);
        Some(Look { time, moves, alarm })
    }

    /// Has `waker` called once when the sleeper is to look again; `None` if that is now.
    pub(crate) fn nap(&self, sleeper: &Sleeper<'_>, look: Look, waker: Waker) -> Option<u64> {
        let mut room = self.lock();
        if room.has_moved(&mut { look.moves }) || room.has_slept(sleeper, look.time) {
            drop(room);
            drop(waker);
            return None;
        }
        let key = room.naps.begin(sleeper, waker);
        let wakers = room.quiet_wakers(look.time);
        drop(room);
        call(wakers);
        Some(key)
    }

    /// Takes the waker of a nap back, if it was not called.
    pub(crate) fn end_nap(&self, key: u64) {
        let mut room = self.lock();
        let waker = room.naps.end(key);
        drop(room);
        drop(waker);
    }
}

#[cfg(test)]
mod tests;
