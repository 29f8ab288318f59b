//! Calls of Python code. Invariant: a thread that the interpreter ends inside such a call stops there,
//! and never unwinds into Rust.
//!
//! Before Python 3.14 a thread that wants the GIL while the interpreter ends is ended by
//! `pthread_exit`, which unwinds its stack. That happens to a job that still runs when a Ctrl-C has
//! ended the wait for it, and to a daemon thread that waits for a task. Rust aborts the process when
//! such an unwinding reaches one of its frames, so the frame at the border stops it, as PyO3 does
//! where it takes the GIL itself. The process is about to end, and takes the thread with it.

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};
use pyo3::{Bound, IntoPyObject, ffi};

unsafe extern "C-unwind" {
    /// CPython's function of that name, which PyO3 declares as one that never unwinds.
    fn PyObject_CallObject(
        callable: *mut ffi::PyObject,
        args: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

/// Dropped only by an unwinding.
struct Stop;

impl Drop for Stop {
    fn drop(&mut self) {
        loop {
            std::thread::park();
        }
    }
}

/// `callable(*args)`. The callee lives until it returns, even if the collector or another thread
/// lets go of it meanwhile.
pub(super) fn call<'py>(
    callable: &Py<PyAny>,
    py: Python<'py>,
    args: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let callable = callable.clone_ref(py);
    let args = args.map_or(std::ptr::null_mut(), Bound::as_ptr);
    let stop = Stop;
    // SAFETY: attached; both are live objects, or null for no arguments. It returns a new reference,
    // or null with an exception set.
    let result = unsafe { PyObject_CallObject(callable.as_ptr(), args) };
    std::mem::forget(stop);
    // SAFETY: as said.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }
}

/// `object.name(*args)`.
pub(super) fn call_method<'py, A>(
    object: &Py<PyAny>,
    py: Python<'py>,
    name: &Py<PyString>,
    args: A,
) -> PyResult<Bound<'py, PyAny>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    let method = object.bind(py).getattr(name)?.unbind();
    call(&method, py, Some(&args.into_pyobject(py)?))
}
