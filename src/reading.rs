//! How a scheduler reads its clock. Invariant: a reading never panics; what the clock throws is
//! answered with its last reading.

use crate::clock::{Clock, MonotonicClock, Pace, Timestamp};
use crate::job::contain;
use crate::sync::{AtomicI64, Ordering};

/// A scheduler's clock.
pub(crate) enum Reading {
    /// The usual one, read without a detour.
    Monotonic(MonotonicClock),
    /// Anybody's.
    Custom {
        clock: Box<dyn Clock>,
        /// Written by every reader; any recent reading will do, so Relaxed.
        last: AtomicI64,
    },
}

impl Reading {
    pub(crate) fn custom(clock: impl Clock) -> Self {
        Self::Custom { clock: Box::new(clock), last: AtomicI64::new(0) }
    }

    pub(crate) fn now(&self) -> Timestamp {
        match self {
            Self::Monotonic(clock) => clock.now(),
            Self::Custom { clock, last } => match contain(|| clock.now()) {
                Ok(now) => {
                    last.store(now.as_nanos(), Ordering::Relaxed);
                    now
                }
                Err(_) => Timestamp::from_nanos(last.load(Ordering::Relaxed)),
            },
        }
    }

    pub(crate) fn pace(&self) -> Pace {
        match self {
            Self::Monotonic(clock) => clock.pace(),
            Self::Custom { clock, .. } => contain(|| clock.pace()).unwrap_or(Pace::Free),
        }
    }

    /// The clock itself, if it is somebody's.
    pub(crate) fn clock(&self) -> Option<&dyn Clock> {
        match self {
            Self::Monotonic(_) => None,
            Self::Custom { clock, .. } => Some(&**clock),
        }
    }
}
