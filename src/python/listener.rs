//! Python listeners and done-callbacks. Invariant: what they raise, whatever it is, goes to
//! `sys.unraisablehook`, and the others are still called.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::call;
use super::interrupt::apart;
use super::life::Life;
use super::own::{Own, report};
use super::records;
use super::task::Task;
use crate::{Event, Listener, TaskHandle, Watcher};

pub(super) struct PyListener {
    pub(super) function: Own,
    pub(super) life: Life,
}

impl Listener for PyListener {
    fn on_event(&self, event: &Event) {
        Python::attach(|py| {
            if self.life.is_over() {
                return;
            }
            let event = records::event(py, event).and_then(|event| PyTuple::new(py, [event]));
            tell(py, &self.function, event);
        });
    }
}

/// A done-callback, with the task that it is called with.
pub(super) struct Callback {
    pub(super) function: Own,
    pub(super) task: Own<Task>,
}

impl Callback {
    pub(super) fn objects(&self) -> impl Iterator<Item = &Py<PyAny>> {
        [&*self.function, self.task.as_any()].into_iter()
    }
}

impl Watcher for Callback {
    fn ended(self, _: &TaskHandle) {
        Python::attach(|py| {
            let Self { function, task } = self;
            tell(py, &function, PyTuple::new(py, [&*task]));
        });
    }
}

/// Calls what somebody gave us to be called, if its arguments could be made.
pub(super) fn tell(py: Python<'_>, function: &Own, args: PyResult<Bound<'_, PyTuple>>) {
    let told = args.and_then(|args| {
        let args = Own::from(args);
        apart(py, || call(function, py, Some(args.bind(py))))
    });
    if let Err(error) = told {
        report(py, error, Some(function.bind(py)));
    }
}
