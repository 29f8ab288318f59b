//! Recurrences and retry policies across the border. Invariant: ours are native on both sides and
//! run no Python code; anybody's are Python objects whose mistakes end their own task only.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyType, PyWeakrefReference};

use super::call::{bound, call_method, has};
use super::errors::{self, Raised, exception};
use super::filter::Filter;
use super::lookup::{Lookup, Names};
use super::numbers::{as_seconds, duration, integer, mistaken, timestamp, wrong_type};
use super::own::Own;
use super::policies::{ExponentialBackoff, Never, RetryFixedDelay};
use super::recurrences::{FixedDelay, FixedRate, OneTime};
use crate::{Error, JobError, Next, Recurrence, RetryPolicy, Timestamp, retry};

static NAMES: Names<3> = Names::new(["next_due", "delay_after_failure", "seconds"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&NAMES];

/// A recurrence as the core gets it.
pub(super) enum Rule {
    Rate(crate::FixedRate),
    Delay(crate::FixedDelay),
    Custom(Own),
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
        } else if has(object, "next_due")? && !object.is_instance_of::<PyType>() {
            Self::Custom(object.clone().into())
        } else {
            let expected = "a Recurrence (an object with next_due(due, finished))";
            return Err(if has(object, "delay_after_failure")? {
                mistaken(
                    "recurrence",
                    object,
                    expected,
                    "that is a retry policy; see duetime.FixedDelay",
                )
            } else {
                wrong_type("recurrence", object, expected)
            });
        }))
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Rate(rate) => Self::Rate(*rate),
            Self::Delay(delay) => Self::Delay(*delay),
            Self::Custom(object) => Self::Custom(object.copy(py)),
        }
    }

    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        match self {
            Self::Custom(object) => Some(&**object),
            _ => None,
        }
    }
}

impl Recurrence for Rule {
    fn is_endless(&self) -> bool {
        match self {
            Self::Rate(rate) => rate.is_endless(),
            Self::Delay(delay) => delay.is_endless(),
            Self::Custom(_) => false,
        }
    }

    fn check_jitter(&self, jitter: Duration) -> Result<(), Error> {
        match self {
            Self::Rate(rate) => rate.check_jitter(jitter),
            Self::Delay(delay) => delay.check_jitter(jitter),
            Self::Custom(_) => Ok(()),
        }
    }

    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
        match self {
            Self::Rate(rate) => rate.next_due(due, finished),
            Self::Delay(delay) => delay.next_due(due, finished),
            Self::Custom(object) => Python::attach(|py| {
                let asked = (as_seconds(due), as_seconds(finished));
                let next = call_method(object, py, &NAMES.get(py)[0], asked);
                let next = next.and_then(|next| {
                    if next.is_none(py) {
                        Ok(None)
                    } else {
                        timestamp("next_due's answer", next.bind(py)).map(|due| Some(due.into()))
                    }
                });
                next.map_err(|error| Raised::job_error(py, error))
            }),
        }
    }

    fn grid(&self) -> Option<Duration> {
        match self {
            Self::Rate(rate) => rate.grid(),
            Self::Delay(_) | Self::Custom(_) => None,
        }
    }
}

/// A retry policy as the core gets it.
pub(super) struct Policy {
    delays: Delays,
    /// Which errors it is for.
    filter: Filter,
}

/// The delays of a policy.
enum Delays {
    Fixed(retry::FixedDelay),
    Backoff(retry::ExponentialBackoff),
    Custom(Own),
}

impl Policy {
    /// `None` for no retry.
    pub(super) fn new(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let (delays, filter) = if object.is_none() || object.is_instance_of::<Never>() {
            return Ok(None);
        } else if let Ok(fixed) = object.cast::<RetryFixedDelay>() {
            (Delays::Fixed(fixed.get().core()), fixed.get().filter.copy(py))
        } else if let Ok(backoff) = object.cast::<ExponentialBackoff>() {
            (Delays::Backoff(backoff.get().core()), backoff.get().filter.copy(py))
        } else if has(object, "delay_after_failure")? && !object.is_instance_of::<PyType>() {
            (Delays::Custom(object.clone().into()), Filter::default())
        } else {
            let expected = "a RetryPolicy (an object with delay_after_failure(failures))";
            return Err(if has(object, "next_due")? {
                mistaken("retry", object, expected, "that is a recurrence; see duetime.retry")
            } else {
                wrong_type("retry", object, expected)
            });
        };
        Ok(Some(Self { delays, filter }))
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        let delays = match &self.delays {
            Delays::Fixed(fixed) => Delays::Fixed(*fixed),
            Delays::Backoff(backoff) => Delays::Backoff(*backoff),
            Delays::Custom(object) => Delays::Custom(object.copy(py)),
        };
        Self { delays, filter: self.filter.copy(py) }
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        let own = match &self.delays {
            Delays::Custom(object) => Some(&**object),
            _ => None,
        };
        own.into_iter().chain(self.filter.objects())
    }
}

impl RetryPolicy for Policy {
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        match &self.delays {
            Delays::Fixed(fixed) => fixed.delay_after_failure(failures),
            Delays::Backoff(backoff) => backoff.delay_after_failure(failures),
            Delays::Custom(object) => Python::attach(|py| {
                let delay = call_method(object, py, &NAMES.get(py)[1], (failures,));
                let delay = delay.and_then(|delay| {
                    if delay.is_none(py) {
                        Ok(None)
                    } else {
                        duration("delay_after_failure's answer", delay.bind(py)).map(Some)
                    }
                });
                delay.map_err(|error| Raised::job_error(py, error))
            }),
        }
    }

    /// As the core does it, with Python's `RetryAfter` and `GiveUp`.
    fn delay_after(&self, error: &JobError, failures: u64) -> Result<Option<Duration>, JobError> {
        let wish = Python::attach(|py| {
            Wish::of(py, error, &self.filter).map_err(|error| Raised::job_error(py, error))
        })?;
        let delay = match wish {
            Wish::GiveUp => return Ok(None),
            Wish::Retry => None,
            Wish::RetryAfter(delay) => Some(delay),
        };
        Ok(self.delay_after_failure(failures)?.map(|usual| delay.unwrap_or(usual)))
    }
}

/// What an error asks for.
enum Wish {
    Retry,
    RetryAfter(Duration),
    GiveUp,
}

impl Wish {
    fn of(py: Python<'_>, error: &JobError, filter: &Filter) -> PyResult<Self> {
        // `False` asks for nothing, and an exception for it need not be made.
        if filter.is_open() && error.downcast_ref::<Raised>().is_none() {
            return Ok(Self::Retry);
        }
        let value = exception(py, error).into_bound(py);
        let error = PyErr::from_value(value.clone());
        if error.is_instance(py, errors::GIVE_UP.get(py)) {
            Ok(Self::GiveUp)
        } else if error.is_instance(py, errors::RETRY_AFTER.get(py)) {
            duration("seconds", bound(value.as_unbound(), py, &NAMES.get(py)[2])?.bind(py))
                .map(Self::RetryAfter)
        } else if filter.lets(py, &error) {
            Ok(Self::Retry)
        } else {
            Ok(Self::GiveUp)
        }
    }
}

/// What goes with a task that has an id or a rule, or that somebody asked for: the recurrence that it was
/// described with, and the Python task, so that whoever asks for it by id gets the one that is held.
pub(super) struct Label {
    pub(super) recurrence: Option<Own>,
    /// Locked for a moment, never while Python runs.
    task: Mutex<Option<Own<PyWeakrefReference>>>,
}

impl Label {
    pub(super) fn new(recurrence: Option<Own>) -> Self {
        Self { recurrence, task: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Own<PyWeakrefReference>>> {
        self.task.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The Python task, if anybody still has it.
    pub(super) fn task<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let weak = self.lock().as_ref().map(|weak| weak.copy(py))?;
        weak.bind(py).upgrade()
    }

    pub(super) fn remember(&self, weak: Own<PyWeakrefReference>) {
        let before = self.lock().replace(weak);
        drop(before);
    }
}

/// The first due time of a series that starts one step of `rule` from now.
pub(super) fn first_due(rule: &Rule, now: Timestamp) -> PyResult<Timestamp> {
    match rule.next_due(now, now) {
        Ok(Some(next)) => Ok(next.due),
        Ok(None) => Ok(now),
        Err(error) => {
            Python::attach(|py| Err(PyErr::from_value(exception(py, &error).into_bound(py))))
        }
    }
}

/// A period, as a rule; refused if it is not one.
pub(super) fn rule_or_period<'py>(
    value: &Bound<'py, PyAny>,
) -> PyResult<(Option<Rule>, Bound<'py, PyAny>)> {
    let expected = "seconds, a timedelta or a Recurrence";
    if value.is_none() {
        return Err(wrong_type("rule", value, expected));
    }
    if value.is_instance_of::<OneTime>() || has(value, "next_due")? {
        return Ok((Rule::new(value)?, value.clone()));
    }
    if has(value, "delay_after_failure")? {
        let instead = "that is a retry policy; see duetime.FixedDelay";
        return Err(mistaken("rule", value, expected, instead));
    }
    if value.is_instance_of::<PyString>() {
        let instead = "there are no cron rules, but a Recurrence of your own may follow any";
        return Err(mistaken("rule", value, expected, instead));
    }
    if value.is_callable() && !has(value, "__float__")? {
        let instead = "as a decorator write @scheduler.every(seconds)";
        return Err(mistaken("rule", value, expected, instead));
    }
    let rate = Bound::new(value.py(), FixedRate::of_seconds("period", value)?)?;
    Ok((Some(Rule::Rate(rate.get().core())), rate.into_any()))
}

/// Refuses a `max_runs` below 1.
pub(super) fn max_runs(value: &Bound<'_, PyAny>) -> PyResult<u64> {
    integer("max_runs", value, 1_u64, "between 1 and 2^64 - 1")
}

/// Refuses a priority beyond 32 bits.
pub(super) fn priority(value: &Bound<'_, PyAny>) -> PyResult<i32> {
    integer("priority", value, i32::MIN, "between -2^31 and 2^31 - 1")
}

/// The name of a group.
pub(super) fn group(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.extract::<String>().map_err(|_| wrong_type("group", value, "a str"))
}
