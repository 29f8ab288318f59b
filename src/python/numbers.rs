//! Numbers across the border. Invariant: whatever Python gives is either a value in bounds or a
//! `TypeError` or `ValueError` that names the parameter, the value and the bound.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::Borrowed;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDateTime, PyDelta, PyDeltaAccess, PyFloat, PyInt, PyString, PyTzInfoAccess,
};

use super::call::{self, call_method};
use super::lookup::{Lookup, Names};
use super::own::came;
use crate::{MAX_DURATION, TaskId, Timestamp};

static NAMES: Names<2> = Names::new(["utcoffset", "timestamp"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&NAMES];

const BILLION: f64 = 1e9;

/// 500 years in seconds: a timeout beyond it is none.
const LONG: i64 = 500 * 365 * 86_400;
#[expect(clippy::cast_precision_loss, reason = "it is far below 2^53")]
const LONG_AS_FLOAT: f64 = LONG as f64;

/// `ValueError: {parameter} must be {bound}, not {value}`.
pub(super) fn out_of_bounds(parameter: &str, value: &Bound<'_, PyAny>, bound: &str) -> PyErr {
    PyValueError::new_err(format!("{parameter} must be {bound}, not {}", shown(value)))
}

/// `TypeError: {parameter} must be {expected}, not {value} ({type})`.
pub(super) fn wrong_type(parameter: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    PyTypeError::new_err(wrong(parameter, value, expected))
}

/// The same with what to write instead, where a mistake is a likely one.
pub(super) fn mistaken(
    parameter: &str,
    value: &Bound<'_, PyAny>,
    expected: &str,
    instead: &str,
) -> PyErr {
    PyTypeError::new_err(format!("{}; {instead}", wrong(parameter, value, expected)))
}

fn wrong(parameter: &str, value: &Bound<'_, PyAny>, expected: &str) -> String {
    let class = value.get_type();
    let name = class.name().map_or_else(|_| "?".into(), |name| name.to_string());
    let name = if value.is_none() { String::new() } else { format!(" ({name})") };
    format!("{parameter} must be {expected}, not {}{name}", shown(value))
}

/// A value's `repr`, cut short; the value may be hostile.
pub(super) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = came(value.py(), call::shown(value));
    let text = text.unwrap_or_else(|| "a value that cannot be shown".into());
    if text.chars().count() <= 60 {
        text
    } else {
        text.chars().take(57).chain("...".chars()).collect()
    }
}

/// A number in seconds, exact where Python's is.
enum Seconds {
    Float(f64),
    Nanos(i128),
}

/// Reads an int, a float, or anything else that converts itself to a float (`Decimal`, numpy).
fn seconds(parameter: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyResult<Seconds> {
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(Seconds::Float(float.value()));
    }
    if value.is_instance_of::<PyBool>() || value.is_instance_of::<PyString>() {
        return Err(wrong_type(parameter, value, expected));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(match value.extract::<i64>() {
            Ok(whole) => Seconds::Nanos(i128::from(whole) * 1_000_000_000),
            Err(_) if compares(value, "__lt__", 0)? => Seconds::Float(f64::NEG_INFINITY),
            Err(_) => Seconds::Float(f64::INFINITY),
        });
    }
    if !call::has(value, "__float__")? {
        return Err(wrong_type(parameter, value, expected));
    }
    match call::float(value) {
        Ok(float) => Ok(Seconds::Float(float)),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(Seconds::Float(f64::INFINITY))
        }
        failed => {
            came(value.py(), failed);
            Err(out_of_bounds(parameter, value, "a number"))
        }
    }
}

/// Whether it is a number as most are: then there is no need to ask whether it is something else,
/// which takes longer.
fn is_number(value: &Bound<'_, PyAny>) -> bool {
    value.is_exact_instance_of::<PyFloat>() || value.is_exact_instance_of::<PyInt>()
}

/// Compares an int as an int, whatever its class makes of that.
fn compares(value: &Bound<'_, PyAny>, method: &str, with: i64) -> PyResult<bool> {
    value.py().get_type::<PyInt>().call_method1(method, (value, with))?.extract()
}

/// A length of time: seconds or a `timedelta`, from 0 to `most`.
fn bounded(
    parameter: &str,
    value: &Bound<'_, PyAny>,
    most: Duration,
    bound: &str,
) -> PyResult<Duration> {
    let seconds = if !is_number(value)
        && let Ok(delta) = value.cast::<PyDelta>()
    {
        Seconds::Nanos(delta_nanos(delta))
    } else {
        seconds(parameter, value, "seconds or a timedelta")?
    };
    let duration = match seconds {
        Seconds::Nanos(nanos) => u64::try_from(nanos).ok().map(Duration::from_nanos),
        // Not of what is negative, or not a number.
        Seconds::Float(float) => Duration::try_from_secs_f64(float).ok(),
    };
    duration
        .filter(|&duration| duration <= most)
        .ok_or_else(|| out_of_bounds(parameter, value, bound))
}

fn delta_nanos(delta: &Bound<'_, PyDelta>) -> i128 {
    let seconds = i128::from(delta.get_days()) * 86_400 + i128::from(delta.get_seconds());
    (seconds * 1_000_000 + i128::from(delta.get_microseconds())) * 1000
}

/// A length of time from 0 to 100 years.
pub(super) fn duration(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    bounded(parameter, value, MAX_DURATION, "between 0 and 100 years")
}

/// Give a length of time in seconds; refuse one that is out of bounds.
#[pyfunction]
#[pyo3(signature = (parameter, value, /))]
pub(super) fn _seconds(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    duration(parameter, value).map(|duration| duration.as_secs_f64())
}

/// A time between runs: 1 ns to 100 years.
pub(super) fn period(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let bound = "between 1 nanosecond and 100 years";
    let period = bounded(parameter, value, MAX_DURATION, bound)?;
    if period.is_zero() { Err(out_of_bounds(parameter, value, bound)) } else { Ok(period) }
}

/// A longest wait: none, or any number from 0 but infinity. Beyond 500 years it is as good as none.
pub(super) fn timeout(value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Duration>> {
    let Some(value) = value.filter(|value| !value.is_none()) else {
        return Ok(None);
    };
    let is_long = match value.cast::<PyDelta>() {
        Ok(delta) => delta.get_days() > 365 * 500,
        // An int of any size; what is a number only by conversion is looked at below.
        Err(_) if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() => {
            compares(value, "__gt__", LONG)?
        }
        Err(_) => matches!(
            seconds("timeout", value, "seconds or a timedelta")?,
            Seconds::Float(float) if float > LONG_AS_FLOAT && float.is_finite()
        ),
    };
    if is_long {
        return Ok(None);
    }
    let most = Duration::from_nanos(u64::MAX);
    bounded("timeout", value, most, "between 0 and 500 years").map(Some)
}

/// An instant of a scheduler's clock, in seconds.
pub(super) fn timestamp(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Timestamp> {
    instant(parameter, value, "seconds of the clock")
}

fn instant(parameter: &str, value: &Bound<'_, PyAny>, expected: &str) -> PyResult<Timestamp> {
    let nanos = match seconds(parameter, value, expected)? {
        Seconds::Nanos(nanos) => i64::try_from(nanos).ok(),
        Seconds::Float(float) => nanos_of(float),
    };
    nanos
        .map(Timestamp::from_nanos)
        .ok_or_else(|| out_of_bounds(parameter, value, "within 292 years of the clock's zero"))
}

/// Whole and fraction apart: their sum as one float would lose nanoseconds.
fn nanos_of(seconds: f64) -> Option<i64> {
    if seconds.is_nan() || seconds.abs() >= 1e10 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked above; the fraction is below 1")]
    let (whole, fraction) = (seconds.trunc() as i64, (seconds.fract() * BILLION).round() as i64);
    whole.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// An instant in seconds.
pub(super) fn as_seconds(time: Timestamp) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a float is what Python speaks")]
    let nanos = time.as_nanos() as f64;
    nanos / BILLION
}

/// An instant as a caller names it.
#[derive(Clone, Copy, Debug)]
pub(super) enum When {
    /// On the scheduler's clock.
    Clock(Timestamp),
    /// By the wall clock, in nanoseconds since 1970. Converted once, when it is scheduled.
    Wall(i64),
}

impl When {
    pub(super) fn new(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let datetime = if is_number(value) { None } else { value.cast::<PyDateTime>().ok() };
        let Some(datetime) = datetime else {
            let expected = "seconds of the clock or an aware datetime";
            return instant(parameter, value, expected).map(Self::Clock);
        };
        let py = value.py();
        let ask = |method| call_method(value.as_unbound(), py, &NAMES.get(py)[method], ());
        if datetime.get_tzinfo().is_none() || ask(0)?.is_none(py) {
            return Err(out_of_bounds(parameter, value, "aware (with a tzinfo)"));
        }
        let seconds: f64 = ask(1)?.extract(py)?;
        nanos_of(seconds)
            .map(Self::Wall)
            .ok_or_else(|| out_of_bounds(parameter, value, "within 292 years of 1970"))
    }

    /// The instant on the clock that `now` reads.
    pub(super) fn on_clock(self, now: impl Fn() -> Timestamp) -> Timestamp {
        match self {
            Self::Clock(time) => time,
            Self::Wall(nanos) => {
                let ahead = i128::from(nanos) - wall_nanos();
                let time = i128::from(now().as_nanos()) + ahead;
                let nearest = time.clamp(i64::MIN.into(), i64::MAX.into());
                Timestamp::from_nanos(i64::try_from(nearest).unwrap_or(i64::MAX))
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the border where a wall-clock instant comes in")]
fn wall_nanos() -> i128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| i128::try_from(since.as_nanos()).unwrap_or(i128::MAX))
}

/// A task's id: a `str`, or an `int` of 64 bits.
pub(super) fn task_id(value: &Bound<'_, PyAny>) -> PyResult<TaskId> {
    if let Ok(name) = value.cast::<PyString>() {
        return match name.to_cow() {
            Ok(name) => Ok(TaskId::from(&*name)),
            Err(_) => Err(out_of_bounds("id", value, "valid Unicode text")),
        };
    }
    if value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>() {
        let number = value.extract::<i64>().map(TaskId::from);
        return number.map_err(|_| out_of_bounds("id", value, "a number of 64 bits"));
    }
    Err(wrong_type("id", value, "a str or an int"))
}

/// A parameter that was left out, or whatever was given for it: for those where `None` is as wrong
/// as any other type.
pub(super) enum Maybe<'py> {
    LeftOut,
    Given(Bound<'py, PyAny>),
}

impl<'a, 'py> FromPyObject<'a, 'py> for Maybe<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self::Given(object.to_owned()))
    }
}

impl<'py> Maybe<'py> {
    pub(super) fn given(self) -> Option<Bound<'py, PyAny>> {
        match self {
            Self::LeftOut => None,
            Self::Given(value) => Some(value),
        }
    }

    /// Reads what was given.
    pub(super) fn read<T>(
        self,
        left_out: T,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> PyResult<T> {
        match self {
            Self::LeftOut => Ok(left_out),
            Self::Given(value) => read(&value),
        }
    }
}

/// A whole number with bounds, for counts and priorities.
pub(super) fn integer<T>(
    parameter: &str,
    value: &Bound<'_, PyAny>,
    least: T,
    bound: &str,
) -> PyResult<T>
where
    T: for<'a, 'py> FromPyObject<'a, 'py> + PartialOrd + Copy,
{
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(wrong_type(parameter, value, "an int"));
    }
    let number: Option<T> = value.extract().ok();
    number.filter(|number| *number >= least).ok_or_else(|| out_of_bounds(parameter, value, bound))
}

/// A switch: exactly `True` or `False`.
pub(super) fn flag(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    match value.cast::<PyBool>() {
        Ok(flag) => Ok(flag.is_true()),
        Err(_) => Err(wrong_type(parameter, value, "a bool")),
    }
}

/// A plain float parameter, such as a factor.
pub(super) fn float(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<f64> {
    match seconds(parameter, value, "a number")? {
        Seconds::Float(float) => Ok(float),
        #[expect(clippy::cast_precision_loss, reason = "a float is what was asked for")]
        Seconds::Nanos(nanos) => Ok(nanos as f64 / BILLION),
    }
}
