//! The scheduler in Python, a thin wrapper. Invariant: what is refused has changed nothing, and
//! says so in the caller's frame.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyTuple};

use super::clock::{CallableClock, ManualClock, Stopper};
use super::draft::Draft;
use super::listener::PyListener;
use super::numbers::{Maybe, When, as_seconds, duration, integer, task_id, timeout, wrong_type};
use super::rules::{first_due, rule_or_period};
use super::task::Task;
use super::thread::PythonThread;
use super::{blocking, exit, records, seen};
use crate::{ListenerId, Waker};

/// The native part of `duetime.Scheduler`, which is the one to use.
#[pyclass(frozen, subclass, weakref, module = "duetime._native")]
pub(super) struct Scheduler {
    stopper: Option<Stopper>,
    inner: crate::Scheduler,
    clock: Option<Py<PyAny>>,
    /// Which function is which listener. Locked for a moment, never while Python runs.
    listeners: Mutex<Vec<(Py<PyAny>, ListenerId)>>,
}

#[pymethods]
impl Scheduler {
    #[new]
    #[pyo3(
        signature = (
            workers=Maybe::LeftOut, *, clock=None, history=Maybe::LeftOut, name=Maybe::LeftOut
        ),
        text_signature = "(workers=4, *, clock=None, history=10000, name='duetime')"
    )]
    fn new(
        workers: Maybe<'_>,
        clock: Option<&Bound<'_, PyAny>>,
        history: Maybe<'_>,
        name: Maybe<'_>,
    ) -> PyResult<Self> {
        let bound = "between 1 and 1024";
        let workers = workers.read(4, |workers| integer("workers", workers, 1, bound))?;
        let history =
            history.read(10_000, |history| integer("history", history, 0, "at least 0"))?;
        let name = name.read("duetime".into(), |name| {
            name.extract::<String>().map_err(|_| wrong_type("name", name, "a str"))
        })?;
        let mut builder = crate::Scheduler::builder()
            .workers(workers)
            .history(history)
            .name(name)
            .surroundings(PythonThread);
        let mut stopper = None;
        if let Some(clock) = clock {
            builder = if let Ok(manual) = clock.cast::<ManualClock>() {
                builder.clock(manual.get().inner.clone())
            } else if clock.is_callable() {
                let clock = CallableClock::new(clock)?;
                stopper = Some(clock.stopper());
                builder.clock(clock)
            } else {
                let expected = "a ManualClock or a callable that gives seconds";
                return Err(wrong_type("clock", clock, expected));
            };
        }
        let inner = builder.build()?;
        exit::remember(&inner);
        let clock = clock.map(|clock| clock.clone().unbind());
        Ok(Self { stopper, inner, clock, listeners: Mutex::default() })
    }

    /// The size of the pool.
    #[getter]
    fn workers(&self) -> usize {
        self.inner.workers()
    }

    /// What the threads are called, before their number.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The clock that the scheduler was made with; `None` for the monotonic clock.
    #[getter]
    fn clock(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.clock.as_ref().map(|clock| clock.clone_ref(py))
    }

    /// Whether the scheduler is shut down, or shutting down.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        self.inner.check_process()?;
        Ok(self.inner.is_closed())
    }

    /// Take on a task.
    ///
    /// Args:
    ///     task: The task; it can be scheduled once.
    ///     replace: First cancel the waiting task, or forget the finished one, that has the id.
    ///
    /// Returns:
    ///     The task.
    ///
    /// Raises:
    ///     DuplicateTaskError: The id is known, and `replace` is false or its holder is running.
    ///     ValueError: The task was scheduled before.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler, Task
    ///     >>> with Scheduler() as scheduler:
    ///     ...     task = scheduler.schedule(Task("hello", due=0, job=lambda: "hello"))
    ///     ...     task.result()
    ///     'hello'
    #[pyo3(signature = (task, *, replace=false))]
    fn schedule<'py>(
        &self,
        task: &Bound<'py, PyAny>,
        replace: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scheduled = task.cast::<Task>().map_err(|_| wrong_type("task", task, "a Task"))?;
        self.enter(task.py(), std::slice::from_ref(scheduled), replace)?;
        Ok(task.clone())
    }

    /// Take on several tasks, all or none.
    ///
    /// Args:
    ///     tasks: The tasks.
    ///     replace: As for `schedule`.
    ///
    /// Returns:
    ///     The tasks, in their order.
    ///
    /// Raises:
    ///     DuplicateTaskError: As for `schedule`; also if two of the tasks have the same id.
    ///     ValueError: A task was scheduled before.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    #[pyo3(signature = (tasks, *, replace=false))]
    fn schedule_all<'py>(
        &self,
        py: Python<'py>,
        tasks: &Bound<'py, PyAny>,
        replace: bool,
    ) -> PyResult<Vec<Bound<'py, Task>>> {
        let tasks: Vec<Bound<'py, Task>> = tasks
            .try_iter()?
            .map(|task| {
                let task = task?;
                task.cast::<Task>().cloned().map_err(|_| wrong_type("tasks", &task, "Tasks"))
            })
            .collect::<PyResult<_>>()?;
        self.enter(py, &tasks, replace)?;
        Ok(tasks)
    }

    /// Run a job once, a while from now.
    ///
    /// Args:
    ///     delay: How long from now.
    ///     job: What to run.
    ///     *args: What to call it with.
    ///     **options: Keyword parameters of `Task`.
    ///
    /// Returns:
    ///     The task.
    ///
    /// Raises:
    ///     ValueError: A number is out of its bounds.
    ///     TypeError: An argument is of the wrong type.
    ///     DuplicateTaskError: The `id` is taken.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     scheduler.after(0.01, pow, 2, 10).result()
    ///     1024
    #[pyo3(signature = (delay, job, /, *args, **options))]
    fn after<'py>(
        &self,
        py: Python<'py>,
        delay: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, Task>> {
        let due = When::Clock(self.inner.now() + duration("delay", delay)?);
        self.start(py, Draft::once(due, job, args)?, options)
    }

    /// Run a job once, at an instant.
    ///
    /// Args:
    ///     when: An aware datetime, which is converted to the scheduler's clock once, now; or
    ///         seconds of that clock. In the past means at once.
    ///     job: What to run.
    ///     *args: What to call it with.
    ///     **options: Keyword parameters of `Task`.
    ///
    /// Returns:
    ///     The task.
    ///
    /// Raises:
    ///     ValueError: A number is out of its bounds, or the datetime is naive.
    ///     TypeError: An argument is of the wrong type.
    ///     DuplicateTaskError: The `id` is taken.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from datetime import datetime, timedelta, timezone
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     soon = datetime.now(timezone.utc) + timedelta(milliseconds=10)
    ///     ...     scheduler.at(soon, lambda: "now").result()
    ///     'now'
    #[pyo3(signature = (when, job, /, *args, **options))]
    fn at<'py>(
        &self,
        py: Python<'py>,
        when: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, Task>> {
        let due = When::new("when", when)?;
        self.start(py, Draft::once(due, job, args)?, options)
    }

    /// Run a job again and again; see `duetime.Scheduler.every`.
    #[pyo3(signature = (rule, job, /, *args, first=None, **options))]
    fn every<'py>(
        &self,
        py: Python<'py>,
        rule: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
        first: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, Task>> {
        let (rule, label) = rule_or_period(rule)?;
        let now = self.inner.now();
        let due = match (first, &rule) {
            (Some(first), _) if first.is_instance_of::<PyDateTime>() => When::new("first", first)?,
            (Some(first), _) => When::Clock(now + duration("first", first)?),
            (None, Some(rule)) => When::Clock(first_due(rule, now)?),
            (None, None) => When::Clock(now),
        };
        let label = rule.is_some().then(|| label.unbind());
        self.start(py, Draft { rule, label, ..Draft::once(due, job, args)? }, options)
    }

    /// Cancel a task: no run of it starts any more.
    ///
    /// Args:
    ///     task: The task or its id.
    ///
    /// Returns:
    ///     What was done; true only for `CancelOutcome.CANCELLED`.
    ///
    /// Raises:
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     task = scheduler.after(3600, print, id="report")
    ///     ...     if scheduler.cancel("report"):
    ///     ...         print("it never runs")
    ///     it never runs
    #[pyo3(signature = (task, /))]
    fn cancel<'py>(&self, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.inner.check_process()?;
        let outcome = match task.cast::<Task>() {
            Ok(task) if !task.get().is_scheduled() => crate::CancelOutcome::Unknown,
            Ok(task) => task.get().handle()?.cancel()?,
            Err(_) => self.inner.cancel(task_id(task)?)?,
        };
        records::cancel_outcome(task.py(), outcome)
    }

    /// Give the live task of that id; `None` if there is none, or it has ended.
    #[pyo3(signature = (id, /))]
    fn get<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Task>>> {
        self.inner.get(task_id(id)?)?.map(|handle| Task::found(id.py(), handle)).transpose()
    }

    /// Give the record of a task that lives or is remembered.
    ///
    /// Raises:
    ///     UnknownTaskError: The scheduler does not know the id.
    #[pyo3(signature = (id, /))]
    fn info<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        records::task_info(id.py(), &self.inner.info(task_id(id)?)?)
    }

    /// Forget a finished task: its id is free again.
    ///
    /// Raises:
    ///     UnknownTaskError: The scheduler does not know the id.
    ///     ValueError: The task has not ended; cancel it first.
    #[pyo3(signature = (id, /))]
    fn forget(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(self.inner.forget(task_id(id)?)?)
    }

    /// Give the records of all tasks that live or are remembered.
    ///
    /// Args:
    ///     state: Only those in this state.
    #[pyo3(signature = (state=None))]
    fn tasks<'py>(
        &self,
        py: Python<'py>,
        state: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let state = state.map(records::state_from).transpose()?;
        self.inner.tasks(state)?.iter().map(|info| records::task_info(py, info)).collect()
    }

    /// Give the time of the scheduler's clock, in seconds.
    fn now(&self) -> PyResult<f64> {
        self.inner.check_process()?;
        Ok(as_seconds(self.inner.now()))
    }

    /// Give the due time of the earliest waiting task; `None` if none waits.
    fn next_due(&self) -> PyResult<Option<f64>> {
        Ok(self.inner.next_due()?.map(as_seconds))
    }

    /// Look at the clock again: to be called after a clock of your own was moved.
    fn wake(&self) -> PyResult<()> {
        Ok(self.inner.wake()?)
    }

    /// Wait until nothing is running and nothing is due.
    ///
    /// Args:
    ///     timeout: The longest wait; without one, as long as it takes.
    ///
    /// Returns:
    ///     `False` if `timeout` came first.
    ///
    /// Raises:
    ///     RuntimeError: Called from a job or a listener.
    ///     ForkedError: The scheduler is the parent process's.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = self::timeout(timeout)?;
        let register = |waker: Waker| Ok(self.inner.when_idle(waker)?);
        blocking::wait(py, timeout, register, |key| self.inner.forget_waker(key))
    }

    /// Give the numbers of this moment.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::stats(py, &self.inner.stats()?)
    }

    /// Have a function called with each event.
    ///
    /// It is called on the thread that made the move, with no lock held, and may call any method
    /// of the scheduler. An error of the function is reported through `sys.unraisablehook`.
    ///
    /// Args:
    ///     fn: What to call.
    ///     kinds: Which kinds of event; all of them by default.
    #[pyo3(signature = (r#fn, kinds=None))]
    fn add_listener(
        &self,
        r#fn: &Bound<'_, PyAny>,
        kinds: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.inner.check_process()?;
        if !r#fn.is_callable() {
            return Err(wrong_type("fn", r#fn, "callable"));
        }
        let kinds = records::kinds_from(kinds)?;
        let function = r#fn.clone().unbind();
        let id = self.inner.add_listener(PyListener(function.clone_ref(r#fn.py())), &kinds)?;
        self.listeners().push((function, id));
        Ok(())
    }

    /// Stop calling a function; no harm if it is not a listener.
    #[pyo3(signature = (r#fn, /))]
    fn remove_listener(&self, r#fn: &Bound<'_, PyAny>) -> PyResult<()> {
        self.inner.check_process()?;
        let py = r#fn.py();
        let copy: Vec<(Py<PyAny>, ListenerId)> =
            self.listeners().iter().map(|(other, id)| (other.clone_ref(py), *id)).collect();
        for (other, id) in copy {
            // Equal, not identical: a bound method is a new object each time. `==` is user code.
            if other.bind(py).is(r#fn) || other.bind(py).eq(r#fn)? {
                self.inner.remove_listener(id)?;
                let mut listeners = self.listeners();
                let at = listeners.iter().position(|(_, made)| *made == id);
                let removed = at.map(|at| listeners.remove(at));
                drop(listeners);
                drop(removed);
            }
        }
        Ok(())
    }

    /// Refuse new tasks, tell running jobs to stop; see `duetime.Scheduler.shutdown`.
    #[pyo3(signature = (wait=true, *, drain=false, timeout=None))]
    fn shutdown(
        &self,
        py: Python<'_>,
        wait: bool,
        drain: bool,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let timeout = self::timeout(timeout)?;
        self.inner.close(drain)?;
        if !wait || crate::is_inside() {
            return Ok(self.inner.has_ended());
        }
        wait_ended(py, &self.inner, timeout)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().inner.check_process()?;
        Ok(slf)
    }

    #[pyo3(signature = (exc_type, exc_value, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        exc_type: &Bound<'_, PyAny>,
        exc_value: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let _ = (exc_type, exc_value, traceback);
        self.shutdown(py, true, false, None).map(drop)
    }

    fn __repr__(&self) -> String {
        let Ok(stats) = self.inner.stats() else {
            return "<Scheduler of the parent process>".into();
        };
        let open = if self.inner.is_closed() { "closed" } else { "open" };
        let (name, workers) = (self.inner.name(), stats.workers);
        let (waiting, running) = (stats.waiting, stats.running);
        format!(
            "<Scheduler '{name}' {open}, {workers} workers, {waiting} waiting, {running} running>"
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.inner.visit(&mut |value| {
            if result.is_ok() {
                result = seen::visit(value, visit);
            }
        });
        result?;
        if let Ok(listeners) = self.listeners.try_lock() {
            listeners.iter().try_for_each(|(listener, _)| visit.call(listener))?;
        }
        visit.call(&self.clock)
    }

    fn __clear__(&self) {
        self.stop_clock();
        // An error means a forked child, where nothing of the scheduler may be touched.
        if self.inner.close(false).is_ok() {
            self.inner.clear_listeners();
            let listeners = std::mem::take(&mut *self.listeners());
            drop(listeners);
        }
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.stop_clock();
    }
}

impl Scheduler {
    fn stop_clock(&self) {
        if let Some(stopper) = &self.stopper {
            stopper.stop();
        }
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<(Py<PyAny>, ListenerId)>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules a description that nobody else has, with the options of a call.
    fn start<'py>(
        &self,
        py: Python<'py>,
        mut draft: Draft,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, Task>> {
        if let Some(options) = options {
            draft.set(options)?;
        }
        let labelled = draft.is_labelled();
        let task = draft.into_core(py, || self.inner.now())?;
        Task::on(py, self.inner.schedule(task)?, labelled)
    }

    /// Schedules the descriptions of all tasks, or none.
    fn enter(&self, py: Python<'_>, tasks: &[Bound<'_, Task>], replace: bool) -> PyResult<()> {
        self.inner.check_process()?;
        for (count, task) in tasks.iter().enumerate() {
            if let Err(error) = task.get().claim() {
                tasks[..count].iter().for_each(|task| task.get().unclaim());
                return Err(error);
            }
        }
        let entered = self.enter_claimed(py, tasks, replace);
        if entered.is_err() {
            tasks.iter().for_each(|task| task.get().unclaim());
        }
        entered
    }

    fn enter_claimed(
        &self,
        py: Python<'_>,
        tasks: &[Bound<'_, Task>],
        replace: bool,
    ) -> PyResult<()> {
        let now = self.inner.now();
        let core = tasks
            .iter()
            .filter_map(|task| task.get().copy_draft(py))
            .map(|draft| draft.into_core(py, || now))
            .collect::<PyResult<Vec<crate::Task>>>()?;
        self.inner.schedule_with(core, replace, |handles| {
            for (task, handle) in tasks.iter().zip(handles) {
                task.get().set_handle(handle.clone());
                Task::introduce(task);
            }
        })?;
        Ok(())
    }
}

/// Waits for the last job of a scheduler that was closed, and for its threads.
pub(super) fn wait_ended(
    py: Python<'_>,
    scheduler: &crate::Scheduler,
    timeout: Option<Duration>,
) -> PyResult<bool> {
    let register = |waker: Waker| Ok(scheduler.when_ended(waker)?);
    let ended = blocking::wait(py, timeout, register, |key| scheduler.forget_waker(key))?;
    if ended {
        py.detach(|| scheduler.join());
    }
    Ok(ended)
}
