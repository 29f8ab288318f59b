//! References that are ours to let go of. Invariant: what runs when the last one goes, a `__del__` for
//! one, runs in a call that the end of the interpreter may stop; see [`super::call`].
//!
//! So whatever may be a user's, or may lead there, is held as an [`Own`] wherever it is dropped in Rust.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::ffi;
use pyo3::prelude::*;

use crate::stop_at_end;

unsafe extern "C-unwind" {
    /// CPython's functions of these names, which PyO3 declares as ones that never unwind.
    fn Py_DecRef(object: *mut ffi::PyObject);
    fn PyErr_WriteUnraisable(about: *mut ffi::PyObject);
}

/// A reference to a Python object.
pub(super) struct Own<T = PyAny>(ManuallyDrop<Py<T>>);

impl<T> Own<T> {
    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        self.clone_ref(py).into()
    }

    /// The reference itself, for whoever gives it to Python.
    pub(super) fn into_inner(self) -> Py<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: it is taken once, for `this` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }
}

impl<T> Drop for Own<T> {
    fn drop(&mut self) {
        // SAFETY: it is taken once, here.
        let object = unsafe { ManuallyDrop::take(&mut self.0) };
        let mut left = Some(object);
        // Without an answer nobody can let go of it any more, or the collector is looking.
        let _: Option<()> = Python::try_attach(|_| {
            let object = left.take().map_or(std::ptr::null_mut(), Py::into_ptr);
            // SAFETY: attached, and the reference was ours.
            stop_at_end(|| unsafe { Py_DecRef(object) });
        });
    }
}

impl<T> Deref for Own<T> {
    type Target = Py<T>;

    fn deref(&self) -> &Py<T> {
        &self.0
    }
}

impl<T> From<Py<T>> for Own<T> {
    fn from(object: Py<T>) -> Self {
        Self(ManuallyDrop::new(object))
    }
}

impl<T> From<Bound<'_, T>> for Own<T> {
    fn from(object: Bound<'_, T>) -> Self {
        object.unbind().into()
    }
}

impl Own {
    /// What was raised.
    pub(super) fn of_error(py: Python<'_>, error: PyErr) -> Self {
        error.into_value(py).into_any().into()
    }
}

/// What came, unless an error did: that is dropped as ours.
pub(super) fn came<T>(py: Python<'_>, result: PyResult<T>) -> Option<T> {
    result.map_err(|error| drop(Own::of_error(py, error))).ok()
}

/// Hands an error that nobody can be given to `sys.unraisablehook`, with the object that it is about.
pub(super) fn report(py: Python<'_>, error: PyErr, about: Option<&Bound<'_, PyAny>>) {
    error.restore(py);
    let about = about.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // SAFETY: attached; the object lives, or is null; the error is set, and taken by the call.
    stop_at_end(|| unsafe { PyErr_WriteUnraisable(about) });
}
