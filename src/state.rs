//! A task's state. Invariant: one atomic field, changed only by the moves below; of any two moves
//! out of one state exactly one wins.
//!
//! ```text
//!  (new) ── TELLING ──enter()──▶ WAITING ──try_start()──▶ RUNNING ──end()──▶ DONE, FAILED
//!             │  ▲                  │                       │ │
//!             │  └───try_tell()─────┼───────────────────────┘ │ try_cancel()
//!             │ try_cancel()        │ try_cancel()            ▼
//!             ▼                     ▼                       STOPPING ──end()──▶ DONE, FAILED,
//!          RECALLED ──end()──▶  CANCELLED                                       CANCELLED
//!
//!          TELLING ──try_block()──▶ BLOCKED ──try_free()──▶ TELLING
//!                                      └─── try_cancel() ──▶ CANCELLED
//!          TELLING ──rest()──▶ PAUSED ◀──try_pause()── WAITING
//!          TELLING ◀──try_resume()── PAUSED ──release()──▶ WAITING
//!                                      └─── try_cancel() ──▶ CANCELLED
//!          RUNNING ──try_expire()──▶ EXPIRED ──try_cancel()──▶ STOPPING
//!                                      └─── try_tell(), end(), as out of RUNNING
//! ```
//!
//! Five states are seen only here. TELLING: the task is on its way into the queue, and the thread
//! that brings it is telling the listeners what happened so far. It counts as WAITING. RECALLED:
//! it was cancelled meanwhile, and that same thread completes the cancel, so that the listeners
//! hear of it after what they are being told. It counts as CANCELLED. BLOCKED: the task is not in the
//! queue, because one that it depends on has not ended. PAUSED: run control holds the task, and it is
//! in no heap. Both count as WAITING. EXPIRED: the run's time is up, so it was told to stop, but what
//! follows a run may follow it. It counts as RUNNING.

use crate::clock::Timestamp;
use crate::sync::{AtomicU8, Ordering};

/// Where a task is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// It waits for its due time, the first or a later one, or for a free worker.
    Waiting,
    /// A worker runs its job.
    Running,
    /// It ended, and its last run succeeded.
    Done,
    /// It ended, and its last run failed.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl TaskState {
    /// Whether no run can follow.
    #[must_use]
    pub fn is_end(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// What a cancel found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelOutcome {
    /// The task was waiting; it will never run again.
    Cancelled,
    /// The task is running; this run finishes, and neither a retry nor a next slot follows.
    Stopping,
    /// The task had ended before.
    Finished,
    /// No such task is known.
    Unknown,
}

/// What `try_cancel` moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum CancelMove {
    /// WAITING, PAUSED, BLOCKED → CANCELLED: the caller completes the cancel.
    Cancelled,
    /// TELLING → RECALLED: the telling thread completes it.
    Recalled,
    /// RUNNING → STOPPING, or already there.
    Stopping,
    /// Nothing: the task had ended.
    Finished,
}

/// What a call of run control asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    Reschedule(Timestamp),
    RunNow,
    Pause,
    Resume,
}

/// What a call of run control found: [`Scheduler::reschedule`](crate::Scheduler::reschedule),
/// `run_now`, `pause_task`, `resume_task` and the same of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ControlOutcome {
    /// The task was waiting, and now is as the call wants it.
    Applied,
    /// The task is running. A pause or its end goes for what follows the run; the other calls have
    /// done nothing.
    Running,
    /// The task had ended before; nothing was done.
    Finished,
    /// No such task is known.
    Unknown,
}

/// Where a task is for run control. Stable under the queue's lock, but that a run may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// On its way into the queue.
    Telling,
    /// Behind another that has not ended.
    Blocked,
    Waiting,
    Paused,
    Running,
    Over,
}

const TELLING: u8 = 0;
const WAITING: u8 = 1;
const RUNNING: u8 = 2;
const STOPPING: u8 = 3;
const RECALLED: u8 = 4;
const DONE: u8 = 5;
const FAILED: u8 = 6;
const CANCELLED: u8 = 7;
const BLOCKED: u8 = 8;
const PAUSED: u8 = 9;
const EXPIRED: u8 = 10;

/// The field and its moves.
#[derive(Debug)]
pub(crate) struct StateCell(AtomicU8);

impl StateCell {
    /// A new task is TELLING.
    pub(crate) const fn new() -> Self {
        Self(AtomicU8::new(TELLING))
    }

    // AcqRel on success: who wins a move sees all that the last mover wrote before it. The data
    // that the moves hand over are behind locks as well; this keeps readers of `get` honest.
    fn move_from(&self, from: u8, to: u8) -> Result<u8, u8> {
        self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// TELLING → WAITING; `false` if it was recalled. Made under the queue's lock.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        self.move_alone(TELLING, WAITING)
    }

    /// TELLING → WAITING, of a task that nobody else knows yet.
    pub(crate) fn enter_unseen(&mut self) {
        *self.0.get_mut() = WAITING;
    }

    /// TELLING → PAUSED; `false` if it was recalled. Made under the queue's lock.
    #[must_use]
    pub(crate) fn rest(&self) -> bool {
        self.move_from(TELLING, PAUSED).is_ok()
    }

    /// WAITING → PAUSED. Made under the queue's lock.
    #[must_use]
    pub(crate) fn try_pause(&self) -> bool {
        self.move_from(WAITING, PAUSED).is_ok()
    }

    /// PAUSED → TELLING: the caller brings the task. Made under the queue's lock.
    #[must_use]
    pub(crate) fn try_resume(&self) -> bool {
        self.move_from(PAUSED, TELLING).is_ok()
    }

    /// PAUSED → WAITING, for a run that the pause does not hold. Made under the queue's lock.
    #[must_use]
    pub(crate) fn release(&self) -> bool {
        self.move_from(PAUSED, WAITING).is_ok()
    }

    /// The same where all rivals need the lock that the caller holds: without an exchange, which
    /// costs as much as twenty instructions.
    fn move_alone(&self, from: u8, to: u8) -> bool {
        let fits = self.0.load(Ordering::Acquire) == from;
        if fits {
            self.0.store(to, Ordering::Release);
        }
        fits
    }

    /// WAITING → RUNNING; `false` if it was cancelled. Made under the queue's lock, as are all moves
    /// out of WAITING.
    #[must_use]
    pub(crate) fn try_start(&self) -> bool {
        self.move_alone(WAITING, RUNNING)
    }

    /// RUNNING, EXPIRED → TELLING, because another run follows; `false` if it was cancelled. By who
    /// holds the run, when it can expire no more.
    #[must_use]
    pub(crate) fn try_tell(&self) -> bool {
        let left = self.move_from(RUNNING, TELLING);
        left.is_ok() || left == Err(EXPIRED) && self.move_from(EXPIRED, TELLING).is_ok()
    }

    /// RUNNING → EXPIRED; nothing if it was cancelled before. Made under the queue's lock, while the
    /// run is among the deadlines: it is never over then.
    pub(crate) fn try_expire(&self) {
        let _: Result<u8, u8> = self.move_from(RUNNING, EXPIRED);
    }

    /// TELLING → BLOCKED; `false` if it was recalled. Made under the queue's lock.
    #[must_use]
    pub(crate) fn try_block(&self) -> bool {
        self.move_from(TELLING, BLOCKED).is_ok()
    }

    /// BLOCKED → TELLING; `false` if it was cancelled, or is not blocked yet: then whoever brings
    /// it finds that it need not be. Made under the queue's lock.
    #[must_use]
    pub(crate) fn try_free(&self) -> bool {
        self.move_from(BLOCKED, TELLING).is_ok()
    }

    /// Out of WAITING, PAUSED, BLOCKED, TELLING, RUNNING or EXPIRED. Made under the queue's lock, so that its
    /// counts of tombstones and of paused tasks are exact.
    pub(crate) fn try_cancel(&self) -> CancelMove {
        loop {
            let seen = self.0.load(Ordering::Acquire);
            // All other moves out of these need the lock too; only a run moves on without it.
            let (to, done) = match seen {
                WAITING | PAUSED | BLOCKED => (CANCELLED, CancelMove::Cancelled),
                TELLING => (RECALLED, CancelMove::Recalled),
                RUNNING | EXPIRED if self.move_from(seen, STOPPING).is_err() => continue,
                RUNNING | EXPIRED | STOPPING => return CancelMove::Stopping,
                _ => return CancelMove::Finished,
            };
            self.0.store(to, Ordering::Release);
            return done;
        }
    }

    /// Ends the task: as `as_it_ran` if nobody told it to stop, else as `if_stopped`. Only the
    /// thread that holds the task in RUNNING, EXPIRED, STOPPING or RECALLED makes this move, so the
    /// only rival is a cancel; and it is made under the queue's lock, as that is. Says whether the
    /// task was told to stop.
    pub(crate) fn end(&self, as_it_ran: TaskState, if_stopped: TaskState) -> bool {
        let stopped = !matches!(self.0.load(Ordering::Acquire), RUNNING | EXPIRED);
        let end = if stopped { if_stopped } else { as_it_ran };
        self.0.store(encode(end), Ordering::Release);
        stopped
    }

    /// The state that everybody sees.
    pub(crate) fn get(&self) -> TaskState {
        match self.0.load(Ordering::Acquire) {
            TELLING | WAITING | PAUSED | BLOCKED => TaskState::Waiting,
            RUNNING | STOPPING | EXPIRED => TaskState::Running,
            DONE => TaskState::Done,
            FAILED => TaskState::Failed,
            _ => TaskState::Cancelled,
        }
    }

    /// The same for run control.
    pub(crate) fn stand(&self) -> Stand {
        match self.0.load(Ordering::Acquire) {
            TELLING => Stand::Telling,
            BLOCKED => Stand::Blocked,
            WAITING => Stand::Waiting,
            PAUSED => Stand::Paused,
            RUNNING | STOPPING | EXPIRED => Stand::Running,
            _ => Stand::Over,
        }
    }

    /// Whether an entry of the task's in a heap may mean something.
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Acquire) == WAITING
    }

    /// Whether the run that goes on was cancelled.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.load(Ordering::Acquire) == STOPPING
    }

    /// Whether a run that goes on was told to stop, by a cancel or because its time is up. One that is
    /// stuck goes on after its task's end.
    pub(crate) fn must_stop(&self) -> bool {
        matches!(self.0.load(Ordering::Acquire), STOPPING | EXPIRED | DONE | FAILED | CANCELLED)
    }
}

fn encode(state: TaskState) -> u8 {
    match state {
        TaskState::Waiting => WAITING,
        TaskState::Running => RUNNING,
        TaskState::Done => DONE,
        TaskState::Failed => FAILED,
        TaskState::Cancelled => CANCELLED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting() -> StateCell {
        let cell = StateCell::new();
        assert!(cell.enter());
        cell
    }

    #[test]
    fn a_start_and_a_cancel_exclude_each_other() {
        let cell = waiting();
        assert!(cell.try_start());
        assert!(!cell.try_start());
        assert_eq!(cell.try_cancel(), CancelMove::Stopping);
        let cell = waiting();
        assert_eq!(cell.try_cancel(), CancelMove::Cancelled);
        assert!(!cell.try_start());
        assert_eq!(cell.try_cancel(), CancelMove::Finished);
    }

    #[test]
    fn a_paused_task_waits_and_starts_only_when_it_is_let() {
        let cell = waiting();
        assert!(cell.try_pause());
        assert_eq!(cell.get(), TaskState::Waiting);
        assert!(!cell.try_start() && !cell.is_waiting());
        assert!(cell.try_resume() && cell.enter() && cell.try_pause());
        assert_eq!(cell.try_cancel(), CancelMove::Cancelled);
        assert!(!cell.try_resume() && !cell.release());
    }

    #[test]
    fn a_task_cancelled_while_it_is_told_never_enters() {
        let cell = StateCell::new();
        assert_eq!(cell.try_cancel(), CancelMove::Recalled);
        assert_eq!(cell.get(), TaskState::Cancelled);
        assert!(!cell.enter());
    }

    #[test]
    fn a_blocked_task_waits_and_is_freed_or_cancelled_once() {
        let cell = StateCell::new();
        assert!(cell.try_block());
        assert_eq!(cell.get(), TaskState::Waiting);
        assert!(!cell.is_waiting() && !cell.enter() && !cell.try_start());
        assert!(cell.try_free() && !cell.try_free());
        assert!(cell.try_block());
        assert_eq!(cell.try_cancel(), CancelMove::Cancelled);
        assert!(!cell.try_free());
    }

    #[test]
    fn a_run_whose_time_is_up_ends_as_it_ran_or_is_followed() {
        let expired = || {
            let cell = waiting();
            assert!(cell.try_start());
            cell.try_expire();
            assert!(cell.must_stop() && !cell.is_stopping());
            assert_eq!(cell.get(), TaskState::Running);
            cell
        };
        assert!(expired().try_tell());
        assert!(!expired().end(TaskState::Failed, TaskState::Cancelled));
        let cell = expired();
        assert_eq!(cell.try_cancel(), CancelMove::Stopping);
        cell.try_expire();
        assert!(cell.is_stopping() && !cell.try_tell());
        assert!(cell.end(TaskState::Failed, TaskState::Cancelled));
    }

    #[test]
    fn a_stopped_run_ends_as_stopped_and_is_not_queued_again() {
        let cell = waiting();
        assert!(cell.try_start());
        assert_eq!(cell.try_cancel(), CancelMove::Stopping);
        assert!(cell.is_stopping());
        assert!(!cell.try_tell());
        assert!(cell.end(TaskState::Done, TaskState::Cancelled));
        assert_eq!(cell.get(), TaskState::Cancelled);
    }
}
