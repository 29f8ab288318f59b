//! Run control under the queue's lock: a waiting task is moved, hurried, held and let go. Invariant: a
//! task that waits has one live entry, or is paused or BLOCKED and has none; each entry that was replaced is a
//! tombstone of its heap, and counted.

use crate::chance::unit_random;
use crate::clock::Timestamp;
use crate::error::Error;
use crate::record::{Place, TaskRef};
use crate::room::{Phase, Room};
use crate::state::{Control, ControlOutcome, Stand};

/// A task that is paused no more, to be brought into the queue.
pub(crate) struct Resumed {
    /// When it was due.
    pub(crate) due: Timestamp,
    /// The slots that passed since.
    pub(crate) missed: u64,
}

impl Room {
    /// Does what `control` asks for, as of `now`. Once the queue is closing, what waits is left to
    /// whoever closes it.
    pub(crate) fn control(
        &mut self,
        task: &TaskRef,
        control: Control,
        now: Timestamp,
    ) -> Result<(ControlOutcome, Option<Resumed>), Error> {
        let stand = task.state.stand();
        let outcome = match stand {
            Stand::Over => return Ok((ControlOutcome::Finished, None)),
            Stand::Running => ControlOutcome::Running,
            _ if self.phase != Phase::Open => return Err(Error::SchedulerClosed),
            _ => ControlOutcome::Applied,
        };
        let mut resumed = None;
        match control {
            Control::Pause => self.pause(task, stand),
            Control::Resume => resumed = self.resume(task, stand, now),
            _ if stand == Stand::Running => {}
            Control::Reschedule(due) => self.reschedule(task, stand, due),
            Control::RunNow => self.hurry(task, stand, now),
        }
        Ok((outcome, resumed))
    }

    fn pause(&mut self, task: &TaskRef, stand: Stand) {
        self.mark(task, true);
        if stand == Stand::Waiting && task.state.try_pause() {
            task.renew_ticket();
            self.leave(task);
            self.hold(task);
        }
    }

    fn resume(&mut self, task: &TaskRef, stand: Stand, now: Timestamp) -> Option<Resumed> {
        self.mark(task, false);
        if stand != Stand::Paused || !task.state.try_resume() {
            return None;
        }
        self.leave(task);
        task.set_place(Place::Out);
        let due = task.due();
        Some(Resumed { due, missed: task.go_on(now, unit_random) })
    }

    /// Says that the task is paused, or not. One that is BLOCKED stays so: it is held when it is brought.
    fn mark(&mut self, task: &TaskRef, paused: bool) {
        self.registry.dependents.note_pause(task, paused);
        task.set_paused(paused);
    }

    fn reschedule(&mut self, task: &TaskRef, stand: Stand, due: Timestamp) {
        task.reschedule(due);
        if stand == Stand::Waiting {
            self.requeue(task);
        }
    }

    fn hurry(&mut self, task: &TaskRef, stand: Stand, now: Timestamp) {
        let is_due = task.due() <= now;
        task.hurry(now);
        match stand {
            Stand::Telling | Stand::Blocked => task.let_pass(),
            Stand::Waiting if is_due => {} // it keeps its place in the order
            Stand::Paused if !task.state.release() => {}
            _ => self.requeue(task),
        }
    }

    /// Gives a task that is WAITING a new entry in place of what it had.
    fn requeue(&mut self, task: &TaskRef) {
        task.renew_ticket();
        self.leave(task);
        self.queue(task.clone(), false);
    }
}
