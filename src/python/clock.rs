//! Clocks from Python. Invariant: a Python clock's mistakes reach nobody but `sys.unraisablehook`;
//! its last good reading stands in.

use std::sync::atomic::{AtomicI64, Ordering};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;

use super::blocking::{self, on_main_thread};
use super::call::call;
use super::elsewhere;
use super::life::Life;
use super::numbers::{Maybe, as_seconds, duration, timestamp};
use super::own::{Own, report};
use super::stay;
use crate::{Busy, Clock, Error, Timestamp, Waker};

/// Any zero-argument callable that gives seconds.
pub(super) struct CallableClock {
    pub(super) callable: Own,
    life: Life,
    /// The last good reading. Relaxed: any recent one will do.
    last: AtomicI64,
}

impl CallableClock {
    /// Checks a clock by reading it once.
    pub(super) fn new(callable: &Bound<'_, PyAny>, life: Life) -> PyResult<Self> {
        let callable = Own::from(callable.clone());
        let first = Python::attach(|py| read(py, &callable))?;
        Ok(Self { callable, life, last: AtomicI64::new(first.as_nanos()) })
    }

    /// A mistake of the clock's. A Ctrl-C that hit its code on the main thread, where alone it can
    /// hit, is none: it is pressed again, for whoever reads the clock there.
    fn report(&self, py: Python<'_>, error: PyErr) {
        if error.is_instance_of::<PyKeyboardInterrupt>(py) && on_main_thread(py).unwrap_or(true) {
            // SAFETY: it needs an interpreter and no more; it marks the signal as arrived.
            unsafe { ffi::PyErr_SetInterrupt() };
        } else {
            report(py, error, Some(self.callable.bind(py)));
        }
    }
}

fn read(py: Python<'_>, callable: &Own) -> PyResult<Timestamp> {
    let reading = call(callable, py, None)?;
    timestamp("the clock's reading", reading.bind(py))
}

impl Clock for CallableClock {
    fn now(&self) -> Timestamp {
        Python::attach(|py| {
            if self.life.is_over() {
                return Timestamp::from_nanos(self.last.load(Ordering::Relaxed));
            }
            match read(py, &self.callable) {
                Ok(now) => self.last.store(now.as_nanos(), Ordering::Relaxed),
                Err(error) => self.report(py, error),
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
        stay::here();
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
    /// finished. Two threads may move one clock: each moves it by its own length, from where it
    /// stood when its call began, and time never goes back.
    ///
    /// Args:
    ///     seconds: How far.
    ///
    /// Raises:
    ///     RuntimeError: Called from a job or a listener of a scheduler on this clock, or on the
    ///         thread of the event loop that it runs its coroutine jobs on.
    ///     ForkedError: The clock is the parent process's.
    fn advance(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.check("advance", py)?;
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
    ///     RuntimeError: Called from a job or a listener of a scheduler on this clock, or on the
    ///         thread of the event loop that it runs its coroutine jobs on.
    ///     ForkedError: The clock is the parent process's.
    fn jump(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<()> {
        let by = duration("seconds", seconds)?;
        self.check("jump", py)?;
        self.inner.jump_with(by, |busy| block(py, busy))
    }

    fn __repr__(&self) -> String {
        format!("ManualClock({})", self.now())
    }
}

impl ManualClock {
    /// Refuses a move that could wait for the thread that makes it.
    fn check(&self, call: &str, py: Python<'_>) -> PyResult<()> {
        if elsewhere::current(py).is_none() && elsewhere::is_loop_on(py, &self.inner)? {
            let instead = format!("await asyncio.to_thread(clock.{call}, ...) instead");
            return Err(elsewhere::blocks_loop(call, &instead));
        }
        Ok(())
    }
}

fn block(py: Python<'_>, busy: &Busy) -> PyResult<()> {
    if elsewhere::current(py).is_some() {
        return Err(Error::InsideJob("moving the clock").into());
    }
    if py.detach(|| busy.is_brief()) {
        return py.check_signals();
    }
    let register = |waker: Waker| Ok(busy.when_over(waker));
    blocking::wait(py, None, register, |key| busy.forget(key)).map(drop)
}
