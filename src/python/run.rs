//! A run as a Python job sees it. Invariant: it can be kept, and asked from any thread.

use pyo3::prelude::*;

use super::blocking;
use super::elsewhere;
use super::errors::cancelled;
use super::numbers::{as_seconds, duration};
use super::records;
use crate::Waker;

/// What a job sees of its run; got from `current_run()`.
///
/// Example:
///     >>> from duetime import Scheduler, current_run
///     >>> def job():
///     ...     run = current_run()
///     ...     while not run.stop_requested:
///     ...         run.wait(0.01)
///     ...     return f"stopped in run {run.number}"
///     >>> scheduler = Scheduler()
///     >>> task = scheduler.after(0, job)
///     >>> while not task.running():
///     ...     pass
///     >>> scheduler.shutdown()
///     True
///     >>> task.result()
///     'stopped in run 1'
#[pyclass(frozen, module = "duetime")]
pub(super) struct Run {
    inner: crate::Run,
}

/// Give the run that the calling code is part of; `None` outside of any job.
///
/// In a coroutine it goes by the context, so what the coroutine starts is part of its run too.
///
/// Example:
///     >>> from duetime import Scheduler, current_run
///     >>> with Scheduler() as scheduler:
///     ...     scheduler.after(0, lambda: current_run().number).result()
///     1
///     >>> current_run() is None
///     True
#[pyfunction]
pub(super) fn current_run(py: Python<'_>) -> Option<Run> {
    let elsewhere = || elsewhere::current(py).map(|run| run.get().core_run().clone());
    crate::current_run().or_else(elsewhere).map(Run::new)
}

impl Run {
    pub(super) fn new(inner: crate::Run) -> Self {
        Self { inner }
    }
}

#[pymethods]
impl Run {
    /// The id of the task.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::id(py, &self.inner.id())
    }

    /// When the run was due, in seconds of the scheduler's clock.
    #[getter]
    fn due(&self) -> f64 {
        as_seconds(self.inner.due())
    }

    /// When the run started, in seconds of the scheduler's clock.
    #[getter]
    fn now(&self) -> f64 {
        as_seconds(self.inner.now())
    }

    /// When its time is up, in seconds of the scheduler's clock; `None` without a timeout.
    #[getter]
    fn deadline(&self) -> Option<f64> {
        self.inner.deadline().map(as_seconds)
    }

    /// 1 for the first run of a slot, 2 for its first retry, and so on.
    #[getter]
    fn attempt(&self) -> u64 {
        self.inner.attempt()
    }

    /// Which run of the task this is, from 1; retries count.
    #[getter]
    fn number(&self) -> u64 {
        self.inner.number()
    }

    /// Whether the job should end soon: by a cancel, a shutdown, or because its time is up.
    #[getter]
    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }

    /// Sleep, but no longer than until the job should stop.
    ///
    /// Args:
    ///     seconds: The longest sleep.
    ///
    /// Returns:
    ///     Whether the job should stop. Mind a job that ends with this call: `False` as the job's
    ///     result is a failure.
    fn wait(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        let duration = duration("seconds", seconds)?;
        self.inner.check_process()?;
        if self.inner.is_current() {
            return Ok(py.detach(|| self.inner.wait(duration))); // a worker hears no signals
        }
        self.inner.wait_with(duration, |asleep| {
            let register = |waker: Waker| Ok(asleep.when_over(waker));
            blocking::wait(py, asleep.timeout(), register, |key| asleep.forget(key)).map(drop)
        })
    }

    /// End the job here if it should stop.
    ///
    /// Raises:
    ///     concurrent.futures.CancelledError: A stop was requested.
    fn raise_if_stopped(&self, py: Python<'_>) -> PyResult<()> {
        if self.inner.stop_requested() { Err(cancelled(py)) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        let (run, attempt) = (self.inner.number(), self.inner.attempt());
        let stop = if self.inner.stop_requested() { ", asked to stop" } else { "" };
        format!("<Run {run} of task {}, attempt {attempt}{stop}>", self.inner.id())
    }
}
