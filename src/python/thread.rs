//! A worker thread that lives in Python. Invariant: it attaches once, for its whole life, with one
//! thread state, and is detached whenever it sleeps.

use std::sync::Arc;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::call;
use super::context;
use super::elsewhere::Elsewhere;
use super::lookup::{Attribute, Lookup};
use crate::{Pause, Surroundings};

static ENTER: Attribute = Attribute::new("duetime._threads", "enter");
static LEAVE: Attribute = Attribute::new("duetime._threads", "leave");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&ENTER, &LEAVE];

/// Python around every worker.
pub(super) struct PythonThread {
    pub(super) elsewhere: Arc<Elsewhere>,
}

/// How long a worker may run one Python job after the other. Long enough that handing the GIL over
/// costs little beside it, short enough that nobody waits long.
const TURN: Duration = Duration::from_millis(1);

impl Surroundings for PythonThread {
    fn live(&self, name: &str, life: &mut dyn FnMut(&dyn Pause)) {
        // No answer: the interpreter ends, and so does this thread, without having lived.
        let _: Option<()> = Python::try_attach(|py| {
            let name = PyTuple::new(py, [name]);
            report(py, name.and_then(|name| call(ENTER.get(py).as_unbound(), py, Some(&name))));
            self.elsewhere.during(|| life(&Detach));
            context::clear();
            report(py, call(LEAVE.get(py).as_unbound(), py, None));
        });
    }

    fn turn(&self) -> Duration {
        TURN
    }
}

fn report(py: Python<'_>, done: PyResult<Bound<'_, PyAny>>) {
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
