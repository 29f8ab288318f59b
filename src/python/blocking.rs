//! Waits that Ctrl-C ends. Invariant: a Python thread that waits for the core sleeps in a lock of
//! Python's, which runs signal handlers, and is woken by event.

use std::time::Duration;

use pyo3::prelude::*;

use super::call::{call, call_method};
use super::lookup::{Attribute, Lookup, Names};
use super::own::Own;
use crate::Waker;

/// Python refuses longer timeouts (`threading.TIMEOUT_MAX` is 292 years or less).
const LONGEST: Duration = Duration::from_secs(4_000_000);

static NEW_LOCK: Attribute = Attribute::new("_thread", "allocate_lock");
static NAMES: Names<2> = Names::new(["acquire", "release"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[&NEW_LOCK, &NAMES];

/// Waits until the waker that `register` is given was called, or until `timeout`; says whether it
/// came. `register` gives `None` where there is nothing to wait for, and otherwise a key, with which
/// `forget` takes a waker back that was not called: after a timeout, or a Ctrl-C.
pub(super) fn wait<K>(
    py: Python<'_>,
    timeout: Option<Duration>,
    register: impl FnOnce(Waker) -> PyResult<Option<K>>,
    forget: impl FnOnce(K),
) -> PyResult<bool> {
    let lock = call(NEW_LOCK.get(py).as_unbound(), py, None)?;
    let [acquire_name, release_name] = NAMES.get(py);
    call_method(&lock, py, acquire_name, ())?;
    let release = Own::from(lock.bind(py).getattr(release_name)?);
    let waker = Box::new(move || {
        Python::attach(|py| {
            // It fails only if nobody holds the lock, and then nobody waits.
            drop(call(&release, py, None));
            drop(release); // while attached
        });
    });
    let Some(key) = register(waker)? else { return Ok(true) };
    // A signal that came before the lock sleeps would not end its sleep.
    let came = py.check_signals().and_then(|()| acquire(&lock, py, timeout));
    if !matches!(came, Ok(true)) {
        forget(key);
    }
    came
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
