//! A worker thread that lives in Python. Invariant: it attaches once, for its whole life, with one
//! thread state, and is detached whenever it sleeps.

use std::sync::Arc;
use std::time::Duration;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::call;
use super::context;
use super::elsewhere::Elsewhere;
use super::lookup::{Attribute, Lookup};
use super::own::report;
use super::stay;
use crate::{Pause, Surroundings, stop_at_end};

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
        stay::here();
        // No answer: the interpreter ends, and so does this thread, without having lived.
        let Some(state) = ThreadState::new() else { return };
        let _: Option<()> = Python::try_attach(|py| {
            let name = PyTuple::new(py, [name]);
            let entered = name.and_then(|name| call(ENTER.get(py).as_unbound(), py, Some(&name)));
            entered.map_or_else(|error| report(py, error, None), drop);
            self.elsewhere.during(|| life(&Detach));
            context::clear();
            let left = call(LEAVE.get(py).as_unbound(), py, None);
            left.map_or_else(|error| report(py, error, None), drop);
        });
        drop(state);
    }

    fn turn(&self) -> Duration {
        TURN
    }
}

unsafe extern "C-unwind" {
    /// CPython's function of that name, which PyO3 declares as one that never unwinds.
    fn PyGILState_Release(state: ffi::PyGILState_STATE);
}

/// This thread's state in the interpreter, kept apart from PyO3's attaching: where it ends, what the
/// thread has in a `threading.local` goes, and with that a user's code runs.
struct ThreadState(ffi::PyGILState_STATE);

impl ThreadState {
    /// `None` if the interpreter ends.
    fn new() -> Option<Self> {
        Python::try_attach(|_| ())?;
        // SAFETY: there is an interpreter; where it ends right now, this call does not return.
        Some(Self(unsafe { ffi::PyGILState_Ensure() }))
    }
}

impl Drop for ThreadState {
    fn drop(&mut self) {
        // SAFETY: it is what this thread was given, and nothing that was attached since still is.
        stop_at_end(|| unsafe { PyGILState_Release(self.0) });
    }
}

struct Detach;

impl Pause for Detach {
    fn pause(&self, wait: &mut (dyn FnMut() + Send)) {
        Python::attach(|py| py.detach(wait));
    }
}
