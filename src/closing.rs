//! How a scheduler ends. Invariant: once it is closed no task comes in, and every task that was in
//! ends: waiting ones at once, running ones with their run.

use std::time::Duration;

use crate::room::Phase;
use crate::shared::Shared;
use crate::state::CancelOutcome;

/// How to shut down; see [`Scheduler::shutdown_with`](crate::Scheduler::shutdown_with).
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct Shutdown {
    pub(crate) wait: bool,
    pub(crate) drain: bool,
    pub(crate) timeout: Option<Duration>,
}

impl Shutdown {
    /// Returns at once; running jobs end by themselves.
    pub fn now() -> Self {
        Self::default()
    }

    /// Returns when the running jobs have ended.
    pub fn wait() -> Self {
        Self { wait: true, ..Self::default() }
    }

    /// Tasks that are due already run first.
    pub fn drain(self) -> Self {
        Self { drain: true, ..self }
    }

    /// Waits no longer than this.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

/// Refuses new tasks, cancels the waiting ones and tells the running ones to stop.
pub(crate) fn close(shared: &Shared, drain: bool) {
    let mut live = shared.queue.lock().registry.close();
    live.sort_by_key(|task| task.number); // the same order each time, where a table has none
    // Read before any worker hears of it: whatever is due by then runs first.
    let now = shared.clock.now();
    shared.queue.set_phase(if drain { Phase::Draining } else { Phase::Closed }, now);
    let drains = shared.queue.phase() == Phase::Draining;
    for task in live {
        let runs_first = drains && task.state.is_waiting() && task.due() <= now;
        if !runs_first {
            let _: CancelOutcome = shared.cancel(&task);
            if shared.check_process().is_err() {
                return; // a listener forked, and this is the child
            }
        }
    }
}
