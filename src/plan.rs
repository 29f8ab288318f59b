//! What follows a run: the next slot, a retry, or the end. Invariant: decided from the plan, the
//! outcome and one reading of the clock alone; no lock, no thread, no clock.

use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::{JobError, NotForward, contain};
use crate::recurrence::{Next, Recurrence};
use crate::retry::RetryPolicy;

/// The rules of a task that has any, and where in its series it is. Owned by whoever owns the job:
/// the waiting record, or the worker that runs it.
pub(crate) struct Plan {
    pub(crate) recurrence: Option<Box<dyn Recurrence>>,
    pub(crate) retry: Option<Box<dyn RetryPolicy>>,
    /// How many slots are run at most; the retries of a slot do not count.
    pub(crate) max_runs: Option<u64>,
    /// No run is due after this.
    pub(crate) until: Option<Timestamp>,
    /// The due time of the slot that is being run, whatever its retries are due at.
    pub(crate) slot: Timestamp,
    /// How many slots were run, that one included.
    pub(crate) slots: u64,
    /// Failed attempts of that slot.
    pub(crate) slot_failures: u64,
}

/// What follows.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Another run: a retry, or the next slot.
    Again { due: Timestamp, missed: u64 },
    /// None: the task ends as its last run did.
    End,
    /// None: a rule of the task failed, and so does the task.
    Broken(JobError),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            recurrence: None,
            retry: None,
            max_runs: None,
            until: None,
            slot: Timestamp::ZERO,
            slots: 1,
            slot_failures: 0,
        }
    }
}

impl Plan {
    pub(crate) fn is_series(&self) -> bool {
        self.recurrence.is_some()
    }

    /// The number of this attempt at the slot, from 1.
    pub(crate) fn attempt(&self) -> u64 {
        self.slot_failures + 1
    }

    pub(crate) fn check(&self, due: Timestamp) -> Result<(), Error> {
        if let Some(recurrence) = &self.recurrence {
            contain(|| recurrence.check()).unwrap_or(Ok(()))?;
        }
        if let Some(retry) = &self.retry {
            contain(|| retry.check()).unwrap_or(Ok(()))?;
        }
        if self.max_runs == Some(0) {
            return Err(Error::invalid("max_runs", 0, "at least 1"));
        }
        match self.until {
            Some(until) if until < due => {
                Err(Error::invalid("until", until, "not before the first due time"))
            }
            _ => Ok(()),
        }
    }

    /// Decides what follows a run that ended at `finished`, and moves the plan on to it.
    pub(crate) fn after(&mut self, failed: bool, finished: Timestamp) -> Verdict {
        self.decide(failed, finished).unwrap_or_else(Verdict::Broken)
    }

    fn decide(&mut self, failed: bool, finished: Timestamp) -> Result<Verdict, JobError> {
        let next = self.next_slot(finished)?;
        if failed {
            self.slot_failures += 1;
            let retry = self.retry_due(finished)?;
            // A retry never starts at or after the next slot: that slot is run instead.
            if let Some(due) = retry.filter(|&due| next.is_none_or(|next| due < next.due)) {
                return Ok(Verdict::Again { due, missed: 0 });
            }
        }
        let Some(Next { due, missed }) = next else {
            return Ok(Verdict::End);
        };
        self.slot = due;
        self.slots += 1;
        self.slot_failures = 0;
        Ok(Verdict::Again { due, missed })
    }

    fn next_slot(&self, finished: Timestamp) -> Result<Option<Next>, JobError> {
        let Some(recurrence) = &self.recurrence else {
            return Ok(None);
        };
        if self.max_runs.is_some_and(|max| self.slots >= max) {
            return Ok(None);
        }
        let next = contain(|| recurrence.next_due(self.slot, finished))??;
        match next {
            Some(next) if next.due <= self.slot => {
                Err(JobError::new(NotForward { due: self.slot, next: next.due }))
            }
            next => Ok(next.filter(|next| self.allows(next.due))),
        }
    }

    fn retry_due(&self, finished: Timestamp) -> Result<Option<Timestamp>, JobError> {
        let Some(retry) = &self.retry else {
            return Ok(None);
        };
        let delay = contain(|| retry.delay_after_failure(self.slot_failures))??;
        Ok(delay.map(|delay| finished + delay).filter(|&due| self.allows(due)))
    }

    fn allows(&self, due: Timestamp) -> bool {
        self.until.is_none_or(|until| due <= until)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recurrence::FixedRate;
    use crate::retry;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn failed(plan: &mut Plan, finished: i64) -> Option<i64> {
        match plan.after(true, at(finished)) {
            Verdict::Again { due, .. } => Some(due.as_nanos()),
            Verdict::End => None,
            Verdict::Broken(error) => panic!("{error}"),
        }
    }

    fn series(period: u64, delay: u64) -> Plan {
        Plan {
            recurrence: Some(Box::new(FixedRate::new(Duration::from_nanos(period)))),
            retry: Some(Box::new(retry::FixedDelay::new(1, Duration::from_nanos(delay)))),
            ..Plan::default()
        }
    }

    #[test]
    fn a_retry_comes_before_the_next_slot_or_not_at_all() {
        let mut plan = series(10, 3);
        assert_eq!(failed(&mut plan, 0), Some(3));
        assert_eq!(failed(&mut plan, 3), Some(10), "one retry a slot");
        assert_eq!(failed(&mut series(10, 15), 0), Some(10));
        assert_eq!(failed(&mut series(10, 10), 0), Some(10), "at the slot is too late");
    }

    #[test]
    fn max_runs_counts_slots_and_not_their_retries() {
        let mut plan = Plan { max_runs: Some(2), ..series(10, 3) };
        assert_eq!(failed(&mut plan, 0), Some(3));
        assert_eq!(failed(&mut plan, 3), Some(10));
        assert_eq!(failed(&mut plan, 10), Some(13));
        assert_eq!(failed(&mut plan, 13), None);
    }

    #[test]
    fn until_bounds_slots_and_retries() {
        let mut plan = Plan { until: Some(at(10)), ..series(10, 3) };
        assert_eq!(failed(&mut plan, 9), Some(10));
        assert_eq!(failed(&mut plan, 10), None);
    }
}
