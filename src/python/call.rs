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
static LIST: Attribute = Attribute::new("builtins", "list");
static REPR: Attribute = Attribute::new("builtins", "repr");
static STR: Attribute = Attribute::new("builtins", "str");
pub(super) static LOOKUPS: &[&dyn Lookup] =
    &[&BOOL, &EQ, &FLOAT, &GETATTR, &HASATTR, &LIST, &REPR, &STR];

/// `callable(*args)`. The callee lives until it returns, even if the collector or another thread
/// lets go of it meanwhile.
pub(super) fn call<'py>(
    callable: &Py<PyAny>,
    py: Python<'py>,
    args: Option<&Bound<'py, PyTuple>>,
) -> PyResult<Bound<'py, PyAny>> {
    let callable = callable.clone_ref(py);
    let args = args.map_or(std::ptr::null_mut(), Bound::as_ptr);
    // SAFETY: attached; both are live objects, or null for no arguments. It returns a new reference,
    // or null with an exception set.
    let result = stop_at_end(|| unsafe { PyObject_CallObject(callable.as_ptr(), args) });
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
    let which = PyTuple::new(py, [object.bind(py), name.bind(py).as_any()])?;
    let method = call(GETATTR.get(py).as_unbound(), py, Some(&which))?.unbind();
    call(&method, py, Some(&args.into_pyobject(py)?))
}

fn builtin<'py, A>(
    function: &'static Attribute,
    py: Python<'py>,
    args: A,
) -> PyResult<Bound<'py, PyAny>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    call(function.get(py).as_unbound(), py, Some(&args.into_pyobject(py)?))
}

/// `hasattr(object, name)`.
pub(super) fn has(object: &Bound<'_, PyAny>, name: &str) -> PyResult<bool> {
    builtin(&HASATTR, object.py(), (object, name))?.extract()
}

/// `getattr(object, name, None)`.
pub(super) fn attribute<'py>(
    object: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let found = builtin(&GETATTR, object.py(), (object, name, object.py().None()))?;
    Ok(Some(found).filter(|found| !found.is_none()))
}

/// `float(object)`.
pub(super) fn float(object: &Bound<'_, PyAny>) -> PyResult<f64> {
    builtin(&FLOAT, object.py(), (object,))?.extract()
}

/// `str(object)`.
pub(super) fn text(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(builtin(&STR, object.py(), (object,))?.cast::<PyString>()?.to_string_lossy().into_owned())
}

/// `repr(object)`.
pub(super) fn shown(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(builtin(&REPR, object.py(), (object,))?.cast::<PyString>()?.to_string_lossy().into_owned())
}

/// `list(object)`.
pub(super) fn items<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    Ok(builtin(&LIST, object.py(), (object,))?.cast_into()?)
}

/// `bool(one == other)`.
pub(super) fn equal(one: &Bound<'_, PyAny>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
    let equal = builtin(&EQ, one.py(), (one, other))?;
    builtin(&BOOL, one.py(), (equal,))?.extract()
}
