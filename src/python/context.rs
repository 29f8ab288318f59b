//! The `contextvars` context of a job. Invariant: each run has a copy of its own, entered before
//! the job and left after it, whatever the job does.

use std::cell::Cell;

use pyo3::ffi;
use pyo3::prelude::*;

use super::own::Own;

thread_local! {
    /// An empty context that a run left empty, and that nobody else has: as good as a new one.
    static EMPTY: Cell<Option<Py<PyAny>>> = const { Cell::new(None) };
}

/// The context in which a task is scheduled. `None` for an empty one, which is the usual case
/// and costs a waiting task nothing.
pub(super) struct Captured(Option<Own>);

impl Captured {
    pub(super) fn now(py: Python<'_>) -> PyResult<Self> {
        let copy = current(py)?;
        Ok(Self(if is_empty(&copy) { None } else { Some(copy.into()) }))
    }

    pub(super) const fn empty() -> Self {
        Self(None)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The same for another task of the call: it is only ever copied.
    pub(super) fn share(&self, py: Python<'_>) -> Self {
        Self(self.0.as_ref().map(|context| context.copy(py)))
    }

    /// The Python object, for the garbage collector.
    pub(super) fn object(&self) -> Option<&Py<PyAny>> {
        self.0.as_deref()
    }

    /// Calls `code` in a fresh copy.
    pub(super) fn run<T>(&self, py: Python<'_>, code: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
        let context = self.copy(py)?;
        // SAFETY: attached, and `context` is a context.
        if unsafe { ffi::PyContext_Enter(context.as_ptr()) } < 0 {
            return Err(PyErr::fetch(py));
        }
        let leave = Leave { py, context: &context };
        let result = code();
        drop(leave);
        self.give_back(context);
        result
    }

    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        if let Some(context) = &self.0 {
            // SAFETY: attached; `context` is a context; returns a new reference or null.
            return unsafe {
                Bound::from_owned_ptr_or_err(py, ffi::PyContext_Copy(context.as_ptr()))
            };
        }
        if let Some(empty) = EMPTY.take() {
            return Ok(empty.into_bound(py));
        }
        // SAFETY: attached; returns a new reference or null.
        unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_New()) }
    }

    fn give_back(&self, context: Bound<'_, PyAny>) {
        // SAFETY: attached, and the pointer is a live object's.
        let unused = self.0.is_none() && unsafe { ffi::Py_REFCNT(context.as_ptr()) } == 1;
        if unused && is_empty(&context) {
            EMPTY.set(Some(context.unbind()));
        } else {
            drop(Own::from(context));
        }
    }
}

/// A copy of the context that is current now.
pub(super) fn current(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: attached; it returns a new reference, or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyContext_CopyCurrent()) }
}

/// Whether nothing is set in a context.
fn is_empty(context: &Bound<'_, PyAny>) -> bool {
    // SAFETY: attached; a context is a mapping that always knows its length.
    unsafe { ffi::PyMapping_Size(context.as_ptr()) == 0 }
}

/// Lets this thread's spare context go, while it is still attached.
pub(super) fn clear() {
    drop(EMPTY.take());
}

/// Leaves the context also when the code panics.
struct Leave<'a, 'py> {
    py: Python<'py>,
    context: &'a Bound<'py, PyAny>,
}

impl Drop for Leave<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: attached, and this is the context that was entered.
        if unsafe { ffi::PyContext_Exit(self.context.as_ptr()) } < 0 {
            // The job entered contexts and did not leave them; there is nobody to tell.
            drop(PyErr::take(self.py).map(|error| Own::of_error(self.py, error)));
        }
    }
}
