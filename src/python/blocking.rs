//! Waits that Ctrl-C ends. Invariant: a Python thread that waits for the core sleeps in a lock of
//! Python's, which runs signal handlers, and is woken by event.

use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;

use crate::Waker;

/// Python refuses longer timeouts (`threading.TIMEOUT_MAX` is 292 years or less).
const LONGEST: Duration = Duration::from_secs(4_000_000);

/// Waits until the waker that `register` is given was called, or until `timeout`; says whether it
/// came. `register` gives `None` where there is nothing to wait for, and otherwise a key, with which
/// `forget` takes a waker back that was not called: after a timeout, or a Ctrl-C.
pub(super) fn wait<K>(
    py: Python<'_>,
    timeout: Option<Duration>,
    register: impl FnOnce(Waker) -> PyResult<Option<K>>,
    forget: impl FnOnce(K),
) -> PyResult<bool> {
    let lock = new_lock(py)?;
    let release = lock.clone().unbind();
    let waker = Box::new(move || {
        Python::attach(|py| {
            // It fails only if nobody holds the lock, and then nobody waits.
            drop(release.call_method0(py, intern!(py, "release")));
            drop(release);
        });
    });
    let Some(key) = register(waker)? else { return Ok(true) };
    let came = acquire(&lock, timeout);
    if !matches!(came, Ok(true)) {
        forget(key);
    }
    came
}

fn new_lock(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    let lock = py.import(intern!(py, "_thread"))?.call_method0(intern!(py, "allocate_lock"))?;
    lock.call_method0(intern!(py, "acquire"))?;
    Ok(lock)
}

/// Acquires in pieces where Python refuses the whole.
fn acquire(lock: &Bound<'_, PyAny>, timeout: Option<Duration>) -> PyResult<bool> {
    let acquire = intern!(lock.py(), "acquire");
    let Some(mut left) = timeout else {
        return lock.call_method0(acquire)?.extract();
    };
    loop {
        let piece = left.min(LONGEST);
        if lock.call_method1(acquire, (true, piece.as_secs_f64()))?.extract()? {
            return Ok(true);
        }
        left -= piece;
        if left.is_zero() {
            return Ok(false);
        }
    }
}
