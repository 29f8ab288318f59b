//! Waits for the core. Invariant: a Python thread that waits is woken by event, and Ctrl-C ends the
//! waits of the main thread at once. Every other one, which hears no signals, sleeps in a lock of
//! Python's.

use std::time::Duration;

use pyo3::prelude::*;

use super::call::{call, call_method};
use super::lookup::{Attribute, Lookup, Names};
#[cfg(unix)]
use super::main_thread::Sleep;
use super::own::Own;
use crate::Waker;

/// Python refuses longer timeouts (`threading.TIMEOUT_MAX` is 292 years or less).
const LONGEST: Duration = Duration::from_secs(4_000_000);

static NEW_LOCK: Attribute = Attribute::new("_thread", "allocate_lock");
static NAMES: Names<2> = Names::new(["acquire", "release"]);
static IDENT: Attribute = Attribute::new("_thread", "get_ident");
static MAIN: Attribute = Attribute::new("threading", "main_thread");
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&NEW_LOCK, &NAMES, &IDENT, &MAIN];

/// Whether the calling thread is the one that runs the handlers of signals. It may run one here,
/// which may raise.
pub(super) fn on_main_thread(py: Python<'_>) -> PyResult<bool> {
    let main = MAIN.get(py).call0()?.getattr("ident")?;
    IDENT.get(py).call0()?.eq(main)
}

/// Waits until the waker that `register` is given was called, or until `timeout`; says whether it
/// came. `register` gives `None` where there is nothing to wait for, and otherwise a key, with which
/// `forget` takes a waker back that was not called: after a timeout, or a Ctrl-C.
pub(super) fn wait<K>(
    py: Python<'_>,
    timeout: Option<Duration>,
    register: impl FnOnce(Waker) -> PyResult<Option<K>>,
    forget: impl FnOnce(K),
) -> PyResult<bool> {
    #[cfg(unix)]
    if on_main_thread(py)?
        && let Some(mut sleep) = Sleep::begin(py)
    {
        let Some(key) = register(sleep.waker())? else { return Ok(true) };
        let came = sleep.sleep(timeout);
        // In a child that a handler forked, the wait is the parent's.
        return unless_woken(came, || {
            if sleep.is_ours() {
                forget(key);
            }
        });
    }
    let lock = call(NEW_LOCK.get(py).as_unbound(), py, None)?;
    let [acquire_name, _] = NAMES.get(py);
    call_method(&lock, py, acquire_name, ())?;
    let Some(key) = register(releasing(py, &lock)?)? else { return Ok(true) };
    // Where this is the main thread after all, a signal that came before would not end the sleep.
    let came = py.check_signals().and_then(|()| acquire(&lock, py, timeout));
    unless_woken(came, || forget(key))
}

fn unless_woken(came: PyResult<bool>, forget: impl FnOnce()) -> PyResult<bool> {
    if !matches!(came, Ok(true)) {
        forget();
    }
    came
}

/// A waker that releases a lock.
fn releasing(py: Python<'_>, lock: &Py<PyAny>) -> PyResult<Waker> {
    let [_, release_name] = NAMES.get(py);
    let release = Own::from(lock.bind(py).getattr(release_name)?);
    Ok(Box::new(move || {
        Python::attach(|py| {
            // It fails only if nobody holds the lock, and then nobody waits.
            drop(call(&release, py, None));
            drop(release); // while attached
        });
    }))
}

/// Acquires in pieces where Python refuses the whole.
fn acquire(lock: &Py<PyAny>, py: Python<'_>, timeout: Option<Duration>) -> PyResult<bool> {
    let [acquire, _] = NAMES.get(py);
    let Some(mut left) = timeout else {
        return call_method(lock, py, acquire, ())?.extract(py);
    };
    loop {
        let piece = left.min(LONGEST);
        if call_method(lock, py, acquire, (true, piece.as_secs_f64()))?.extract(py)? {
            return Ok(true);
        }
        left -= piece;
        if left.is_zero() {
            return Ok(false);
        }
    }
}
