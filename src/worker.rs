//! A worker's life: take, run, finish, until the queue closes. Invariant: whatever a job does, its
//! task ends in one state, is told of once, and the worker goes on.

use std::sync::Weak;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::body::Work;
use crate::clock::{Timestamp, instant};
use crate::deadlines::Timed;
use crate::door::Side;
use crate::elsewhere::hand_on;
use crate::heap::Entry;
use crate::job::Outcome;
use crate::owed::Owed;
use crate::record::TaskRef;
use crate::run::{Host, run_job};
use crate::shared::Shared;
use crate::story::Story;
use crate::surroundings::{Pause, Surroundings};
use crate::taking::Take;

/// The whole life of the thread of `worker`.
pub(crate) fn live(shared: &Shared, worker: usize, surroundings: &dyn Surroundings) {
    // Where nobody is to be let in, nobody is waited for.
    let has_door = surroundings.turn() < Duration::MAX && shared.queue.moves_by_itself();
    let side = if has_door { Side::Inside } else { Side::Nowhere };
    let mut owed = Owed { worker, side, ..Owed::default() };
    // The surroundings are entered when there is work, and not at all if there never is.
    shared.queue.sleep(&mut owed, &|| shared.clock.now());
    let name = format!("{}-{worker}", shared.name);
    let mut counts = true;
    surroundings.live(&name, &mut |pause| {
        counts = work(shared, &mut owed, pause, surroundings.turn());
    });
    // Only now, for what the surroundings drop at a thread's end is user code too. In a child that a
    // job forked nothing here is its own any more.
    if counts && shared.check_process().is_ok() {
        shared.queue.exit(shared.clock.now(), &mut owed);
    }
}

/// Jobs between two looks at the time. The look costs as much as a small job's bookkeeping.
const STRIDE: u32 = 16;

/// Says whether the thread still counted as one of the pool when it was done.
fn work(shared: &Shared, owed: &mut Owed, pause: &dyn Pause, turn: Duration) -> bool {
    let mut jobs = 0_u32;
    let mut since = instant();
    // The last reading of the clock stands for the next one: a task that was due then is due now,
    // and whatever fell due since is later in the order.
    let mut now = shared.clock.now();
    let host = shared.host();
    loop {
        if owed.last.is_none() {
            shared.announce_due(now);
        }
        match shared.queue.try_take(now, owed) {
            Take::Over(over) => shared.conclude_last(owed, over),
            Take::Task(entry) => {
                let started = now.max(entry.due); // in a drain `now` may be older
                match run(shared, &host, entry, started, owed) {
                    Left::Over(time) => now = time,
                    Left::GoesOn => now = shared.clock.now().max(started),
                    Left::GivenUp => match shared.queue.lock().come_back() {
                        Some(place) => owed.worker = place,
                        None => return false,
                    },
                    Left::Forked => return true,
                }
                jobs += 1;
                if jobs.is_multiple_of(STRIDE) && turn < Duration::MAX && since.elapsed() > turn {
                    shared.end_last(owed);
                    shared.queue.come_to_door(now, owed);
                    pause.pause(&mut || ());
                    since = instant();
                    now = shared.clock.now();
                }
            }
            Take::Nothing => {
                pause.pause(&mut || shared.queue.sleep(owed, &|| shared.clock.now()));
                since = instant();
                now = shared.clock.now();
            }
            Take::Closed => {
                shared.queue.settle(now, owed);
                return true;
            }
        }
    }
}

/// How a worker leaves a run.
enum Left {
    /// It ended, at that time. What is left to be done is owed.
    Over(Timestamp),
    /// It goes on elsewhere.
    GoesOn,
    /// It was given up as stuck, and another took this worker's place.
    GivenUp,
    /// The job, or a listener, forked, and this is the child. Nothing here is its own any more.
    Forked,
}

/// Runs a task that was taken at `now`.
fn run(
    shared: &Shared,
    host: &Weak<dyn Host>,
    entry: Entry<TaskRef>,
    now: Timestamp,
    owed: &mut Owed,
) -> Left {
    let Entry { task, due, .. } = entry;
    let Some((Work { mut job, plan }, run)) = task.check_out(now) else {
        owed.run = true;
        return Left::Over(now);
    };
    let nth = plan.as_ref().map_or(1, |plan| plan.attempt());
    let timeout = plan.as_ref().and_then(|plan| plan.timeout());
    let attempt = |task| Attempt { task, due, started: now, run, nth };
    let mut story = Story { shared, attempt: attempt(task) };
    story.emit_start();
    if shared.check_process().is_err() {
        return Left::Forked;
    }
    let deadline = timeout.map(|(limit, timeout)| {
        let timed = Timed::new(story.attempt.clone(), limit, timeout, owed.group, owed.worker);
        shared.queue.begin_attempt(timed);
        now + timeout
    });
    let (mut outcome, task) = run_job(&mut *job, story.attempt, deadline, host, shared.made_in);
    if shared.check_process().is_err() {
        return Left::Forked;
    }
    story.attempt = attempt(task);
    if plan.is_some() {
        let Some(judged) = story.judge(plan.as_deref(), outcome) else {
            shared.drop_contained((job, plan));
            return Left::GivenUp;
        };
        outcome = judged;
    }
    if let Outcome::Later(later) = outcome {
        hand_on(story, Work { job, plan }, later);
        return if shared.check_process().is_ok() { Left::GoesOn } else { Left::Forked };
    }
    let time = story.finished();
    owed.run = true;
    owed.last = story.end(Work { job, plan }, outcome, time);
    Left::Over(time)
}
