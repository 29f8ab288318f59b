//! The thread that sends DUE while all workers are busy. Invariant: it sends what nobody else does,
//! on time, and starts no job.

use crate::owed::Owed;
use crate::shared::Shared;
use crate::surroundings::Surroundings;

/// Its whole life.
pub(crate) fn live(shared: &Shared, surroundings: &dyn Surroundings) {
    let sleep = || shared.queue.sleep_announcer(&|| shared.clock.now());
    let mut is_due = sleep();
    surroundings.live(&format!("{}-due", shared.name), &mut |pause| {
        while is_due {
            shared.announce_due(shared.clock.now());
            pause.pause(&mut || is_due = sleep());
        }
    });
    if shared.check_process().is_ok() {
        shared.queue.exit(shared.clock.now(), &mut Owed::default());
    }
}
