//! Python jobs. Invariant: a job owns its references and lets them go while attached.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyTuple};

use super::call::{attribute, bound, call, call_method};
use super::context::Captured;
use super::elsewhere;
use super::errors::Raised;
use super::interrupt;
use super::lookup::{Lookup, Names};
use super::numbers::{as_seconds, wrong_type};
use super::own::Own;
use crate::{AnyJob, IntoJob, Job, Outcome, Run, Value};

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
    object: Own,
    args: Option<Own<PyTuple>>,
    call: Call,
}

impl Callee {
    pub(super) fn new(job: &Bound<'_, PyAny>, args: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let object = Own::from(job.clone());
        if job.is_callable() {
            let args = (!args.is_empty()).then(|| args.clone().into());
            return Ok(Self { object, args, call: Call::Itself });
        }
        let run = attribute(job, "run")?;
        match run.as_ref().map(|run| run.bind(job.py())) {
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
        let args = self.args.as_ref().map(|args| args.copy(py));
        Self { object: self.object.copy(py), args, call: self.call }
    }

    /// The job, in a context.
    pub(super) fn within(self, context: Captured) -> AnyJob {
        let Self { object, args, call } = self;
        match (call, args) {
            (Call::Itself, None) if context.is_empty() => LoneJob(object).into_job(),
            (Call::Itself, args) => CallJob { object, args, context }.into_job(),
            (Call::Run, _) => RunJob { object, context }.into_job(),
        }
    }

    /// The job, for another executor.
    pub(super) fn on(self, executor: Own) -> AnyJob {
        ExecutorJob { callee: self, executor }.into_job()
    }

    /// What is run.
    pub(super) fn object(&self) -> &Py<PyAny> {
        &self.object
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&*self.object).chain(self.args.as_deref().map(Py::as_any))
    }
}

/// A callable without arguments, in an empty context. It lies in its task, as it is one pointer.
pub(super) struct LoneJob(Own);

impl Job for LoneJob {
    fn run(&mut self, run: &Run) -> Outcome {
        Python::attach(|py| answer(py, run, &Captured::empty(), || call(&self.0, py, None)))
    }
}

/// A callable with its arguments.
pub(super) struct CallJob {
    object: Own,
    args: Option<Own<PyTuple>>,
    context: Captured,
}

impl Job for CallJob {
    fn run(&mut self, run: &Run) -> Outcome {
        Python::attach(|py| {
            let args = self.args.as_ref().map(|args| args.bind(py));
            answer(py, run, &self.context, || call(&self.object, py, args))
        })
    }
}

/// An object with a `run` method.
pub(super) struct RunJob {
    object: Own,
    context: Captured,
}

impl Job for RunJob {
    fn run(&mut self, run: &Run) -> Outcome {
        Python::attach(|py| {
            let ([name], now) = (RUN.get(py), (as_seconds(run.now()),));
            answer(py, run, &self.context, || call_method(&self.object, py, name, now))
        })
    }
}

/// A job that another executor runs.
pub(super) struct ExecutorJob {
    callee: Callee,
    executor: Own,
}

impl Job for ExecutorJob {
    fn run(&mut self, run: &Run) -> Outcome {
        Python::attach(|py| {
            let Callee { object, args, call } = self.callee.copy(py);
            let submission = match call {
                Call::Itself => Ok((object, args.unwrap_or_else(|| PyTuple::empty(py).into()))),
                Call::Run => bound_run(py, &object, run),
            };
            match submission {
                Ok((function, args)) => {
                    elsewhere::submission(run, self.executor.copy(py), function, args)
                }
                Err(error) => Outcome::Failed(Raised::job_error(py, error)),
            }
        })
    }
}

/// The method `run`, and what it is called with.
fn bound_run(py: Python<'_>, object: &Own, run: &Run) -> PyResult<(Own, Own<PyTuple>)> {
    let [name] = RUN.get(py);
    let args = (as_seconds(run.now()),).into_pyobject(py)?;
    Ok((bound(object, py, name)?, args.into()))
}

impl ExecutorJob {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        self.callee.objects().chain([&*self.executor])
    }
}

/// A result of Python's. `None` is the core's `()`.
pub(super) struct Returned(pub(super) Own);

/// Runs a job in its context. A coroutine that it returns is run before it is over.
fn answer(
    py: Python<'_>,
    run: &Run,
    context: &Captured,
    code: impl FnOnce() -> PyResult<Own>,
) -> Outcome {
    let answer = context.run(py, || {
        let returned = interrupt::within(py, run, code)?;
        if !returned.is_none(py) && elsewhere::is_coroutine(returned.bind(py)) {
            return elsewhere::coroutine(py, returned, run);
        }
        Ok(outcome(py, returned))
    });
    answer.unwrap_or_else(|error| Outcome::Failed(Raised::job_error(py, error)))
}

/// What a value that a job returned means.
pub(super) fn outcome(py: Python<'_>, returned: Own) -> Outcome {
    match returned {
        value if value.is_none(py) => ().into(),
        value if value.is(&*PyBool::new(py, false)) => false.into(),
        value => Outcome::Done(Value::new(Returned(value))),
    }
}

impl LoneJob {
    pub(super) fn object(&self) -> &Py<PyAny> {
        &self.0
    }
}

impl CallJob {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&*self.object)
            .chain(self.args.as_deref().map(Py::as_any))
            .chain(self.context.object())
    }
}

impl RunJob {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        std::iter::once(&*self.object).chain(self.context.object())
    }
}
