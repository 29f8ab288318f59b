//! Python jobs. Invariant: a job owns its references and lets them go while attached.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use super::call::{attribute, call, call_method};
use super::context::Captured;
use super::errors::Raised;
use super::lookup::{Lookup, Names};
use super::numbers::{as_seconds, wrong_type};
use crate::{Job, Outcome, Run, Value};

static RUN: Names<1> = Names::new(["run"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&RUN];

/// How a Python object is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    /// `job(*args)`.
    Itself,
    /// `job.run(now)`.
    Run,
}

/// What to run, checked, before it is scheduled.
pub(super) struct Callee {
    object: Py<PyAny>,
    args: Option<Py<PyTuple>>,
    call: Call,
}

impl Callee {
    pub(super) fn new(job: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let object = job.clone().unbind();
        if job.is_callable() {
            let args = (!args.is_empty()).then(|| args.clone().unbind());
            return Ok(Self { object, args, call: Call::Itself });
        }
        match attribute(job, "run")? {
            Some(run) if run.is_callable() && args.is_empty() => {
                Ok(Self { object, args: None, call: Call::Run })
            }
            Some(run) if run.is_callable() => {
                Err(wrong_type("args", args, "empty for a job that has a run method"))
            }
            _ => Err(wrong_type("job", job, "callable, or an object with a run(now) method")),
        }
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        let args = self.args.as_ref().map(|args| args.clone_ref(py));
        Self { object: self.object.clone_ref(py), args, call: self.call }
    }

    /// The job, in the context that is current now.
    pub(super) fn into_job(self, py: Python<'_>) -> PyResult<Box<dyn Job>> {
        let Self { object, args, call } = self;
        let context = Captured::now(py)?;
        Ok(match call {
            Call::Itself => Box::new(CallJob { object, args, context }),
            Call::Run => Box::new(RunJob { object, context }),
        })
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&self.object).chain(self.args.as_ref().map(Py::as_any))
    }
}

/// A callable with its arguments.
pub(super) struct CallJob {
    object: Py<PyAny>,
    args: Option<Py<PyTuple>>,
    context: Captured,
}

impl Job for CallJob {
    fn run(&mut self, _: &Run) -> Outcome {
        Python::attach(|py| {
            let args = self.args.as_ref().map(|args| args.bind(py));
            outcome(py, self.context.run(py, || call(&self.object, py, args)))
        })
    }
}

/// An object with a `run` method.
pub(super) struct RunJob {
    object: Py<PyAny>,
    context: Captured,
}

impl Job for RunJob {
    fn run(&mut self, run: &Run) -> Outcome {
        Python::attach(|py| {
            let ([name], now) = (RUN.get(py), (as_seconds(run.now()),));
            outcome(py, self.context.run(py, || call_method(&self.object, py, name, now)))
        })
    }
}

/// A result of Python's. `None` is the core's `()`.
pub(super) struct Returned(pub(super) Py<PyAny>);

fn outcome(py: Python<'_>, returned: PyResult<Bound<'_, PyAny>>) -> Outcome {
    match returned {
        Ok(value) if value.is_none() => ().into(),
        Ok(value) if value.is(&*PyBool::new(py, false)) => false.into(),
        Ok(value) => Outcome::Done(Value::new(Returned(value.unbind()))),
        Err(error) => Outcome::Failed(Raised::job_error(py, error)),
    }
}

impl CallJob {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&self.object)
            .chain(self.args.as_ref().map(Py::as_any))
            .chain(self.context.object())
    }
}

impl RunJob {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&self.object).chain(self.context.object())
    }
}
