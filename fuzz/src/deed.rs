//! What a job does. Invariant: it writes down what the world must know at rest.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use duetime::{JobError, Outcome, Run, Scheduler, Task, WeakScheduler, retry};

use crate::bytes::Bytes;
use crate::elsewhere::{self, Finish};
use crate::notes::{Known, Shared};
use crate::panics;

/// What a job does besides its run.
#[derive(Clone, Copy)]
pub(crate) enum Deed {
    Nothing,
    /// Waits on the scheduler's clock.
    Wait(Duration),
    Cancel(i64),
    Schedule(i64, Duration),
    Replace(i64, Duration),
    Forget(i64),
    Panic,
    /// Goes on elsewhere.
    Later(Finish),
    Pause(i64),
    Resume(i64),
    Reschedule(i64, Duration),
    /// Its failures say when to try again.
    Retries(Duration),
    /// Its failures are final.
    GivesUp,
}

impl Deed {
    pub(crate) fn decode(bytes: &mut Bytes) -> Self {
        match bytes.below(20) {
            0 | 1 => Self::Wait(bytes.millis(40)),
            2 => Self::Cancel(bytes.id()),
            3 => Self::Schedule(bytes.id(), bytes.millis(40)),
            4 => Self::Replace(bytes.id(), bytes.millis(40)),
            5 => Self::Forget(bytes.id()),
            6 => Self::Panic,
            7..=9 => Self::Later(Finish::decode(bytes)),
            10 => Self::Pause(bytes.id()),
            11 => Self::Resume(bytes.id()),
            // Not at once: two that do so with each other would never come to rest.
            12 => Self::Reschedule(bytes.id(), bytes.millis(30) + Duration::from_millis(1)),
            13 => Self::Retries(bytes.millis(20)),
            14 => Self::GivesUp,
            _ => Self::Nothing,
        }
    }

    fn do_it(self, scheduler: &Scheduler, run: &Run, shared: &Shared) {
        let later = |id: i64, delay: Duration| Task::new(run.now() + delay, || ()).id(id);
        let mut known = shared.known();
        // Any answer will do here; that the scheduler stays consistent is checked at rest.
        match self {
            Self::Schedule(id, delay) => {
                let made = scheduler.schedule(later(id, delay)).ok();
                known.extend(made.map(|task| (id, Known::plain(task))));
            }
            Self::Replace(id, delay) => {
                let made = scheduler.replace(later(id, delay)).ok();
                known.extend(made.map(|task| (id, Known::plain(task))));
            }
            Self::Resume(id) | Self::Pause(id) => {
                known.entry(id).and_modify(|task| (task.held_at, task.let_pass_at) = (None, None));
                drop(if let Self::Pause(_) = self {
                    scheduler.pause_task(id)
                } else {
                    scheduler.resume_task(id)
                });
            }
            _ => {}
        }
        drop(known);
        match self {
            Self::Wait(time) => drop(run.wait(time)),
            Self::Cancel(id) => drop(scheduler.cancel(id)),
            Self::Forget(id) => drop(scheduler.forget(id)),
            Self::Reschedule(id, delay) => drop(scheduler.reschedule(id, run.now() + delay)),
            Self::Panic => panics::on_purpose(),
            _ => {}
        }
    }

    /// Whether the world cannot tell how its run ends, or when.
    fn is_open(self) -> bool {
        matches!(self, Self::Wait(_) | Self::Later(_))
    }

    fn outcome(self, fails: bool) -> Outcome {
        match self {
            Self::Retries(delay) if fails => {
                Outcome::Failed(JobError::new(retry::RetryAfter(delay)))
            }
            Self::GivesUp if fails => Outcome::Failed(JobError::new(retry::GiveUp::new("enough"))),
            _ => (!fails).into(),
        }
    }
}

/// A job that does what the input says. Bit n of `fails`: whether its n-th run fails.
pub(crate) fn job(
    scheduler: WeakScheduler,
    shared: Arc<Shared>,
    deed: Deed,
    fails: u8,
    group: Option<usize>,
) -> impl FnMut(&Run) -> Outcome + Send + 'static {
    let runs_now = Arc::new(AtomicBool::new(false));
    move |run: &Run| {
        if runs_now.swap(true, Ordering::SeqCst) {
            shared.blame(format!("{} overlaps itself", run.id()));
        }
        if run.now() < run.due() {
            shared.blame(format!("{} starts at {}, due {}", run.id(), run.now(), run.due()));
        }
        let fails = fails >> (run.number() % 8) & 1 != 0;
        shared.note(|notes| {
            group.into_iter().for_each(|group| notes.enter(group));
            notes.runs += u64::from(!deed.is_open());
            notes.failures += u64::from(fails && !deed.is_open());
        });
        let leave = {
            let (runs_now, shared) = (Arc::clone(&runs_now), Arc::clone(&shared));
            move || {
                runs_now.store(false, Ordering::SeqCst);
                shared.note(|notes| group.into_iter().for_each(|group| notes.busy[group] -= 1));
            }
        };
        if let Deed::Later(finish) = deed {
            return elsewhere::outcome(finish, fails, Box::new(leave));
        }
        let done = catch_unwind(AssertUnwindSafe(|| {
            if let Some(scheduler) = scheduler.upgrade() {
                deed.do_it(&scheduler, run, &shared);
            }
        }));
        leave();
        done.unwrap_or_else(|panic| resume_unwind(panic));
        deed.outcome(fails)
    }
}
