//! How values are pickled: as their class and its arguments. Invariant: what comes back is equal.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// What `__reduce__` returns: the class and its arguments.
pub(super) type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);

/// The answer of `__reduce__`.
pub(super) fn reduce<'py, A>(slf: &Bound<'py, PyAny>, args: A) -> PyResult<Reduced<'py>>
where
    A: IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>>,
    PyErr: From<A::Error>,
{
    Ok((slf.get_type().into_any(), args.into_pyobject(slf.py())?))
}
