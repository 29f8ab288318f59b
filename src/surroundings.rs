//! What the threads that run user code live in. Invariant: a thread enters once, for its whole life,
//! and is outside whenever it sleeps.

use std::time::Duration;

/// What a thread of ours lives in: another runtime that must be entered once, and left while the
/// thread sleeps. The Python package attaches its thread state here.
pub trait Surroundings: Send + Sync + 'static {
    /// Calls `life` once and returns when it does. Called on each thread that may run code of a user,
    /// when there is work for it for the first time.
    fn live(&self, name: &str, life: &mut dyn FnMut(&dyn Pause)) {
        let _ = name;
        life(&NoPause);
    }

    /// How long a worker may run one job after the other before it pauses to let others in. Where others
    /// are never let in, nobody is waited for: only with a bound is the time that workers take to enter
    /// told, as [`Lateness::gil`](crate::Lateness::gil).
    fn turn(&self) -> Duration {
        Duration::MAX
    }
}

/// How a worker leaves its surroundings for a while.
pub trait Pause {
    /// Calls `wait` once, outside.
    fn pause(&self, wait: &mut (dyn FnMut() + Send));
}

/// No surroundings: a plain thread.
#[derive(Debug, Default)]
pub(crate) struct Plain;

impl Surroundings for Plain {}

struct NoPause;

impl Pause for NoPause {
    fn pause(&self, wait: &mut (dyn FnMut() + Send)) {
        wait();
    }
}
