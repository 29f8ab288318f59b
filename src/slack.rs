//! Timer slack. Invariant: a worker's alarm is exact only while it sleeps; jobs and the processes
//! that they start keep the system's default.
//!
//! Linux lets a thread's timers fire up to 50 µs late, to save wake-ups. A scheduler wants its
//! alarms on time, so the slack is 1 ns around the wait. It is inherited by child processes,
//! so it is undone after it.

use crate::clock::Alarm;

/// Runs `wait` with the least timer slack that the system offers, if there is an alarm.
pub(crate) fn precisely<T>(alarm: Alarm, wait: impl FnOnce() -> T) -> T {
    if alarm == Alarm::Never {
        return wait();
    }
    set_slack(1);
    let woken = wait();
    set_slack(0); // the thread's default
    woken
}

#[cfg(target_os = "linux")]
fn set_slack(nanos: libc::c_ulong) {
    // SAFETY: PR_SET_TIMERSLACK takes one number and changes only how this thread's timers fire.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, nanos) };
}

#[cfg(not(target_os = "linux"))]
fn set_slack(_: u64) {}
