//! Runs that go on elsewhere than on a worker: coroutines on an event loop, calls on another
//! executor. Invariant: what is about loops and executors is in `duetime._coroutines` and
//! `duetime._executors`; here is only how a run gets there, and how its end comes back.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::ffi;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::{ask, call_method, has, is_instance};
use super::context;
use super::errors::Raised;
use super::job::outcome;
use super::listener::tell;
use super::lookup::{Attribute, Class, Lookup, Names};
use super::numbers::wrong_type;
use super::own::{Own, came, report};
use super::run::Run;
use super::stay;
use crate::{JobError, Later, Outcome, TaskHandle, WeakCrew};

static EVENT_LOOP: Class = Class::new("duetime._coroutines", "EventLoop");
static CURRENT: Attribute = Attribute::new("duetime._coroutines", "CURRENT");
static EXECUTORS: Class = Class::new("duetime._executors", "Executors");
static COROUTINE: Class = Class::new("collections.abc", "Coroutine");
static CHECK: Attribute = Attribute::new("duetime._executors", "check");
static IS_ASYNC: Attribute = Attribute::new("duetime._executors", "is_async");
static NAMES: Names<5> = Names::new(["launch", "close", "join", "is_here", "get"]);
pub(super) static LOOKUPS: &[&dyn Lookup] =
    &[&EVENT_LOOP, &CURRENT, &EXECUTORS, &CHECK, &IS_ASYNC, &COROUTINE, &NAMES];

/// What a scheduler has besides its workers. Shared by the Python scheduler and its workers.
pub(super) struct Elsewhere {
    event_loop: Own,
    executors: Own,
    crew: OnceLock<WeakCrew>,
    /// Whether both are closed when the scheduler ends. Relaxed: written and read under the GIL,
    /// and on a build without one the swap alone decides.
    ends: AtomicBool,
    /// Whether they were. As that.
    closed: AtomicBool,
    /// Further references to both, from the time at which the collector finalizes the scheduler
    /// until it has ended: they keep the collector from taking apart what is used until then.
    kept: Mutex<Vec<Own>>,
}

thread_local! {
    /// Of the scheduler whose worker this thread is.
    static HERE: RefCell<Option<Arc<Elsewhere>>> = const { RefCell::new(None) };
}

/// All of this process, by which a thread finds those whose loop it runs. Locked for a moment, under
/// the GIL, so no fork finds it locked; nothing is dropped meanwhile.
static ALL: Mutex<Vec<Weak<Elsewhere>>> = Mutex::new(Vec::new());

impl Elsewhere {
    /// With the event loop that the scheduler was given: a loop, or what makes one.
    pub(super) fn new(
        py: Python<'_>,
        name: &str,
        given: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        if let Some(given) = given
            && !given.is_callable()
            && !has(given, "call_soon_threadsafe")?
        {
            return Err(wrong_type("loop", given, "an event loop or a callable that makes one"));
        }
        Ok(Self {
            event_loop: ask(&EVENT_LOOP, py, (name, given))?,
            executors: ask(&EXECUTORS, py, ())?,
            crew: OnceLock::new(),
            ends: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            kept: Mutex::default(),
        })
    }

    pub(super) fn belong_to(self: &Arc<Self>, crew: WeakCrew) {
        // Once: right after the scheduler is built.
        let _ = self.crew.set(crew);
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|elsewhere| elsewhere.strong_count() > 0);
        all.push(Arc::downgrade(self));
    }

    /// Makes it what the jobs of this worker use, for the length of `life`.
    pub(super) fn during<T>(self: &Arc<Self>, life: impl FnOnce() -> T) -> T {
        HERE.set(Some(Arc::clone(self)));
        let lived = life();
        HERE.take();
        lived
    }

    /// Has both closed when the scheduler ends.
    fn end_with_scheduler(self: &Arc<Self>) {
        if self.ends.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(crew) = self.crew.get().and_then(WeakCrew::upgrade) {
            let this = Arc::clone(self);
            // It has not ended: this is one of its workers.
            drop(crew.when_ended(move || Python::attach(|py| this.close(py))));
        }
    }

    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Relaxed);
        let [_, close, ..] = NAMES.get(py);
        for place in [&self.event_loop, &self.executors] {
            if let Err(error) = call_method(place, py, close, ()) {
                report(py, error, Some(place.bind(py)));
            }
        }
        let kept = std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        drop(kept);
    }

    /// The scheduler is finalized. If it ever sent a run elsewhere, both are used until it has ended.
    pub(super) fn keep_until_the_end(&self, py: Python<'_>) {
        if self.ends.load(Ordering::Relaxed) && !self.closed.load(Ordering::Relaxed) {
            let both = vec![self.event_loop.copy(py), self.executors.copy(py)];
            *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = both;
        }
    }

    /// Waits for what was closed.
    pub(super) fn join(&self, py: Python<'_>, timeout: Option<Duration>) -> PyResult<()> {
        let [_, _, join, ..] = NAMES.get(py);
        let timeout = timeout.map(|timeout| timeout.as_secs_f64());
        call_method(&self.event_loop, py, join, (timeout,)).map(drop)
    }

    /// Whether the calling code is such that the scheduler cannot end before it returns: it is on
    /// the event loop, or part of a run that goes on there.
    pub(super) fn is_inside(self: &Arc<Self>, py: Python<'_>) -> PyResult<bool> {
        Ok(self.is_here(py)? || self.is_part(py))
    }

    /// Whether the calling thread runs the event loop.
    pub(super) fn is_here(&self, py: Python<'_>) -> PyResult<bool> {
        let [_, _, _, is_here, ..] = NAMES.get(py);
        // An error may be a Ctrl-C that came meanwhile.
        call_method(&self.event_loop, py, is_here, ())?.extract(py)
    }

    /// Whether the calling code is part of a run that goes on elsewhere.
    pub(super) fn is_part(self: &Arc<Self>, py: Python<'_>) -> bool {
        current(py).is_some_and(|run| Arc::ptr_eq(&run.get().elsewhere, self))
    }

    pub(super) fn visit(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&*self.event_loop)?;
        visit.call(&*self.executors)
    }
}

/// The run that goes on and that the calling code is part of by its context.
pub(super) fn current(py: Python<'_>) -> Option<Bound<'_, Completion>> {
    let [.., get] = NAMES.get(py);
    let found = CURRENT.get(py).call_method0(get).ok()?;
    found.cast_into::<Completion>().ok().filter(|run| run.get().lock().is_some())
}

/// Whether the calling code is part of a run of `task` by its context.
pub(super) fn is_run_of(py: Python<'_>, task: &TaskHandle) -> bool {
    current(py).is_some_and(|run| task.is_task_of(&run.get().run))
}

/// Whether the calling thread runs the event loop of a scheduler that `is_it`: what waits there for
/// its coroutine jobs waits for ever.
fn is_loop(py: Python<'_>, is_it: impl Fn(&WeakCrew) -> bool) -> PyResult<bool> {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for elsewhere in all.iter().filter_map(Weak::upgrade) {
        if elsewhere.crew.get().is_some_and(&is_it) && elsewhere.is_here(py)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the calling thread runs the event loop of the task's scheduler.
pub(super) fn is_loop_of(py: Python<'_>, task: &TaskHandle) -> PyResult<bool> {
    is_loop(py, |crew| crew.has(task))
}

/// Whether the calling thread runs the event loop of a scheduler on this clock.
pub(super) fn is_loop_on(py: Python<'_>, clock: &crate::ManualClock) -> PyResult<bool> {
    is_loop(py, |crew| crew.is_on(clock))
}

/// The refusal of a call that would block it.
pub(super) fn blocks_loop(call: &str, instead: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "{call} would block the event loop that the scheduler runs its coroutine jobs on; {instead}"
    ))
}

/// Refuses what is no executor and makes none; with `job`, one that cannot run on it.
pub(super) fn executor(given: &Bound<'_, PyAny>, job: Option<&Py<PyAny>>) -> PyResult<Option<Own>> {
    if given.is_none() {
        return Ok(None);
    }
    ask(&CHECK, given.py(), (given, job))?;
    Ok(Some(given.clone().into()))
}

/// Whether a job is a coroutine function, by the look of it.
pub(super) fn is_async(py: Python<'_>, job: &Py<PyAny>) -> PyResult<bool> {
    ask(&IS_ASYNC, py, (job,))?.extract(py)
}

/// Whether what a job returned has to be run on an event loop.
pub(super) fn is_coroutine(value: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached; the object and its type live, and a type's `tp_as_async` may be null.
    let (exact, awaits) = unsafe {
        let class = ffi::Py_TYPE(value.as_ptr());
        let methods = (*class).tp_as_async;
        (class == &raw mut ffi::PyCoro_Type, !methods.is_null() && (*methods).am_await.is_some())
    };
    // The second is for coroutines that were compiled.
    exact
        || awaits
            && came(value.py(), is_instance(value, COROUTINE.get(value.py()))).unwrap_or(false)
}

/// A run whose job returned a coroutine. Called in the run's own context.
#[cold]
pub(super) fn coroutine(py: Python<'_>, coroutine: Own, run: &crate::Run) -> PyResult<Outcome> {
    let context = Own::from(context::current(py)?);
    Ok(go(run.clone(), move |py, elsewhere, completion| {
        let [launch, ..] = NAMES.get(py);
        call_method(&elsewhere.event_loop, py, launch, (&*coroutine, &*context, completion))
    }))
}

/// A run of `function(*args)` on `executor`.
pub(super) fn submission(
    run: &crate::Run,
    executor: Own,
    function: Own,
    args: Own<PyTuple>,
) -> Outcome {
    go(run.clone(), move |py, elsewhere, completion| {
        let [launch, ..] = NAMES.get(py);
        call_method(&elsewhere.executors, py, launch, (&*executor, &*function, &*args, completion))
    })
}

/// A run that `launch` sends elsewhere.
fn go<F>(run: crate::Run, launch: F) -> Outcome
where
    F: FnOnce(Python<'_>, &Elsewhere, &Bound<'_, Completion>) -> PyResult<Own> + Send + 'static,
{
    let later = Later::new(move |completion| {
        Python::attach(|py| {
            let here = HERE.with_borrow(Clone::clone);
            let Some(elsewhere) = here else { unreachable!("this is a worker") };
            elsewhere.end_with_scheduler();
            let inner = Mutex::new(Some(completion));
            let made = Completion { inner, run, elsewhere: Arc::clone(&elsewhere) };
            match Bound::new(py, made) {
                Ok(completion) => {
                    if let Err(error) = launch(py, &elsewhere, &completion) {
                        completion.get().fail(py, error);
                    }
                }
                // It could not even be made, so it was dropped, and the run has failed.
                Err(error) => report(py, error, None),
            }
        });
    });
    later.into()
}

/// What a run that goes on elsewhere is ended with. Private to the package.
#[pyclass(frozen, module = "duetime._native", name = "_Completion")]
pub(super) struct Completion {
    /// Until the end. Locked for a moment, never while Python runs.
    inner: Mutex<Option<crate::Completion>>,
    run: crate::Run,
    elsewhere: Arc<Elsewhere>,
}

impl Completion {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<crate::Completion>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> Option<crate::Completion> {
        stay::here();
        self.lock().take()
    }

    pub(super) fn core_run(&self) -> &crate::Run {
        &self.run
    }

    fn fail(&self, py: Python<'_>, error: PyErr) {
        self.failed(Own::of_error(py, error).bind(py));
    }
}

fn job_error(error: &Bound<'_, PyAny>) -> JobError {
    Raised::job_error(error.py(), PyErr::from_value(error.clone()))
}

#[pymethods]
impl Completion {
    /// The run.
    #[getter]
    fn run(&self) -> Run {
        Run::new(self.run.clone())
    }

    /// Whether the run was given up as stuck: what it ends with is of no use any more.
    #[getter]
    fn stuck(&self) -> bool {
        self.lock().as_ref().is_some_and(crate::Completion::is_stuck)
    }

    /// End the run with what the job gave. After the end this and the others do nothing.
    #[pyo3(signature = (value, /))]
    fn done(&self, value: Bound<'_, PyAny>) {
        if let Some(completion) = self.take() {
            completion.finish(outcome(value.py(), value.into()));
        }
    }

    /// End the run as failed.
    #[pyo3(signature = (error, /))]
    fn failed(&self, error: &Bound<'_, PyAny>) {
        if let Some(completion) = self.take() {
            completion.finish(Outcome::Failed(job_error(error)));
        }
    }

    /// End the run because it was told to stop and did; if it was not told to, it has failed.
    #[pyo3(signature = (error, /))]
    fn stopped(&self, error: &Bound<'_, PyAny>) {
        if let Some(completion) = self.take() {
            completion.give_way(job_error(error));
        }
    }

    /// Have a function called once the run is to stop, on the thread that says so.
    #[pyo3(signature = (r#fn, /))]
    fn on_stop(&self, r#fn: Py<PyAny>) {
        let function = Own::from(r#fn);
        let hook = move || {
            Python::attach(|py| tell(py, &function, Ok(PyTuple::empty(py))));
        };
        let at_once = self.lock().as_ref().and_then(|run| run.try_on_stop(Box::new(hook)));
        if let Some(hook) = at_once {
            hook();
        }
    }
}
