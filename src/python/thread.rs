//! A worker thread that lives in Python. Invariant: it attaches once, for its whole life, with one
//! thread state, and is detached whenever it sleeps.

use std::time::Duration;

use pyo3::prelude::*;

use super::context;
use crate::{Pause, Surroundings};

// No name is interned here: a fork while a worker does that for the first time would leave the child
// waiting for a thread that it does not have.

/// Python around every worker.
pub(super) struct PythonThread;

/// How long a worker may run one Python job after the other. Long enough that handing the GIL over
/// costs little beside it, short enough that nobody waits long.
const TURN: Duration = Duration::from_millis(1);

impl Surroundings for PythonThread {
    fn live(&self, name: &str, life: &mut dyn FnMut(&dyn Pause)) {
        // No answer: the interpreter ends, and so does this thread, without having lived.
        let _: Option<()> = Python::try_attach(|py| {
            report(
                py,
                py.import("duetime._threads")
                    .and_then(|module| module.call_method1("enter", (name,)).map(drop)),
            );
            life(&Detach);
            context::clear();
            report(
                py,
                py.import("duetime._threads")
                    .and_then(|module| module.call_method0("leave").map(drop)),
            );
        });
    }

    fn turn(&self) -> Duration {
        TURN
    }
}

fn report(py: Python<'_>, done: PyResult<()>) {
    if let Err(error) = done {
        error.write_unraisable(py, None);
    }
}

struct Detach;

impl Pause for Detach {
    fn pause(&self, wait: &mut (dyn FnMut() + Send)) {
        Python::attach(|py| py.detach(wait));
    }
}
