//! How values are pickled: as their class and its arguments. Invariant: what comes back is equal.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::lookup::{Attribute, Lookup};
use super::stay;

static MAKE: Attribute = Attribute::new("copyreg", "__newobj_ex__");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&MAKE];

/// What `__reduce__` returns: what to call, a class for one, and its arguments.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// The answer of `__reduce__`.
pub(super) fn reduce<'py, A>(slf: &Bound<'py, PyAny>, args: A) -> PyResult<Reduced<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    stay::here();
    Ok((slf.get_type().into_any(), args.into_pyobject(slf.py())?))
}

/// The answer of `__reduce__` of a class that has keyword parameters.
pub(super) fn reduce_with<'py, A>(
    slf: &Bound<'py, PyAny>,
    args: A,
    kwargs: Bound<'py, PyDict>,
) -> PyResult<Reduced<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    let py = slf.py();
    let args = (slf.get_type(), args.into_pyobject(py)?, kwargs).into_pyobject(py)?;
    Ok((MAKE.get(py).clone(), args))
}
