//! Calls of Python code. Invariant: a thread that the interpreter ends inside such a call stops there,
//! and never unwinds into Rust.
//!
//! Before Python 3.14 a thread that wants the GIL while the interpreter ends is ended by
//! `pthread_exit`, which unwinds its stack. That happens to a job that still runs when a Ctrl-C has
//! ended the wait for it, and to a daemon thread that waits for a task. The process is aborted when
//! such an unwinding comes to a place where Rust catches panics, so [`stop_at_end`] stops it before.
//! A call that PyO3 declares as one that never unwinds cannot be stopped: so what may run a user's code
//! goes through here, as a call of the builtin function that does it.

use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use pyo3::{Bound, IntoPyObject, ffi};

use super::lookup::{Attribute, Lookup};
use super::own::Own;
use crate::stop_at_end;

unsafe extern "C-unwind" {
    /// CPython's function of that name, which PyO3 declares as one that never unwinds.
    fn PyObject_CallObject(
        callable: *mut ffi::PyObject,
        args: *mut ffi::PyObject,
    ) -> *mut ffi::PyObject;
}

static BOOL: Attribute = Attribute::new("builtins", "bool");
static EQ: Attribute = Attribute::new("operator", "eq");
static FLOAT: Attribute = Attribute::new("builtins", "float");
static GETATTR: Attribute = Attribute::new("builtins", "getattr");
static HASATTR: Attribute = Attribute::new("builtins", "hasattr");
static ISINSTANCE: Attribute = Attribute::new("builtins", "isinstance");
static LIST: Attribute = Attribute::new("builtins", "list");
static REPR: Attribute = Attribute::new("builtins", "repr");
static STR: Attribute = Attribute::new("builtins", "str");
pub(super) static LOOKUPS: &[&dyn Lookup] =
    &[&BOOL, &EQ, &FLOAT, &GETATTR, &HASATTR, &ISINSTANCE, &LIST, &REPR, &STR];

/// `callable(*args)`. The callee lives until it returns, even if the collector or another thread
/// lets go of it meanwhile.
pub(super) fn call(
    callable: &Py<PyAny>,
    py: Python<'_>,
    args: Option<&Bound<'_, PyTuple>>,
) -> PyResult<Own> {
    let callable = Own::from(callable.clone_ref(py));
    let args = args.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // SAFETY: attached; both are live objects, or null for no arguments. It returns a new reference,
    // or null with an exception set.
    let result = stop_at_end(|| unsafe { PyObject_CallObject(callable.as_ptr(), args) });
    // SAFETY: as said.
    unsafe { Bound::from_owned_ptr_or_err(py, result) }.map(Own::from)
}

/// `object.name(*args)`.
pub(super) fn call_method<'py, A>(
    object: &Py<PyAny>,
    py: Python<'py>,
    name: &Py<PyString>,
    args: A,
) -> PyResult<Own>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    let method = bound(object, py, name)?;
    let args = Own::from(args.into_pyobject(py)?);
    call(&method, py, Some(args.bind(py)))
}

/// `object.name`.
pub(super) fn bound(object: &Py<PyAny>, py: Python<'_>, name: &Py<PyString>) -> PyResult<Own> {
    ask(&GETATTR, py, (object, name))
}

/// Calls a function that was looked up.
pub(super) fn ask<'py, T, A>(
    function: &'static Attribute<T>,
    py: Python<'py>,
    args: A,
) -> PyResult<Own>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    let args = Own::from(args.into_pyobject(py)?);
    call(function.get(py).as_any().as_unbound(), py, Some(args.bind(py)))
}

/// `hasattr(object, name)`.
pub(super) fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    ask(&HASATTR, object.py(), (object, name))?.extract(object.py())
}

/// `getattr(object, name, None)`.
pub(super) fn attribute(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Own>> {
    let py = object.py();
    let found = ask(&GETATTR, py, (object, name, py.None()))?;
    Ok(Some(found).filter(|found| !found.is_none(py)))
}

/// `isinstance(object, class)`.
pub(super) fn is_instance(object: &Bound<'_, PyAny>, class: &Bound<'_, PyAny>) -> PyResult<bool> {
    ask(&ISINSTANCE, object.py(), (object, class))?.extract(object.py())
}

/// `float(object)`.
pub(super) fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    ask(&FLOAT, object.py(), (object,))?.extract(object.py())
}

/// `str(object)`.
pub(super) fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    as_text(object.py(), &ask(&STR, object.py(), (object,))?)
}

/// `repr(object)`.
pub(super) fn shown(object: &Bound<'_, PyAny>) -> PyResult<String> {
    as_text(object.py(), &ask(&REPR, object.py(), (object,))?)
}

fn as_text(py: Python<'_>, text: &Own) -> PyResult<String> {
    Ok(text.bind(py).cast::<PyString>()?.to_string_lossy().into_owned())
}

/// `list(object)`.
pub(super) fn items(object: &Bound<'_, PyAny>) -> PyResult<Own<PyList>> {
    let py = object.py();
    let items = ask(&LIST, py, (object,))?.into_inner().into_bound(py);
    Ok(items.cast_into::<PyList>()?.into())
}

/// `bool(one == other)`.
pub(super) fn equal(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let equal = ask(&EQ, one.py(), (one, other))?;
    ask(&BOOL, one.py(), (&*equal,))?.extract(one.py())
}
