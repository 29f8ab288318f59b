//! The thread that sees whose time is up. Invariant: it runs nothing of a user's but the clock, and
//! waits for nobody, so that no job and no listener can keep it from telling another run to stop.

use crate::owed::Owed;
use crate::shared::Shared;

/// Its whole life.
pub(crate) fn live(shared: &Shared) {
    shared.queue.watch(&|| shared.clock.now());
    if shared.check_process().is_ok() {
        shared.queue.exit(shared.clock.now(), &mut Owed::default());
    }
}
