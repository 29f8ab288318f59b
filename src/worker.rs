//! A worker's life: take, run, finish, until the queue closes. Invariant: whatever a job does, its
//! task ends in one state, is told of once, and the worker goes on.

use std::mem;
use std::sync::Weak;
use std::time::Duration;

use crate::chance::unit_random;
use crate::clock::{Timestamp, instant};
use crate::event::{Event, EventKind};
use crate::heap::Entry;
use crate::info::Ran;
use crate::job::{Outcome, contain, describe};
use crate::plan::Verdict;
use crate::record::{End, Ended, TaskRef, Work};
use crate::room::{Last, Owed, Take};
use crate::run::{Host, Run, run_job};
use crate::shared::Shared;
use crate::surroundings::{Pause, Surroundings};

/// The whole life of the thread of `worker`.
pub(crate) fn live(shared: &Shared, worker: usize, surroundings: &dyn Surroundings) {
    let mut owed = Owed::default();
    // The surroundings are entered when there is work, and not at all if there never is.
    shared.queue.sleep(worker, &mut owed, &|| shared.clock.now());
    let name = format!("{}-{worker}", shared.name);
    surroundings.live(&name, &mut |pause| {
        work(shared, worker, &mut owed, pause, surroundings.turn());
    });
    // Only now, for what the surroundings drop at a thread's end is user code too. In a child that a
    // job forked nothing here is its own any more.
    if shared.check_process().is_ok() {
        shared.queue.exit(shared.clock.now(), &mut owed);
    }
}

/// Jobs between two looks at the time. The look costs as much as a small job's bookkeeping.
const STRIDE: u32 = 16;

fn work(shared: &Shared, worker: usize, owed: &mut Owed, pause: &dyn Pause, turn: Duration) {
    let mut jobs = 0_u32;
    let mut since = instant();
    // The last reading of the clock stands for the next one: a task that was due then is due now,
    // and whatever fell due since is later in the order.
    let mut now = shared.clock.now();
    let mut host = shared.host();
    loop {
        if owed.last.is_none() {
            shared.announce_due(now);
        }
        match shared.queue.try_take(now, owed) {
            Take::Over(task, over) => shared.conclude(&task, over, |_| ()),
            Take::Task(entry) => {
                // `None`: the job, or a listener, forked, and this is the child.
                let started = now.max(entry.due); // in a drain `now` may be older
                let run = run(shared, &mut host, entry, started);
                let Some(Finished { time, last }) = run else { return };
                now = time;
                owed.run = true;
                owed.last = last;
                jobs += 1;
                if jobs.is_multiple_of(STRIDE) && turn < Duration::MAX && since.elapsed() > turn {
                    shared.end_last(owed);
                    pause.pause(&mut || ());
                    since = instant();
                    now = shared.clock.now();
                }
            }
            Take::Nothing => {
                pause.pause(&mut || shared.queue.sleep(worker, owed, &|| shared.clock.now()));
                since = instant();
                now = shared.clock.now();
            }
            Take::Closed => return shared.queue.settle(now, owed),
        }
    }
}

/// One run of one task, told from its start to its end.
struct Story<'a> {
    shared: &'a Shared,
    task: TaskRef,
    due: Timestamp,
    started: Timestamp,
    number: u64,
    attempt: u64,
}

/// A run that ended.
struct Finished {
    time: Timestamp,
    /// What is left to be done, in the step in which the next task is taken.
    last: Option<Last>,
}

/// Runs a task that was taken at `now`.
fn run(
    shared: &Shared,
    host: &mut Weak<dyn Host>,
    entry: Entry<TaskRef>,
    now: Timestamp,
) -> Option<Finished> {
    let Entry { task, due, .. } = entry;
    let Some((mut work, number)) = task.check_out(now) else {
        return Some(Finished { time: now, last: None });
    };
    let attempt = work.plan.as_ref().map_or(1, |plan| plan.attempt());
    let mut story = Story { shared, task, due, started: now, number, attempt };
    story.emit(EventKind::Started, None, None);
    shared.check_process().ok()?; // a listener may have forked, as the job may
    let (times, counts) = ((due, now), (attempt, number));
    // Lent to the run: workers that count references run by run would wait for one another.
    let lent = mem::replace(host, Weak::<Shared>::new());
    let run = Run::new(story.task, lent, shared.made_in, times, counts);
    let (outcome, task, back) = run_job(&mut *work.job, run);
    shared.check_process().ok()?;
    *host = back;
    story.task = task;
    // A clock that went back must not make a run of negative length.
    let time = shared.clock.now().max(now);
    Some(Finished { time, last: story.end(work, outcome, time) })
}

impl Story<'_> {
    /// Ends the run, and the task too if nothing follows; or gives what is left to do.
    fn end(self, work: Work, outcome: Outcome, finished: Timestamp) -> Option<Last> {
        let error = outcome.error().map(|error| (error.clone(), describe(error)));
        let ran = Ran { started: self.started, finished, error };
        if work.plan.is_some() || self.shared.listeners.anybody() {
            self.follow(work, outcome, ran);
            return None;
        }
        drop(contain(|| drop(work))); // a worker is inside of its scheduler already
        Some(Last { task: self.task, ran, ended: outcome.into() })
    }

    fn follow(&self, mut work: Work, outcome: Outcome, mut ran: Ran) {
        let Some(plan) = &mut work.plan else {
            let end = Ended::from(outcome);
            return self.finish(work, &ran, end.clone(), end);
        };
        let series = plan.is_series();
        let verdict = plan.after(ran.error(), ran.finished, unit_random);
        let if_stopped = if series { Ended::Cancelled } else { outcome.clone().into() };
        match verdict {
            Verdict::Again { due, missed } if self.goes_on() => self.again(work, &ran, due, missed),
            // It was told to stop, or the scheduler closes.
            Verdict::Again { .. } => self.finish(work, &ran, if_stopped.clone(), if_stopped),
            Verdict::End => self.finish(work, &ran, outcome.into(), if_stopped),
            Verdict::Broken(error) => {
                let broken = Ended::Failed(error.clone());
                ran.error = Some((error.clone(), describe(&error)));
                self.finish(work, &ran, broken.clone(), broken);
            }
        }
    }

    /// Whether another run may follow; if so, the task is on its way back to the queue.
    fn goes_on(&self) -> bool {
        self.shared.queue.is_open() && self.task.state.try_tell()
    }

    /// Back into the queue. The listeners are told first: the next run's events come after.
    fn again(&self, work: Work, ran: &Ran, due: Timestamp, missed: u64) {
        // Before anybody can look ahead from the slot that comes.
        self.task.set_due(due);
        self.shared.drop_contained(self.task.check_in(work, ran, missed));
        self.shared.queue.lock().registry.totals.add_run(ran, missed);
        self.emit_end(ran, Some(due));
        if missed > 0 {
            self.shared.emit(EventKind::Missed, &self.task, || Event {
                missed: Some(missed),
                next_due: Some(due),
                ..self.event(EventKind::Missed)
            });
        }
        self.shared.bring(self.task.clone());
    }

    /// Ends the task.
    fn finish(&self, work: Work, ran: &Ran, as_it_ran: Ended, if_stopped: Ended) {
        self.shared.drop_contained(work);
        let end = End { ran: Some(ran), as_it_ran, if_stopped };
        self.shared.finish(&self.task, &end, |ended| {
            self.emit_end(ran, None);
            if matches!(ended, Ended::Cancelled) {
                self.emit(EventKind::Cancelled, None, None);
            }
        });
    }

    fn emit_end(&self, ran: &Ran, next_due: Option<Timestamp>) {
        let error = ran.error();
        let kind = if error.is_some() { EventKind::Failed } else { EventKind::Completed };
        self.emit(kind, Some(ran), next_due);
    }

    /// Tells of the start, of the end (with `ran`), or of the cancel.
    fn emit(&self, kind: EventKind, ran: Option<&Ran>, next_due: Option<Timestamp>) {
        self.shared.emit(kind, &self.task, || {
            let told = kind != EventKind::Cancelled;
            Event {
                lateness: told.then(|| self.started.since(self.due)),
                duration: ran.map(|ran| ran.finished.since(ran.started)),
                error: ran.and_then(Ran::error).cloned(),
                next_due,
                ..self.event(kind)
            }
        });
    }

    fn event(&self, kind: EventKind) -> Event {
        let Self { shared, ref task, due, number, attempt, .. } = *self;
        Event { due, run: number, attempt, ..shared.event(kind, task) }
    }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(value) => Self::Done(value),
            Outcome::Failed(error) => Self::Failed(error),
        }
    }
}
