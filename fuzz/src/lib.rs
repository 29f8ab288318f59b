//! What a fuzzer's bytes mean, and what must hold whatever they are.
//!
//! An input is a sequence of calls on a scheduler with one worker and a clock that is moved by
//! hand. Between any two calls the scheduler comes to rest, so each answer is known beforehand.
//! All times are in milliseconds.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, panic_any, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use duetime::{
    CancelOutcome, Error, Event, EventKind, FixedDelay, FixedRate, ManualClock, Missed, Run,
    Scheduler, Shutdown, Task, TaskId, TaskInfo, TaskState, Timestamp, WeakScheduler, retry,
};

/// Reads numbers from the input; zeros after its end.
struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn is_over(&self) -> bool {
        self.0.len() == 0
    }

    /// A number below `end`.
    fn below(&mut self, end: u8) -> u8 {
        self.next() % end
    }

    fn millis(&mut self, end: u8) -> Duration {
        Duration::from_millis(self.below(end).into())
    }
}

const IDS: u8 = 5;
const CALLS: usize = 40;
/// Far above what any shutdown here takes.
const PATIENCE: Duration = Duration::from_secs(20);
const YEAR: Duration = Duration::from_secs(31_557_600);

/// What a job does besides its run.
#[derive(Clone, Copy)]
enum Deed {
    Nothing,
    /// Waits on the scheduler's clock.
    Wait(Duration),
    Cancel(i64),
    Schedule(i64, Duration),
    Replace(i64, Duration),
    Forget(i64),
    Panic,
}

impl Deed {
    fn decode(bytes: &mut Bytes) -> Self {
        match bytes.below(12) {
            0 | 1 => Self::Wait(bytes.millis(40)),
            2 => Self::Cancel(id(bytes)),
            3 => Self::Schedule(id(bytes), bytes.millis(40)),
            4 => Self::Replace(id(bytes), bytes.millis(40)),
            5 => Self::Forget(id(bytes)),
            6 => Self::Panic,
            _ => Self::Nothing,
        }
    }

    fn do_it(self, scheduler: &Scheduler, run: &Run) {
        let later = |id: i64, delay: Duration| Task::new(run.now() + delay, || ()).id(id);
        // Any answer will do here; that the scheduler stays consistent is checked at rest.
        match self {
            Self::Nothing => {}
            Self::Wait(time) => drop(run.wait(time)),
            Self::Cancel(id) => drop(scheduler.cancel(id)),
            Self::Schedule(id, delay) => drop(scheduler.schedule(later(id, delay))),
            Self::Replace(id, delay) => drop(scheduler.replace(later(id, delay))),
            Self::Forget(id) => drop(scheduler.forget(id)),
            Self::Panic => panic_any("meant to happen"),
        }
    }
}

fn id(bytes: &mut Bytes) -> i64 {
    bytes.below(IDS).into()
}

/// What the jobs and the listener write down.
#[derive(Default)]
struct Notes {
    runs: u64,
    failures: u64,
    missed: u64,
    scheduled: u64,
    ended: u64,
    stories: BTreeMap<TaskId, Story>,
}

/// Where a task is in its life, by what was told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Story {
    #[default]
    Unknown,
    Waiting,
    Due,
    Runs,
    Ended,
    /// By its run; if it was stopped, CANCELLED may still follow.
    EndedByRun,
}

impl Notes {
    fn hear(&mut self, event: &Event) {
        let story = self.stories.entry(event.task_id.clone()).or_default();
        let before = *story;
        let told = || format!("{:?} of {} after {before:?}", event.kind, event.task_id);
        *story =
            match (event.kind, before) {
                (EventKind::Scheduled, Story::Unknown | Story::Ended | Story::EndedByRun) => {
                    Story::Waiting
                }
                (EventKind::Due, Story::Waiting) => {
                    assert!(event.time >= event.due, "{}, early", told());
                    Story::Due
                }
                (EventKind::Started, Story::Due) => Story::Runs,
                (EventKind::Completed | EventKind::Failed, Story::Runs) => {
                    if event.next_due.is_some() { Story::Waiting } else { Story::EndedByRun }
                }
                (EventKind::Missed, Story::Waiting) => Story::Waiting,
                (EventKind::Cancelled, Story::Waiting | Story::Due | Story::EndedByRun) => {
                    Story::Ended
                }
                _ => panic!("{}", told()),
            };
        self.scheduled += u64::from(event.kind == EventKind::Scheduled);
        self.missed += event.missed.filter(|_| event.kind == EventKind::Missed).unwrap_or(0);
        let ends = matches!(*story, Story::Ended | Story::EndedByRun);
        self.ended += u64::from(ends && before != Story::EndedByRun);
    }
}

/// A listener's or a job's panic would be contained; so the first one is kept and told at rest.
struct Shared {
    notes: Mutex<Notes>,
    fault: Mutex<Option<String>>,
}

impl Shared {
    fn note(&self, work: impl FnOnce(&mut Notes)) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        let work = AssertUnwindSafe(|| work(&mut notes));
        if let Err(panic) = catch_unwind(work) {
            let text = panic.downcast_ref::<String>().cloned();
            self.blame(text.unwrap_or_else(|| "a panic in a listener or job".into()));
        }
    }

    fn blame(&self, fault: String) {
        let mut first = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(fault);
    }
}

struct World {
    scheduler: Scheduler,
    clock: ManualClock,
    shared: Arc<Shared>,
    listens: bool,
    remembers_all: bool,
    /// A series that makes up for every slot was scheduled: no leap of years any more.
    catches_up: bool,
}

/// Plays the calls that `bytes` stand for.
///
/// # Panics
/// If anything is not as it must be.
pub fn check(bytes: &[u8]) {
    quiet_panics();
    let mut bytes = Bytes(bytes.iter());
    let mut world = World::decode(&mut bytes);
    for _ in 0..CALLS {
        if bytes.is_over() {
            break;
        }
        world.call(&mut bytes);
        world.rest();
    }
    world.end(bytes.next());
}

impl World {
    fn decode(bytes: &mut Bytes) -> Self {
        let clock = ManualClock::new();
        let history = [10_000, 10_000, 2, 0][usize::from(bytes.below(4))];
        let builder = Scheduler::builder().workers(1).clock(clock.clone()).history(history);
        let scheduler = builder.build().expect("settings in bounds");
        let shared = Arc::new(Shared { notes: Mutex::default(), fault: Mutex::default() });
        let listens = bytes.below(3) > 0;
        if listens {
            let shared = Arc::clone(&shared);
            let hear = move |event: &Event| shared.note(|notes| notes.hear(event));
            scheduler.add_listener(hear, &EventKind::ALL).expect("open");
        }
        let remembers_all = history == 10_000;
        Self { scheduler, clock, shared, listens, remembers_all, catches_up: false }
    }

    fn call(&mut self, bytes: &mut Bytes) {
        match bytes.below(12) {
            0..=3 => self.schedule(bytes, false),
            4 => self.schedule(bytes, true),
            5 => self.cancel(id(bytes)),
            6 => self.forget(id(bytes)),
            7 => {
                let leap = YEAR * u32::from(bytes.below(12));
                // A leap over a series that catches up would make it run for years.
                let leap = if self.catches_up { Duration::ZERO } else { leap };
                self.clock.jump(leap).expect("not in a job");
            }
            8 => self.clock.jump(bytes.millis(100)).expect("not in a job"),
            9 => self.batch(bytes),
            _ => self.clock.advance(bytes.millis(60)).expect("not in a job"),
        }
    }

    fn task(&mut self, bytes: &mut Bytes, id: i64) -> Task {
        let now = self.clock.now();
        let due = match bytes.next() {
            255 => Timestamp::MAX,
            254 => Timestamp::MIN,
            253 => now + YEAR * 100,
            late if late > 240 => Timestamp::from_nanos(now.as_nanos().saturating_sub(5_000_000)),
            delay => now + Duration::from_millis(u64::from(delay % 50)),
        };
        let deed = Deed::decode(bytes);
        let fails = bytes.next();
        let job = job(self.scheduler.downgrade(), Arc::clone(&self.shared), deed, fails);
        let task = Task::new(due, job).id(id).priority(i32::from(bytes.below(3)) - 1);
        let period = bytes.millis(30) + Duration::from_millis(5);
        let mut task = match bytes.below(6) {
            1 => task.recurrence(FixedRate::new(period)),
            // At the ends of time it would never catch up.
            2 if due != Timestamp::MIN && due < now + YEAR => {
                self.catches_up = true;
                task.recurrence(FixedRate::new(period).missed(Missed::CatchUp))
            }
            3 => task.recurrence(FixedDelay::new(period)),
            _ => task,
        };
        let rules = bytes.next();
        if rules & 1 != 0 {
            task = task.retry(retry::FixedDelay::new(2, bytes.millis(20)));
        } else if rules & 2 != 0 {
            let base = bytes.millis(8);
            task = task.retry(retry::ExponentialBackoff::new(3, base).jitter(0.5));
        }
        if rules & 4 != 0 {
            task = task.max_runs(u64::from(bytes.below(4)) + 1);
        }
        if rules & 8 != 0 {
            task = task.until(due + bytes.millis(100));
        }
        task
    }

    fn schedule(&mut self, bytes: &mut Bytes, replace: bool) {
        let id = id(bytes);
        let task = self.task(bytes, id);
        let before = self.info(id).map(|info| info.state);
        if replace {
            let answer = self.scheduler.replace(task);
            let runs = before == Some(TaskState::Running);
            assert_eq!(matches!(answer, Err(Error::TaskRunning(_))), runs, "{answer:?}");
            assert_eq!(answer.is_ok(), !runs);
        } else {
            let answer = self.scheduler.schedule(task);
            assert_eq!(matches!(answer, Err(Error::DuplicateTask(_))), before.is_some());
            assert_eq!(answer.is_ok(), before.is_none());
        }
    }

    /// All or none.
    fn batch(&mut self, bytes: &mut Bytes) {
        let ids: Vec<i64> = (0..bytes.below(4)).map(|_| id(bytes)).collect();
        let tasks: Vec<Task> = ids.iter().map(|&id| self.task(bytes, id)).collect();
        let known = ids.iter().any(|&id| self.info(id).is_some());
        let twice = (1..ids.len()).any(|n| ids[..n].contains(&ids[n]));
        let answer = self.scheduler.schedule_all(tasks);
        assert_eq!(answer.is_ok(), !known && !twice, "{ids:?}: {answer:?}");
    }

    fn cancel(&self, id: i64) {
        let expected = match self.info(id).map(|info| info.state) {
            None => CancelOutcome::Unknown,
            Some(TaskState::Waiting) => CancelOutcome::Cancelled,
            Some(TaskState::Running) => CancelOutcome::Stopping,
            Some(_) => CancelOutcome::Finished,
        };
        assert_eq!(self.scheduler.cancel(id).expect("no fork here"), expected);
    }

    fn forget(&self, id: i64) {
        let before = self.info(id).map(|info| info.state);
        let answer = self.scheduler.forget(id);
        match before {
            None => assert!(matches!(answer, Err(Error::UnknownTask(_)))),
            Some(TaskState::Waiting) => assert!(matches!(answer, Err(Error::TaskWaiting(_)))),
            Some(TaskState::Running) => assert!(matches!(answer, Err(Error::TaskRunning(_)))),
            Some(_) => assert!(answer.is_ok() && self.info(id).is_none()),
        }
    }

    fn info(&self, id: i64) -> Option<TaskInfo> {
        self.scheduler.info(id).ok()
    }

    /// Comes to rest, and looks whether all fits together.
    fn rest(&self) {
        self.clock.advance(Duration::ZERO).expect("not in a job");
        let fault = self.shared.fault.lock().unwrap_or_else(PoisonError::into_inner).take();
        assert_eq!(fault, None);
        assert!(!PANICKED.load(Ordering::SeqCst), "a panic on a worker");
        let infos = self.scheduler.tasks(None).expect("no fork here");
        let stats = self.scheduler.stats().expect("no fork here");
        let now = self.clock.now();
        let count = |state| infos.iter().filter(|info| info.state == state).count();
        assert_eq!(stats.waiting, count(TaskState::Waiting));
        assert_eq!(stats.running, count(TaskState::Running));
        assert!(stats.running <= 1, "there is one worker");
        let dues = infos.iter().filter(|info| info.state == TaskState::Waiting);
        let next = dues.map(|info| info.due).min();
        assert_eq!(self.scheduler.next_due().expect("no fork here"), next);
        if stats.running == 0 {
            assert!(next.is_none_or(|due| due > now), "due {next:?} at {now}, and nothing runs");
        }
        for info in &infos {
            let ran = info.runs.saturating_sub(info.failures);
            assert!(info.failures <= info.runs && (info.error.is_some() == (info.failures > 0)));
            assert!(info.state != TaskState::Done || ran > 0, "{info:?}");
        }
        let notes = self.shared.notes.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(stats.runs >= notes.runs, "a run of ours was not counted");
        if self.listens {
            let ended = stats.done + stats.failed + stats.cancelled;
            assert_eq!(ended, notes.ended, "each task ends once");
            let live = notes.scheduled - notes.ended;
            assert_eq!(stats.waiting + stats.running, usize::try_from(live).expect("few"));
            assert_eq!(stats.missed, notes.missed);
            assert!(stats.failures >= notes.failures);
            for info in &infos {
                let story = notes.stories[&info.id];
                let fits = match info.state {
                    TaskState::Waiting => matches!(story, Story::Waiting | Story::Due),
                    TaskState::Running => story == Story::Runs,
                    TaskState::Done | TaskState::Failed => story == Story::EndedByRun,
                    TaskState::Cancelled => story == Story::Ended,
                };
                assert!(fits, "{info:?}, but {story:?}");
            }
        }
        if !self.remembers_all {
            assert!(infos.len() <= 2 + stats.waiting + stats.running);
        }
    }

    /// Shuts down: every task ends.
    fn end(&self, how: u8) {
        let answer = match how % 4 {
            0 | 1 => self.scheduler.shutdown_with(Shutdown::wait().timeout(PATIENCE)),
            2 => {
                // What is due runs first, and may wait for the clock.
                let answer = self.scheduler.shutdown_with(Shutdown::now().drain());
                assert!(answer.is_ok());
                for _ in 0..2 * IDS {
                    self.clock.advance(Duration::from_millis(40)).expect("not in a job");
                }
                self.scheduler.shutdown_with(Shutdown::wait().timeout(PATIENCE))
            }
            _ => return,
        };
        assert!(answer.expect("no fork here"), "the shutdown takes for ever");
        self.rest();
        let stats = self.scheduler.stats().expect("no fork here");
        assert_eq!((stats.waiting, stats.running), (0, 0));
        let answer = self.scheduler.schedule(Task::new(Timestamp::ZERO, || ()));
        assert!(matches!(answer, Err(Error::SchedulerClosed)));
    }
}

/// A job that does what the input says. Bit n of `fails`: whether its n-th run fails.
fn job(
    scheduler: WeakScheduler,
    shared: Arc<Shared>,
    deed: Deed,
    fails: u8,
) -> impl FnMut(&Run) -> bool + Send + 'static {
    let runs_now = AtomicBool::new(false);
    move |run: &Run| {
        if runs_now.swap(true, Ordering::SeqCst) {
            shared.blame(format!("{} overlaps itself", run.id()));
        }
        if run.now() < run.due() {
            shared.blame(format!("{} starts at {}, due {}", run.id(), run.now(), run.due()));
        }
        let fail = fails >> (run.number() % 8) & 1 != 0;
        shared.note(|notes| {
            notes.runs += u64::from(!matches!(deed, Deed::Wait(_)));
            notes.failures += u64::from(fail && !matches!(deed, Deed::Wait(_)));
        });
        let deed = AssertUnwindSafe(|| {
            if let Some(scheduler) = scheduler.upgrade() {
                deed.do_it(&scheduler, run);
            }
        });
        let done = catch_unwind(deed);
        runs_now.store(false, Ordering::SeqCst);
        done.unwrap_or_else(|panic| resume_unwind(panic));
        !fail
    }
}

/// Whether anything panicked that was not meant to; the scheduler contains it.
static PANICKED: AtomicBool = AtomicBool::new(false);

/// Jobs that panic on purpose say nothing.
fn quiet_panics() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&"meant to happen") {
                PANICKED.store(true, Ordering::SeqCst);
                hook(info);
            }
        }));
    });
}
