//! Clocks from Python. Invariant: a Python clock's mistakes reach nobody but `sys.unraisablehook`;
//! its last good reading stands in.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use super::blocking;
use super::numbers::{as_seconds, duration, timestamp};
use crate::{Clock, Quiet, Timestamp, Waker};

/// Any zero-argument callable that gives seconds.
pub(super) struct CallableClock {
    pub(super) callable: Py<PyAny>,
    /// The last good reading. Relaxed: any recent one will do.
    last: AtomicI64,
}

impl CallableClock {
    /// Checks a clock by reading it once.
    pub(super) fn new(callable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let first = timestamp("the clock's reading", &callable.call0()?)?;
        let last = AtomicI64::new(first.as_nanos());
        Ok(Self { callable: callable.clone().unbind(), last })
    }
}

impl Clock for CallableClock {
    fn now(&self) -> Timestamp {
        Python::attach(|py| {
            let callable = self.callable.bind(py);
            let reading =
                callable.call0().and_then(|time| timestamp("the clock's reading", &time));
            match reading {
                Ok(now) => self.last.store(now.as_nanos(), Ordering::Relaxed),
                Err(error) => error.write_unraisable(py, Some(callable)),
            }
            Timestamp::from_nanos(self.last.load(Ordering::Relaxed))
        })
    }
}

/// A clock that stands still until it is moved.
#[pyclass(frozen, weakref, module = "duetime")]
pub(super) struct ManualClock {
    pub(super) inner: crate::ManualClock,
}

type Register<'a> = &'a dyn Fn(Waker) -> Option<Quiet>;

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=None), text_signature = "(start=0.0)")]
    fn new(start: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let start = start.map_or(Ok(Timestamp::ZERO), |start| timestamp("start", start))?;
        Ok(Self { inner: crate::ManualClock::starting_at(start) })
    }

    fn now(&self) -> f64 {
        as_seconds(self.inner.now())
    }

    fn __call__(&self) -> f64 {
        self.now()
    }

    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.inner.advance_with(by, |register| block(py, register))
    }

    fn jump(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.inner.jump_with(by, |register| block(py, register))
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({})", self.now())
    }
}

fn block(py: Python<'_>, register: Register<'_>) -> PyResult<()> {
    match blocking::wait(py, None::<Duration>, register) {
        Ok(_) => Ok(()),
        Err((error, quiet)) => {
            quiet.into_iter().for_each(Quiet::forget);
            Err(error)
        }
    }
}
