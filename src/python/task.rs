//! A task in Python: first a description, then the handle on what was scheduled. Invariant: it is
//! scheduled once, and from then on holds neither job nor args.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyTuple, PyWeakrefReference};

use super::blocking;
use super::dependencies::Needed;
use super::draft::{Draft, arguments};
use super::elsewhere;
use super::errors::{cancelled_by, exception, task_error, timed_out};
use super::job::{Callee, Returned};
use super::listener::Callback;
use super::numbers::{Maybe, When, as_seconds, integer, out_of_bounds, task_id, timeout};
use super::own::Own;
use super::records;
use super::recurrences::OneTime;
use super::rules::{Label, Rule};
use super::stage::Stage;
use super::stay;
use crate::{ControlOutcome, Error, TaskError, TaskHandle, TaskId, TaskState, Value, Waker};

/// What to run and when, and the handle on it, as a `Timer` or a `Future` is.
///
/// It can be scheduled once. The waiting methods mean what they mean on a
/// `concurrent.futures.Future`, for the whole life of the task: a recurring task is done when its
/// series ends.
///
/// Args:
///     id: What the task is known by; made by the scheduler by default.
///     due: When it is first due: seconds of the scheduler's clock, or an aware datetime. In the
///         past is legal: it then runs at once.
///     job: A callable, called as `job(*args)`, or an object with a method `run(now)`. It fails by
///         returning exactly `False` or by raising; anything else that it returns is the result.
///     args: What a callable is called with.
///     recurrence: When it is due again; `OneTime()` by default.
///     retry: What to do about a failure; `retry.Never()` by default.
///     priority: Among tasks with equal due times the higher goes first.
///     max_runs: How many slots are run at most; the retries of a slot do not count.
///     until: The instant after which a series has no slot.
///     depends_on: The tasks that it waits for, as objects or ids: it runs at its due time or when
///         the last of them is DONE, whichever is later. If one ends FAILED or CANCELLED, it is
///         cancelled with `DependencyFailed`. Each was scheduled before, or is by the same
///         `schedule_all`.
///     jitter: Each run is due at its slot plus a random part of up to this, which moves no later
///         slot. With a `FixedRate` it must be shorter than the period.
///     executor: What runs the job instead of a worker: a `concurrent.futures.Executor`, or a
///         callable that makes one; the scheduler's by default.
///     group: The group of the scheduler's `limits` that it counts for; none by default.
///     timeout: How long each attempt may take, from its start. Then the run is told to stop, and
///         the attempt has failed with `TaskTimeout`, whatever the job answers later; `retry`
///         applies. Any length by default.
///     interrupt: Whether `TaskTimeout` is also raised in the job then, at its next bytecode; in a
///         job that a worker runs, that is. A coroutine is cancelled in any case.
///     grace: How long after its timeout a job may still take to stop. Then it is stuck: the task
///         is FAILED with `TaskStuck`, without a retry, and another worker takes the place of
///         its own.
///
/// Raises:
///     ValueError: A number is out of its bounds, or a datetime is naive.
///     TypeError: An argument is of the wrong type.
///
/// Example:
///     >>> from duetime import FixedRate, Scheduler, Task
///     >>> with Scheduler() as scheduler:
///     ...     task = Task("tick", due=scheduler.now(), job=lambda: 42, max_runs=1)
///     ...     scheduler.schedule(task).result()
///     42
#[pyclass(frozen, weakref, module = "duetime")]
pub(super) struct Task {
    stage: Stage,
    /// What `future` gives, made when it is first asked for.
    future: OnceLock<Own>,
}

impl Task {
    fn described(draft: Draft) -> Self {
        Self { stage: Stage::described(draft), future: OnceLock::new() }
    }

    /// The description without options.
    fn draft_of(
        py: Python<'_>,
        id: Option<&Bound<'_, PyAny>>,
        due: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Draft> {
        let callee = Callee::new(job, &arguments(py, args)?)?;
        let id = id.map(task_id).transpose()?;
        let mut draft = Draft::once(When::new("due", due)?, callee);
        if let Some(id) = id {
            draft.set_id(id);
        }
        Ok(draft)
    }

    pub(super) fn scheduled(handle: TaskHandle) -> Self {
        Self { stage: Stage::scheduled(handle), future: OnceLock::new() }
    }

    /// A new Python task on a task of the core.
    pub(super) fn on(
        py: Python<'_>,
        handle: TaskHandle,
        labelled: bool,
    ) -> PyResult<Bound<'_, Self>> {
        let task = Bound::new(py, Self::scheduled(handle))?;
        if labelled {
            Self::introduce(&task);
        }
        Ok(task)
    }

    /// The Python task that somebody holds for this handle, or a new one.
    pub(super) fn found(py: Python<'_>, handle: TaskHandle) -> PyResult<Bound<'_, Self>> {
        let label = handle.label_or(Arc::new(Label::new(None)));
        let held = label.downcast_ref::<Label>().and_then(|label| label.task(py));
        match held.and_then(|task| task.cast_into().ok()) {
            Some(task) => Ok(task),
            None => Self::on(py, handle, true),
        }
    }

    /// Has the core remember this Python task, weakly, if it remembers anything of it.
    fn introduce(task: &Bound<'_, Self>) {
        let label = task.get().stage.handle().and_then(TaskHandle::label);
        if let Some(label) = label.as_ref().and_then(|label| label.downcast_ref::<Label>()) {
            // Without memory for it, asking by id gives another Python task, which is no error.
            if let Ok(weak) = PyWeakrefReference::new(task.as_any()) {
                label.remember(weak.into());
            }
        }
    }

    /// Claims the task for one call of `schedule`.
    pub(super) fn claim(&self) -> PyResult<()> {
        if self.stage.claim() {
            return Ok(());
        }
        let message = "task was scheduled before; a Task can be scheduled once";
        Err(PyValueError::new_err(message))
    }

    /// The call was refused: the task is as it was.
    pub(super) fn unclaim(&self) {
        self.stage.unclaim();
    }

    /// A copy of the description of a claimed task.
    pub(super) fn copy_draft(&self, py: Python<'_>) -> Option<Draft> {
        self.stage.look(|draft| draft.copy(py))
    }

    /// The call was accepted. Nobody has heard of the task yet.
    pub(super) fn accept(task: &Bound<'_, Self>, handle: TaskHandle) {
        let draft = task.get().stage.settle(handle);
        if draft.is_some_and(|draft| draft.is_labelled()) {
            Self::introduce(task);
        }
    }

    pub(super) fn handle(&self) -> PyResult<&TaskHandle> {
        let handle = self.stage.handle().ok_or_else(|| {
            PyRuntimeError::new_err(
                "the task is not scheduled; give it to Scheduler.schedule first",
            )
        })?;
        handle.check_process()?;
        Ok(handle)
    }

    /// The handle, if there is one yet; refused in a forked child.
    fn scheduled_handle(&self) -> PyResult<Option<&TaskHandle>> {
        let Some(handle) = self.stage.handle() else { return Ok(None) };
        handle.check_process()?;
        Ok(Some(handle))
    }

    pub(super) fn draft_id(&self) -> Option<TaskId> {
        self.stage.look(|draft| draft.id().cloned()).flatten()
    }

    pub(super) fn is_scheduled(&self) -> bool {
        self.stage.handle().is_some()
    }

    /// Waits for the end, and gives how the task ended.
    fn ended(
        &self,
        py: Python<'_>,
        call: &str,
        longest: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Result<Value, TaskError>> {
        let timeout = timeout(longest)?;
        if self.wait_for_end(py, call, timeout)? {
            Ok(self.handle()?.outcome().unwrap_or(Err(TaskError::Timeout)))
        } else {
            Err(timed_out(py, self.handle()?, timeout))
        }
    }

    /// Run control; UNKNOWN for a task that was never scheduled.
    pub(super) fn control<'py>(
        &self,
        py: Python<'py>,
        call: impl FnOnce(&TaskHandle) -> Result<ControlOutcome, Error>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outcome = self.scheduled_handle()?.map_or(Ok(ControlOutcome::Unknown), call)?;
        Ok(records::control_outcome(py, outcome))
    }

    fn wait_for_end(
        &self,
        py: Python<'_>,
        call: &str,
        timeout: Option<Duration>,
    ) -> PyResult<bool> {
        let handle = self.handle()?;
        if handle.outcome().is_some() {
            return Ok(true);
        }
        if handle.waits_for_caller() || elsewhere::is_run_of(py, handle) {
            return Err(task_error(py, &TaskError::InsideJob));
        }
        if timeout != Some(Duration::ZERO) && elsewhere::is_loop_of(py, handle)? {
            return Err(elsewhere::blocks_loop(call, "await the task instead"));
        }
        let register = |waker: Waker| Ok(handle.watch(move |_: &TaskHandle| waker()).ok());
        blocking::wait(py, timeout, register, |key| {
            handle.unwatch(key);
        })
    }

    /// Why there is no result.
    fn refusal(&self, py: Python<'_>, error: &TaskError) -> PyErr {
        match error {
            TaskError::Cancelled => {
                let last = self.stage.handle().and_then(TaskHandle::last_error);
                cancelled_by(py, last.as_ref())
            }
            error => task_error(py, error),
        }
    }

    pub(super) fn recurrence_object<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        let described = |draft: &Draft| Some(draft.recurrence()?.bind(py).clone());
        if let Some(object) = self.stage.look(described) {
            return object;
        }
        let label = self.stage.handle()?.label()?;
        let recurrence = label.downcast_ref::<Label>()?.recurrence.as_ref()?;
        Some(recurrence.bind(py).clone())
    }
}

#[pymethods]
impl Task {
    #[new]
    #[pyo3(
        signature = (
            id=None, *, due, job, args=None, recurrence=None, retry=None, priority=None,
            max_runs=None, until=None, depends_on=None, jitter=Maybe::LeftOut,
            executor=None, group=None, timeout=None, interrupt=Maybe::LeftOut, grace=Maybe::LeftOut
        ),
        text_signature = "(id=None, *, due, job, args=(), recurrence=None, retry=None, priority=0, max_runs=None, until=None, depends_on=(), jitter=0.0, executor=None, group=None, timeout=None, interrupt=False, grace=5.0)"
    )]
    #[expect(clippy::too_many_arguments, reason = "the keyword parameters of a Python class")]
    fn new(
        py: Python<'_>,
        id: Option<&Bound<'_, PyAny>>,
        due: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: Option<&Bound<'_, PyAny>>,
        recurrence: Option<&Bound<'_, PyAny>>,
        retry: Option<&Bound<'_, PyAny>>,
        priority: Option<&Bound<'_, PyAny>>,
        max_runs: Option<&Bound<'_, PyAny>>,
        until: Option<&Bound<'_, PyAny>>,
        depends_on: Option<&Bound<'_, PyAny>>,
        jitter: Maybe<'_>,
        executor: Option<&Bound<'_, PyAny>>,
        group: Option<&Bound<'_, PyAny>>,
        timeout: Option<&Bound<'_, PyAny>>,
        interrupt: Maybe<'_>,
        grace: Maybe<'_>,
    ) -> PyResult<Self> {
        stay::here();
        let mut draft = Self::draft_of(py, id, due, job, args)?;
        let rule = recurrence.map_or(Ok(None), Rule::new)?;
        if let (Some(rule), Some(recurrence)) = (rule, recurrence) {
            draft.recur(rule, recurrence);
        }
        let (jitter, interrupt, grace) = (jitter.given(), interrupt.given(), grace.given());
        let options = [
            ("executor", executor),
            ("retry", retry),
            ("group", group),
            ("priority", priority),
            ("max_runs", max_runs),
            ("until", until),
            ("jitter", jitter.as_ref()),
            ("timeout", timeout),
            ("interrupt", interrupt.as_ref()),
            ("grace", grace.as_ref()),
            ("depends_on", depends_on),
        ];
        for (name, value) in options {
            value.map_or(Ok(()), |value| draft.set(name, value))?;
        }
        draft.check()?;
        Ok(Self::described(draft))
    }

    /// `Task` without options.
    #[staticmethod]
    #[pyo3(signature = (id, due, job, args, /))]
    fn _plain(
        py: Python<'_>,
        id: Option<&Bound<'_, PyAny>>,
        due: &Bound<'_, PyAny>,
        job: &Bound<'_, PyAny>,
        args: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Self::draft_of(py, id, due, job, args).map(Self::described)
    }

    /// What the task is known by; `None` until it is scheduled, if none was given.
    #[getter]
    fn id<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = match self.scheduled_handle()? {
            Some(handle) => Some(handle.id()),
            None => self.draft_id(),
        };
        id.map(|id| records::id(py, &id)).transpose()
    }

    /// Where the task is in its life.
    #[getter]
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let state = self.scheduled_handle()?.map_or(TaskState::Waiting, TaskHandle::state);
        Ok(records::state(py, state))
    }

    /// When it is due, or was last due, in seconds of the scheduler's clock.
    ///
    /// `None` where that is not known: a datetime before the task is scheduled.
    #[getter]
    fn due(&self) -> PyResult<Option<f64>> {
        if let Some(handle) = self.scheduled_handle()? {
            return Ok(Some(as_seconds(handle.due())));
        }
        Ok(match self.stage.look(|draft| draft.due) {
            Some(When::Clock(due)) => Some(as_seconds(due)),
            Some(When::Wall(_)) | None => None,
        })
    }

    /// Among tasks with equal due times the higher goes first.
    #[getter]
    fn priority(&self) -> PyResult<i32> {
        Ok(match self.scheduled_handle()? {
            Some(handle) => handle.priority(),
            None => self.stage.look(Draft::priority).unwrap_or(0),
        })
    }

    /// When the task is due again.
    #[getter]
    fn recurrence<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self.recurrence_object(py) {
            Some(object) => Ok(object),
            None => Ok(Bound::new(py, OneTime)?.into_any()),
        }
    }

    /// The group of the scheduler's `limits` that it counts for.
    ///
    /// `None` if it is of none, or the scheduler is gone.
    #[getter]
    fn group(&self) -> PyResult<Option<String>> {
        Ok(match self.scheduled_handle()? {
            Some(handle) => handle.group(),
            None => self.stage.look(|draft| draft.group().map(Into::into)).flatten(),
        })
    }

    /// The tasks that it depends on: their ids; until it is scheduled, what was given.
    #[getter]
    fn depends_on<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let needed: Vec<Needed> = match self.scheduled_handle()? {
            Some(handle) => handle.depends_on().into_iter().map(Needed::Id).collect(),
            None => self.copy_draft(py).map_or_else(Vec::new, Draft::into_depends_on),
        };
        let needed = needed.iter().map(|needed| needed.shown(py));
        PyTuple::new(py, needed.collect::<PyResult<Vec<_>>>()?)
    }

    /// How many runs ended, retries included.
    #[getter]
    fn runs(&self) -> PyResult<u64> {
        Ok(self.scheduled_handle()?.map_or(0, |handle| handle.info().runs))
    }

    /// How many runs failed.
    #[getter]
    fn failures(&self) -> PyResult<u64> {
        Ok(self.scheduled_handle()?.map_or(0, |handle| handle.info().failures))
    }

    /// How many slots were skipped.
    #[getter]
    fn missed(&self) -> PyResult<u64> {
        Ok(self.scheduled_handle()?.map_or(0, |handle| handle.info().missed))
    }

    /// Whether the task was paused, and not resumed.
    #[getter]
    fn paused(&self) -> PyResult<bool> {
        Ok(self.scheduled_handle()?.is_some_and(TaskHandle::is_paused))
    }

    /// The last failure, also of a series that goes on; `None` if no run failed.
    ///
    /// `DependencyFailed` if it was cancelled because of a task that it depends on.
    #[getter]
    fn error(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let error = self.scheduled_handle()?.and_then(TaskHandle::last_error);
        Ok(error.map(|error| exception(py, &error)))
    }

    /// Give the next due times, in seconds of the scheduler's clock, without running anything.
    ///
    /// They are told as if each run ended in the instant in which it is due, `max_runs` and `until`
    /// applied. The first is that of the run that waits, a retry included; while the task runs,
    /// that of the run that follows if this one ends now and is not retried. Jitter is left out of
    /// all but the first. A recurrence of your own is asked, so its `next_due` should depend on
    /// nothing but its arguments.
    ///
    /// Args:
    ///     n: How many, from 0 to 1,000,000.
    ///
    /// Returns:
    ///     `n` times; fewer if the series ends before, none if it has ended or was told to stop.
    ///
    /// Raises:
    ///     ValueError: `n` is out of bounds, or the recurrence does not move forward.
    ///     TypeError: `n` is not an int.
    ///     RuntimeError: The task is not scheduled, and its `due` or `until` is a datetime: only
    ///         its scheduler's clock can tell.
    ///     BaseException: What the recurrence raised.
    ///
    /// Example:
    ///     >>> from duetime import FixedRate, Task
    ///     >>> Task(due=0, job=print, recurrence=FixedRate(90), until=250).preview(5)
    ///     [0.0, 90.0, 180.0]
    fn preview(&self, py: Python<'_>, n: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
        let bound = "between 0 and 1,000,000";
        let count = integer("n", n, 0_usize, bound)?;
        if count > 1_000_000 {
            return Err(out_of_bounds("n", n, bound));
        }
        let dues = match (self.scheduled_handle()?, self.copy_draft(py)) {
            (Some(handle), _) => handle.preview(count),
            (None, Some(draft)) => {
                let dues = draft.preview(count).ok_or_else(|| {
                    PyRuntimeError::new_err(
                        "the due times of a task that is due by the wall clock are known only \
                         once it is scheduled",
                    )
                })?;
                dues.map_err(TaskError::Failed)
            }
            (None, None) => Ok(Vec::new()),
        };
        let dues = dues.map_err(|error| task_error(py, &error))?;
        Ok(dues.into_iter().map(as_seconds).collect())
    }

    /// Wait for the end and give what the last run returned.
    ///
    /// Args:
    ///     timeout: The longest wait; without one, as long as it takes.
    ///
    /// Returns:
    ///     What the job returned.
    ///
    /// Raises:
    ///     TimeoutError: The task had not ended in time; `concurrent.futures.TimeoutError` on
    ///         Python 3.10, where the two differ.
    ///     concurrent.futures.CancelledError: It was cancelled; from `DependencyFailed`, if because
    ///         of a task that it depends on.
    ///     RuntimeError: It waits for the caller, or the calling thread is that of the event loop
    ///         that its scheduler runs coroutine jobs on: await the task instead.
    ///     BaseException: It ended FAILED: the error of its last run, or `JobReturnedFalse`.
    #[pyo3(signature = (timeout=None))]
    fn result(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        match self.ended(py, "result", timeout)? {
            Ok(value) => Ok(value
                .downcast_ref::<Returned>()
                .map_or_else(|| py.None(), |returned| returned.0.clone_ref(py))),
            Err(error) => Err(self.refusal(py, &error)),
        }
    }

    /// Wait for the end and give the error of the last run; `None` if it succeeded.
    ///
    /// Args:
    ///     timeout: The longest wait; without one, as long as it takes.
    ///
    /// Raises:
    ///     TimeoutError: As for `result`.
    ///     concurrent.futures.CancelledError: As for `result`.
    ///     RuntimeError: As for `result`.
    #[pyo3(signature = (timeout=None))]
    fn exception(
        &self,
        py: Python<'_>,
        timeout: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Py<PyAny>>> {
        match self.ended(py, "exception", timeout)? {
            Ok(_) => Ok(None),
            Err(TaskError::Failed(error)) => Ok(Some(exception(py, &error))),
            Err(error) => Err(self.refusal(py, &error)),
        }
    }

    /// Wait for the end, whatever it is.
    ///
    /// Args:
    ///     timeout: The longest wait; without one, as long as it takes.
    ///
    /// Returns:
    ///     Whether the task has ended.
    ///
    /// Raises:
    ///     RuntimeError: As for `result`.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<&Bound<'_, PyAny>>) -> PyResult<bool> {
        let timeout = self::timeout(timeout)?;
        self.wait_for_end(py, "wait", timeout)
    }

    /// Tell whether the task has ended: DONE, FAILED or CANCELLED.
    fn done(&self) -> PyResult<bool> {
        Ok(self.scheduled_handle()?.is_some_and(|handle| handle.state().is_end()))
    }

    /// Tell whether the job is being run.
    fn running(&self) -> PyResult<bool> {
        Ok(self.scheduled_handle()?.is_some_and(|handle| handle.state() == TaskState::Running))
    }

    /// Tell whether the task ended CANCELLED.
    fn cancelled(&self) -> PyResult<bool> {
        Ok(self.scheduled_handle()?.is_some_and(|handle| handle.state() == TaskState::Cancelled))
    }

    /// Cancel the task: no run starts any more.
    ///
    /// Returns:
    ///     CANCELLED if it was waiting, STOPPING if it is running, FINISHED if it had ended.
    ///     UNKNOWN if it was never scheduled.
    fn cancel<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let outcome = if self.is_scheduled() {
            self.handle()?.cancel()?
        } else {
            crate::CancelOutcome::Unknown
        };
        Ok(records::cancel_outcome(py, outcome))
    }

    /// Make the waiting task due at another time.
    ///
    /// A series goes on from there: its grid moves with it. See `Scheduler.reschedule`.
    ///
    /// Args:
    ///     due: Seconds of the scheduler's clock, or an aware datetime. In the past means at once.
    ///
    /// Returns:
    ///     APPLIED if it was waiting; RUNNING or FINISHED, and nothing was done. UNKNOWN if it was
    ///     never scheduled.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    fn reschedule<'py>(&self, due: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (py, due) = (due.py(), When::new("due", due)?);
        self.control(py, |handle| {
            handle.reschedule(due.on_clock(|| handle.now().unwrap_or_default()))
        })
    }

    /// Make the waiting task due now: one more run, if it is a series.
    ///
    /// See `Scheduler.run_now`.
    ///
    /// Returns:
    ///     As for `reschedule`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    fn run_now<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.control(py, TaskHandle::run_now)
    }

    /// Hold the task: no run starts until it is resumed.
    ///
    /// See `Scheduler.pause_task`.
    ///
    /// Returns:
    ///     APPLIED if it was waiting. RUNNING: its run goes on, and what follows it is held.
    ///     FINISHED if it had ended, UNKNOWN if it was never scheduled.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    fn pause<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.control(py, TaskHandle::pause)
    }

    /// Let the task go on, if it was paused.
    ///
    /// See `Scheduler.resume_task`.
    ///
    /// Returns:
    ///     As for `pause`.
    ///
    /// Raises:
    ///     SchedulerClosedError: The task waits, and the scheduler is shut down.
    fn resume<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.control(py, TaskHandle::resume)
    }

    /// Have a function called with this task when it has ended; at once if it has.
    ///
    /// An error of the function is reported through `sys.unraisablehook`.
    ///
    /// Args:
    ///     fn: What to call.
    fn add_done_callback(slf: &Bound<'_, Self>, r#fn: &Bound<'_, PyAny>) -> PyResult<()> {
        if !r#fn.is_callable() {
            return Err(super::numbers::wrong_type("fn", r#fn, "callable"));
        }
        let callback = Callback { function: r#fn.clone().into(), task: slf.clone().into() };
        slf.get().handle()?.on_done(callback);
        Ok(())
    }

    /// The whole life of the task as a `concurrent.futures.Future`, the same each time.
    ///
    /// For `concurrent.futures.wait` and `as_completed`, `asyncio.wrap_future`, and all else that
    /// takes one. Cancelling it cancels a waiting task; once the job is being run it is refused,
    /// as on any executor. A cancelled task's future is cancelled.
    ///
    /// Example:
    ///     >>> from concurrent.futures import as_completed
    ///     >>> from duetime import Scheduler
    ///     >>> with Scheduler() as scheduler:
    ///     ...     tasks = [scheduler.after(0, pow, 2, n) for n in (1, 2)]
    ///     ...     sorted(future.result() for future in as_completed(t.future for t in tasks))
    ///     [2, 4]
    #[getter]
    fn future<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().handle()?;
        super::future::of(slf, &slf.get().future)
    }

    /// Wait for the end in a coroutine, on any event loop, and give the result as `result` does.
    ///
    /// Several may await one task; cancelling one of them ends its wait and not the task. A
    /// cancelled task raises `asyncio.CancelledError`.
    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let handle = slf.get().handle()?;
        if handle.waits_for_caller() || elsewhere::is_run_of(slf.py(), handle) {
            return Err(task_error(slf.py(), &TaskError::InsideJob));
        }
        super::future::wait(slf)
    }

    /// Have a function called with this task when it ends, unless it is taken back before.
    ///
    /// Returns:
    ///     What takes the function back; `None` if the task has ended, and the function is not
    ///     called.
    fn _watch<'py>(
        slf: &Bound<'py, Self>,
        r#fn: Py<PyAny>,
    ) -> PyResult<Option<Bound<'py, PyCFunction>>> {
        let handle = slf.get().handle()?;
        let callback = Callback { function: r#fn.into(), task: slf.clone().into() };
        let Ok(key) = handle.watch(callback) else { return Ok(None) };
        super::future::unwatch(slf.py(), handle.clone(), key).map(Some)
    }

    /// Give the task's record: plain values.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        records::task_info(py, &self.handle()?.info())
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        super::repr::task(py, self)
    }

    /// What nobody else visits: the description, or the outcome if no other handle shares it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self.future.get().map(|future| &**future))?;
        if let Some(result) = self.stage.try_look(|draft| draft.visit(visit)) {
            return result;
        }
        let mut result = Ok(());
        if let Some(handle) = self.stage.handle() {
            handle.visit_outcome(&mut |value| {
                if result.is_ok() {
                    result = super::seen::visit(value, visit);
                }
            });
        }
        result
    }

    fn __clear__(&self) {
        drop(self.stage.clear());
        if let Some(handle) = self.stage.handle() {
            handle.drop_outcome();
        }
    }
}
