//! The scheduler in Python, a thin wrapper. Invariant: what is refused has changed nothing, and
//! says so in the caller's frame.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDateTime, PyDict, PyTuple};

use super::call::{has, items};
use super::context::Captured;
use super::core::{Core, Settings};
use super::draft::Draft;
use super::exit::wait_ended;
use super::job::Callee;
use super::numbers::{Maybe, When, as_seconds, duration, flag, task_id, timeout, wrong_type};
use super::rules::{first_due, rule_or_period};
use super::task::Task;
use super::{blocking, elsewhere, records, stay};
use crate::{ControlOutcome, Error, TaskHandle, TaskId, Timestamp, Waker};

/// The native part of `duetime.Scheduler`, which is the one to use.
#[pyclass(frozen, subclass, weakref, module = "duetime._native")]
pub(super) struct Scheduler {
    /// Set by `__init__`, which a subclass may call with other arguments than its own.
    core: OnceLock<Arc<Core>>,
}

#[pymethods]
impl Scheduler {
    #[new]
    #[pyo3(
        signature = (*args, **kwargs),
        text_signature = "(workers=4, *, clock=None, history=10000, name='duetime', loop=None, executor=None, limits=None)"
    )]
    fn new(args: &Bound<'_, PyTuple>, kwargs: Option<&Bound<'_, PyDict>>) -> Self {
        stay::here();
        let _ = (args, kwargs); // they are for __init__
        Self { core: OnceLock::new() }
    }

    #[pyo3(
        signature = (
            workers=Maybe::LeftOut, *, clock=None, history=Maybe::LeftOut, name=Maybe::LeftOut,
            r#loop=None, executor=None, limits=None
        )
    )]
    #[expect(clippy::too_many_arguments, reason = "the keyword parameters of a Python class")]
    fn __init__(
        slf: &Bound<'_, Self>,
        workers: Maybe<'_>,
        clock: Option<&Bound<'_, PyAny>>,
        history: Maybe<'_>,
        name: Maybe<'_>,
        r#loop: Option<&Bound<'_, PyAny>>,
        executor: Option<&Bound<'_, PyAny>>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let settings =
            Settings { workers, clock, history, name, event_loop: r#loop, executor, limits };
        let core = Arc::new(Core::new(slf.py(), settings)?);
        let set = slf.get().core.set(Arc::clone(&core));
        set.map_err(|_| PyRuntimeError::new_err("__init__ was called before"))?;
        core.watch(slf.as_any())
    }

    /// The size of the pool.
    #[getter]
    fn workers(&self) -> PyResult<usize> {
        Ok(self.inner()?.workers())
    }

    /// What the threads are called, before their number.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(self.inner()?.name())
    }

    /// The clock that the scheduler was made with; `None` for the monotonic clock.
    #[getter]
    fn clock(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.core()?.clock.as_ref().map(|clock| clock.clone_ref(py)))
    }

    /// What the scheduler was made with to run jobs; `None` for its workers.
    #[getter]
    fn executor(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        Ok(self.core()?.executor.as_ref().map(|executor| executor.clone_ref(py)))
    }

    /// Whether the scheduler was paused, and not resumed.
    #[getter]
    fn paused(&self) -> PyResult<bool> {
        Ok(self.checked()?.is_paused())
    }

    /// Whether the scheduler is shut down, or shutting down.
    #[getter]
    fn closed(&self) -> PyResult<bool> {
        Ok(self.checked()?.is_closed())
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
    ///     ValueError: The task was scheduled before, or depends on a series without an end.
    ///     UnknownTaskError: It depends on a task that the scheduler does not know.
    ///     DependencyCycleError: It depends on itself.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler, Task
    ///     >>> with Scheduler() as scheduler:
    ///     ...     task = Task("hello", due=scheduler.now(), job=lambda: "hello")
    ///     ...     scheduler.schedule(task).result()
    ///     'hello'
    #[pyo3(
        signature = (task, *, replace=Maybe::LeftOut),
        text_signature = "($self, task, *, replace=False)"
    )]
    fn schedule<'py>(
        &self,
        task: &Bound<'py, PyAny>,
        replace: Maybe<'_>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let replace = replace.read(false, |replace| flag("replace", replace))?;
        let scheduled = task.cast::<Task>().map_err(|_| wrong_type("task", task, "a Task"))?;
        self.enter(task.py(), std::slice::from_ref(scheduled), replace)?;
        Ok(task.clone())
    }

    /// Take on several tasks, all or none.
    ///
    /// They may depend on each other, whatever their order.
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
    ///     ValueError: A task was scheduled before, or depends on a series without an end.
    ///     UnknownTaskError: One depends on a task that the scheduler does not know.
    ///     DependencyCycleError: They depend on each other in a circle.
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    #[pyo3(
        signature = (tasks, *, replace=Maybe::LeftOut),
        text_signature = "($self, tasks, *, replace=False)"
    )]
    fn schedule_all<'py>(
        &self,
        py: Python<'py>,
        tasks: &Bound<'py, PyAny>,
        replace: Maybe<'_>,
    ) -> PyResult<Vec<Bound<'py, Task>>> {
        let replace = replace.read(false, |replace| flag("replace", replace))?;
        if !has(tasks, "__iter__")? && !has(tasks, "__getitem__")? {
            return Err(wrong_type("tasks", tasks, "an iterable of Tasks"));
        }
        let tasks = items(tasks)?;
        let tasks: Vec<Bound<'py, Task>> = tasks
            .bind(py)
            .iter()
            .map(|task| {
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
    ///     UnknownTaskError: It depends on a task that the scheduler does not know.
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
        let due = When::Clock(self.inner()?.now() + duration("delay", delay)?);
        self.start(py, Draft::once(due, Callee::new(job, args)?), options)
    }

    /// `after` without options.
    #[pyo3(signature = (delay, job, /, *args))]
    fn _after<'py>(
        &self,
        py: Python<'py>,
        delay: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Bound<'py, Task>> {
        self.after(py, delay, job, args, None)
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
    ///     UnknownTaskError: It depends on a task that the scheduler does not know.
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
        self.start(py, Draft::once(due, Callee::new(job, args)?), options)
    }

    /// `at` without options.
    #[pyo3(signature = (when, job, /, *args))]
    fn _at<'py>(
        &self,
        py: Python<'py>,
        when: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<Bound<'py, Task>> {
        self.at(py, when, job, args, None)
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
        let now = self.inner()?.now();
        let due = match (first, &rule) {
            (Some(first), _) => first_run(first, now)?,
            (None, Some(rule)) => When::Clock(first_due(rule, now)?),
            (None, None) => When::Clock(now),
        };
        let mut draft = Draft::once(due, Callee::new(job, args)?);
        if let Some(rule) = rule {
            draft.recur(rule, &label);
        }
        self.start(py, draft, options)
    }

    /// Check the arguments of `every` before there is a job.
    #[pyo3(signature = (rule, /, *, first=None, **options))]
    fn _check_every(
        &self,
        py: Python<'_>,
        rule: &Bound<'_, PyAny>,
        first: Option<&Bound<'_, PyAny>>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        self.checked()?;
        let (rule, label) = rule_or_period(rule)?;
        let due = first
            .map_or(Ok(When::Clock(Timestamp::ZERO)), |first| first_run(first, Timestamp::ZERO))?;
        let any_job = py.get_type::<PyDict>();
        let mut draft = Draft::once(due, Callee::new(&any_job, &PyTuple::empty(py))?);
        if let Some(rule) = rule {
            draft.recur(rule, &label);
        }
        options.map_or(Ok(()), |options| draft.set_all(options))
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
        let inner = self.checked()?;
        let outcome = match task.cast::<Task>() {
            Ok(task) if !task.get().is_scheduled() => crate::CancelOutcome::Unknown,
            Ok(task) => task.get().handle()?.cancel()?,
            Err(_) => inner.cancel(task_id(task)?)?,
        };
        Ok(records::cancel_outcome(task.py(), outcome))
    }

    /// Make a waiting task due at another time.
    ///
    /// A series goes on from there: its grid moves with it. A retry is only made at another time. A
    /// paused task stays paused. Of a running task nothing is changed.
    ///
    /// Args:
    ///     task: The task or its id.
    ///     due: Seconds of the scheduler's clock, or an aware datetime. In the past means at once.
    ///
    /// Returns:
    ///     What was done; true only for `ControlOutcome.APPLIED`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import ManualClock, Scheduler
    ///     >>> clock = ManualClock()
    ///     >>> with Scheduler(clock=clock) as scheduler:
    ///     ...     task = scheduler.every(600, list, id="tick")
    ///     ...     if scheduler.reschedule("tick", 180):
    ///     ...         clock.advance(180)
    ///     ...     task.runs, task.due
    ///     (1, 780.0)
    #[pyo3(signature = (task, due, /))]
    fn reschedule<'py>(
        &self,
        task: &Bound<'py, PyAny>,
        due: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let due = When::new("due", due)?
            .on_clock(|| self.inner().map_or(Timestamp::ZERO, crate::Scheduler::now));
        self.control(task, |handle| handle.reschedule(due), |inner, id| inner.reschedule(id, due))
    }

    /// Make a waiting task due now, if it is not yet.
    ///
    /// This is one more run of a series, before the slot that it waited for, and does not count
    /// for `max_runs`; slots that pass during it are missed by the series' rule. A retry or a
    /// one-off task is only made sooner. A paused task is run once, and stays paused. A running
    /// task is not run again. One that depends on others is due now, and runs when they are done.
    ///
    /// Args:
    ///     task: The task or its id.
    ///
    /// Returns:
    ///     What was done; true only for `ControlOutcome.APPLIED`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import ManualClock, Scheduler
    ///     >>> clock = ManualClock()
    ///     >>> with Scheduler(clock=clock) as scheduler:
    ///     ...     task = scheduler.every(600, list)
    ///     ...     answer = scheduler.run_now(task)
    ///     ...     scheduler.wait_idle()
    ///     ...     answer.name, task.runs, task.due
    ///     True
    ///     ('APPLIED', 1, 600.0)
    #[pyo3(signature = (task, /))]
    fn run_now<'py>(&self, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.control(task, TaskHandle::run_now, crate::Scheduler::run_now)
    }

    /// Hold a task: no run of it starts until it is resumed.
    ///
    /// It still counts as WAITING, but is not due: `wait_idle` does not wait for it, and a drain
    /// cancels it. A run that goes on is not disturbed; what follows it is held. A task that
    /// depends on others is held when they are done; if one of them fails, it is cancelled all the
    /// same.
    ///
    /// Args:
    ///     task: The task or its id.
    ///
    /// Returns:
    ///     What was done; true only for `ControlOutcome.APPLIED`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    #[pyo3(signature = (task, /))]
    fn pause_task<'py>(&self, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.control(task, TaskHandle::pause, crate::Scheduler::pause_task)
    }

    /// Let a task go on, if it was paused.
    ///
    /// If its due time has passed, a series with `Missed.SKIP` goes on with the first slot that has
    /// not passed; those before it are missed, the one that it waited for included. Any other task
    /// runs now, late; with `Missed.CATCH_UP` so does every slot that passed.
    ///
    /// Args:
    ///     task: The task or its id.
    ///
    /// Returns:
    ///     What was done; true only for `ControlOutcome.APPLIED`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import ManualClock, Scheduler
    ///     >>> clock = ManualClock()
    ///     >>> with Scheduler(clock=clock) as scheduler:
    ///     ...     task = scheduler.every(60, list, id="tick")
    ///     ...     answer = scheduler.pause_task("tick")
    ///     ...     clock.advance(630)
    ///     ...     answer = scheduler.resume_task("tick")
    ///     ...     task.runs, task.missed, task.due
    ///     (0, 10, 660.0)
    #[pyo3(signature = (task, /))]
    fn resume_task<'py>(&self, task: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.control(task, TaskHandle::resume, crate::Scheduler::resume_task)
    }

    /// Start nothing until `resume`.
    ///
    /// Runs that go on are not disturbed, tasks are scheduled as ever, and DUE events are sent on
    /// time. Nothing counts as due meanwhile: a drain cancels all that waits. Again is no error.
    ///
    /// Raises:
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     scheduler.pause()
    ///     ...     task = scheduler.after(0, print, "it runs")
    ///     ...     scheduler.wait_idle(), task.state.name
    ///     ...     scheduler.resume()
    ///     ...     task.wait()
    ///     (True, 'WAITING')
    ///     it runs
    ///     True
    fn pause(&self) -> PyResult<()> {
        Ok(self.inner()?.pause()?)
    }

    /// Start again what is due.
    ///
    /// To the tasks the pause was as a time in which all workers were busy. Again is no error.
    ///
    /// Raises:
    ///     SchedulerClosedError: The scheduler is shut down.
    ///     ForkedError: The scheduler is the parent process's.
    fn resume(&self) -> PyResult<()> {
        Ok(self.inner()?.resume()?)
    }

    /// Give the live task of that id; `None` if there is none, or it has ended.
    #[pyo3(signature = (id, /))]
    fn get<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, Task>>> {
        self.inner()?.get(task_id(id)?)?.map(|handle| Task::found(id.py(), handle)).transpose()
    }

    /// Give the record of a task that lives or is remembered.
    ///
    /// Raises:
    ///     UnknownTaskError: The scheduler does not know the id.
    #[pyo3(signature = (id, /))]
    fn info<'py>(&self, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        records::task_info(id.py(), &self.inner()?.info(task_id(id)?)?)
    }

    /// Forget a finished task: its id is free again.
    ///
    /// Raises:
    ///     UnknownTaskError: The scheduler does not know the id.
    ///     ValueError: The task has not ended; cancel it first.
    #[pyo3(signature = (id, /))]
    fn forget(&self, id: &Bound<'_, PyAny>) -> PyResult<()> {
        Ok(self.inner()?.forget(task_id(id)?)?)
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
        self.inner()?.tasks(state)?.iter().map(|info| records::task_info(py, info)).collect()
    }

    /// Give the time of the scheduler's clock, in seconds.
    fn now(&self) -> PyResult<f64> {
        Ok(as_seconds(self.checked()?.now()))
    }

    /// Give the earliest due time of what waits and is not paused; `None` if nothing does.
    ///
    /// A task that waits for others does not count.
    fn next_due(&self) -> PyResult<Option<f64>> {
        Ok(self.inner()?.next_due()?.map(as_seconds))
    }

    /// Look at the clock again: to be called after a clock of your own was moved.
    fn wake(&self) -> PyResult<()> {
        Ok(self.inner()?.wake()?)
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
    ///     RuntimeError: Called from a job or a listener, or on the thread of the event loop
    ///         that coroutine jobs run on.
    ///     ForkedError: The scheduler is the parent process's.
    #[pyo3(signature = (timeout=None))]
    fn wait_idle(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = self::timeout(timeout)?;
        let (core, inner) = (self.core()?, self.checked()?);
        if core.elsewhere.is_part(py) {
            return Err(Error::InsideJob("wait_idle").into());
        }
        if core.elsewhere.is_here(py)? {
            let instead = "await asyncio.to_thread(scheduler.wait_idle) instead";
            return Err(elsewhere::blocks_loop("wait_idle", instead));
        }
        let register = |waker: Waker| Ok(inner.when_idle(waker)?);
        blocking::wait(py, timeout, register, |key| inner.forget_waker(key))
    }

    /// Give the numbers of this moment, and of all runs since the scheduler was made.
    ///
    /// Example:
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     scheduler.after(0, int).result()
    ///     ...     lateness = scheduler.stats().lateness
    ///     ...     lateness.queue.count, 0 <= lateness.gil.p50 <= lateness.gil.p99
    ///     0
    ///     (1, True)
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::stats(py, &self.inner()?.stats()?)
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
        let core = self.core()?;
        core.inner.check_process()?;
        if !r#fn.is_callable() {
            return Err(wrong_type("fn", r#fn, "callable"));
        }
        core.add_listener(r#fn, &records::kinds_from(kinds)?)
    }

    /// Stop calling a function; no harm if it is not a listener.
    #[pyo3(signature = (r#fn, /))]
    fn remove_listener(&self, r#fn: &Bound<'_, PyAny>) -> PyResult<()> {
        let core = self.core()?;
        core.inner.check_process()?;
        core.remove_listener(r#fn)
    }

    /// Refuse new tasks, tell running jobs to stop; see `duetime.Scheduler.shutdown`.
    #[pyo3(
        signature = (wait=Maybe::LeftOut, *, drain=Maybe::LeftOut, timeout=None),
        text_signature = "($self, wait=True, *, drain=False, timeout=None)"
    )]
    fn shutdown(
        &self,
        py: Python<'_>,
        wait: Maybe<'_>,
        drain: Maybe<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let wait = wait.read(true, |wait| flag("wait", wait))?;
        let drain = drain.read(false, |drain| flag("drain", drain))?;
        let timeout = self::timeout(timeout)?;
        let (core, inner) = (self.core()?, self.inner()?);
        inner.crew().close(drain)?;
        if !wait || core.is_inside(py)? {
            return Ok(inner.has_ended());
        }
        let ended = wait_ended(py, inner.crew(), timeout)?;
        if ended {
            core.elsewhere.join(py, timeout)?;
        }
        Ok(ended)
    }

    fn __enter__(slf: Bound<'_, Self>) -> PyResult<Bound<'_, Self>> {
        slf.get().checked()?;
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
        self.shutdown(py, Maybe::LeftOut, Maybe::LeftOut, None).map(drop)
    }

    fn __repr__(&self) -> String {
        let Ok(inner) = self.inner() else {
            return "<Scheduler that was not initialized>".into();
        };
        let Ok(stats) = inner.stats() else {
            return "<Scheduler of the parent process>".into();
        };
        let open = match (inner.is_closed(), inner.is_paused()) {
            (true, _) => "closed",
            (false, true) => "paused",
            (false, false) => "open",
        };
        let (name, workers) = (inner.name(), stats.workers);
        let (waiting, running) = (stats.waiting, stats.running);
        format!(
            "<Scheduler '{name}' {open}, {workers} workers, {waiting} waiting, {running} running>"
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.core.get().map_or(Ok(()), |core| core.traverse(visit))
    }

    fn __clear__(&self) {
        self.finalize();
    }
}

/// When a series starts: after a delay, or at a datetime.
fn first_run(first: &Bound<'_, PyAny>, now: Timestamp) -> PyResult<When> {
    if first.is_instance_of::<PyDateTime>() {
        return When::new("first", first);
    }
    Ok(When::Clock(now + duration("first", first)?))
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.finalize();
    }
}

impl Scheduler {
    fn finalize(&self) {
        if let Some(core) = self.core.get() {
            core.finalize();
        }
    }
}

impl Scheduler {
    fn core(&self) -> PyResult<&Core> {
        stay::here();
        let message = "Scheduler.__init__ was not called";
        self.core.get().map(|core| &**core).ok_or_else(|| PyRuntimeError::new_err(message))
    }

    fn inner(&self) -> PyResult<&crate::Scheduler> {
        Ok(&self.core()?.inner)
    }

    /// The same, for a call that is refused in a forked child.
    fn checked(&self) -> PyResult<&crate::Scheduler> {
        let inner = self.inner()?;
        inner.check_process()?;
        Ok(inner)
    }

    /// Run control, of a task or by its id.
    fn control<'py>(
        &self,
        task: &Bound<'py, PyAny>,
        by_task: impl FnOnce(&TaskHandle) -> Result<ControlOutcome, Error>,
        by_id: impl FnOnce(&crate::Scheduler, TaskId) -> Result<ControlOutcome, Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let inner = self.checked()?;
        let outcome = match task.cast::<Task>() {
            Ok(task) => return task.get().control(task.py(), by_task),
            Err(_) => by_id(inner, task_id(task)?)?,
        };
        Ok(records::control_outcome(task.py(), outcome))
    }

    /// Schedules a description that nobody else has, with the options of a call.
    fn start<'py>(
        &self,
        py: Python<'py>,
        mut draft: Draft,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Bound<'py, Task>> {
        if let Some(options) = options {
            draft.set_all(options)?;
        }
        self.place(py, &mut draft)?;
        let (inner, labelled) = (self.inner()?, draft.is_labelled());
        let context = Captured::now(py)?;
        let task = draft.into_core(py, context, || inner.now(), |_| None)?;
        Task::on(py, inner.schedule(task)?, labelled)
    }

    /// Schedules the descriptions of all tasks, or none.
    fn enter(&self, py: Python<'_>, tasks: &[Bound<'_, Task>], replace: bool) -> PyResult<()> {
        let mut claimed = 0;
        let entered = self.describe(py, tasks, &mut claimed).and_then(|core| {
            let accept = |handles: Vec<TaskHandle>| {
                tasks.iter().zip(handles).for_each(|(task, handle)| Task::accept(task, handle));
            };
            Ok(self.inner()?.schedule_with(core, replace, accept)?)
        });
        if entered.is_err() {
            tasks[..claimed].iter().for_each(|task| task.get().unclaim());
        }
        entered
    }

    /// Decides what runs the job: a worker, or an executor, the scheduler's if it names none. The
    /// scheduler itself as the executor means its workers.
    fn place(&self, py: Python<'_>, draft: &mut Draft) -> PyResult<()> {
        if let Some(executor) = draft.executor() {
            let own = executor.bind(py).cast::<Self>();
            if own.is_ok_and(|own| std::ptr::eq(own.get(), self)) {
                draft.set_executor(None);
            }
        } else if let Some(executor) = &self.core()?.executor
            && !elsewhere::is_async(py, draft.callee.object())?
        {
            draft.set_executor(Some(executor.copy(py)));
        }
        Ok(())
    }

    /// Claims the tasks, and gives the core's for them. Counts the claimed ones, which stay so if one
    /// is refused.
    fn describe(
        &self,
        py: Python<'_>,
        tasks: &[Bound<'_, Task>],
        claimed: &mut usize,
    ) -> PyResult<Vec<crate::Task>> {
        let (now, context) = (self.checked()?.now(), Captured::now(py)?);
        // Made when a task depends on another one of these.
        let places: OnceCell<HashMap<usize, usize>> = OnceCell::new();
        let address = |(place, task): (usize, &Bound<'_, Task>)| (task.as_ptr().addr(), place);
        let all = || tasks.iter().enumerate().map(address).collect();
        let place = |task: &Py<Task>| places.get_or_init(all).get(&task.as_ptr().addr()).copied();
        let mut core = Vec::with_capacity(tasks.len());
        for task in tasks {
            task.get().claim()?;
            *claimed += 1;
            if let Some(mut draft) = task.get().copy_draft(py) {
                self.place(py, &mut draft)?;
                core.push(draft.into_core(py, context.share(py), || now, place)?);
            }
        }
        Ok(core)
    }
}
