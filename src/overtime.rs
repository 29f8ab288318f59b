//! Attempts with a timeout, under the queue's lock. Invariants: an attempt is told to stop once, when
//! its time is up, whoever looks at the clock; its end belongs to one thread, and so does what it
//! counted for.

use crate::clock::{Timestamp, Waker};
use crate::deadlines::{Overdue, Timed};
use crate::room::{Phase, Room};

/// What the grace of those is counted from whose time is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Since {
    /// From when they are told to stop: if that is late, the whole process may have stood still.
    Told,
    /// From when their time was up. The clock was moved by hand, and they went on meanwhile, but for
    /// those that slept on it.
    Deadline,
}

impl Room {
    /// The job of an attempt with a timeout is about to be called.
    pub(crate) fn begin_attempt(&mut self, timed: Timed) -> Vec<Waker> {
        self.deadlines.begin(timed);
        // The clock may have been moved by hand since the attempt started: who moved it has looked.
        self.expire(self.latest, Since::Told)
    }

    /// Tells those to stop whose time is up at `now`, and gives up those that have not stopped. What
    /// else is to be done about them waits for the enforcer. Gives whom to wake, after unlocking.
    pub(crate) fn expire(&mut self, now: Timestamp, since: Since) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(timed) = self.deadlines.claim_due(now) {
            if timed.late {
                let replace = self.write_off(timed.worker);
                self.deadlines.push(Overdue::Stuck { timed: Box::new(timed), replace });
                continue;
            }
            let task = &timed.attempt.task;
            task.state.try_expire();
            task.pull_leash();
            let sleepers = self.naps.end_of_run(task.number);
            let others = self.naps.end_of(task.number);
            let slept = !sleepers.is_empty() || !others.is_empty();
            woken.extend(sleepers);
            let told = if since == Since::Told || slept { now } else { timed.next };
            self.deadlines.begin_grace(timed, told, others);
        }
        woken
    }

    /// Counts a run as stuck; says whether the worker that it holds, if it does, is to be replaced.
    fn write_off(&mut self, worker: Option<usize>) -> bool {
        let Some(worker) = worker else {
            self.reserve.note_stuck();
            return false;
        };
        // What the replacement counts for, it has from the one that is stuck. Once all is closed
        // there is nothing left to do for it.
        let replace = self.reserve.write_off(worker, self.workers) && self.phase != Phase::Closed;
        self.alive -= usize::from(!replace);
        replace
    }

    /// No replacement could be made.
    pub(crate) fn vacate(&mut self, worker: usize) {
        self.reserve.vacate(worker);
        self.alive -= 1;
    }

    /// A worker's job returned long after it was given up. Gives the place that the worker is to serve.
    pub(crate) fn come_back(&mut self) -> Option<usize> {
        let place = self.reserve.come_back().filter(|_| self.phase != Phase::Closed);
        self.alive += usize::from(place.is_some());
        place
    }

    /// Whether no attempt with a timeout goes on, nor ever will.
    pub(crate) fn has_no_deadlines_left(&mut self) -> bool {
        self.deadlines.is_empty() && self.is_over()
    }
}
