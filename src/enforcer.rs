//! The thread that does what may take long to runs whose time is up: it wakes those of their threads
//! that sleep, calls who is to stop them, and ends the tasks of those that are stuck. Invariants: of a
//! run that has ended meanwhile nothing is called or ended; the place of a stuck worker is served again
//! before anything of a user is run.

use crate::deadlines::{Overdue, Timed};
use crate::job::{contain, discard};
use crate::owed::Owed;
use crate::queue::call;
use crate::shared::Shared;
use crate::story::Story;
use crate::surroundings::Surroundings;
use crate::timeout::TaskStuck;

/// Its whole life. `relieve` is told of a worker that is stuck, and whether to replace it.
pub(crate) fn live(
    shared: &Shared,
    surroundings: &dyn Surroundings,
    relieve: &dyn Fn(usize, bool),
) {
    let mut next = shared.queue.next_overdue();
    if next.is_some() {
        surroundings.live(&format!("{}-late", shared.name), &mut |pause| {
            while let Some(overdue) = next.take() {
                act(shared, overdue, relieve);
                if shared.check_process().is_err() {
                    return; // a listener forked, and this is the child
                }
                pause.pause(&mut || next = shared.queue.next_overdue());
            }
        });
    }
    if shared.check_process().is_ok() {
        shared.queue.exit(shared.clock.now(), &mut Owed::default());
    }
}

fn act(shared: &Shared, overdue: Overdue, relieve: &dyn Fn(usize, bool)) {
    match overdue {
        Overdue::Late { attempt, sleepers, interrupt } => {
            call(sleepers);
            shared.stops.call_for(&attempt);
            if let Some(interrupt) = interrupt {
                drop(contain(|| interrupt.interrupt()));
                discard(interrupt);
            }
        }
        Overdue::Stuck { timed, replace } => {
            if let Some(worker) = timed.worker {
                relieve(worker, replace);
            }
            give_up(shared, *timed);
        }
    }
}

/// Ends the task of a run that is stuck. From here on the run counts for nothing.
fn give_up(shared: &Shared, timed: Timed) {
    let Timed { attempt, limit, timeout, group, interrupt, .. } = timed;
    let stack = interrupt.as_ref().and_then(|job| contain(|| job.stack()).ok().flatten());
    discard(interrupt);
    shared.stops.forget(&attempt.task);
    let error = TaskStuck { timeout, grace: limit.grace };
    Story { shared, attempt }.give_up(error, stack);
    if shared.check_process().is_ok() {
        shared.queue.end_elsewhere(group, shared.clock.now());
    }
}
