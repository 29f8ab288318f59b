//! A run as a Python job sees it. Invariant: it can be kept, and asked from any thread.

use pyo3::prelude::*;

use super::errors::cancelled;
use super::numbers::{as_seconds, duration};
use super::records;

/// What a job sees of its run; got from `current_run()`.
#[pyclass(frozen, module = "duetime")]
pub(super) struct Run {
    inner: crate::Run,
}

/// The run that the calling thread is in the middle of.
#[pyfunction]
pub(super) fn current_run() -> Option<Run> {
    crate::current_run().map(|inner| Run { inner })
}

#[pymethods]
impl Run {
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::id(py, &self.inner.id())
    }

    #[getter]
    fn due(&self) -> f64 {
        as_seconds(self.inner.due())
    }

    #[getter]
    fn now(&self) -> f64 {
        as_seconds(self.inner.now())
    }

    #[getter]
    fn attempt(&self) -> u64 {
        self.inner.attempt()
    }

    #[getter]
    fn number(&self) -> u64 {
        self.inner.number()
    }

    #[getter]
    fn stop_requested(&self) -> bool {
        self.inner.stop_requested()
    }

    fn wait(&self, py: Python<'_>, seconds: &Bound<'_, PyAny>) -> PyResult<bool> {
        let duration = duration("seconds", seconds)?;
        Ok(py.detach(|| self.inner.wait(duration)))
    }

    fn raise_if_stopped(&self, py: Python<'_>) -> PyResult<()> {
        if self.inner.stop_requested() { Err(cancelled(py)) } else { Ok(()) }
    }

    fn __repr__(&self) -> String {
        let (run, attempt) = (self.inner.number(), self.inner.attempt());
        let stop = if self.inner.stop_requested() { ", asked to stop" } else { "" };
        format!("<Run {run} of task {}, attempt {attempt}{stop}>", self.inner.id())
    }
}
