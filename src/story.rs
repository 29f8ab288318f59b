//! One run of one task, told from its start to its end. Invariant: each part is told once, in order,
//! and after the end its task is in the queue again or has ended.

use std::time::Duration;

use crate::attempt::Attempt;
use crate::body::Work;
use crate::chance::unit_random;
use crate::clock::Timestamp;
use crate::ending::{End, Ended};
use crate::event::{Event, EventKind};
use crate::info::Ran;
use crate::job::{JobError, Outcome, describe, discard};
use crate::owed::Last;
use crate::plan::{Plan, Verdict};
use crate::recurrence::Next;
use crate::shared::Shared;
use crate::state::TaskState;
use crate::timeout::{TaskStuck, TaskTimeout};

/// An attempt, and who is told of it.
pub(crate) struct Story<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) attempt: Attempt,
}

impl Story<'_> {
    /// The time, as the end of this run: a clock that went back must not make its length negative.
    pub(crate) fn finished(&self) -> Timestamp {
        self.shared.clock.now().max(self.attempt.started)
    }

    pub(crate) fn ran(&self, outcome: &Outcome, finished: Timestamp) -> Ran {
        let error = outcome.error().map(|error| (error.clone(), describe(error)));
        Ran { started: self.attempt.started, finished, error }
    }

    /// What the run's outcome counts as: a failure, if it came too late. `None`: the run was given up
    /// before, and has ended without it.
    pub(crate) fn judge(&self, plan: Option<&Plan>, outcome: Outcome) -> Option<Outcome> {
        match plan.and_then(Plan::timeout) {
            Some((_, timeout)) => self.judge_in_time(timeout, outcome),
            None => Some(outcome),
        }
    }

    fn judge_in_time(&self, timeout: Duration, outcome: Outcome) -> Option<Outcome> {
        let number = self.attempt.task.number;
        if let Outcome::Later(_) = outcome {
            return self.shared.queue.send_away(number).then_some(outcome);
        }
        let late = self.shared.queue.claim(number, self.finished())?;
        if !late {
            return Some(outcome);
        }
        let cause = outcome.error().cloned();
        self.shared.drop_contained(outcome);
        Some(Outcome::Failed(JobError::new(TaskTimeout { timeout, cause })))
    }

    /// Ends the task of a run that is stuck, as FAILED; `stack` says what its job is doing.
    pub(crate) fn give_up(&self, error: TaskStuck, stack: Option<String>) {
        let error = JobError::new(error);
        let failed = Outcome::Failed(error.clone());
        let ran = self.ran(&failed, self.finished());
        self.shared.emit(EventKind::Stuck, &self.attempt.task, || Event {
            stack: stack.map(Into::into),
            ..self.told(EventKind::Stuck, &ran)
        });
        let ended = Ended::from(failed);
        let end = End::of_run(&ran, &ended);
        self.shared.finish(&self.attempt.task, end, |_| self.emit_end(&ran, None, false));
    }

    /// Ends the run, and the task too if nothing follows; or gives what is left to do.
    pub(crate) fn end(self, work: Work, outcome: Outcome, finished: Timestamp) -> Option<Last> {
        let ran = self.ran(&outcome, finished);
        if work.plan.is_some() || self.shared.listeners.anybody() {
            self.follow(work, outcome, ran, false);
            return None;
        }
        discard(work.job); // a worker is inside of its scheduler already
        Some(Last { task: self.attempt.task, ran, ended: outcome.into() })
    }

    /// Goes on with what follows. A run that `gave_way` to a stop is no failure of its task.
    pub(crate) fn follow(&self, mut work: Work, outcome: Outcome, mut ran: Ran, gave_way: bool) {
        let Some(plan) = &mut work.plan else {
            let end = Ended::from(outcome);
            let if_stopped = if gave_way { Ended::Cancelled } else { end.clone() };
            return self.finish(work, &ran, end, if_stopped);
        };
        let cancelled = plan.is_series() || gave_way;
        let verdict = plan.after(ran.error(), ran.finished, unit_random);
        let outcome = Ended::from(outcome);
        let if_stopped = if cancelled { Ended::Cancelled } else { outcome.clone() };
        match verdict {
            Verdict::Again(next) => {
                if let Err(work) = self.again(work, &ran, next) {
                    self.finish(work, &ran, if_stopped.clone(), if_stopped);
                }
            }
            Verdict::End => self.finish(work, &ran, outcome, if_stopped),
            Verdict::Broken(error) => {
                let broken = Ended::Failed(error.clone());
                ran.error = Some((error.clone(), describe(&error)));
                self.finish(work, &ran, broken.clone(), broken);
            }
        }
    }

    /// Back into the queue, unless the task was told to stop, or the scheduler closes. The listeners
    /// are told first: the next run's events come after.
    fn again(&self, work: Work, ran: &Ran, next: Next) -> Result<(), Work> {
        if !self.shared.queue.is_open() {
            return Err(work);
        }
        let will_retry = work.plan.as_ref().is_some_and(|plan| plan.is_retry());
        self.shared.drop_contained(self.attempt.task.check_in(work, ran, next)?);
        let Next { due, missed } = next;
        self.shared.queue.lock().registry.totals.add_run(ran, missed);
        self.emit_end(ran, Some(due), will_retry);
        if missed > 0 {
            self.shared.emit(EventKind::Missed, &self.attempt.task, || Event {
                missed: Some(missed),
                next_due: Some(due),
                ..self.event(EventKind::Missed)
            });
        }
        self.shared.bring(self.attempt.task.clone());
        Ok(())
    }

    /// Ends the task.
    fn finish(&self, work: Work, ran: &Ran, as_it_ran: Ended, if_stopped: Ended) {
        self.shared.drop_contained(work);
        let end = End { ran: Some(ran), as_it_ran: &as_it_ran, if_stopped: &if_stopped };
        self.shared.finish(&self.attempt.task, end, |state| {
            self.emit_end(ran, None, false);
            if state == TaskState::Cancelled {
                let task = &self.attempt.task;
                self.shared.emit(EventKind::Cancelled, task, || self.event(EventKind::Cancelled));
            }
        });
        self.shared.drop_ended(if_stopped);
        self.shared.drop_ended(as_it_ran);
    }

    /// Tells of the end of the run, and what follows.
    fn emit_end(&self, ran: &Ran, next_due: Option<Timestamp>, will_retry: bool) {
        let failed = ran.error().is_some();
        let kind = if failed { EventKind::Failed } else { EventKind::Completed };
        self.shared.emit(kind, &self.attempt.task, || {
            let will_retry = failed.then_some(will_retry);
            Event { next_due, will_retry, ..self.told(kind, ran) }
        });
    }

    #[inline]
    pub(crate) fn emit_start(&self) {
        self.shared.emit(EventKind::Started, &self.attempt.task, || Event {
            lateness: Some(self.lateness()),
            ..self.event(EventKind::Started)
        });
    }

    fn lateness(&self) -> Duration {
        self.attempt.started.since(self.attempt.due)
    }

    /// What is told of a run that ended, or is stuck.
    fn told(&self, kind: EventKind, ran: &Ran) -> Event {
        Event {
            lateness: Some(self.lateness()),
            duration: Some(ran.finished.since(ran.started)),
            error: ran.error().cloned(),
            ..self.event(kind)
        }
    }

    fn event(&self, kind: EventKind) -> Event {
        let Attempt { ref task, due, run, nth, .. } = self.attempt;
        Event { due, run, attempt: nth, ..self.shared.event(kind, task) }
    }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(value) => Self::Done(value),
            Outcome::Failed(error) => Self::Failed(error),
            Outcome::Later(_) => unreachable!("launched, and its end is another"),
        }
    }
}
