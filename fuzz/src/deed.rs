//! What a job does. Invariant: it writes down what the world must know at rest.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use duetime::{
    Interrupt, JobError, ManualClock, Outcome, Run, Scheduler, Task, WeakScheduler, retry,
};

use crate::attempts::Stand;
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
    /// Waits on the clock, and then, if its task has a timeout, until it is let go, or interrupted.
    Hold {
        sleep: Duration,
        interrupted: bool,
    },
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
        match bytes.below(24) {
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
            15..=18 => Self::Hold {
                sleep: bytes.millis(40).saturating_sub(Duration::from_millis(15)),
                interrupted: bytes.below(4) == 0,
            },
            _ => Self::Nothing,
        }
    }

    fn do_it(self, scheduler: &Scheduler, run: &Run, doing: &Doing) {
        let shared = &doing.shared;
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
            Self::Wait(time) => doing.sleep(run, time),
            Self::Hold { sleep, interrupted } => {
                doing.sleep(run, sleep);
                doing.hold(run, interrupted);
            }
            Self::Cancel(id) => drop(scheduler.cancel(id)),
            Self::Forget(id) => drop(scheduler.forget(id)),
            Self::Reschedule(id, delay) => drop(scheduler.reschedule(id, run.now() + delay)),
            Self::Panic => panics::on_purpose(),
            _ => {}
        }
    }

    /// Whether the world cannot tell how its run ends, or when.
    fn is_open(self) -> bool {
        matches!(self, Self::Wait(_) | Self::Hold { .. } | Self::Later(_))
    }

    pub(crate) fn is_interrupted(self) -> bool {
        matches!(self, Self::Hold { interrupted: true, .. })
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

/// A run under way.
#[derive(Clone)]
pub(crate) struct Doing {
    key: u64,
    timed: bool,
    shared: Arc<Shared>,
    clock: ManualClock,
    runs_now: Arc<AtomicBool>,
}

impl Doing {
    pub(crate) fn is_timed(&self) -> bool {
        self.timed
    }

    pub(crate) fn stand(&self, stand: Option<Stand>) {
        let now = self.clock.now();
        self.shared.note(|notes| notes.attempts.stand(self.key, stand, now));
    }

    /// Ends what it stands for.
    pub(crate) fn let_go(&self) {
        let stand = self.shared.note(|notes| notes.attempts.let_go(self.key));
        if let Some(stand) = stand.flatten() {
            stand.end();
        }
    }

    fn sleep(&self, run: &Run, time: Duration) {
        self.stand(Some(Stand::Sleep(self.clock.now() + time)));
        let _told: bool = run.wait(time);
        self.stand(None);
    }

    fn hold(&self, run: &Run, interrupted: bool) {
        if interrupted {
            run.set_interrupt(Arc::new(self.clone()));
        }
        // Who is late already was interrupted there, if it was not given up before.
        let over =
            run.deadline().is_none_or(|deadline| interrupted && deadline <= self.clock.now());
        if !over {
            let (closed, gate) = mpsc::channel();
            self.stand(Some(Stand::Gate { _closed: closed, interrupted }));
            assert!(gate.recv().is_err(), "it is only dropped");
        }
    }

    /// Its run is about to end.
    pub(crate) fn leave(&self, good: bool) {
        self.runs_now.store(false, Ordering::SeqCst);
        let now = self.clock.now();
        self.shared.note(|notes| notes.attempts.leave(self.key, good, now));
    }
}

impl Interrupt for Doing {
    fn interrupt(&self) {
        self.let_go();
    }
}

/// What the input says of a job.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) deed: Deed,
    /// Bit n: whether its n-th run fails.
    pub(crate) fails: u8,
    pub(crate) group: Option<usize>,
    /// If its task has a timeout.
    pub(crate) grace: Option<Duration>,
}

/// A job that does what the input says.
pub(crate) fn job(
    scheduler: WeakScheduler,
    shared: Arc<Shared>,
    clock: ManualClock,
    plan: Plan,
) -> impl FnMut(&Run) -> Outcome + Send + 'static {
    let Plan { deed, fails, group, grace } = plan;
    let runs_now = Arc::new(AtomicBool::new(false));
    move |run: &Run| {
        if runs_now.swap(true, Ordering::SeqCst) {
            shared.blame(format!("{} overlaps itself", run.id()));
        }
        if run.now() < run.due() {
            shared.blame(format!("{} starts at {}, due {}", run.id(), run.now(), run.due()));
        }
        let fails = fails >> (run.number() % 8) & 1 != 0;
        let key = shared.note(|notes| {
            notes.runs += u64::from(!deed.is_open());
            notes.failures += u64::from(fails && !deed.is_open());
            notes.attempts.enter(run, group, grace.unwrap_or_default())
        });
        let (shared, clock) = (Arc::clone(&shared), clock.clone());
        let (key, timed) = (key.unwrap_or_default(), grace.is_some());
        let doing = Doing { key, timed, shared, clock, runs_now: Arc::clone(&runs_now) };
        if let Deed::Later(finish) = deed {
            return elsewhere::outcome(finish, doing, !fails);
        }
        let done = catch_unwind(AssertUnwindSafe(|| {
            if let Some(scheduler) = scheduler.upgrade() {
                deed.do_it(&scheduler, run, &doing);
            }
        }));
        doing.leave(done.is_ok() && !fails);
        done.unwrap_or_else(|panic| resume_unwind(panic));
        deed.outcome(fails)
    }
}
