//! Python listeners and done-callbacks. Invariant: what they raise, whatever it is, goes to
//! `sys.unraisablehook`, and the others are still called.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::call;
use super::life::Life;
use super::records;
use super::task::Task;
use crate::{Event, Listener, TaskHandle, Watcher};

pub(super) struct PyListener {
    pub(super) function: Py<PyAny>,
    pub(super) life: Life,
}

impl Listener for PyListener {
    fn on_event(&self, event: &Event) {
        Python::attach(|py| {
            if self.life.is_over() {
                return;
            }
            let told = records::event(py, event)
                .and_then(|event| call(&self.function, py, Some(&PyTuple::new(py, [event])?)));
            if let Err(error) = told {
                error.write_unraisable(py, Some(self.function.bind(py)));
            }
        });
    }
}

/// A done-callback, with the task that it is called with.
pub(super) struct Callback {
    pub(super) function: Py<PyAny>,
    pub(super) task: Py<Task>,
}

impl Callback {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        [&self.function, self.task.as_any()].into_iter()
    }
}

impl Watcher for Callback {
    fn ended(self, _: &TaskHandle) {
        Python::attach(|py| {
            let Self { function, task } = self;
            let called = PyTuple::new(py, [task]).and_then(|task| call(&function, py, Some(&task)));
            if let Err(error) = called {
                error.write_unraisable(py, Some(function.bind(py)));
            }
        });
    }
}
