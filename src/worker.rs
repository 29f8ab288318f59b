//! A worker's life: take, run, finish, until the queue closes. Invariant: whatever a job does, its
//! task ends in one state, is told of once, and the worker goes on.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::chance::unit_random;
use crate::clock::{Timestamp, instant};
use crate::door::Side;
use crate::event::{Event, EventKind};
use crate::heap::Entry;
use crate::info::Ran;
use crate::inside::{Place, enter};
use crate::job::{Outcome, contain, describe, discard};
use crate::later::{Completion, Later, StopHook, Unfinished};
use crate::plan::Verdict;
use crate::record::{End, Ended, TaskRef, Work};
use crate::recurrence::Next;
use crate::room::{Last, Owed, Take};
use crate::run::{Host, Run, run_job};
use crate::shared::Shared;
use crate::surroundings::{Pause, Surroundings};

/// The whole life of the thread of `worker`.
pub(crate) fn live(shared: &Shared, worker: usize, surroundings: &dyn Surroundings) {
    // Where nobody is to be let in, nobody is waited for.
    let has_door = surroundings.turn() < Duration::MAX && shared.queue.moves_by_itself();
    let side = if has_door { Side::Inside } else { Side::Nowhere };
    let mut owed = Owed { side, ..Owed::default() };
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
                let started = now.max(entry.due); // in a drain `now` may be older
                match run(shared, &mut host, entry, started) {
                    Left::Over(Finished { time, last }) => {
                        now = time;
                        owed.run = true;
                        owed.last = last;
                    }
                    Left::GoesOn => now = shared.clock.now().max(started),
                    Left::Forked => return,
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

/// How a worker leaves a run.
enum Left {
    /// It ended.
    Over(Finished),
    /// It goes on elsewhere.
    GoesOn,
    /// The job, or a listener, forked, and this is the child. Nothing here is its own any more.
    Forked,
}

/// Runs a task that was taken at `now`.
fn run(shared: &Shared, host: &mut Weak<dyn Host>, entry: Entry<TaskRef>, now: Timestamp) -> Left {
    let Entry { task, due, .. } = entry;
    let Some((mut work, number)) = task.check_out(now) else {
        return Left::Over(Finished { time: now, last: None });
    };
    let attempt = work.plan.as_ref().map_or(1, |plan| plan.attempt());
    let mut story = Story { shared, task, due, started: now, number, attempt };
    story.emit(EventKind::Started, None, None);
    if shared.check_process().is_err() {
        return Left::Forked;
    }
    let (times, counts) = ((due, now), (attempt, number));
    // Lent to the run: workers that count references run by run would wait for one another.
    let lent = mem::replace(host, Weak::<Shared>::new());
    let run = Run::new(story.task, lent, shared.made_in, times, counts);
    let (outcome, task, back) = run_job(&mut *work.job, run);
    if shared.check_process().is_err() {
        return Left::Forked;
    }
    *host = back;
    story.task = task;
    if let Outcome::Later(later) = outcome {
        return story.hand_on(work, later);
    }
    let time = story.finished();
    Left::Over(Finished { time, last: story.end(work, outcome, time) })
}

/// A run that goes on elsewhere: its story, up to its end, by itself.
struct Elsewhere {
    shared: Arc<Shared>,
    work: Work,
    task: TaskRef,
    due: Timestamp,
    started: Timestamp,
    number: u64,
    attempt: u64,
}

impl Unfinished for Elsewhere {
    fn end(self: Box<Self>, outcome: Outcome, gave_way: bool) {
        let Self { shared, work, task, due, started, number, attempt } = *self;
        if shared.check_process().is_err() {
            return shared.drop_contained(work); // it goes on where it began, in the parent
        }
        shared.stops.forget(&task);
        let group = work.plan.as_ref().map(|plan| plan.group).filter(|&group| group != 0);
        enter(Place::of(shared.identity()), || {
            let story = Story { shared: &shared, task, due, started, number, attempt };
            let ran = story.ran(&outcome, story.finished());
            story.follow(work, outcome, ran, gave_way);
        });
        shared.queue.end_elsewhere(group, shared.clock.now());
    }

    fn on_stop(&self, hook: StopHook) -> Option<StopHook> {
        self.shared.check_process().ok()?;
        self.shared.stops.add(&self.task, hook)
    }
}

impl Story<'_> {
    /// Hands the run on to whoever ends it.
    #[cold]
    fn hand_on(self, work: Work, later: Later) -> Left {
        let Self { shared: here, task, due, started, number, attempt } = self;
        let Some(shared) = here.me.upgrade() else { unreachable!("its worker holds it") };
        let run = Elsewhere { shared, work, task, due, started, number, attempt };
        let completion = Completion::new(run);
        drop(contain(|| later.launch(completion)));
        if here.check_process().is_ok() { Left::GoesOn } else { Left::Forked }
    }

    /// The time, as the end of this run: a clock that went back must not make its length negative.
    fn finished(&self) -> Timestamp {
        self.shared.clock.now().max(self.started)
    }

    fn ran(&self, outcome: &Outcome, finished: Timestamp) -> Ran {
        let error = outcome.error().map(|error| (error.clone(), describe(error)));
        Ran { started: self.started, finished, error }
    }

    /// Ends the run, and the task too if nothing follows; or gives what is left to do.
    fn end(self, work: Work, outcome: Outcome, finished: Timestamp) -> Option<Last> {
        let ran = self.ran(&outcome, finished);
        if work.plan.is_some() || self.shared.listeners.anybody() {
            self.follow(work, outcome, ran, false);
            return None;
        }
        discard(work); // a worker is inside of its scheduler already
        Some(Last { task: self.task, ran, ended: outcome.into() })
    }

    /// Goes on with what follows. A run that `gave_way` to a stop is no failure of its task.
    fn follow(&self, mut work: Work, outcome: Outcome, mut ran: Ran, gave_way: bool) {
        let Some(plan) = &mut work.plan else {
            let end = Ended::from(outcome);
            let if_stopped = if gave_way { Ended::Cancelled } else { end.clone() };
            return self.finish(work, &ran, end, if_stopped);
        };
        let cancelled = plan.is_series() || gave_way;
        let verdict = plan.after(ran.error(), ran.finished, unit_random);
        let outcome = Ended::from(outcome);
        let if_stopped = if cancelled { Ended::Cancelled } else { outcome.clone() };
        match verdict {
            Verdict::Again(next) => {
                if let Err(work) = self.again(work, &ran, next) {
                    self.finish(work, &ran, if_stopped.clone(), if_stopped);
                }
            }
            Verdict::End => self.finish(work, &ran, outcome, if_stopped),
            Verdict::Broken(error) => {
                let broken = Ended::Failed(error.clone());
                ran.error = Some((error.clone(), describe(&error)));
                self.finish(work, &ran, broken.clone(), broken);
            }
        }
    }

    /// Back into the queue, unless the task was told to stop, or the scheduler closes. The listeners
    /// are told first: the next run's events come after.
    fn again(&self, work: Work, ran: &Ran, next: Next) -> Result<(), Work> {
        if !self.shared.queue.is_open() {
            return Err(work);
        }
        self.shared.drop_contained(self.task.check_in(work, ran, next)?);
        let Next { due, missed } = next;
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
        Ok(())
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
            Outcome::Later(_) => unreachable!("launched, and its end is another"),
        }
    }
}
