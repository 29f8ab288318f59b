//! The retry policies as Python sees them. Invariant: an object is its numbers, in bounds, and its
//! classes of errors; what it answers is what the core answers.

use std::time::Duration;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::filter::Filter;
use super::numbers::{Maybe, duration, float, integer};
use super::pickling::{Reduced, reduce, reduce_with};
use crate::{JobError, RetryPolicy, retry};

fn delay_seconds(delay: Result<Option<Duration>, JobError>) -> Option<f64> {
    delay.ok().flatten().map(|delay| delay.as_secs_f64())
}

fn max_retries(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("max_retries", value, 0_u64, "between 0 and 2^64 - 1")
}

fn failures(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("failures", value, 1_u64, "between 1 and 2^64 - 1")
}

/// The retry policy that gives up at the first failure; the default.
///
/// Example:
///     >>> from duetime import retry
///     >>> retry.Never().delay_after_failure(1) is None
///     True
#[pyclass(frozen, eq, hash, module = "duetime.retry")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct Never;

#[pymethods]
impl Never {
    #[new]
    fn new() -> Self {
        Self
    }

    /// Give `None`: there is no retry.
    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn delay_after_failure(&self, failures: &Bound<'_, PyAny>) -> PyResult<()> {
        self::failures(failures).map(drop)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf.as_any(), PyTuple::empty(slf.py()))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __repr__(&self) -> &'static str {
        "Never()"
    }
}

/// The retry policy with the same delay each time; public as `duetime.retry.FixedDelay`.
///
/// Args:
///     max_retries: How many attempts may follow the first.
///     delay: From the end of a failed attempt to the next.
///     retry_on: Retry only after these errors: a class or a tuple of classes, as `except` takes;
///         after any by default.
///     give_up_on: No retry after these, even if `retry_on` names them; none by default.
///
/// Raises:
///     ValueError: A number is out of its bounds.
///     TypeError: An argument is of the wrong type.
///
/// Example:
///     >>> from duetime import retry
///     >>> policy = retry.FixedDelay(max_retries=2, delay=300, retry_on=ConnectionError)
///     >>> [policy.delay_after_failure(failures) for failures in (1, 2, 3)]
///     [300.0, 300.0, None]
#[pyclass(frozen, eq, hash, name = "FixedDelay", module = "duetime.retry")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct RetryFixedDelay {
    max_retries: u64,
    delay: Duration,
    pub(super) filter: Filter,
}

impl RetryFixedDelay {
    pub(super) fn core(&self) -> retry::FixedDelay {
        retry::FixedDelay::new(self.max_retries, self.delay)
    }
}

#[pymethods]
impl RetryFixedDelay {
    #[new]
    #[pyo3(signature = (max_retries, delay, *, retry_on=None, give_up_on=None))]
    fn new(
        max_retries: &Bound<'_, PyAny>,
        delay: &Bound<'_, PyAny>,
        retry_on: Option<&Bound<'_, PyAny>>,
        give_up_on: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Ok(Self {
            max_retries: self::max_retries(max_retries)?,
            delay: duration("delay", delay)?,
            filter: Filter::new(retry_on, give_up_on)?,
        })
    }

    /// How many attempts may follow the first.
    #[getter]
    fn max_retries(&self) -> u64 {
        self.max_retries
    }

    /// From the end of a failed attempt to the next, in seconds.
    #[getter]
    fn delay(&self) -> f64 {
        self.delay.as_secs_f64()
    }

    /// The errors after which there is a retry; `None` for any.
    #[getter]
    fn retry_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.filter.retry_on(py)
    }

    /// The errors after which there is none; `None` if none are named.
    #[getter]
    fn give_up_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.filter.give_up_on(py)
    }

    /// Give the delay before the next attempt in seconds, or `None` to give up.
    ///
    /// Args:
    ///     failures: The failed attempts so far, from 1.
    fn delay_after_failure(&self, failures: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let failures = self::failures(failures)?;
        Ok(delay_seconds(self.core().delay_after_failure(failures)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let this = slf.get();
        let filter = this.filter.arguments(slf.py())?;
        reduce_with(slf.as_any(), (this.max_retries, this.delay()), filter)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("FixedDelay({}, {}{})", self.max_retries, self.delay(), self.filter.shown(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.filter.objects().try_for_each(|object| visit.call(object))
    }
}

/// The retry policy whose delay grows: base, base · factor, base · factor² and so on.
///
/// Args:
///     max_retries: How many attempts may follow the first.
///     base: The first delay.
///     factor: What each delay is multiplied by to give the next; at least 1.
///     cap: The longest delay.
///     jitter: From 0 to 1: each delay is cut by a random part of up to this share, so that tasks
///         which failed together do not come back together.
///     retry_on: Retry only after these errors: a class or a tuple of classes, as `except` takes;
///         after any by default.
///     give_up_on: No retry after these, even if `retry_on` names them; none by default.
///
/// Raises:
///     ValueError: A number is out of its bounds.
///     TypeError: An argument is of the wrong type.
///
/// Example:
///     >>> from duetime import retry
///     >>> policy = retry.ExponentialBackoff(3, base=1, factor=10, cap=60)
///     >>> [policy.delay_after_failure(failures) for failures in (1, 2, 3, 4)]
///     [1.0, 10.0, 60.0, None]
#[pyclass(frozen, eq, module = "duetime.retry")]
#[derive(PartialEq)]
pub(super) struct ExponentialBackoff {
    max_retries: u64,
    base: Duration,
    factor: f64,
    cap: Option<Duration>,
    jitter: f64,
    pub(super) filter: Filter,
}

impl ExponentialBackoff {
    pub(super) fn core(&self) -> retry::ExponentialBackoff {
        let backoff = retry::ExponentialBackoff::new(self.max_retries, self.base)
            .factor(self.factor)
            .jitter(self.jitter);
        match self.cap {
            Some(cap) => backoff.cap(cap),
            None => backoff,
        }
    }
}

#[pymethods]
impl ExponentialBackoff {
    #[new]
    #[pyo3(
        signature = (
            max_retries, base, factor=Maybe::LeftOut, cap=None, jitter=Maybe::LeftOut,
            *, retry_on=None, give_up_on=None
        ),
        text_signature = "(max_retries, base, factor=2.0, cap=None, jitter=0.0, *, retry_on=None, give_up_on=None)"
    )]
    fn new(
        max_retries: &Bound<'_, PyAny>,
        base: &Bound<'_, PyAny>,
        factor: Maybe<'_>,
        cap: Option<&Bound<'_, PyAny>>,
        jitter: Maybe<'_>,
        retry_on: Option<&Bound<'_, PyAny>>,
        give_up_on: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let policy = Self {
            max_retries: self::max_retries(max_retries)?,
            base: duration("base", base)?,
            factor: factor.read(2.0, |factor| float("factor", factor))?,
            cap: cap.map(|cap| duration("cap", cap)).transpose()?,
            jitter: jitter.read(0.0, |jitter| float("jitter", jitter))?,
            filter: Filter::new(retry_on, give_up_on)?,
        };
        policy.core().check()?;
        Ok(policy)
    }

    /// How many attempts may follow the first.
    #[getter]
    fn max_retries(&self) -> u64 {
        self.max_retries
    }

    /// The first delay, in seconds.
    #[getter]
    fn base(&self) -> f64 {
        self.base.as_secs_f64()
    }

    /// What each delay is multiplied by to give the next.
    #[getter]
    fn factor(&self) -> f64 {
        self.factor
    }

    /// The longest delay, in seconds; `None` if there is no cap.
    #[getter]
    fn cap(&self) -> Option<f64> {
        self.cap.map(|cap| cap.as_secs_f64())
    }

    /// The share of a delay that chance may take away.
    #[getter]
    fn jitter(&self) -> f64 {
        self.jitter
    }

    /// The errors after which there is a retry; `None` for any.
    #[getter]
    fn retry_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.filter.retry_on(py)
    }

    /// The errors after which there is none; `None` if none are named.
    #[getter]
    fn give_up_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.filter.give_up_on(py)
    }

    /// Give the delay before the next attempt in seconds, or `None` to give up.
    ///
    /// Args:
    ///     failures: The failed attempts so far, from 1.
    fn delay_after_failure(&self, failures: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
        let failures = self::failures(failures)?;
        Ok(delay_seconds(self.core().delay_after_failure(failures)))
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        let floats = (self.factor.to_bits(), self.jitter.to_bits());
        (self.max_retries, self.base, self.cap, floats, &self.filter).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let this = slf.get();
        let args = (this.max_retries, this.base(), this.factor, this.cap(), this.jitter);
        reduce_with(slf.as_any(), args, this.filter.arguments(slf.py())?)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let cap = self.cap().map_or("None".into(), |cap| cap.to_string());
        format!(
            "ExponentialBackoff({}, {}, factor={}, cap={cap}, jitter={}{})",
            self.max_retries,
            self.base(),
            self.factor,
            self.jitter,
            self.filter.shown(py)
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.filter.objects().try_for_each(|object| visit.call(object))
    }
}
