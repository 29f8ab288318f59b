//! What a Python scheduler stands on: the core's scheduler, and the Python objects that go with it.
//! Invariant: once it is finalized, it calls none of them any more.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyWeakrefReference};

use super::call::equal;
use super::clock::{CallableClock, ManualClock};
use super::elsewhere::{self, Elsewhere};
use super::life::{End, Life};
use super::listener::PyListener;
use super::numbers::{Maybe, integer, shown, wrong_type};
use super::own::Own;
use super::thread::PythonThread;
use super::{exit, seen};
use crate::{Builder, EventKind, ListenerId};

/// The arguments of `Scheduler`.
pub(super) struct Settings<'a, 'py> {
    pub(super) workers: Maybe<'py>,
    pub(super) clock: Option<&'a Bound<'py, PyAny>>,
    pub(super) history: Maybe<'py>,
    pub(super) name: Maybe<'py>,
    pub(super) event_loop: Option<&'a Bound<'py, PyAny>>,
    pub(super) executor: Option<&'a Bound<'py, PyAny>>,
    pub(super) limits: Option<&'a Bound<'py, PyAny>>,
}

pub(super) struct Core {
    life: Life,
    pub(super) inner: crate::Scheduler,
    pub(super) clock: Option<Own>,
    /// A weak reference to the Python scheduler, whose callback finalizes this.
    watch: OnceLock<Py<PyWeakrefReference>>,
    /// What runs jobs that say nothing else, instead of a worker.
    pub(super) executor: Option<Own>,
    pub(super) elsewhere: Arc<Elsewhere>,
    /// Which function is which listener. Locked for a moment, never while Python runs.
    listeners: Mutex<Vec<(Own, ListenerId)>>,
}

impl Core {
    pub(super) fn new(py: Python<'_>, settings: Settings<'_, '_>) -> PyResult<Self> {
        let Settings { workers, clock, history, name, event_loop, executor, limits } = settings;
        let executor = executor.map_or(Ok(None), |given| elsewhere::executor(given, None))?;
        let bound = "between 1 and 1024";
        let workers = workers.read(4, |workers| integer("workers", workers, 1, bound))?;
        let most = "between 0 and 2^64 - 1";
        let history = history.read(10_000, |history| integer("history", history, 0, most))?;
        let name = name.read("duetime".into(), |name| {
            name.extract::<String>().map_err(|_| wrong_type("name", name, "a str"))
        })?;
        let elsewhere = Arc::new(Elsewhere::new(py, &name, event_loop)?);
        let builder = crate::Scheduler::builder()
            .workers(workers)
            .history(history)
            .name(name)
            .surroundings(PythonThread { elsewhere: Arc::clone(&elsewhere) });
        let builder = limited(builder, limits)?;
        let life = Life::default();
        let inner = match clock {
            None => builder,
            Some(clock) => {
                if let Ok(manual) = clock.cast::<ManualClock>() {
                    builder.clock(manual.get().inner.clone())
                } else if clock.is_callable() {
                    builder.clock(CallableClock::new(clock, life.clone())?)
                } else {
                    let expected = "a ManualClock or a callable that gives seconds";
                    return Err(wrong_type("clock", clock, expected));
                }
            }
        }
        .build()?;
        exit::remember(inner.crew());
        elsewhere.belong_to(inner.crew().downgrade());
        let clock = clock.map(|clock| clock.clone().into());
        let (watch, listeners) = (OnceLock::new(), Mutex::default());
        Ok(Self { life, inner, clock, watch, executor, elsewhere, listeners })
    }

    /// Has this finalized once `scheduler` is gone, or garbage.
    pub(super) fn watch(self: &Arc<Self>, scheduler: &Bound<'_, PyAny>) -> PyResult<()> {
        let end = Bound::new(scheduler.py(), End::of(Arc::downgrade(self)))?;
        let watch = PyWeakrefReference::new_with(scheduler, end)?;
        let _ = self.watch.set(watch.unbind()); // it is called once, by __init__
        Ok(())
    }

    fn listeners(&self) -> std::sync::MutexGuard<'_, Vec<(Own, ListenerId)>> {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add_listener(
        &self,
        function: &Bound<'_, PyAny>,
        kinds: &[EventKind],
    ) -> PyResult<()> {
        let listener = PyListener { function: function.clone().into(), life: self.life.clone() };
        let id = self.inner.add_listener(listener, kinds)?;
        self.listeners().push((function.clone().into(), id));
        Ok(())
    }

    pub(super) fn remove_listener(&self, function: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = function.py();
        let copy: Vec<(Own, ListenerId)> =
            self.listeners().iter().map(|(other, id)| (other.copy(py), *id)).collect();
        for (other, id) in copy {
            // Equal, not identical: a bound method is a new object each time. `==` is user code.
            if other.bind(py).is(function) || equal(other.bind(py), function)? {
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

    /// Whether the calling code is such that the scheduler cannot end before it returns.
    pub(super) fn is_inside(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner.is_inside() || self.elsewhere.is_inside(py)?)
    }

    /// Closes the scheduler, tells whom it has to tell, and lets go of the Python objects.
    pub(super) fn finalize(&self) {
        if self.life.is_over() {
            return;
        }
        Python::attach(|py| self.elsewhere.keep_until_the_end(py));
        // An error means a forked child, where nothing of the scheduler may be touched.
        let closed = self.inner.crew().close(false);
        self.life.end();
        if closed.is_ok() {
            self.inner.clear_listeners();
            let listeners = std::mem::take(&mut *self.listeners());
            drop(listeners);
        }
    }

    pub(super) fn traverse(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut result = Ok(());
        self.inner.visit(&mut |value| {
            if result.is_ok() {
                result = seen::visit(value, visit);
            }
        });
        result?;
        if let Ok(listeners) = self.listeners.try_lock() {
            listeners.iter().try_for_each(|(listener, _)| visit.call(&**listener))?;
        }
        self.elsewhere.visit(visit)?;
        visit.call(self.executor.as_deref())?;
        visit.call(self.clock.as_deref())
    }
}

/// The builder with these limits: a dict of names and numbers.
fn limited(builder: Builder, limits: Option<&Bound<'_, PyAny>>) -> PyResult<Builder> {
    let Some(limits) = limits.filter(|limits| !limits.is_none()) else {
        return Ok(builder);
    };
    let expected = "a dict of group names and numbers";
    let limits = limits.cast::<PyDict>().map_err(|_| wrong_type("limits", limits, expected))?;
    limits.iter().try_fold(builder, |builder, (group, limit)| {
        let name = group.extract::<String>();
        let name = name.map_err(|_| wrong_type("a name in limits", &group, "a str"))?;
        let parameter = format!("limits[{}]", shown(&group));
        Ok(builder.limit(name, integer(&parameter, &limit, 1_usize, "at least 1")?))
    })
}
