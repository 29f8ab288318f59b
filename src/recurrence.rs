//! When a task runs again. Invariant: pure integer arithmetic, one division at the most, and every
//! answer lies after the slot it was asked for.

use std::any::Any;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::clock::{Timestamp, check_period, saturating_nanos};
use crate::error::Error;
use crate::job::JobError;

/// The next slot of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// When it is due.
    pub due: Timestamp,
    /// How many slots were skipped to reach it.
    pub missed: u64,
}

impl From<Timestamp> for Next {
    fn from(due: Timestamp) -> Self {
        Self { due, missed: 0 }
    }
}

/// A rule that says when a task is due next. It is asked by workers and by whoever looks ahead
/// ([`TaskHandle::preview`](crate::TaskHandle::preview)), so its answers should depend on its
/// arguments alone.
///
/// ```
/// use duetime::{JobError, Next, Recurrence, Timestamp};
/// use std::time::Duration;
///
/// /// Twice as long each time.
/// struct Doubling;
/// impl Recurrence for Doubling {
///     fn next_due(&self, due: Timestamp, _: Timestamp) -> Result<Option<Next>, JobError> {
///         Ok(Some((due + due.since(Timestamp::ZERO)).into()))
///     }
/// }
/// ```
pub trait Recurrence: Any + Send + Sync {
    /// The slot after `due`, whose run (its retries included) ended at `finished`; `None` ends
    /// the series. An answer that is not after `due` fails the task.
    ///
    /// # Errors
    /// An error (or a panic) ends the task as FAILED with it.
    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError>;

    /// Whether the rule itself never ends a series. Nothing can depend on a task that never ends.
    fn is_endless(&self) -> bool {
        false
    }

    /// The period of a rule whose slots lie on a grid and are skipped when they pass while the task
    /// cannot run. When a task with such a rule is resumed, it goes on with the first slot that has
    /// not passed; with any other rule, with the run that it was waiting for. Asked when the task is
    /// described.
    fn grid(&self) -> Option<Duration> {
        None
    }

    /// Says whether the rule's own numbers are in bounds. Asked when a task is scheduled.
    ///
    /// # Errors
    /// [`Error::InvalidValue`], and the task is not scheduled.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Says whether a run may be due up to `jitter` after its slot. Asked when a task that has a
    /// jitter is scheduled.
    ///
    /// # Errors
    /// [`Error::InvalidValue`], and the task is not scheduled.
    fn check_jitter(&self, jitter: Duration) -> Result<(), Error> {
        let _ = jitter;
        Ok(())
    }
}

/// No next run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct OneTime;

impl Recurrence for OneTime {
    fn next_due(&self, _: Timestamp, _: Timestamp) -> Result<Option<Next>, JobError> {
        Ok(None)
    }
}

/// What becomes of the slots of a [`FixedRate`] that pass while a run is late or long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missed {
    /// They are counted and not run: the next run is the first slot not earlier than the end of
    /// the run.
    #[default]
    Skip,
    /// They are all run, late, one after the other (as Java's `scheduleAtFixedRate` does).
    CatchUp,
}

/// Slots on the grid *first + n · period*.
///
/// ```
/// use duetime::{FixedRate, Recurrence, Timestamp};
/// use std::time::Duration;
/// let rate = FixedRate::new(Duration::from_nanos(30));
/// let at = Timestamp::from_nanos;
/// let next = rate.next_due(at(60), at(110)).unwrap().unwrap();
/// assert_eq!((next.due, next.missed), (at(120), 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedRate {
    period: Duration,
    missed: Missed,
}

impl FixedRate {
    /// A slot every `period`; missed slots are skipped.
    #[must_use]
    pub const fn new(period: Duration) -> Self {
        Self { period, missed: Missed::Skip }
    }

    /// The same grid with another rule for missed slots.
    #[must_use]
    pub const fn missed(self, missed: Missed) -> Self {
        Self { missed, ..self }
    }
}

impl Recurrence for FixedRate {
    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
        let period = saturating_nanos(self.period).unsigned_abs();
        let period = NonZeroU64::new(period).unwrap_or(NonZeroU64::MIN);
        let slots = match self.missed {
            Missed::CatchUp => 1,
            Missed::Skip => slots_to(due, period, finished).max(1),
        };
        Ok(on_grid(due, period, slots).map(|due| Next { due, missed: slots - 1 }))
    }

    fn grid(&self) -> Option<Duration> {
        (self.missed == Missed::Skip).then_some(self.period)
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_period("period", self.period)
    }

    /// It must not reach the next slot.
    fn check_jitter(&self, jitter: Duration) -> Result<(), Error> {
        if jitter < self.period {
            return Ok(());
        }
        let both = format_args!("{jitter:?} with a period of {:?}", self.period);
        Err(Error::invalid("jitter", both, "shorter than the period"))
    }
}

/// The first slot from `now` on of the grid on which `slot` lies; that one counts as missed if it is
/// before.
pub(crate) fn from(slot: Timestamp, period: NonZeroU64, now: Timestamp) -> Option<Next> {
    let slots = slots_to(slot, period, now);
    on_grid(slot, period, slots).map(|due| Next { due, missed: slots })
}

/// How many periods from `slot` to the first that is not before `now`.
fn slots_to(slot: Timestamp, period: NonZeroU64, now: Timestamp) -> u64 {
    now.as_nanos().max(slot.as_nanos()).abs_diff(slot.as_nanos()).div_ceil(period.get())
}

/// The exact product can pass 2^64 only beyond the end of time; then the series ends.
fn on_grid(slot: Timestamp, period: NonZeroU64, slots: u64) -> Option<Timestamp> {
    let due = i128::from(slot.as_nanos()) + i128::from(slots) * i128::from(period.get());
    i64::try_from(due).ok().map(Timestamp::from_nanos)
}

/// Each run is due a fixed time after the end of the one before.
///
/// ```
/// use duetime::{FixedDelay, Recurrence, Timestamp};
/// use std::time::Duration;
/// let delay = FixedDelay::new(Duration::from_nanos(30));
/// let at = Timestamp::from_nanos;
/// assert_eq!(delay.next_due(at(60), at(110)).unwrap().unwrap().due, at(140));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedDelay {
    delay: Duration,
}

impl FixedDelay {
    /// The next run is due `delay` after the end of a run.
    #[must_use]
    pub const fn new(delay: Duration) -> Self {
        Self { delay }
    }
}

impl Recurrence for FixedDelay {
    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
        // A clock that went back must not bring the next run before this one.
        Ok(Some((finished.max(due) + self.delay).into()))
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), Error> {
        check_period("delay", self.delay)
    }
}
