//! A task before it is scheduled. Invariant: every value in it has been checked, so that scheduling
//! it can be refused only for what the scheduler knows.

use std::time::Duration;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use super::call::items;
use super::context::Captured;
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
    pub(super) due: When,
    pub(super) callee: Callee,
    /// Made with the first of them. Most tasks have none.
    options: Option<Box<Options>>,
}

/// All but what is run, and when first.
#[derive(Default)]
struct Options {
    id: Option<TaskId>,
    rule: Option<Rule>,
    /// The recurrence object, if there is a rule.
    label: Option<Own>,
    policy: Option<Policy>,
    /// What runs the job, instead of a worker.
    executor: Option<Own>,
    group: Option<String>,
    priority: i32,
    max_runs: Option<u64>,
    until: Option<When>,
    jitter: Duration,
    timeout: Option<Duration>,
    interrupt: bool,
    grace: Option<Duration>,
    depends_on: Vec<Needed>,
}

impl Draft {
    /// A task that is due once, without options.
    pub(super) fn once(due: When, callee: Callee) -> Self {
        Self { due, callee, options: None }
    }

    fn options(&mut self) -> &mut Options {
        self.options.get_or_insert_default()
    }

    pub(super) fn id(&self) -> Option<&TaskId> {
        self.options.as_ref()?.id.as_ref()
    }

    pub(super) fn set_id(&mut self, id: TaskId) {
        self.options().id = Some(id);
    }

    /// The recurrence object, if there is one.
    pub(super) fn recurrence(&self) -> Option<&Own> {
        self.options.as_ref()?.label.as_ref()
    }

    /// Makes it a series, by a rule as the core gets it, and as the object that was given for it.
    pub(super) fn recur(&mut self, rule: Rule, object: &Bound<'_, PyAny>) {
        let options = self.options();
        (options.rule, options.label) = (Some(rule), Some(object.clone().into()));
    }

    pub(super) fn executor(&self) -> Option<&Own> {
        self.options.as_ref()?.executor.as_ref()
    }

    pub(super) fn set_executor(&mut self, executor: Option<Own>) {
        self.options().executor = executor;
    }

    pub(super) fn priority(&self) -> i32 {
        self.options.as_ref().map_or(0, |options| options.priority)
    }

    pub(super) fn group(&self) -> Option<&str> {
        self.options.as_ref()?.group.as_deref()
    }

    pub(super) fn into_depends_on(self) -> Vec<Needed> {
        self.options.map_or_else(Vec::new, |options| options.depends_on)
    }

    /// Whether the core's task gets a [`Label`].
    pub(super) fn is_labelled(&self) -> bool {
        self.options.as_ref().is_some_and(|options| options.is_labelled())
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        let options = self.options.as_ref().map(|options| Box::new(options.copy(py)));
        Self { due: self.due, callee: self.callee.copy(py), options }
    }

    /// The core's task, scheduled in a context. `now` reads the scheduler's clock; `place` tells where
    /// in the call a task stands.
    pub(super) fn into_core(
        self,
        py: Python<'_>,
        context: Captured,
        now: impl Fn() -> Timestamp,
        place: impl Fn(&Py<Task>) -> Option<usize>,
    ) -> PyResult<crate::Task> {
        let Self { due, callee, options } = self;
        let due = due.on_clock(&now);
        let Some(mut options) = options else {
            return Ok(crate::Task::new(due, callee.within(context)));
        };
        let job = match options.executor.take() {
            Some(executor) => callee.on(executor),
            None => callee.within(context),
        };
        options.give(py, crate::Task::new(due, job), now, place)
    }

    /// Its due times to come; `None` if only a scheduler can tell, which it has not got yet.
    pub(super) fn preview(self, count: usize) -> Option<Result<Vec<Timestamp>, JobError>> {
        let Self { due, callee: _, options } = self;
        let options = options.unwrap_or_default();
        let on_clock = |when: When| matches!(when, When::Clock(_));
        if !on_clock(due) || !options.until.is_none_or(on_clock) {
            return None;
        }
        let zero = || Timestamp::ZERO; // asked by nobody
        let task = crate::Task::new(due.on_clock(zero), || ());
        let Options { rule, max_runs, until, jitter, .. } = *options;
        Some(
            series(task, rule, max_runs, until.map(|until| until.on_clock(zero)), jitter)
                .preview(count),
        )
    }

    /// Shows the garbage collector what it holds.
    pub(super) fn visit(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.callee.objects().try_for_each(|object| visit.call(object))?;
        self.options.as_ref().map_or(Ok(()), |options| options.visit(visit))
    }
}

impl Options {
    fn is_labelled(&self) -> bool {
        self.id.is_some() || self.label.is_some()
    }

    fn copy(&self, py: Python<'_>) -> Self {
        Self {
            id: self.id.clone(),
            rule: self.rule.as_ref().map(|rule| rule.copy(py)),
            label: self.label.as_ref().map(|label| label.copy(py)),
            policy: self.policy.as_ref().map(|policy| policy.copy(py)),
            executor: self.executor.as_ref().map(|executor| executor.copy(py)),
            group: self.group.clone(),
            depends_on: self.depends_on.iter().map(|needed| needed.copy(py)).collect(),
            ..*self
        }
    }

    /// Refuses values that do not go together.
    fn check(&self) -> PyResult<()> {
        if self.interrupt && self.timeout.is_none() {
            let message = "interrupt must be False for a task without a timeout, not True";
            return Err(PyValueError::new_err(message));
        }
        match &self.rule {
            Some(rule) if !self.jitter.is_zero() => Ok(rule.check_jitter(self.jitter)?),
            _ => Ok(()),
        }
    }

    /// Gives them to the core's task.
    fn give(
        self,
        py: Python<'_>,
        task: crate::Task,
        now: impl Fn() -> Timestamp,
        place: impl Fn(&Py<Task>) -> Option<usize>,
    ) -> PyResult<crate::Task> {
        let labelled = self.is_labelled();
        let until = self.until.map(|until| until.on_clock(&now));
        let mut task = series(task, self.rule, self.max_runs, until, self.jitter);
        if let Some(id) = self.id {
            task = task.id(id);
        }
        if labelled {
            task = task.label(Label::new(self.label));
        }
        if let Some(policy) = self.policy {
            task = task.retry(policy);
        }
        if let Some(group) = self.group {
            task = task.group(group);
        }
        if let Some(timeout) = self.timeout {
            task = task.timeout(timeout);
        }
        if let Some(grace) = self.grace {
            task = task.grace(grace);
        }
        if self.interrupt {
            task = task.interrupt(true);
        }
        let depends_on = self.depends_on.into_iter().map(|needed| needed.into_core(py, &place));
        let depends_on = depends_on.collect::<PyResult<Vec<_>>>()?;
        Ok(task.depends_on(depends_on).priority(self.priority))
    }

    fn visit(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.rule.as_ref().and_then(Rule::object))?;
        let mut policy = self.policy.iter().flat_map(Policy::objects);
        policy.try_for_each(|object| visit.call(object))?;
        visit.call(self.label.as_deref())?;
        visit.call(self.executor.as_deref())?;
        let mut needed = self.depends_on.iter().filter_map(Needed::object);
        needed.try_for_each(|task| visit.call(task))
    }
}

/// Gives a task its slots.
fn series(
    mut task: crate::Task,
    rule: Option<Rule>,
    max_runs: Option<u64>,
    until: Option<Timestamp>,
    jitter: Duration,
) -> crate::Task {
    if let Some(rule) = rule {
        task = task.recurrence(rule);
    }
    if let Some(max_runs) = max_runs {
        task = task.max_runs(max_runs);
    }
    if let Some(until) = until {
        task = task.until(until);
    }
    task.jitter(jitter)
}

impl Draft {
    /// Takes the options of `after`, `at` and `every`.
    pub(super) fn set_all(&mut self, options: &Bound<'_, PyDict>) -> PyResult<()> {
        for (name, value) in options {
            let name = name.cast::<PyString>()?.to_cow()?;
            match &*name {
                "id" | "max_runs" | "until" | "depends_on" | "group" | "timeout"
                    if value.is_none() => {}
                "id" => self.set_id(task_id(&value)?),
                name => self.set(name, &value)?,
            }
        }
        self.check()
    }

    /// Takes one of those that these share with `Task`.
    pub(super) fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match name {
            "retry" => {
                if let Some(policy) = Policy::new(value)? {
                    self.options().policy = Some(policy);
                }
            }
            "executor" => {
                if let Some(executor) = executor(value, Some(self.callee.object()))? {
                    self.set_executor(Some(executor));
                }
            }
            "priority" => self.options().priority = priority(value)?,
            "max_runs" => self.options().max_runs = Some(max_runs(value)?),
            "group" => self.options().group = Some(group(value)?),
            "until" => self.options().until = Some(When::new("until", value)?),
            "jitter" => self.options().jitter = duration("jitter", value)?,
            "timeout" => self.options().timeout = Some(period("timeout", value)?),
            "interrupt" => self.options().interrupt = flag("interrupt", value)?,
            "grace" => self.options().grace = Some(duration("grace", value)?),
            "depends_on" => self.options().depends_on = Needed::all(value)?,
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
        Ok(())
    }

    /// Refuses values that do not go together.
    pub(super) fn check(&self) -> PyResult<()> {
        self.options.as_ref().map_or(Ok(()), |options| options.check())
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
