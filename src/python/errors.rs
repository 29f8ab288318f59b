//! Errors across the border. Invariant: every core error has one Python class, chosen in one match.

use std::fmt;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use super::call::text;
use super::lookup::{Class, Lookup};
use super::own::{Own, came};
use crate::{
    DependencyFailed, Error, JobError, Panicked, ReturnedFalse, TaskError, TaskHandle, TaskStuck,
    TaskTimeout,
};

static DUPLICATE: Class = Class::new("duetime._errors", "DuplicateTaskError");
static UNKNOWN: Class = Class::new("duetime._errors", "UnknownTaskError");
static CYCLE: Class = Class::new("duetime._errors", "DependencyCycleError");
static CLOSED: Class = Class::new("duetime._errors", "SchedulerClosedError");
static FORKED: Class = Class::new("duetime._errors", "ForkedError");
static RETURNED_FALSE: Class = Class::new("duetime._errors", "JobReturnedFalse");
static DEPENDENCY_FAILED: Class = Class::new("duetime._errors", "DependencyFailed");
static TASK_STUCK: Class = Class::new("duetime._errors", "TaskStuck");
/// What is raised in a job whose time is up, too.
pub(super) static TASK_TIMEOUT: Class = Class::new("duetime._errors", "TaskTimeout");
static CANCELLED: Class = Class::new("concurrent.futures", "CancelledError");
static TIMEOUT: Class = Class::new("concurrent.futures", "TimeoutError");
/// What a job raises to have a say in its retries.
pub(super) static RETRY_AFTER: Class = Class::new("duetime._errors", "RetryAfter");
pub(super) static GIVE_UP: Class = Class::new("duetime._errors", "GiveUp");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[
    &DUPLICATE,
    &UNKNOWN,
    &CYCLE,
    &CLOSED,
    &FORKED,
    &RETURNED_FALSE,
    &DEPENDENCY_FAILED,
    &TASK_STUCK,
    &TASK_TIMEOUT,
    &CANCELLED,
    &TIMEOUT,
    &RETRY_AFTER,
    &GIVE_UP,
];

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        Python::attach(|py| match error {
            Error::DuplicateTask(_) | Error::TaskRunning(_) => DUPLICATE.error(py, message),
            Error::UnknownTask(_) => UNKNOWN.error(py, message),
            Error::DependencyCycle(_) => CYCLE.error(py, message),
            Error::SchedulerClosed => CLOSED.error(py, message),
            Error::Forked => FORKED.error(py, message),
            Error::WaitTimeout => TIMEOUT.error(py, message),
            Error::InvalidValue { .. } | Error::UnknownGroup { .. } | Error::TaskWaiting(_) => {
                PyValueError::new_err(message)
            }
            Error::InsideJob(_) | Error::SpawnWorker(_) => PyRuntimeError::new_err(message),
        })
    }
}

/// `UnknownTaskError`, for a task that may have no id yet.
pub(super) fn unknown(py: Python<'_>, message: String) -> PyErr {
    UNKNOWN.error(py, message)
}

/// `concurrent.futures.CancelledError`.
pub(super) fn cancelled(py: Python<'_>) -> PyErr {
    CANCELLED.error(py, WAS_CANCELLED.into())
}

const WAS_CANCELLED: &str = "the task was cancelled";

/// `concurrent.futures.TimeoutError`, the builtin one since Python 3.11.
pub(super) fn timed_out(py: Python<'_>, task: &TaskHandle, timeout: Option<Duration>) -> PyErr {
    let within = timeout.map_or(String::new(), |timeout| format!(" within {timeout:?}"));
    TIMEOUT.error(py, format!("task {} has not ended{within}", task.id()))
}

/// What a Python job, rule or policy raised.
pub(super) struct Raised {
    pub(super) exception: Own,
    /// Made at once, while attached: the error may be shown later by a thread that is not, and
    /// after the exception itself is gone.
    text: String,
}

impl Raised {
    pub(super) fn job_error(py: Python<'_>, error: PyErr) -> JobError {
        let exception = Own::of_error(py, error);
        let value = exception.bind(py);
        let class = value.get_type();
        let name = class.qualname().map_or_else(|_| "exception".into(), |name| name.to_string());
        let text = match came(py, text(value)) {
            Some(text) if text.is_empty() => name,
            Some(text) => format!("{name}: {text}"),
            None => format!("{name} (that cannot be shown)"),
        };
        JobError::new(Self { exception, text })
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Display for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Raised {}

/// The exception that a failed run stands for.
pub(super) fn exception(py: Python<'_>, error: &JobError) -> Py<PyAny> {
    if let Some(raised) = error.downcast_ref::<Raised>() {
        return raised.exception.clone_ref(py);
    }
    let message = error.to_string();
    let error = if error.downcast_ref::<ReturnedFalse>().is_some() {
        RETURNED_FALSE.error(py, "the job returned False".into())
    } else if error.downcast_ref::<DependencyFailed>().is_some() {
        DEPENDENCY_FAILED.error(py, message)
    } else if let Some(TaskTimeout { cause, .. }) = error.downcast_ref() {
        let late = TASK_TIMEOUT.error(py, message);
        let cause = cause.as_ref().map(|cause| exception(py, cause).into_bound(py));
        late.set_cause(py, cause.map(PyErr::from_value));
        late
    } else if error.downcast_ref::<TaskStuck>().is_some() {
        TASK_STUCK.error(py, message)
    } else if error.downcast_ref::<Panicked>().is_some() {
        PyRuntimeError::new_err(message)
    } else {
        PyValueError::new_err(message)
    };
    error.into_value(py).into_any()
}

/// The error that asking for the result of a cancelled task raises, with the task's last error: what
/// cancelled it, if that was another task.
pub(super) fn cancelled_by(py: Python<'_>, last: Option<&JobError>) -> PyErr {
    let Some(cause) = last.filter(|error| error.downcast_ref::<DependencyFailed>().is_some())
    else {
        return cancelled(py);
    };
    let raised = CANCELLED.error(py, format!("{WAS_CANCELLED}: {cause}"));
    raised.set_cause(py, Some(PyErr::from_value(exception(py, cause).into_bound(py))));
    raised
}

/// The error that asking for a result raises.
pub(super) fn task_error(py: Python<'_>, error: &TaskError) -> PyErr {
    match error {
        TaskError::Failed(error) => PyErr::from_value(exception(py, error).into_bound(py)),
        TaskError::Cancelled => cancelled(py),
        TaskError::Timeout => Error::WaitTimeout.into(),
        TaskError::InsideJob => PyRuntimeError::new_err(error.to_string()),
        TaskError::Forked => Error::Forked.into(),
    }
}
