//! A task before it is scheduled. Invariant: every value in it has been checked, so that scheduling
//! it can be refused only for what the scheduler knows.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::call::items;
use super::dependencies::Needed;
use super::elsewhere::executor;
use super::job::Callee;
use super::numbers::{When, duration, flag, period, task_id, wrong_type};
use super::own::Own;
use super::rules::{Label, Policy, Rule, group, max_runs, priority};
use super::task::Task;
use crate::{JobError, Recurrence, TaskId, Timestamp};

/// A description whose values have been checked.
pub(super) struct Draft {
    pub(super) id: Option<TaskId>,
    pub(super) due: When,
    pub(super) callee: Callee,
    pub(super) rule: Option<Rule>,
    /// The recurrence object, if there is a rule.
    pub(super) label: Option<Own>,
    pub(super) policy: Option<Policy>,
    /// What runs the job, instead of a worker.
    pub(super) executor: Option<Own>,
    pub(super) group: Option<String>,
    pub(super) options: Options,
    pub(super) depends_on: Vec<Needed>,
}

/// The options that `after`, `at` and `every` share with `Task`.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) priority: i32,
    pub(super) max_runs: Option<u64>,
    pub(super) until: Option<When>,
    pub(super) jitter: Duration,
    pub(super) timeout: Option<Duration>,
    pub(super) interrupt: bool,
    pub(super) grace: Option<Duration>,
}

impl Draft {
    /// Whether the core's task gets a [`Label`].
    pub(super) fn is_labelled(&self) -> bool {
        self.id.is_some() || self.label.is_some()
    }

    /// Refuses values that do not go together.
    pub(super) fn check(&self) -> PyResult<()> {
        let Options { timeout, interrupt, .. } = self.options;
        if interrupt && timeout.is_none() {
            let message = "interrupt must be False for a task without a timeout, not True";
            return Err(PyValueError::new_err(message));
        }
        match &self.rule {
            Some(rule) if !self.options.jitter.is_zero() => {
                Ok(rule.check_jitter(self.options.jitter)?)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        Self {
            id: self.id.clone(),
            due: self.due,
            callee: self.callee.copy(py),
            rule: self.rule.as_ref().map(|rule| rule.copy(py)),
            label: self.label.as_ref().map(|label| label.copy(py)),
            policy: self.policy.as_ref().map(|policy| policy.copy(py)),
            executor: self.executor.as_ref().map(|executor| executor.copy(py)),
            group: self.group.clone(),
            options: self.options,
            depends_on: self.depends_on.iter().map(|needed| needed.copy(py)).collect(),
        }
    }

    /// The core's task. `now` reads the scheduler's clock; `place` tells where in the call a task
    /// stands.
    pub(super) fn into_core(
        self,
        py: Python<'_>,
        now: impl Fn() -> Timestamp,
        place: impl Fn(&Py<Task>) -> Option<usize>,
    ) -> PyResult<crate::Task> {
        let labelled = self.is_labelled();
        let Self { id, due, callee, rule, label, policy, executor, group, options, depends_on } =
            self;
        let job = match executor {
            Some(executor) => callee.on(executor),
            None => callee.into_job(py)?,
        };
        let task = crate::Task::new(due.on_clock(&now), job);
        let mut task = series(task, rule, options, &now);
        if let Some(id) = id {
            task = task.id(id);
        }
        if labelled {
            task = task.label(Label::new(label));
        }
        if let Some(policy) = policy {
            task = task.retry(policy);
        }
        if let Some(group) = group {
            task = task.group(group);
        }
        let depends_on = depends_on.into_iter().map(|needed| needed.into_core(py, &place));
        let depends_on = depends_on.collect::<PyResult<Vec<_>>>()?;
        Ok(timed(task, options).depends_on(depends_on).priority(options.priority))
    }

    /// Its due times to come; `None` if only a scheduler can tell, which it has not got yet.
    pub(super) fn preview(self, count: usize) -> Option<Result<Vec<Timestamp>, JobError>> {
        let on_clock = |when: When| matches!(when, When::Clock(_));
        if !on_clock(self.due) || !self.options.until.is_none_or(on_clock) {
            return None;
        }
        let zero = || Timestamp::ZERO; // asked by nobody
        let task = crate::Task::new(self.due.on_clock(zero), || ());
        Some(series(task, self.rule, self.options, zero).preview(count))
    }
}

/// Gives a task its slots.
fn series(
    mut task: crate::Task,
    rule: Option<Rule>,
    options: Options,
    now: impl Fn() -> Timestamp,
) -> crate::Task {
    if let Some(rule) = rule {
        task = task.recurrence(rule);
    }
    if let Some(max_runs) = options.max_runs {
        task = task.max_runs(max_runs);
    }
    if let Some(until) = options.until {
        task = task.until(until.on_clock(&now));
    }
    task.jitter(options.jitter)
}

/// Gives its attempts their time.
fn timed(mut task: crate::Task, options: Options) -> crate::Task {
    if let Some(timeout) = options.timeout {
        task = task.timeout(timeout);
    }
    if let Some(grace) = options.grace {
        task = task.grace(grace);
    }
    if options.interrupt { task.interrupt(true) } else { task }
}

impl Draft {
    /// A task that is due once, without options.
    pub(super) fn once(due: When, callee: Callee) -> Self {
        Self {
            id: None,
            due,
            callee,
            rule: None,
            label: None,
            policy: None,
            executor: None,
            group: None,
            options: Options::default(),
            depends_on: Vec::new(),
        }
    }

    /// Takes the options of `after`, `at` and `every`.
    pub(super) fn set(&mut self, options: &Bound<'_, PyDict>) -> PyResult<()> {
        for (name, value) in options {
            let name = name.cast::<PyString>()?.to_cow()?;
            match &*name {
                "id" | "max_runs" | "until" | "depends_on" | "group" | "timeout"
                    if value.is_none() => {}
                "id" => self.id = Some(task_id(&value)?),
                "retry" => self.policy = Policy::new(&value)?,
                "priority" => self.options.priority = priority(&value)?,
                "max_runs" => self.options.max_runs = Some(max_runs(&value)?),
                "executor" => self.executor = executor(&value, Some(self.callee.object()))?,
                "group" => self.group = Some(group(&value)?),
                "until" => self.options.until = Some(When::new("until", &value)?),
                "jitter" => self.options.jitter = duration("jitter", &value)?,
                "timeout" => self.options.timeout = Some(period("timeout", &value)?),
                "interrupt" => self.options.interrupt = flag("interrupt", &value)?,
                "grace" => self.options.grace = Some(duration("grace", &value)?),
                "depends_on" => self.depends_on = Needed::all(&value)?,
                "replace" => {
                    let message = "'replace' is no option; Scheduler.schedule has it";
                    return Err(PyTypeError::new_err(message));
                }
                _ => {
                    return Err(PyTypeError::new_err(format!(
                        "'{name}' is no option; the options are id, retry, priority, max_runs, \
                         until, jitter, depends_on, executor, group, timeout, interrupt and grace; \
                         a keyword argument of the job goes into functools.partial"
                    )));
                }
            }
        }
        self.check()
    }
}

/// The `args` of a task as a tuple.
pub(super) fn arguments<'py>(
    py: Python<'py>,
    args: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyTuple>> {
    match args {
        None => Ok(PyTuple::empty(py)),
        Some(args) if args.is_instance_of::<PyTuple>() || args.is_instance_of::<PyList>() => {
            PyTuple::new(py, items(args)?.bind(py))
        }
        Some(args) => Err(wrong_type("args", args, "a tuple or a list")),
    }
}
