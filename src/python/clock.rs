//! Clocks from Python. Invariant: a Python clock's mistakes reach nobody but `sys.unraisablehook`;
//! its last good reading stands in.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use pyo3::prelude::*;

use super::blocking;
use super::numbers::{Maybe, as_seconds, duration, timestamp};
use crate::{Busy, Clock, Timestamp, Waker};

/// Any zero-argument callable that gives seconds.
pub(super) struct CallableClock {
    pub(super) callable: Py<PyAny>,
    stopped: Arc<AtomicBool>,
    /// The last good reading. Relaxed: any recent one will do.
    last: AtomicI64,
}

impl CallableClock {
    /// Checks a clock by reading it once.
    pub(super) fn new(callable: &Bound<'_, PyAny>) -> PyResult<Self> {
        let first = timestamp("the clock's reading", &callable.call0()?)?;
        let last = AtomicI64::new(first.as_nanos());
        let stopped = Arc::new(AtomicBool::new(false));
        Ok(Self { callable: callable.clone().unbind(), stopped, last })
    }

    /// Stops the clock at its last reading.
    pub(super) fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stopped))
    }
}

/// Keeps a scheduler that goes from reading a clock that the garbage collector may have taken
/// apart before it.
pub(super) struct Stopper(Arc<AtomicBool>);

impl Stopper {
    pub(super) fn stop(&self) {
        // Relaxed: it is read under the GIL that it is written under.
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Clock for CallableClock {
    fn now(&self) -> Timestamp {
        Python::attach(|py| {
            if self.stopped.load(Ordering::Relaxed) {
                return Timestamp::from_nanos(self.last.load(Ordering::Relaxed));
            }
            let callable = self.callable.bind(py);
            let reading = callable.call0().and_then(|time| timestamp("the clock's reading", &time));
            match reading {
                Ok(now) => self.last.store(now.as_nanos(), Ordering::Relaxed),
                Err(error) => error.write_unraisable(py, Some(callable)),
            }
            Timestamp::from_nanos(self.last.load(Ordering::Relaxed))
        })
    }
}

/// A clock that stands still until it is moved: tests need not sleep.
///
/// Args:
///     start: What it shows at first, in seconds.
///
/// Raises:
///     ValueError: `start` is out of the clock's range.
///     TypeError: `start` is not a number.
///
/// Example:
///     >>> from duetime import ManualClock, Scheduler
///     >>> clock = ManualClock()
///     >>> with Scheduler(clock=clock) as scheduler:
///     ...     task = scheduler.after(3600, clock.now)
///     ...     clock.advance(7200)
///     ...     task.result()
///     3600.0
#[pyclass(frozen, weakref, module = "duetime")]
pub(super) struct ManualClock {
    pub(super) inner: crate::ManualClock,
}

#[pymethods]
impl ManualClock {
    #[new]
    #[pyo3(signature = (start=Maybe::LeftOut), text_signature = "(start=0.0)")]
    fn new(start: Maybe<'_>) -> PyResult<Self> {
        let start = start.read(Timestamp::ZERO, |start| timestamp("start", start))?;
        Ok(Self { inner: crate::ManualClock::starting_at(start) })
    }

    /// Give the time in seconds.
    fn now(&self) -> f64 {
        as_seconds(self.inner.now())
    }

    /// Give the time in seconds.
    fn __call__(&self) -> f64 {
        self.now()
    }

    /// Move the time on, stopping at every due time up to the target.
    ///
    /// Returns when all that became due, and all that those runs scheduled up to the target, has
    /// finished.
    ///
    /// Args:
    ///     seconds: How far.
    ///
    /// Raises:
    ///     RuntimeError: Called from a job or a listener.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.inner.advance_with(by, |busy| block(py, busy))
    }

    /// Move the time on in one leap, as a stall or a suspended laptop does.
    ///
    /// Returns when all that became due has finished.
    ///
    /// Args:
    ///     seconds: How far.
    ///
    /// Raises:
    ///     RuntimeError: Called from a job or a listener.
    fn jump(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.inner.jump_with(by, |busy| block(py, busy))
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({})", self.now())
    }
}

fn block(py: Python<'_>, busy: &Busy) -> PyResult<()> {
    if py.detach(|| busy.is_brief()) {
        return Ok(());
    }
    let register = |waker: Waker| Ok(busy.when_over(waker));
    blocking::wait(py, None, register, |key| busy.forget(key)).map(drop)
}
