//! Watching over attempts with a timeout, on the queue. Invariants: nobody sleeps past the next
//! deadline, and nobody wakes before it without need; what is done about an attempt is decided in the
//! step in which its end is claimed.

use std::sync::Arc;

use crate::clock::{Alarm, Timestamp};
use crate::deadlines::{Calls, Overdue, Timed};
use crate::job::discard;
use crate::overtime::Since;
use crate::patience::Patience;
use crate::queue::{TaskQueue, call};
use crate::timeout::Interrupt;

impl TaskQueue {
    /// The watchdog's life: it sleeps from deadline to deadline, until there will be none any more.
    /// The clock is read with no lock held.
    pub(crate) fn watch(&self, now: &dyn Fn() -> Timestamp) {
        let mut patience = Patience::default();
        let mut moves = self.lock().moves;
        loop {
            let (time, mut room) = self.look_up(&mut moves, now);
            let woken = room.expire(time, Since::Told);
            if !woken.is_empty() {
                let calls = room.deadlines.take_calls();
                drop(room);
                self.ring_watch(calls);
                call(woken);
                continue;
            }
            let Calls { enforcer, .. } = room.deadlines.take_calls();
            self.ring_watch(Calls { enforcer, watchdog: false });
            if room.has_no_deadlines_left() {
                return;
            }
            let next = room.deadlines.next();
            let alarm = next.map_or(Alarm::Never, |next| self.pace.alarm(time, next));
            let alarm = patience.stretch(alarm, time);
            room.deadlines.asleep_until = Some(next.unwrap_or(Timestamp::MAX));
            room = self.watchdog.wait(room, alarm);
            room.deadlines.asleep_until = None;
        }
    }

    /// The job of an attempt with a timeout is about to be called, and not before its start was told:
    /// so nobody hears of its end first.
    pub(crate) fn begin_attempt(&self, timed: Timed) {
        let mut room = self.lock();
        let woken = room.begin_attempt(timed);
        let calls = room.deadlines.take_calls();
        drop(room);
        self.ring_watch(calls);
        call(woken);
    }

    /// The enforcer's sleep: until there is something to do, or never will be.
    pub(crate) fn next_overdue(&self) -> Option<Overdue> {
        let mut room = self.lock();
        loop {
            let overdue = room.deadlines.take_overdue();
            if overdue.is_some() || room.has_no_deadlines_left() {
                return overdue;
            }
            room = self.enforcer.wait(room, Alarm::Never);
        }
    }

    /// Claims the end of an attempt, which ended at `finished`, for who ran it; says whether that is
    /// too late. `None`: it was given up.
    pub(crate) fn claim(&self, task: u64, finished: Timestamp) -> Option<bool> {
        let mut room = self.lock();
        let timed = room.deadlines.claim(task);
        let last = room.has_no_deadlines_left();
        drop(room);
        self.ring_watch(Calls { watchdog: last, enforcer: last });
        let late = timed.as_ref().map(|timed| timed.is_late(finished));
        discard(timed); // what it was to be interrupted with is a user's
        late
    }

    /// An attempt goes on elsewhere, and holds no worker any more; `false` if it was given up.
    pub(crate) fn send_away(&self, task: u64) -> bool {
        let mut room = self.lock();
        let Some(timed) = room.deadlines.get_mut(task) else { return false };
        timed.worker = None;
        let interrupt = timed.interrupt.take();
        drop(room);
        discard(interrupt);
        true
    }

    /// Has a run that may be interrupted do so with `interrupt`; gives it back if that is now.
    pub(crate) fn set_interrupt(
        &self,
        task: u64,
        run: u64,
        interrupt: Arc<dyn Interrupt>,
    ) -> Option<Arc<dyn Interrupt>> {
        let mut room = self.lock();
        let timed = room.deadlines.get_mut(task).filter(|timed| timed.attempt.run == run)?;
        let now = (timed.late && timed.limit.interrupt).then(|| Arc::clone(&interrupt));
        let old = timed.interrupt.replace(interrupt);
        drop(room);
        discard(old);
        now
    }
}
