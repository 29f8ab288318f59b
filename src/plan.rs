//! What follows a run: the next slot, a retry, or the end. Invariant: decided from the plan, the
//! outcome, one reading of the clock and a draw of chance alone; no lock, no thread, no clock.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::error::Error;
use crate::job::{JobError, contain};
use crate::recurrence::Next;
use crate::retry::RetryPolicy;
use crate::series::{Position, Series, Slot};
use crate::timeout::TimeLimit;

/// The rules of a task that has any, and where in its series it is. Owned by whoever owns the job:
/// the waiting record, or the worker that runs it.
pub(crate) struct Plan {
    /// `None`: one slot, for ever.
    pub(crate) series: Option<Arc<Series>>,
    pub(crate) retry: Option<Box<dyn RetryPolicy>>,
    /// The slot that is being run.
    pub(crate) slot: Slot,
    /// Failed attempts of that slot.
    pub(crate) slot_failures: u32,
    /// The group that its describer named.
    pub(crate) named: Option<Box<GroupName>>,
    /// Of which group the task is; 0: of none. See [`Names`](crate::limits::Names).
    pub(crate) group: u16,
    /// How long an attempt may take.
    pub(crate) limit: Option<Box<TimeLimit>>,
}

/// The name of a group, as a thin pointer.
pub(crate) struct GroupName(pub(crate) String);

/// What follows.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Another run: a retry, or the next slot.
    Again(Next),
    /// None: the task ends as its last run did.
    End,
    /// None: a rule of the task failed, and so does the task.
    Broken(JobError),
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            series: None,
            retry: None,
            slot: Slot::first(Timestamp::ZERO),
            slot_failures: 0,
            named: None,
            group: 0,
            limit: None,
        }
    }
}

impl Plan {
    pub(crate) fn is_series(&self) -> bool {
        self.series.as_ref().is_some_and(|series| series.recurrence.is_some())
    }

    /// Where it is in its series, for who looks ahead.
    pub(crate) fn position(&self) -> Option<Position> {
        self.series.clone().map(|series| (series, self.slot))
    }

    /// Shows the user's rules. `show` only looks.
    pub(crate) fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(recurrence) = self.series.as_ref().and_then(|all| all.recurrence.as_ref()) {
            show(&**recurrence);
        }
        if let Some(retry) = &self.retry {
            show(&**retry);
        }
    }

    /// Whether the series ends only if somebody ends it.
    pub(crate) fn is_endless(&self) -> bool {
        self.series.as_ref().is_some_and(|series| series.is_endless())
    }

    /// The number of this attempt at the slot, from 1.
    pub(crate) fn attempt(&self) -> u64 {
        u64::from(self.slot_failures) + 1
    }

    /// How long an attempt may take, if that is said.
    pub(crate) fn timeout(&self) -> Option<(TimeLimit, Duration)> {
        let limit = self.limit.as_deref()?;
        Some((*limit, limit.timeout?))
    }

    pub(crate) fn check(&self, due: Timestamp) -> Result<(), Error> {
        if let Some(limit) = &self.limit {
            limit.check()?;
        }
        if let Some(retry) = &self.retry {
            contain(|| retry.check()).unwrap_or(Ok(()))?;
        }
        self.series.as_ref().map_or(Ok(()), |series| series.check(due))
    }

    /// Begins at the slot `first`; gives when its run is due.
    pub(crate) fn begin(&mut self, first: Timestamp, chance: fn() -> f64) -> Timestamp {
        self.slot = Slot::first(first);
        self.series.as_ref().map_or(first, |series| series.due(first, chance))
    }

    /// The run that waits is due at `due` instead. If it is a slot's first, the series goes on from
    /// there.
    pub(crate) fn reschedule(&mut self, due: Timestamp) {
        if self.slot_failures == 0 {
            self.slot = self.slot.moved(due);
        }
    }

    /// The run that waits is due now. A series has one more run, before the slot that it waited for.
    pub(crate) fn hurry(&mut self) {
        if self.is_series() && self.slot_failures == 0 {
            self.slot = self.slot.postponed();
        }
    }

    /// What a task that was paused, and was due at `due`, goes on with at `now`, if not with the run
    /// that it waited for.
    pub(crate) fn go_on(
        &mut self,
        due: Timestamp,
        now: Timestamp,
        chance: fn() -> f64,
    ) -> Option<Next> {
        if now <= due || self.slot_failures > 0 || self.slot.is_to_come() {
            return None;
        }
        let series = self.series.as_ref()?;
        let Next { due, missed } = series.skip(self.slot, now)?;
        self.slot = self.slot.moved(due);
        Some(Next { due: series.due(due, chance), missed })
    }

    /// Decides what follows a run that ended at `finished`, with `error` if it failed, and moves
    /// the plan on to it. `chance` gives numbers from 0 to 1.
    #[inline(never)] // so that it is not in the way of tasks without a plan
    pub(crate) fn after(
        &mut self,
        error: Option<&JobError>,
        finished: Timestamp,
        chance: fn() -> f64,
    ) -> Verdict {
        self.decide(error, finished, chance).unwrap_or_else(Verdict::Broken)
    }

    fn decide(
        &mut self,
        error: Option<&JobError>,
        finished: Timestamp,
        chance: fn() -> f64,
    ) -> Result<Verdict, JobError> {
        let next = match &self.series {
            Some(series) => series.next(self.slot, finished)?.map(|next| (series, next)),
            None => None,
        };
        if let Some(error) = error {
            self.slot_failures = self.slot_failures.saturating_add(1);
            let retry = self.retry_due(error, finished)?;
            // A retry never starts at or after the next slot: that slot is run instead.
            let in_time = |due: &Timestamp| next.is_none_or(|(_, next)| *due < next.due);
            if let Some(due) = retry.filter(in_time) {
                return Ok(Verdict::Again(due.into()));
            }
        }
        let Some((series, Next { due, missed })) = next else {
            return Ok(Verdict::End);
        };
        self.slot = self.slot.following(due);
        self.slot_failures = 0;
        Ok(Verdict::Again(Next { due: series.due(due, chance), missed }))
    }

    /// Whether the run that follows is another attempt at a slot.
    pub(crate) fn is_retry(&self) -> bool {
        self.slot_failures > 0
    }

    fn retry_due(
        &self,
        error: &JobError,
        finished: Timestamp,
    ) -> Result<Option<Timestamp>, JobError> {
        let Some(retry) = &self.retry else {
            return Ok(None);
        };
        let delay = contain(|| retry.delay_after(error, self.slot_failures.into()))??;
        let allows = |due: &Timestamp| self.series.as_ref().is_none_or(|all| all.allows(*due));
        Ok(delay.map(|delay| finished + delay).filter(allows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recurrence::FixedRate;
    use crate::retry;

    const fn at(nanos: i64) -> Timestamp {
        Timestamp::from_nanos(nanos)
    }

    fn failed(plan: &mut Plan, finished: i64) -> Option<i64> {
        match plan.after(Some(&JobError::new("failed")), at(finished), || 0.5) {
            Verdict::Again(next) => Some(next.due.as_nanos()),
            Verdict::End => None,
            Verdict::Broken(error) => panic!("{error}"),
        }
    }

    fn every(period: u64) -> Series {
        let rate = FixedRate::new(Duration::from_nanos(period));
        Series { recurrence: Some(Box::new(rate)), ..Series::default() }
    }

    /// A plan with one retry a slot.
    fn plan(series: Series, delay: u64) -> Plan {
        let retry = retry::FixedDelay::new(1, Duration::from_nanos(delay));
        let series = Some(Arc::new(series));
        Plan { series, retry: Some(Box::new(retry)), ..Plan::default() }
    }

    #[test]
    fn a_retry_comes_before_the_next_slot_or_not_at_all() {
        let mut first = plan(every(10), 3);
        assert_eq!(failed(&mut first, 0), Some(3));
        assert_eq!(failed(&mut first, 3), Some(10), "one retry a slot");
        assert_eq!(failed(&mut plan(every(10), 15), 0), Some(10));
        assert_eq!(failed(&mut plan(every(10), 10), 0), Some(10), "at the slot is too late");
    }

    #[test]
    fn max_runs_counts_slots_and_not_their_retries() {
        let mut plan = plan(Series { max_runs: Some(2), ..every(10) }, 3);
        assert_eq!(failed(&mut plan, 0), Some(3));
        assert_eq!(failed(&mut plan, 3), Some(10));
        assert_eq!(failed(&mut plan, 10), Some(13));
        assert_eq!(failed(&mut plan, 13), None);
    }

    #[test]
    fn until_bounds_slots_and_retries() {
        let mut plan = plan(Series { until: Some(at(10)), ..every(10) }, 3);
        assert_eq!(failed(&mut plan, 9), Some(10));
        assert_eq!(failed(&mut plan, 10), None);
    }

    #[test]
    fn chance_moves_the_run_and_not_the_slot() {
        let jitter = Duration::from_nanos(4);
        let mut plan = plan(Series { jitter, ..every(10) }, 3);
        assert_eq!(plan.begin(at(0), || 1.0), at(4));
        assert_eq!(failed(&mut plan, 4), Some(7), "a retry is not moved");
        assert_eq!(failed(&mut plan, 7), Some(12));
        assert_eq!(plan.slot.at, at(10));
        plan.slot_failures = 1;
        assert_eq!(failed(&mut plan, 12), Some(22), "it does not add up");
    }
}
