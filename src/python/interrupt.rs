//! Python jobs that outlive their timeout. Invariant: what is raised from outside is raised in the job
//! of its run and nowhere else.
//!
//! An exception that another thread sets is raised at the next bytecode that the job's thread runs, be
//! that the job's, another job's or the package's own. So it is set only while a window is open, which
//! is from just before the job is called to just after it has returned. Setting and closing exclude each
//! other, by the GIL and by a lock of the window's own, and no bytecode is run between the two. What was
//! set and not raised by then is raised in a function that does nothing, and dropped. (It could be taken
//! back, too, but CPython 3.11 then looks for it for ever, and hangs where functions are traced.)
//!
//! A job that ends another task runs that one's callbacks, on its own thread, and they are not the job:
//! the window is shut while they are called, and what would have been raised in them is raised after.

use std::cell::RefCell;
use std::ffi::c_long;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::call::call;
use super::errors::TASK_TIMEOUT;
use super::lookup::{Attribute, Lookup};
use crate::{Interrupt, Run};

static GET_IDENT: Attribute = Attribute::new("_thread", "get_ident");
static STACK: Attribute = Attribute::new("duetime._threads", "stack");
static SETTLE: Attribute = Attribute::new("duetime._threads", "settle");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&GET_IDENT, &STACK, &SETTLE];

/// The thread of one run, while its job is called.
struct Window {
    /// Python's name of the thread.
    thread: c_long,
    /// Locked for a moment, while no Python code runs.
    state: Mutex<State>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Open, and an exception was set.
    Set,
    /// What is called is not the job.
    Shut,
    /// The same, and an exception is to be set after.
    Owed,
    Closed,
}

impl Window {
    fn open(py: Python<'_>) -> PyResult<Arc<Self>> {
        let ident: u64 = call(GET_IDENT.get(py).as_unbound(), py, None)?.extract(py)?;
        // As CPython takes it, an unsigned long; the declaration says otherwise.
        let thread = ident.cast_signed() as c_long;
        Ok(Arc::new(Self { thread, state: Mutex::new(State::Open) }))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the exception raised in the thread.
    fn set(&self, py: Python<'_>, state: &mut State) {
        *state = State::Set;
        let exception = TASK_TIMEOUT.get(py).as_ptr();
        // SAFETY: attached; the exception is a class that lives. A thread that does not exist
        // (any more) is no error.
        unsafe { ffi::PyThreadState_SetAsyncExc(self.thread, exception) };
    }

    /// Has what was set raised here and dropped; whether there was anything.
    fn settle(py: Python<'_>) -> bool {
        call(SETTLE.get(py).as_unbound(), py, None).is_err()
    }

    /// Shuts the window; `false` if there is no need: it is shut already, or all was raised.
    fn shut(&self, py: Python<'_>) -> bool {
        let mut state = self.lock();
        match *state {
            State::Open => {
                *state = State::Shut;
                true
            }
            State::Set => {
                drop(state);
                let raised = Self::settle(py); // and nobody sets another
                if raised {
                    *self.lock() = State::Owed;
                }
                raised
            }
            State::Shut | State::Owed | State::Closed => false,
        }
    }
}

impl Interrupt for Window {
    fn interrupt(&self) {
        // No answer: the interpreter ends.
        let _: Option<()> = Python::try_attach(|py| {
            let mut state = self.lock();
            match *state {
                State::Open => self.set(py, &mut state),
                State::Shut => *state = State::Owed,
                State::Set | State::Owed | State::Closed => {}
            }
        });
    }

    fn stack(&self) -> Option<String> {
        Python::try_attach(|py| {
            let is_open = *self.lock() != State::Closed;
            let thread =
                PyTuple::new(py, [self.thread.cast_unsigned()]).ok().filter(|_| is_open)?;
            call(STACK.get(py).as_unbound(), py, Some(&thread)).ok()?.extract(py).ok()
        })
        .flatten()
    }
}

thread_local! {
    /// The window of the job that this thread is in.
    static CURRENT: RefCell<Option<Arc<Window>>> = const { RefCell::new(None) };
}

/// Opens a window that was shut, also when the code panics.
struct Reopen<'py>(Python<'py>, Arc<Window>);

impl Drop for Reopen<'_> {
    fn drop(&mut self) {
        let Self(py, window) = self;
        let mut state = window.lock();
        match *state {
            State::Shut => *state = State::Open,
            State::Owed => window.set(*py, &mut state),
            State::Open | State::Set | State::Closed => {}
        }
    }
}

/// Calls what is not the job of this thread, if there is one, so that no interrupt hits it.
pub(super) fn apart<T>(py: Python<'_>, code: impl FnOnce() -> T) -> T {
    let window = CURRENT.with(|current| current.borrow().clone());
    let _reopen = window.filter(|window| window.shut(py)).map(|window| Reopen(py, window));
    code()
}

/// Closes the window also when the code panics.
struct Close<'a, 'py>(Python<'py>, &'a Window);

impl Drop for Close<'_, '_> {
    fn drop(&mut self) {
        let Self(py, window) = *self;
        CURRENT.with(|current| current.borrow_mut().take());
        let before = std::mem::replace(&mut *window.lock(), State::Closed);
        if before == State::Set {
            Window::settle(py);
        }
    }
}

/// Calls the job of a run, so that it can be interrupted if its task has a timeout.
pub(super) fn within<T>(
    py: Python<'_>,
    run: &Run,
    job: impl FnOnce() -> PyResult<T>,
) -> PyResult<T> {
    if run.deadline().is_none() {
        return job();
    }
    let window = Window::open(py)?;
    let _close = Close(py, &window);
    CURRENT.with(|current| *current.borrow_mut() = Some(Arc::clone(&window)));
    run.set_interrupt(Arc::clone(&window) as Arc<dyn Interrupt>);
    job()
}
