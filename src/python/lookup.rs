//! What Python defines and the native part uses: classes, functions, members of enums, names.
//! Invariant: all of it is found when the module is imported. A fork in the moment in which another
//! thread looks something up for the first time would leave the child waiting for that thread; so
//! nothing is ever looked up for the first time later, and nothing else in this folder is made once
//! and on demand.

use pyo3::PyTypeCheck;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDelta, PyString, PyType};

use super::stay;

/// What [`fill`] fills.
pub(super) trait Lookup: Sync {
    fn fill(&self, py: Python<'_>) -> PyResult<()>;
}

/// Looks everything up.
pub(super) fn fill(py: Python<'_>, lookups: &[&[&dyn Lookup]]) -> PyResult<()> {
    // PyO3 finds the datetime module when it first has to tell whether something is of it.
    let _ = py.None().bind(py).is_instance_of::<PyDelta>();
    lookups.iter().copied().flatten().try_for_each(|lookup| lookup.fill(py))
}

/// Any attribute of a module.
pub(super) struct Attribute<T = PyAny> {
    module: &'static str,
    name: &'static str,
    found: PyOnceLock<Py<T>>,
}

/// A class.
pub(super) type Class = Attribute<PyType>;

impl<T> Attribute<T> {
    pub(super) const fn new(module: &'static str, name: &'static str) -> Self {
        Self { module, name, found: PyOnceLock::new() }
    }

    pub(super) fn get<'py>(&'py self, py: Python<'py>) -> &'py Bound<'py, T> {
        found(&self.found, py).bind(py)
    }
}

impl<T: PyTypeCheck> Lookup for Attribute<T> {
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        self.found.import(py, self.module, self.name).map(drop)
    }
}

impl Class {
    pub(super) fn error(&self, py: Python<'_>, message: String) -> PyErr {
        PyErr::from_type(self.get(py).clone(), message)
    }
}

/// Names of attributes.
pub(super) struct Names<const N: usize> {
    texts: [&'static str; N],
    found: PyOnceLock<[Py<PyString>; N]>,
}

impl<const N: usize> Names<N> {
    pub(super) const fn new(texts: [&'static str; N]) -> Self {
        Self { texts, found: PyOnceLock::new() }
    }

    pub(super) fn get<'py>(&'py self, py: Python<'py>) -> &'py [Py<PyString>; N] {
        found(&self.found, py)
    }
}

impl<const N: usize> Lookup for Names<N> {
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        self.found.get_or_init(py, || self.texts.map(|text| PyString::intern(py, text).unbind()));
        Ok(())
    }
}

/// The members of an enum.
pub(super) struct Members<const N: usize> {
    module: &'static str,
    class: &'static str,
    names: [&'static str; N],
    found: PyOnceLock<[Py<PyAny>; N]>,
}

impl<const N: usize> Members<N> {
    pub(super) const fn new(
        module: &'static str,
        class: &'static str,
        names: [&'static str; N],
    ) -> Self {
        Self { module, class, names, found: PyOnceLock::new() }
    }

    pub(super) fn get<'py>(&self, py: Python<'py>, member: usize) -> Bound<'py, PyAny> {
        found(&self.found, py)[member].bind(py).clone()
    }

    /// Which member `value` is.
    pub(super) fn find(&self, value: &Bound<'_, PyAny>) -> Option<usize> {
        found(&self.found, value.py()).iter().position(|member| member.is(value))
    }
}

impl<const N: usize> Lookup for Members<N> {
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        let class = py.import(self.module)?.getattr(self.class)?;
        let members = self.names.iter().map(|&name| class.getattr(name).map(Bound::unbind));
        let members: Vec<Py<PyAny>> = members.collect::<PyResult<_>>()?;
        let members = <[_; N]>::try_from(members);
        let members = members.unwrap_or_else(|_| unreachable!("as many members as names"));
        self.found.get_or_init(py, || members);
        Ok(())
    }
}

fn found<'a, T>(lookup: &'a PyOnceLock<T>, py: Python<'a>) -> &'a T {
    stay::here();
    lookup.get(py).expect("every lookup is in its file's list of LOOKUPS, and filled at import")
}
