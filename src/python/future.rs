//! A task as a future. Invariant: what is about Python's futures and event loops alone is in
//! `duetime._futures`; here is only how a task gets there.

use std::sync::OnceLock;

use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::call::{ask, call_method};
use super::lookup::{Attribute, Lookup, Names};
use super::own::Own;
use super::task::Task;
use crate::{TaskHandle, WatchKey};

static FUTURE: Attribute = Attribute::new("duetime._futures", "TaskFuture");
static WAIT: Attribute = Attribute::new("duetime._futures", "wait");
static AWAIT: Names<1> = Names::new(["__await__"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&FUTURE, &WAIT, &AWAIT];

/// The future of `task`, kept in `slot`. Of two threads that ask first at once, one fills it.
pub(super) fn of<'py>(
    task: &Bound<'py, Task>,
    slot: &OnceLock<Own>,
) -> PyResult<Bound<'py, PyAny>> {
    let py = task.py();
    if slot.get().is_none() {
        // Not under the slot's lock: this is Python, and lets go of the GIL.
        let made = ask(&FUTURE, py, (task,))?;
        drop(slot.set(made));
    }
    Ok(slot.get().map_or_else(|| py.None(), |future| future.clone_ref(py)).into_bound(py))
}

/// The iterator that `await task` runs.
pub(super) fn wait<'py>(task: &Bound<'py, Task>) -> PyResult<Bound<'py, PyAny>> {
    let py = task.py();
    let [name] = AWAIT.get(py);
    Ok(call_method(&*ask(&WAIT, py, (task,))?, py, name, ())?.into_inner().into_bound(py))
}

/// A Python function that takes a watcher back.
pub(super) fn unwatch(
    py: Python<'_>,
    handle: TaskHandle,
    key: WatchKey,
) -> PyResult<Bound<'_, PyCFunction>> {
    let unwatch = move |_: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        handle.unwatch(key);
    };
    PyCFunction::new_closure(py, None, None, unwatch)
}
