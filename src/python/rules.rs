//! Recurrences and retry policies across the border. Invariant: ours are native on both sides and
//! never call Python; anybody's are Python objects whose mistakes end their own task only.

use std::sync::OnceLock;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefReference};

use super::errors::Raised;
use super::numbers::{Maybe, as_seconds, duration, float, integer, period, timestamp, wrong_type};
use super::records;
use crate::{JobError, Missed, Next, Recurrence, RetryPolicy, Timestamp, retry};

/// A recurrence as the core gets it.
pub(super) enum Rule {
    Rate(crate::FixedRate),
    Delay(crate::FixedDelay),
    Custom(Py<PyAny>),
}

impl Rule {
    /// `None` for a one-off.
    pub(super) fn new(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(Some(if object.is_none() || object.is_instance_of::<OneTime>() {
            return Ok(None);
        } else if let Ok(rate) = object.cast::<FixedRate>() {
            Self::Rate(rate.get().core())
        } else if let Ok(delay) = object.cast::<FixedDelay>() {
            Self::Delay(crate::FixedDelay::new(delay.get().delay))
        } else if object.hasattr("next_due")? && !object.is_instance_of::<pyo3::types::PyType>() {
            Self::Custom(object.clone().unbind())
        } else {
            let expected = "a Recurrence (an object with next_due(due, finished))";
            return Err(wrong_type("recurrence", object, expected));
        }))
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Rate(rate) => Self::Rate(*rate),
            Self::Delay(delay) => Self::Delay(*delay),
            Self::Custom(object) => Self::Custom(object.clone_ref(py)),
        }
    }

    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::Custom(object) => Some(object),
            _ => None,
        }
    }
}

impl Recurrence for Rule {
    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
        match self {
            Self::Rate(rate) => rate.next_due(due, finished),
            Self::Delay(delay) => delay.next_due(due, finished),
            Self::Custom(object) => Python::attach(|py| {
                let asked = (as_seconds(due), as_seconds(finished));
                let next = object.bind(py).call_method1("next_due", asked);
                let next = next.and_then(|next| {
                    if next.is_none() {
                        Ok(None)
                    } else {
                        timestamp("next_due's answer", &next).map(|due| Some(due.into()))
                    }
                });
                next.map_err(|error| Raised::job_error(py, error))
            }),
        }
    }
}

/// A retry policy as the core gets it.
pub(super) enum Policy {
    Fixed(retry::FixedDelay),
    Backoff(retry::ExponentialBackoff),
    Custom(Py<PyAny>),
}

impl Policy {
    /// `None` for no retry.
    pub(super) fn new(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        Ok(Some(if object.is_none() || object.is_instance_of::<Never>() {
            return Ok(None);
        } else if let Ok(fixed) = object.cast::<RetryFixedDelay>() {
            Self::Fixed(fixed.get().core())
        } else if let Ok(backoff) = object.cast::<ExponentialBackoff>() {
            Self::Backoff(backoff.get().core())
        } else if object.hasattr("delay_after_failure")?
            && !object.is_instance_of::<pyo3::types::PyType>()
        {
            Self::Custom(object.clone().unbind())
        } else {
            let expected = "a RetryPolicy (an object with delay_after_failure(failures))";
            return Err(wrong_type("retry", object, expected));
        }))
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Fixed(fixed) => Self::Fixed(*fixed),
            Self::Backoff(backoff) => Self::Backoff(*backoff),
            Self::Custom(object) => Self::Custom(object.clone_ref(py)),
        }
    }

    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::Custom(object) => Some(object),
            _ => None,
        }
    }
}

impl RetryPolicy for Policy {
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        match self {
            Self::Fixed(fixed) => fixed.delay_after_failure(failures),
            Self::Backoff(backoff) => backoff.delay_after_failure(failures),
            Self::Custom(object) => Python::attach(|py| {
                let delay = object.bind(py).call_method1("delay_after_failure", (failures,));
                let delay = delay.and_then(|delay| {
                    if delay.is_none() {
                        Ok(None)
                    } else {
                        duration("delay_after_failure's answer", &delay).map(Some)
                    }
                });
                delay.map_err(|error| Raised::job_error(py, error))
            }),
        }
    }
}

/// What goes with a task that has an id or a rule: the recurrence that it was described with, and
/// the Python task, so that whoever asks for it by id gets the one that its maker holds.
pub(super) struct Label {
    pub(super) recurrence: Option<Py<PyAny>>,
    pub(super) task: OnceLock<Py<PyWeakrefReference>>,
}

/// What `__reduce__` returns: the class and its arguments.
type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

fn reduce<'py, A>(slf: &Bound<'py, PyAny>, args: A) -> PyResult<Reduced<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    Ok((slf.get_type().into_any(), args.into_pyobject(slf.py())?))
}

fn next_seconds(next: Result<Option<Next>, JobError>) -> Option<f64> {
    next.ok().flatten().map(|next| as_seconds(next.due))
}

fn delay_seconds(delay: Result<Option<Duration>, JobError>) -> Option<f64> {
    delay.ok().flatten().map(|delay| delay.as_secs_f64())
}

fn max_retries(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("max_retries", value, 0_u64, "between 0 and 2^64 - 1")
}

fn failures(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("failures", value, 1_u64, "at least 1")
}

/// The recurrence of a task that runs once.
///
/// Example:
///     >>> from duetime import OneTime
///     >>> OneTime().next_due(10, 12) is None
///     True
#[pyclass(frozen, eq, hash, module = "duetime")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct OneTime;

#[pymethods]
impl OneTime {
    #[new]
    fn new() -> Self {
        Self
    }

    /// Give `None`: there is no next run.
    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn next_due(&self, due: f64, finished: f64) {
        let _ = (due, finished);
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf.as_any(), PyTuple::empty(slf.py()))
    }

    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn __repr__(&self) -> &'static str {
        "OneTime()"
    }
}

/// Slots on a grid: the first due time, and every `period` after it.
///
/// A task never overlaps itself: slots that pass during a run, or during a stall, are missed.
///
/// Args:
///     period: From slot to slot.
///     missed: What to do about missed slots; `Missed.SKIP` by default.
///
/// Raises:
///     ValueError: The period is 0, negative, not finite or over 100 years.
///     TypeError: An argument is of the wrong type.
///
/// Example:
///     >>> from duetime import FixedRate
///     >>> rate = FixedRate(30)
///     >>> rate.next_due(0, 4)
///     30.0
///     >>> rate.next_due(60, 110)
///     120.0
#[pyclass(frozen, eq, hash, module = "duetime")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct FixedRate {
    pub(super) period: Duration,
    missed: Missed,
}

impl FixedRate {
    pub(super) fn of_seconds(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { period: period(parameter, value)?, missed: Missed::Skip })
    }

    fn core(&self) -> crate::FixedRate {
        crate::FixedRate::new(self.period).missed(self.missed)
    }
}

#[pymethods]
impl FixedRate {
    #[new]
    #[pyo3(signature = (period, missed=None))]
    fn new(period: &Bound<'_, PyAny>, missed: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let missed = missed.map_or(Ok(Missed::Skip), records::missed_from)?;
        Ok(Self { missed, ..Self::of_seconds("period", period)? })
    }

    /// From slot to slot, in seconds.
    #[getter]
    fn period(&self) -> f64 {
        self.period.as_secs_f64()
    }

    /// What is done about missed slots.
    #[getter]
    fn missed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::missed(py, self.missed)
    }

    /// Give the slot that follows, or `None` beyond the end of the clock's range.
    ///
    /// Args:
    ///     due: The slot that has been run, in seconds of the clock.
    ///     finished: When that run ended, likewise.
    fn next_due(
        &self,
        due: &Bound<'_, PyAny>,
        finished: &Bound<'_, PyAny>,
    ) -> PyResult<Option<f64>> {
        let (due, finished) = (timestamp("due", due)?, timestamp("finished", finished)?);
        Ok(next_seconds(self.core().next_due(due, finished)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let this = slf.get();
        reduce(slf.as_any(), (this.period(), this.missed(slf.py())?))
    }

    fn __repr__(&self) -> String {
        match self.missed {
            Missed::Skip => format!("FixedRate({})", self.period()),
            Missed::CatchUp => format!("FixedRate({}, Missed.CATCH_UP)", self.period()),
        }
    }
}

/// Each run is due `delay` after the end of the one before.
///
/// Not to be confused with the retry policy `duetime.retry.FixedDelay`.
///
/// Args:
///     delay: From the end of a run to the next due time.
///
/// Raises:
///     ValueError: The delay is 0, negative, not finite or over 100 years.
///     TypeError: The delay is of the wrong type.
///
/// Example:
///     >>> from duetime import FixedDelay
///     >>> FixedDelay(30).next_due(60, 110)
///     140.0
#[pyclass(frozen, eq, hash, module = "duetime")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct FixedDelay {
    pub(super) delay: Duration,
}

#[pymethods]
impl FixedDelay {
    #[new]
    fn new(delay: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { delay: period("delay", delay)? })
    }

    /// From the end of a run to the next due time, in seconds.
    #[getter]
    fn delay(&self) -> f64 {
        self.delay.as_secs_f64()
    }

    /// Give the next due time, or `None` beyond the end of the clock's range.
    ///
    /// Args:
    ///     due: The slot that has been run, in seconds of the clock.
    ///     finished: When that run ended, likewise.
    fn next_due(
        &self,
        due: &Bound<'_, PyAny>,
        finished: &Bound<'_, PyAny>,
    ) -> PyResult<Option<f64>> {
        let (due, finished) = (timestamp("due", due)?, timestamp("finished", finished)?);
        Ok(next_seconds(crate::FixedDelay::new(self.delay).next_due(due, finished)))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        reduce(slf.as_any(), (slf.get().delay(),))
    }

    fn __repr__(&self) -> String {
        format!("FixedDelay({})", self.delay())
    }
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
///
/// Raises:
///     ValueError: A number is out of its bounds.
///     TypeError: An argument is of the wrong type.
///
/// Example:
///     >>> from duetime import retry
///     >>> policy = retry.FixedDelay(max_retries=2, delay=300)
///     >>> [policy.delay_after_failure(failures) for failures in (1, 2, 3)]
///     [300.0, 300.0, None]
#[pyclass(frozen, eq, hash, name = "FixedDelay", module = "duetime.retry")]
#[derive(PartialEq, Eq, Hash)]
pub(super) struct RetryFixedDelay {
    max_retries: u64,
    delay: Duration,
}

impl RetryFixedDelay {
    fn core(&self) -> retry::FixedDelay {
        retry::FixedDelay::new(self.max_retries, self.delay)
    }
}

#[pymethods]
impl RetryFixedDelay {
    #[new]
    fn new(max_retries: &Bound<'_, PyAny>, delay: &Bound<'_, PyAny>) -> PyResult<Self> {
        let max_retries = self::max_retries(max_retries)?;
        Ok(Self { max_retries, delay: duration("delay", delay)? })
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
        reduce(slf.as_any(), (this.max_retries, this.delay()))
    }

    fn __repr__(&self) -> String {
        format!("FixedDelay({}, {})", self.max_retries, self.delay())
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
}

impl ExponentialBackoff {
    fn core(&self) -> retry::ExponentialBackoff {
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
        signature = (max_retries, base, factor=Maybe::LeftOut, cap=None, jitter=Maybe::LeftOut),
        text_signature = "(max_retries, base, factor=2.0, cap=None, jitter=0.0)"
    )]
    fn new(
        max_retries: &Bound<'_, PyAny>,
        base: &Bound<'_, PyAny>,
        factor: Maybe<'_>,
        cap: Option<&Bound<'_, PyAny>>,
        jitter: Maybe<'_>,
    ) -> PyResult<Self> {
        let policy = Self {
            max_retries: self::max_retries(max_retries)?,
            base: duration("base", base)?,
            factor: factor.read(2.0, |factor| float("factor", factor))?,
            cap: cap.map(|cap| duration("cap", cap)).transpose()?,
            jitter: jitter.read(0.0, |jitter| float("jitter", jitter))?,
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
        (self.max_retries, self.base, self.cap, floats).hash(&mut hasher);
        hasher.finish()
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let this = slf.get();
        reduce(slf.as_any(), (this.max_retries, this.base(), this.factor, this.cap(), this.jitter))
    }

    fn __repr__(&self) -> String {
        let cap = self.cap().map_or("None".into(), |cap| cap.to_string());
        format!(
            "ExponentialBackoff({}, {}, factor={}, cap={cap}, jitter={})",
            self.max_retries,
            self.base(),
            self.factor,
            self.jitter
        )
    }
}

/// The first due time of a series that starts one step of `rule` from now.
pub(super) fn first_due(rule: &Rule, now: Timestamp) -> PyResult<Timestamp> {
    match rule.next_due(now, now) {
        Ok(Some(next)) => Ok(next.due),
        Ok(None) => Ok(now),
        Err(error) => Python::attach(|py| {
            Err(PyErr::from_value(super::errors::exception(py, &error).into_bound(py)))
        }),
    }
}

/// A period, as a rule; refused if it is not one.
pub(super) fn rule_or_period<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<(Option<Rule>, Bound<'py, PyAny>)> {
    if value.is_none() {
        return Err(wrong_type("rule", value, "seconds, a timedelta or a Recurrence"));
    }
    if value.is_instance_of::<OneTime>() || value.hasattr("next_due")? {
        return Ok((Rule::new(value)?, value.clone()));
    }
    let rate = Bound::new(value.py(), FixedRate::of_seconds("period", value)?)?;
    Ok((Some(Rule::Rate(rate.get().core())), rate.into_any()))
}

/// Refuses a `max_runs` below 1.
pub(super) fn max_runs(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("max_runs", value, 1_u64, "at least 1")
}

/// Refuses a priority beyond 32 bits.
pub(super) fn priority(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    integer("priority", value, i32::MIN, "between -2^31 and 2^31 - 1")
}
