//! Whether a failed attempt is made again. Invariant: a built-in policy's delay is finite and
//! capped for any number of failures.

use std::any::Any;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::chance::unit_random;
use crate::clock::{MAX_DURATION, check_duration};
use crate::error::Error;
use crate::job::JobError;

/// A rule that says how long to wait after a failure.
pub trait RetryPolicy: Any + Send {
    /// The delay before the next attempt, or `None` to give up. `failures` counts the failed
    /// attempts of this slot, from 1.
    ///
    /// # Errors
    /// An error (or a panic) ends the task as FAILED with it.
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError>;

    /// The same, when the error of the last attempt is known. This is what a task asks.
    ///
    /// Unless a policy says otherwise, it knows of errors only what a job says by them: a
    /// [`GiveUp`] is final, and a [`RetryAfter`] sets another delay where the policy has one.
    ///
    /// # Errors
    /// As for [`RetryPolicy::delay_after_failure`].
    fn delay_after(&self, error: &JobError, failures: u64) -> Result<Option<Duration>, JobError> {
        if error.downcast_ref::<GiveUp>().is_some() {
            return Ok(None);
        }
        let delay = self.delay_after_failure(failures)?;
        let asked = error.downcast_ref::<RetryAfter>().map(|&RetryAfter(delay)| delay);
        Ok(delay.map(|delay| asked.unwrap_or(delay)))
    }

    /// This policy, for the errors alone for which `worth` is true; any other is final. What a
    /// job says by [`RetryAfter`] and [`GiveUp`] holds without asking `worth`.
    ///
    /// ```
    /// use duetime::{JobError, RetryPolicy, retry};
    /// use std::{io, time::Duration};
    /// let policy = retry::FixedDelay::new(3, Duration::from_secs(5))
    ///     .retry_on(|error| error.downcast_ref::<io::Error>().is_some());
    /// let delay = |error| policy.delay_after(&error, 1).unwrap();
    /// let io = io::Error::from(io::ErrorKind::TimedOut);
    /// assert_eq!(delay(JobError::new(io)), Some(Duration::from_secs(5)));
    /// assert_eq!(delay(JobError::new("no such city")), None);
    /// ```
    fn retry_on<F>(self, worth: F) -> RetryOn<Self, F>
    where
        Self: Sized,
        F: Fn(&JobError) -> bool + Send + 'static,
    {
        RetryOn { policy: self, worth }
    }

    /// Says whether the policy's own numbers are in bounds. Asked when a task is scheduled.
    ///
    /// # Errors
    /// [`Error::InvalidValue`], and the task is not scheduled.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// A policy for some errors only; made by [`RetryPolicy::retry_on`].
#[derive(Clone, Copy, Debug)]
pub struct RetryOn<P, F> {
    policy: P,
    worth: F,
}

impl<P, F> RetryPolicy for RetryOn<P, F>
where
    P: RetryPolicy,
    F: Fn(&JobError) -> bool + Send + 'static,
{
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        self.policy.delay_after_failure(failures)
    }

    fn delay_after(&self, error: &JobError, failures: u64) -> Result<Option<Duration>, JobError> {
        let asked = error.downcast_ref::<RetryAfter>().is_some();
        if asked || (self.worth)(error) {
            self.policy.delay_after(error, failures)
        } else {
            Ok(None)
        }
    }

    fn check(&self) -> Result<(), Error> {
        self.policy.check()
    }
}

/// The error by which a job asks for its next attempt after this delay, instead of the policy's.
///
/// The policy still says whether there is one: such a failure counts as any other, and without a
/// policy it is final.
///
/// ```
/// use duetime::{ManualClock, Scheduler, Task, retry};
/// use std::time::Duration;
/// let clock = ManualClock::new();
/// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
/// let busy = || Err::<(), _>(retry::RetryAfter(Duration::from_secs(30)));
/// let policy = retry::FixedDelay::new(3, Duration::from_secs(1));
/// let task = scheduler.schedule(Task::new(scheduler.now(), busy).retry(policy))?;
/// clock.advance(Duration::from_secs(1))?;
/// assert_eq!(task.due(), duetime::Timestamp::ZERO + Duration::from_secs(30));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter(pub Duration);

impl fmt::Display for RetryAfter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "retry after {:?}", self.0)
    }
}

impl StdError for RetryAfter {}

/// The error by which a job says that no further attempt is of use, whatever the policy says. The
/// task, or this slot of a series, ends with it as its error.
///
/// ```
/// use duetime::retry::GiveUp;
/// let wrong = "12a".parse::<u8>().map_err(GiveUp::new).unwrap_err();
/// assert!(wrong.reason().is::<std::num::ParseIntError>());
/// assert_eq!(GiveUp::new("no such city").to_string(), "no such city");
/// ```
#[derive(Debug)]
pub struct GiveUp(Box<dyn StdError + Send + Sync>);

impl GiveUp {
    /// Gives up for a reason: an error, or a text.
    pub fn new(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self(reason.into())
    }

    /// The reason.
    #[must_use]
    pub fn reason(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.0
    }
}

impl fmt::Display for GiveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for GiveUp {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source() // the reason itself is what is shown
    }
}

/// No retry: the first failure is final.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Never;

impl RetryPolicy for Never {
    fn delay_after_failure(&self, _: u64) -> Result<Option<Duration>, JobError> {
        Ok(None)
    }
}

/// The same delay before each of a limited number of retries.
///
/// ```
/// use duetime::{RetryPolicy, retry};
/// use std::time::Duration;
/// let policy = retry::FixedDelay::new(2, Duration::from_secs(5));
/// assert_eq!(policy.delay_after_failure(2).unwrap(), Some(Duration::from_secs(5)));
/// assert_eq!(policy.delay_after_failure(3).unwrap(), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FixedDelay {
    max_retries: u64,
    delay: Duration,
}

impl FixedDelay {
    /// At most `max_retries` retries (so `max_retries + 1` attempts), `delay` after each failure.
    #[must_use]
    pub const fn new(max_retries: u64, delay: Duration) -> Self {
        Self { max_retries, delay }
    }
}

impl RetryPolicy for FixedDelay {
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        Ok((failures <= self.max_retries).then_some(self.delay))
    }

    fn check(&self) -> Result<(), Error> {
        check_duration("delay", self.delay)
    }
}

/// A delay that grows by a factor with each failure, up to a cap, spread by a jitter.
///
/// The rule is that of "Exponential Backoff And Jitter" (AWS Architecture Blog, 2015): many
/// clients that failed together should not come back together.
///
/// ```
/// use duetime::{RetryPolicy, retry};
/// use std::time::Duration;
/// let policy = retry::ExponentialBackoff::new(1_000_000, Duration::from_secs(1))
///     .cap(Duration::from_secs(60));
/// let seconds = |n| policy.delay_after_failure(n).unwrap().unwrap().as_secs();
/// assert_eq!([seconds(1), seconds(2), seconds(3), seconds(1_000_000)], [1, 2, 4, 60]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExponentialBackoff {
    max_retries: u64,
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: f64,
}

impl ExponentialBackoff {
    /// At most `max_retries` retries, the first after `base`, each further one after twice the
    /// delay before it.
    #[must_use]
    pub const fn new(max_retries: u64, base: Duration) -> Self {
        Self { max_retries, base, factor: 2.0, cap: MAX_DURATION, jitter: 0.0 }
    }

    /// Grows by `factor` (at least 1) instead of 2.
    #[must_use]
    pub const fn factor(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// No delay is longer than `cap`.
    #[must_use]
    pub const fn cap(self, cap: Duration) -> Self {
        Self { cap, ..self }
    }

    /// Each delay is cut by a random part of up to `jitter` of it, so that tasks which failed
    /// together do not come back together. `jitter` lies between 0 and 1.
    #[must_use]
    pub const fn jitter(self, jitter: f64) -> Self {
        Self { jitter, ..self }
    }
}

impl RetryPolicy for ExponentialBackoff {
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        if failures > self.max_retries {
            return Ok(None);
        }
        #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 every power is the cap")]
        let growth = self.factor.powf(failures.saturating_sub(1) as f64);
        let seconds = self.base.as_secs_f64() * growth;
        // An infinite or undefined product means "beyond any cap", so it is the cap; 0 · ∞ is 0.
        let delay = if self.base.is_zero() {
            Duration::ZERO
        } else {
            Duration::try_from_secs_f64(seconds).unwrap_or(self.cap)
        };
        let kept = 1.0 - self.jitter * unit_random();
        // The product of floats may be rounded up beyond the cap.
        Ok(Some(delay.min(self.cap).mul_f64(kept).min(self.cap)))
    }

    fn check(&self) -> Result<(), Error> {
        check_duration("base", self.base)?;
        check_duration("cap", self.cap)?;
        if !(self.factor.is_finite() && self.factor >= 1.0) {
            return Err(Error::invalid("factor", self.factor, "a finite number of at least 1"));
        }
        if !(0.0..=1.0).contains(&self.jitter) {
            return Err(Error::invalid("jitter", self.jitter, "between 0 and 1"));
        }
        Ok(())
    }
}
