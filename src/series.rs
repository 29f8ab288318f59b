//! The slots of a task. Invariant: a series never changes, so the worker that runs the task and
//! whoever looks ahead share it; where a task is in it, a [`Slot`] says.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::{Timestamp, check_duration};
use crate::error::Error;
use crate::job::{JobError, NotForward, contain};
use crate::recurrence::{Next, Recurrence, from};

/// The rules that say which slots there are, and when their runs are due.
#[derive(Default)]
pub(crate) struct Series {
    /// `None`: there is one slot.
    pub(crate) recurrence: Option<Box<dyn Recurrence>>,
    /// The period of a grid whose slots are skipped while the task cannot run.
    pub(crate) grid: Option<NonZeroU64>,
    /// How many slots are run at most; the retries of a slot do not count.
    pub(crate) max_runs: Option<u64>,
    /// No run is due after this.
    pub(crate) until: Option<Timestamp>,
    /// Whether the recurrence never ends the series by itself.
    pub(crate) endless: bool,
    /// How much later than its slot a run may be due, by chance.
    pub(crate) jitter: Duration,
}

/// One slot of a task.
#[derive(Clone, Copy)]
pub(crate) struct Slot {
    /// Its place on the grid, whatever its runs are due at.
    pub(crate) at: Timestamp,
    /// Which of those that are run it is, from 1; with the bit [`TO_COME`].
    number: u64,
}

/// The slot is still to come: what is run is one more run before it, asked for by hand.
const TO_COME: u64 = 1 << 63;

impl Slot {
    pub(crate) fn first(at: Timestamp) -> Self {
        Self { at, number: 1 }
    }

    /// The slot after this one; or this one, if it is still to come.
    pub(crate) fn following(self, at: Timestamp) -> Self {
        let number = if self.is_to_come() { self.number & !TO_COME } else { self.number + 1 };
        Self { at, number }
    }

    /// The same slot at another time.
    pub(crate) fn moved(self, at: Timestamp) -> Self {
        Self { at, number: self.number & !TO_COME }
    }

    /// The same slot, after one more run.
    pub(crate) fn postponed(self) -> Self {
        Self { number: self.number | TO_COME, ..self }
    }

    pub(crate) fn is_to_come(self) -> bool {
        self.number & TO_COME != 0
    }
}

impl Series {
    pub(crate) fn check(&self, first: Timestamp) -> Result<(), Error> {
        check_duration("jitter", self.jitter)?;
        if let Some(recurrence) = &self.recurrence {
            contain(|| recurrence.check()).unwrap_or(Ok(()))?;
            if !self.jitter.is_zero() {
                contain(|| recurrence.check_jitter(self.jitter)).unwrap_or(Ok(()))?;
            }
        }
        if self.max_runs == Some(0) {
            return Err(Error::invalid("max_runs", 0, "at least 1"));
        }
        match self.until {
            Some(until) if until < first => {
                let until = format_args!("{until}");
                Err(Error::invalid("until", until, "at or after the first due time"))
            }
            _ => Ok(()),
        }
    }

    /// Whether it ends only if somebody ends it.
    pub(crate) fn is_endless(&self) -> bool {
        self.endless && self.max_runs.is_none() && self.until.is_none()
    }

    /// The slot after `slot`, whose last run ended at `finished`.
    pub(crate) fn next(&self, slot: Slot, finished: Timestamp) -> Result<Option<Next>, JobError> {
        let Some(recurrence) = &self.recurrence else {
            return Ok(None);
        };
        if slot.is_to_come() {
            return Ok(Some(self.skip(slot, finished).unwrap_or(slot.at.into())));
        }
        if self.max_runs.is_some_and(|max| slot.number >= max) {
            return Ok(None);
        }
        let next = contain(|| recurrence.next_due(slot.at, finished))??;
        match next {
            Some(next) if next.due <= slot.at => {
                Err(JobError::new(NotForward { due: slot.at, next: next.due }))
            }
            next => Ok(next.filter(|next| self.allows(next.due))),
        }
    }

    /// The first slot from `now` on, if `slot` has passed, the rule skips those that have, and one is
    /// left.
    pub(crate) fn skip(&self, slot: Slot, now: Timestamp) -> Option<Next> {
        let next = from(slot.at, self.grid?, now)?;
        Some(next).filter(|next| next.missed > 0 && self.allows(next.due))
    }

    pub(crate) fn allows(&self, due: Timestamp) -> bool {
        self.until.is_none_or(|until| due <= until)
    }

    /// When the run of the slot at `slot` is due. `chance` gives numbers from 0 to 1.
    pub(crate) fn due(&self, slot: Timestamp, chance: fn() -> f64) -> Timestamp {
        if self.jitter.is_zero() {
            return slot;
        }
        // The product of floats may be rounded up beyond the whole.
        let due = slot + self.jitter.mul_f64(chance()).min(self.jitter);
        self.until.map_or(due, |until| due.min(until))
    }
}

/// What can be told beforehand of a task's due times.
#[derive(Default)]
pub(crate) struct Ahead {
    /// When the run that waits is due; `None` while the task runs.
    pub(crate) due: Option<Timestamp>,
    /// What follows it, or the run of now.
    pub(crate) series: Option<Position>,
}

/// Where in its series a task is.
pub(crate) type Position = (Arc<Series>, Slot);

impl Ahead {
    /// The next `count` due times, as if each run ended in the instant in which it is due, and the
    /// one of now at `now`.
    pub(crate) fn preview(&self, count: usize, now: Timestamp) -> Result<Vec<Timestamp>, JobError> {
        let mut dues: Vec<Timestamp> = self.due.into_iter().take(count).collect();
        let Some((series, mut slot)) = self.series.as_ref().map(|(series, slot)| (series, *slot))
        else {
            return Ok(dues);
        };
        let mut finished = self.due.unwrap_or(now);
        while dues.len() < count
            && let Some(next) = series.next(slot, finished)?
        {
            slot = slot.following(next.due);
            finished = next.due;
            dues.push(next.due);
        }
        Ok(dues)
    }
}
