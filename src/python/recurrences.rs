//! The recurrences as Python sees them. Invariant: an object is its numbers, in bounds; what it
//! answers is what the core answers.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::numbers::{as_seconds, period, timestamp};
use super::pickling::{Reduced, reduce};
use super::records;
use crate::{JobError, Missed, Next, Recurrence};

fn next_seconds(next: Result<Option<Next>, JobError>) -> Option<f64> {
    next.ok().flatten().map(|next| as_seconds(next.due))
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

    pub(super) fn core(&self) -> crate::FixedRate {
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
    fn missed<'py>(&self, py: Python<'py>) -> Bound<'py, PyAny> {
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
        reduce(slf.as_any(), (this.period(), this.missed(slf.py())))
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
