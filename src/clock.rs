//! Time as the core sees it. Invariant: only this file asks the operating system what time it is,
//! and no arithmetic here can wrap or panic.

use std::any::Any;
use std::fmt;
use std::ops::Add;
use std::sync::Weak;
use std::time::{Duration, Instant};

use crate::error::Error;

/// The longest duration that is accepted: 100 years of 365.25 days.
pub const MAX_DURATION: Duration = Duration::from_secs(3_155_760_000);

/// An instant on a scheduler's clock, in nanoseconds since that clock's zero.
///
/// ```
/// use duetime::Timestamp;
/// use std::time::Duration;
/// let due = Timestamp::from_nanos(5) + Duration::from_nanos(7);
/// assert_eq!(due.as_nanos(), 12);
/// assert_eq!(Timestamp::MAX + Duration::from_secs(1), Timestamp::MAX);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);
    /// The earliest instant, 292 years before zero.
    pub const MIN: Self = Self(i64::MIN);
    /// The latest instant, 292 years after zero.
    pub const MAX: Self = Self(i64::MAX);

    /// The instant `nanos` after the clock's zero.
    #[must_use]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the clock's zero.
    #[must_use]
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The time from `earlier` to here; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The same in nanoseconds.
    pub(crate) fn nanos_since(self, earlier: Self) -> u64 {
        if self > earlier { self.0.abs_diff(earlier.0) } else { 0 }
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;

    /// Saturates at [`Timestamp::MAX`].
    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }
}

/// `duration` in whole nanoseconds; the largest number for anything longer.
#[inline]
pub(crate) fn saturating_nanos(duration: Duration) -> i64 {
    // Twice as fast as by 128 bits, and every due time that is counted from now comes here.
    let seconds = i64::try_from(duration.as_secs()).ok();
    let whole = seconds.and_then(|seconds| seconds.checked_mul(1_000_000_000));
    whole.map_or(i64::MAX, |whole| whole.saturating_add(duration.subsec_nanos().into()))
}

/// Refuses a duration above [`MAX_DURATION`].
#[inline]
pub(crate) fn check_duration(parameter: &'static str, value: Duration) -> Result<(), Error> {
    if value <= MAX_DURATION {
        return Ok(());
    }
    Err(Error::invalid(parameter, value, "at most 100 years"))
}

/// Refuses a time between runs that is zero or above [`MAX_DURATION`].
pub(crate) fn check_period(parameter: &'static str, value: Duration) -> Result<(), Error> {
    if value.is_zero() {
        return Err(Error::invalid(parameter, value, "at least 1 nanosecond"));
    }
    check_duration(parameter, value)
}

/// Where a scheduler's time comes from.
///
/// It is asked from many threads, never while a lock of the scheduler is held. One that panics is
/// answered with its last reading; one that goes back does no harm.
///
/// ```
/// use duetime::{Clock, Timestamp};
/// struct Stopped;
/// impl Clock for Stopped {
///     fn now(&self) -> Timestamp { Timestamp::from_nanos(42) }
/// }
/// assert_eq!(Stopped.now().as_nanos(), 42);
/// ```
pub trait Clock: Any + Send + Sync {
    /// The time now.
    fn now(&self) -> Timestamp;

    /// How a worker waits for an instant of this clock. Asked once, when the scheduler is built.
    fn pace(&self) -> Pace {
        Pace::Free
    }

    /// Tells the clock which scheduler reads it. A clock that is moved by hand keeps the
    /// reference, to move time only while that scheduler is quiet.
    ///
    /// # Errors
    /// Whatever keeps it from doing so; there is then no scheduler.
    fn drive(&self, scheduler: Weak<dyn Driven>) -> Result<(), Error> {
        drop(scheduler);
        Ok(())
    }
}

/// How the time of a clock passes.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Pace {
    /// With the system's monotonic clock, zero being at this [`Instant`]. Waits are exact.
    Monotonic(Instant),
    /// Unknown: a worker waits as long as the clock says and looks again. A clock that stands
    /// still for longer and longer waits is left alone until `wake()`.
    Free,
    /// By hand only: a worker waits until it is told that the clock moved.
    Manual,
}

/// What a worker's next sleep ends with, besides a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    At(Instant),
    After(Duration),
    Never,
}

impl Alarm {
    /// The same, but `limit` from now at the latest.
    pub(crate) fn within(self, limit: Duration) -> Self {
        match self {
            Self::At(at) => Self::At(at.min(instant() + limit)),
            Self::After(time) => Self::After(time.min(limit)),
            Self::Never => Self::After(limit),
        }
    }
}

impl Pace {
    /// The alarm for `due`, when the clock shows `now`.
    pub(crate) fn alarm(self, now: Timestamp, due: Timestamp) -> Alarm {
        match self {
            Self::Manual => Alarm::Never,
            Self::Free => Alarm::After(due.since(now)),
            Self::Monotonic(zero) => {
                zero.checked_add(due.since(Timestamp::ZERO)).map_or(Alarm::Never, Alarm::At)
            }
        }
    }
}

/// What a clock that is moved by hand asks of the schedulers that read it.
pub trait Driven: Send + Sync {
    /// Whether it cannot be quiet before the calling code returns: a job, a listener, a callback.
    fn is_inside(&self) -> bool;

    /// What is next, if nothing runs and nothing is due (runs that sleep on the clock do not
    /// count).
    fn quiet(&self) -> Option<Rest>;

    /// Has `waker` called once when it is quiet, and gives the key for [`Driven::forget_waker`];
    /// `None` if it is quiet now.
    fn when_quiet(&self, waker: Waker) -> Option<u64>;

    /// Takes back a waker that was not called.
    fn forget_waker(&self, key: u64);

    /// The clock moved: look again.
    fn moved(&self);
}

/// A moment at which a scheduler has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rest {
    /// When a task is due, a run that sleeps on the clock wakes, or the timeout of one is up.
    pub next: Option<Timestamp>,
}

/// A one-shot call that ends somebody's wait. Called with no lock held.
pub type Waker = Box<dyn FnOnce() + Send>;

/// The system's monotonic clock: it never goes back, and no change of the wall clock moves it.
/// Its zero is when it was made.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    /// The system's time at zero.
    start: i64,
    /// The same for alarms. Read after it: when an alarm has rung, the clock shows its time.
    zero: Instant,
}

impl MonotonicClock {
    /// A clock that shows zero now.
    #[must_use]
    pub fn new() -> Self {
        // If the thread has to stand aside in between, every alarm is as late as that: so the best of some.
        let looks = (0..8).map(|_| {
            let (start, zero) = (system_nanos(), instant());
            (system_nanos() - start, Self { start, zero })
        });
        let best = looks.min_by_key(|&(took, _)| took);
        best.map_or_else(|| unreachable!("there are some"), |(_, clock)| clock)
    }
}

/// The time that an [`Instant`] is made of, in nanoseconds: every run and most calls that schedule ask
/// for it, and to subtract two instants takes longer than to ask.
#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
#[inline]
fn system_nanos() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills in the struct that it is given, and knows this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// The same, since it was asked first.
#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn system_nanos() -> i64 {
    static FIRST: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    saturating_nanos(FIRST.get_or_init(instant).elapsed())
}

impl Default for MonotonicClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Timestamp {
        Timestamp(system_nanos() - self.start)
    }

    fn pace(&self) -> Pace {
        Pace::Monotonic(self.zero)
    }
}

impl fmt::Display for Timestamp {
    /// Seconds with as many digits as it takes: `320s`, `0.05s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
        write!(f, "{sign}{}s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The system's time, for waits that a caller bounded by a timeout.
#[expect(clippy::disallowed_methods, reason = "this file is where the system is asked")]
pub(crate) fn instant() -> Instant {
    Instant::now()
}

/// The instant `timeout` from now; `None` (for ever) if there is none or it is out of reach.
pub(crate) fn deadline(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| instant().checked_add(timeout))
}
