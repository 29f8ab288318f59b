//! The end of the interpreter. Invariant: after the hook no worker of this process holds or wants
//! the GIL, unless a user's Ctrl-C ended the wait for its job.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use super::scheduler::wait_ended;
use crate::{Scheduler, WeakScheduler};

/// Every scheduler that Python made and that may have threads.
static SCHEDULERS: Mutex<Vec<WeakScheduler>> = Mutex::new(Vec::new());

fn schedulers() -> std::sync::MutexGuard<'static, Vec<WeakScheduler>> {
    SCHEDULERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn remember(scheduler: &Scheduler) {
    let mut schedulers = schedulers();
    // Now and then those that are gone are dropped, so that the list stays as long as what lives.
    if schedulers.len().is_power_of_two() {
        schedulers.retain(|scheduler| scheduler.upgrade().is_some());
    }
    schedulers.push(scheduler.downgrade());
}

/// Whether a Ctrl-C ended the wait. Relaxed: the main thread alone writes and reads it.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Shut down every scheduler of this process, and wait for their running jobs.
#[pyfunction]
pub(super) fn _shutdown_all(py: Python<'_>) {
    let all: Vec<Scheduler> = schedulers().iter().filter_map(WeakScheduler::upgrade).collect();
    let all: Vec<Scheduler> = all.into_iter().filter(|s| s.check_process().is_ok()).collect();
    for scheduler in &all {
        drop(scheduler.close(false));
    }
    for scheduler in &all {
        // Both nets call this, and one Ctrl-C is for both: the user wants the process to end now.
        if INTERRUPTED.load(Ordering::Relaxed) || wait_ended(py, scheduler, None).is_err() {
            INTERRUPTED.store(true, Ordering::Relaxed);
            return;
        }
    }
}
