//! The end of the interpreter. Invariant: after the hook no worker of this process holds or wants
//! the GIL, unless a user's Ctrl-C ended the wait for its job, or its job is stuck.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use super::blocking;
use crate::{Crew, Waker, WeakCrew};

/// Every crew that may still have threads. The scheduler of one may be gone: what its jobs do goes
/// on.
static CREWS: Mutex<Vec<WeakCrew>> = Mutex::new(Vec::new());

fn crews() -> std::sync::MutexGuard<'static, Vec<WeakCrew>> {
    CREWS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn remember(crew: &Crew) {
    let mut crews = crews();
    // Now and then those that are gone are dropped, so that the list stays as long as what lives.
    if crews.len().is_power_of_two() {
        crews.retain(|crew| !crew.is_gone());
    }
    crews.push(crew.downgrade());
}

/// Whether a Ctrl-C ended the wait. Relaxed: the main thread alone writes and reads it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Shut down every scheduler of this process, and wait for their running jobs.
#[pyfunction]
pub(super) fn _shutdown_all(py: Python<'_>) {
    let all: Vec<Crew> = crews().iter().filter_map(WeakCrew::upgrade).collect();
    // In a forked child those of the parent refuse.
    let all: Vec<Crew> = all.into_iter().filter(|crew| crew.close(false).is_ok()).collect();
    for crew in &all {
        // Both nets call this, and one Ctrl-C is for both: the user wants the process to end now.
        if INTERRUPTED.load(Ordering::Relaxed) || wait_ended(py, crew, None).is_err() {
            INTERRUPTED.store(true, Ordering::Relaxed);
            return;
        }
    }
}

/// Waits for the last job of a crew that was closed, and for its threads.
pub(super) fn wait_ended(py: Python<'_>, crew: &Crew, timeout: Option<Duration>) -> PyResult<bool> {
    let register = |waker: Waker| Ok(crew.when_ended(waker)?);
    let ended = blocking::wait(py, timeout, register, |key| crew.forget_waker(key))?;
    if ended {
        py.detach(|| crew.join());
    }
    Ok(ended)
}
