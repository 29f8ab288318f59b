//! Which errors a retry policy is for. Invariant: classes match as they do in `except`, so no Python
//! code runs, whatever they are.

use std::hash::{Hash, Hasher};

use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::numbers::wrong_type;
use super::stay;

/// Exception classes. Equal if they are the same ones, in the same order.
pub(super) struct Classes(Vec<Py<PyType>>);

impl Classes {
    /// Reads what `except` takes: a class or a tuple of classes.
    fn read(parameter: &str, value: &Bound<'_, PyAny>) -> PyResult<Self> {
        let class = |value: &Bound<'_, PyAny>| {
            let class = value.cast::<PyType>().ok().filter(|class| {
                // By its bases, as `except` asks: a metaclass has no say.
                let base = value.py().get_type::<PyBaseException>();
                class.mro().iter().any(|class| class.is(&base))
            });
            let expected = "an exception class or a tuple of them";
            class
                .map(|class| class.clone().unbind())
                .ok_or_else(|| wrong_type(parameter, value, expected))
        };
        let classes = match value.cast::<PyTuple>() {
            Ok(classes) => classes.iter().map(|value| class(&value)).collect::<PyResult<_>>()?,
            Err(_) => vec![class(value)?],
        };
        Ok(Self(classes))
    }

    fn tuple<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0)
    }

    fn catch(&self, py: Python<'_>, error: &PyErr) -> bool {
        self.0.iter().any(|class| error.is_instance(py, class.bind(py)))
    }

    fn copy(&self, py: Python<'_>) -> Self {
        Self(self.0.iter().map(|class| class.clone_ref(py)).collect())
    }

    fn pointers(&self) -> impl Iterator<Item = *mut pyo3::ffi::PyObject> {
        self.0.iter().map(Py::as_ptr)
    }

    /// `A`, `(A, B)`, `()`.
    fn shown(&self, py: Python<'_>) -> String {
        let name = |class: &Py<PyType>| {
            class.bind(py).qualname().map_or_else(|_| "?".into(), |name| name.to_string())
        };
        let names: Vec<String> = self.0.iter().map(name).collect();
        if names.len() == 1 { names.concat() } else { format!("({})", names.join(", ")) }
    }
}

impl PartialEq for Classes {
    fn eq(&self, other: &Self) -> bool {
        self.pointers().eq(other.pointers())
    }
}

impl Eq for Classes {}

impl Hash for Classes {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pointers().for_each(|class| class.hash(state));
    }
}

/// `retry_on` and `give_up_on` of a policy.
#[derive(PartialEq, Eq, Hash, Default)]
pub(super) struct Filter {
    retry_on: Option<Classes>,
    give_up_on: Option<Classes>,
}

impl Filter {
    pub(super) fn new(
        retry_on: Option<&Bound<'_, PyAny>>,
        give_up_on: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        stay::here();
        let read = |parameter, value: Option<&Bound<'_, PyAny>>| {
            value.map(|value| Classes::read(parameter, value)).transpose()
        };
        Ok(Self {
            retry_on: read("retry_on", retry_on)?,
            give_up_on: read("give_up_on", give_up_on)?,
        })
    }

    /// Whether it lets every error through.
    pub(super) fn is_open(&self) -> bool {
        self.retry_on.is_none() && self.give_up_on.is_none()
    }

    /// Whether an attempt that failed with `error` is to be made again.
    pub(super) fn lets(&self, py: Python<'_>, error: &PyErr) -> bool {
        let catch = |classes: &Classes| classes.catch(py, error);
        self.retry_on.as_ref().is_none_or(catch) && !self.give_up_on.as_ref().is_some_and(catch)
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        let copy = |classes: &Option<Classes>| classes.as_ref().map(|classes| classes.copy(py));
        Self { retry_on: copy(&self.retry_on), give_up_on: copy(&self.give_up_on) }
    }

    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        let both = self.retry_on.iter().chain(&self.give_up_on);
        both.flat_map(|classes| classes.0.iter().map(Py::as_any))
    }

    pub(super) fn retry_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.retry_on.as_ref().map(|classes| classes.tuple(py)).transpose()
    }

    pub(super) fn give_up_on<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        self.give_up_on.as_ref().map(|classes| classes.tuple(py)).transpose()
    }

    /// The keyword arguments that make it.
    pub(super) fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        stay::here();
        let arguments = PyDict::new(py);
        arguments.set_item("retry_on", self.retry_on(py)?)?;
        arguments.set_item("give_up_on", self.give_up_on(py)?)?;
        Ok(arguments)
    }

    /// Its part of the policy's `repr`.
    pub(super) fn shown(&self, py: Python<'_>) -> String {
        let shown = |name: &str, classes: &Option<Classes>| {
            classes
                .as_ref()
                .map_or(String::new(), |classes| format!(", {name}={}", classes.shown(py)))
        };
        shown("retry_on", &self.retry_on) + &shown("give_up_on", &self.give_up_on)
    }
}
