//! A worker's life: take, run, finish, until the queue closes. Invariant: whatever a job does, its
//! task ends in one state, is told of once, and the worker goes on.

use std::time::Duration;

use crate::clock::{Timestamp, instant};
use crate::event::{Event, EventKind};
use crate::heap::Entry;
use crate::job::{JobError, Outcome, describe};
use crate::plan::{Plan, Ran, Verdict};
use crate::record::{Ended, TaskRef, Work};
use crate::room::{Owed, Take};
use crate::run::{Run, run_job};
use crate::shared::{Shared, drop_contained};

/// What a worker thread lives in: another runtime that must be entered once, and left while the
/// thread sleeps. The Python package attaches its thread state here.
pub trait Surroundings: Send + Sync + 'static {
    /// Calls `life` once and returns when it does. Called on each worker's own thread, when there
    /// is work for it for the first time.
    fn live(&self, name: &str, life: &mut dyn FnMut(&dyn Pause)) {
        let _ = name;
        life(&NoPause);
    }

    /// How long a worker may run one job after the other before it pauses to let others in.
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

/// The whole life of the thread of `worker`.
pub(crate) fn live(shared: &Shared, worker: usize, surroundings: &dyn Surroundings) {
    let mut owed = Owed::default();
    // The surroundings are entered when there is work, and not at all if there never is.
    shared.queue.sleep(worker, &mut owed, &|| shared.clock.now());
    let mut lived = false;
    let name = format!("{}-{worker}", shared.name);
    surroundings.live(&name, &mut |pause| {
        lived = true;
        work(shared, worker, &mut owed, pause, surroundings.turn());
        shared.queue.exit(shared.clock.now(), &mut owed);
    });
    if !lived {
        // They let nobody in any more: the process ends.
        shared.queue.exit(shared.clock.now(), &mut owed);
    }
}

/// Jobs between two looks at the time. The look costs as much as a small job's bookkeeping.
const STRIDE: u32 = 16;

fn work(shared: &Shared, worker: usize, owed: &mut Owed, pause: &dyn Pause, turn: Duration) {
    let mut jobs = 0_u32;
    let mut since = instant();
    loop {
        let now = shared.clock.now();
        shared.announce_due(now);
        match shared.queue.try_take(now, owed) {
            Take::Task(entry) => {
                run(shared, entry);
                owed.run = true;
                if shared.made_in != crate::sync::Generation::current() {
                    // The job forked, and this is the child: nothing here is its own any more.
                    return;
                }
                jobs += 1;
                if jobs.is_multiple_of(STRIDE) && turn < Duration::MAX && since.elapsed() > turn {
                    pause.pause(&mut || ());
                    since = instant();
                }
            }
            Take::Nothing => {
                pause.pause(&mut || shared.queue.sleep(worker, owed, &|| shared.clock.now()));
                since = instant();
            }
            Take::Closed => return,
        }
    }
}

/// One run of one task, told from its start to its end.
struct Story<'a> {
    shared: &'a Shared,
    task: &'a TaskRef,
    due: Timestamp,
    started: Timestamp,
    finished: Timestamp,
    number: u64,
    attempt: u64,
}

fn run(shared: &Shared, entry: Entry<TaskRef>) {
    let Entry { task, due, .. } = entry;
    let Some(mut work) = task.take_work() else {
        return;
    };
    let started = shared.clock.now();
    let number = task.note(|facts| facts.started = Some(started)).runs + 1;
    let attempt = work.plan.as_ref().map_or(1, |plan| plan.attempt());
    let mut story = Story { shared, task: &task, due, started, finished: started, number, attempt };
    story.emit(EventKind::Started, None, None);
    let host = shared.host();
    let outcome = run_job(
        &mut *work.job,
        Run { task: task.clone(), host, due, now: started, attempt, number },
    );
    if shared.made_in != crate::sync::Generation::current() {
        return; // see `work`
    }
    // A clock that went back must not make a run of negative length.
    story.finished = shared.clock.now().max(started);
    story.end(work, outcome);
}

impl Story<'_> {
    fn end(&self, mut work: Work, outcome: Outcome) {
        self.note(outcome.error());
        let ran = Ran { error: outcome.error(), finished: self.finished, runs: self.number };
        let verdict = work.plan.as_mut().map_or(Verdict::End, |plan| plan.after(&ran));
        let series = work.plan.as_deref().is_some_and(Plan::is_series);
        let if_stopped = if series { Ended::Cancelled } else { outcome.clone().into() };
        match verdict {
            Verdict::Again { due, missed } if self.goes_on() => {
                self.again(work, outcome.error(), due, missed);
            }
            // It was told to stop, or the scheduler closes.
            Verdict::Again { .. } => self.finish(work, &outcome, if_stopped.clone(), if_stopped),
            Verdict::End => self.finish(work, &outcome, outcome.clone().into(), if_stopped),
            Verdict::Broken(error) => {
                let broken = Ended::Failed(error.clone());
                self.finish(work, &Outcome::Failed(error), broken.clone(), broken);
            }
        }
    }

    fn note(&self, error: Option<&JobError>) {
        let text = error.map(describe);
        if let Some(error) = error {
            drop(self.task.put_error(error));
        }
        self.shared.counts.ran(error.is_some());
        self.task.note(|facts| {
            facts.runs += 1;
            facts.failures += u64::from(error.is_some());
            facts.finished = Some(self.finished);
            facts.error = text.or(facts.error.take());
        });
    }

    /// Whether another run may follow; if so, the task is on its way back to the queue.
    fn goes_on(&self) -> bool {
        self.shared.queue.is_open() && self.task.state.try_tell()
    }

    /// Back into the queue. The listeners are told first: the next run's events come after.
    fn again(&self, work: Work, error: Option<&JobError>, due: Timestamp, missed: u64) {
        self.task.put_work(work);
        self.emit(ended_kind(error), error, Some(due));
        if missed > 0 {
            self.shared.counts.missed(missed);
            self.task.note(|facts| facts.missed += missed);
            self.shared.listeners.emit(EventKind::Missed, || Event {
                missed: Some(missed),
                next_due: Some(due),
                ..self.event(EventKind::Missed)
            });
        }
        self.task.set_due(due);
        self.shared.bring(self.task.clone());
    }

    /// Ends the task, whose last run came out as `outcome`.
    fn finish(&self, work: Work, outcome: &Outcome, as_it_ran: Ended, if_stopped: Ended) {
        drop_contained(Some(work));
        self.shared.finish(self.task, as_it_ran, if_stopped, |ended| {
            self.emit(ended_kind(outcome.error()), outcome.error(), None);
            if matches!(ended, Ended::Cancelled) {
                self.emit(EventKind::Cancelled, None, None);
            }
        });
    }

    fn emit(&self, kind: EventKind, error: Option<&JobError>, next_due: Option<Timestamp>) {
        self.shared.listeners.emit(kind, || {
            let over = matches!(kind, EventKind::Completed | EventKind::Failed);
            let told = over || kind == EventKind::Started;
            Event {
                lateness: told.then(|| self.started.since(self.due)),
                duration: over.then(|| self.finished.since(self.started)),
                error: error.cloned(),
                next_due,
                ..self.event(kind)
            }
        });
    }

    fn event(&self, kind: EventKind) -> Event {
        let Self { shared, due, number, attempt, .. } = *self;
        Event { due, run: number, attempt, ..shared.event(kind, self.task) }
    }
}

fn ended_kind(error: Option<&JobError>) -> EventKind {
    if error.is_some() { EventKind::Failed } else { EventKind::Completed }
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done(value) => Self::Done(value),
            Outcome::Failed(error) => Self::Failed(error),
        }
    }
}
