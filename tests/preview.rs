//! Looking ahead: the due times to come, without running anything.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{Held, Log, ON_PURPOSE, World, at, cause, hush, millis, ms, secs};
use duetime::{
    Event, EventKind, FixedDelay, FixedRate, Job, JobError, Missed, Next, NotForward, Panicked,
    Recurrence, Run, Task, TaskError, TaskHandle, TaskState, Timestamp, retry,
};

fn ahead(task: &TaskHandle, count: usize) -> Vec<i64> {
    task.preview(count).unwrap().into_iter().map(millis).collect()
}

fn never() -> Task {
    fn job() -> bool {
        panic!("a preview runs nothing")
    }
    Task::new(at(5), job)
}

fn described(task: &Task, count: usize) -> Vec<i64> {
    task.preview(count).unwrap().into_iter().map(millis).collect()
}

#[test]
fn a_description_tells_its_slots() {
    let rate = || never().recurrence(FixedRate::new(ms(10)));
    assert_eq!(described(&never(), 3), [5]);
    assert_eq!(described(&never().recurrence(FixedDelay::new(ms(7))), 3), [5, 12, 19]);
    assert_eq!(described(&rate(), 4), [5, 15, 25, 35]);
    assert_eq!(described(&rate(), 0), [0; 0]);
    assert_eq!(described(&rate().max_runs(2), 4), [5, 15]);
    assert_eq!(described(&rate().until(at(25)), 9), [5, 15, 25]);
    assert_eq!(described(&rate().jitter(ms(9)), 3), [5, 15, 25], "without jitter");
    assert_eq!(described(&rate().retry(retry::FixedDelay::new(9, ms(1))), 2), [5, 15]);
}

#[test]
fn what_would_be_refused_has_no_preview() {
    let refused = |task: Task| task.preview(1).unwrap_err().to_string();
    assert!(refused(never().until(at(4))).contains("until"));
    let rate = FixedRate::new(ms(10));
    assert!(refused(never().recurrence(rate).jitter(ms(10))).contains("jitter"));
}

#[test]
fn a_waiting_series_tells_what_is_left() {
    let world = World::quiet(1);
    let task = Task::new(at(5), || ()).recurrence(FixedRate::new(ms(10))).max_runs(4);
    let task = world.scheduler.schedule(task).unwrap();
    assert_eq!(ahead(&task, 9), [5, 15, 25, 35]);
    world.advance(20);
    assert_eq!(ahead(&task, 9), [25, 35]);
    assert_eq!(ahead(&task, 1), [25]);
    assert_eq!(task.info().runs, 2, "nothing was run");
    world.advance(20);
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!(ahead(&task, 9), [0; 0]);
}

#[test]
fn what_is_told_is_what_comes() {
    for rule in [FixedRate::new(ms(7)), FixedRate::new(ms(7)).missed(Missed::CatchUp)] {
        let world = World::quiet(1);
        let starts = Log::new();
        let log = starts.clone();
        let job = move |run: &Run| log.push(millis(run.now()));
        let task = world.scheduler.schedule(Task::new(at(3), job).recurrence(rule)).unwrap();
        let told = ahead(&task, 1_000);
        world.advance(10_000);
        assert_eq!(starts.take()[..1_000], told);
    }
}

#[test]
fn a_plain_task_is_due_once() {
    let world = World::quiet(1);
    let task = world.scheduler.after(ms(5), || ()).unwrap();
    assert_eq!(ahead(&task, 3), [5]);
    world.advance(5);
    assert_eq!(ahead(&task, 3), [0; 0]);
}

#[test]
fn a_retry_that_waits_comes_first_and_the_grid_goes_on() {
    let world = World::quiet(1);
    let task = Task::new(at(0), || false).recurrence(FixedRate::new(ms(10)));
    let task = task.retry(retry::FixedDelay::new(1, ms(3)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(0);
    assert_eq!(ahead(&task, 3), [3, 10, 20]);
}

#[test]
fn the_run_that_waits_has_its_jitter_and_the_others_none() {
    let world = World::quiet(1);
    let task = Task::new(at(0), || ()).recurrence(FixedRate::new(ms(10))).jitter(ms(9));
    let task = world.scheduler.schedule(task).unwrap();
    let dues = task.preview(3).unwrap();
    assert_eq!(dues, [task.due(), at(10), at(20)]);
}

#[test]
fn a_running_task_tells_what_follows_if_it_ends_now() {
    let world = World::quiet(1);
    let dues = Log::new();
    let handle: Arc<std::sync::OnceLock<TaskHandle>> = Arc::default();
    let (log, own) = (dues.clone(), handle.clone());
    let job = move |run: &Run| {
        let own = own.get().unwrap();
        log.push(ahead(own, 2));
        let _ = run.wait(ms(25));
        log.push(ahead(own, 2));
    };
    let task = Task::new(at(0), job).recurrence(FixedRate::new(ms(10))).max_runs(3);
    handle.set(world.scheduler.schedule(task).unwrap()).unwrap();
    world.advance(200);
    let told = dues.take();
    assert_eq!(told[..2], [vec![10, 20], vec![30, 40]], "slots that passed are skipped");
    assert_eq!(told[2..4], [vec![40], vec![60]], "the third run is the last");
    assert_eq!(told[4..], [vec![0; 0], vec![]]);
}

#[test]
fn nothing_follows_a_stop_or_a_cancel() {
    let world = World::quiet(1);
    let held = Held::new();
    let task = Task::new(at(0), Box::new(held.clone()) as Box<dyn Job>);
    let task = world.scheduler.schedule(task.recurrence(FixedRate::new(ms(10)))).unwrap();
    held.runs.pass();
    assert_eq!(ahead(&task, 2), [10, 20]);
    task.cancel().unwrap();
    assert_eq!(ahead(&task, 2), [0; 0]);
    held.go_on.open();
    let waiting = world.scheduler.every(FixedRate::new(secs(1)), || ()).unwrap();
    waiting.cancel().unwrap();
    assert_eq!(ahead(&waiting, 2), [0; 0]);
}

#[test]
fn listeners_see_the_slot_that_comes() {
    let world = World::quiet(1);
    let told = Log::new();
    let (log, scheduler) = (told.clone(), world.scheduler.downgrade());
    let listener = move |event: &Event| {
        let task = scheduler.upgrade().and_then(|all| all.get(event.task_id.clone()).unwrap());
        log.push(task.map(|task| ahead(&task, 2)).unwrap_or_default());
    };
    world.scheduler.add_listener(listener, &[EventKind::Completed]).unwrap();
    let task = Task::new(at(0), || ()).id("t").recurrence(FixedRate::new(ms(10))).max_runs(3);
    world.scheduler.schedule(task).unwrap();
    world.advance(100);
    assert_eq!(told.take(), [vec![10, 20], vec![20], vec![]]);
}

/// A rule from a closure.
struct Rule<F>(F);

impl<F> Recurrence for Rule<F>
where
    F: Fn(Timestamp, Timestamp) -> Result<Option<Next>, JobError> + Send + Sync + 'static,
{
    fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
        (self.0)(due, finished)
    }
}

#[test]
fn a_rule_of_ones_own_is_asked_as_if_runs_took_no_time() {
    let asked = Log::new();
    let log = asked.clone();
    let task = never().recurrence(Rule(move |due, finished| {
        log.push((millis(due), millis(finished)));
        Ok((due < at(20)).then(|| (due + ms(10)).into()))
    }));
    assert_eq!(described(&task, 9), [5, 15, 25]);
    assert_eq!(asked.take(), [(5, 5), (15, 15), (25, 25)]);
}

#[test]
fn a_rule_that_fails_fails_the_preview_and_not_the_task() {
    hush();
    let world = World::quiet(1);
    let fails = |rule: fn(Timestamp) -> Result<Option<Next>, JobError>| {
        let task = Task::new(at(1), || ()).recurrence(Rule(move |due, _| rule(due)));
        let task = world.scheduler.schedule(task).unwrap();
        let error = match task.preview(2) {
            Err(TaskError::Failed(error)) => error,
            other => panic!("{other:?}"),
        };
        assert_eq!(ahead(&task, 1), [1], "which does not ask the rule");
        assert_eq!(task.state(), TaskState::Waiting);
        error
    };
    assert_eq!(fails(|_| Err(JobError::new("no idea"))).to_string(), "no idea");
    assert_eq!(cause::<Panicked>(&fails(|_| panic!("{ON_PURPOSE}"))).message, ON_PURPOSE);
    assert_eq!(cause::<NotForward>(&fails(|due| Ok(Some(due.into())))).next, at(1));
}

/// Counts its drops.
struct Dropped(Arc<AtomicU64>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Recurrence for Dropped {
    fn next_due(&self, due: Timestamp, _: Timestamp) -> Result<Option<Next>, JobError> {
        Ok(Some((due + ms(10)).into()))
    }
}

/// What is kept to look ahead is let go with the task, however it ends.
#[test]
fn the_rule_is_let_go_with_the_task() {
    let world = World::quiet(1);
    let drops = Arc::new(AtomicU64::new(0));
    let task = |takes| {
        let job = move |run: &Run| {
            let _ = run.wait(takes);
        };
        let task = Task::new(world.scheduler.now(), job).recurrence(Dropped(drops.clone()));
        world.scheduler.schedule(task.max_runs(3)).unwrap()
    };
    let dropped = || drops.swap(0, Ordering::SeqCst);
    let cancelled = task(ms(0));
    world.advance(10);
    assert_eq!((ahead(&cancelled, 1).len(), dropped()), (1, 0));
    cancelled.cancel().unwrap();
    assert_eq!(dropped(), 1);
    let ended = task(ms(0));
    world.advance(100);
    assert_eq!((ended.state(), dropped()), (TaskState::Done, 1));
    let stopped = task(secs(1));
    world.advance(1);
    assert_eq!((ahead(&stopped, 1).len(), dropped()), (1, 0));
    stopped.cancel().unwrap();
    assert!(stopped.wait(None));
    assert_eq!((stopped.state(), dropped()), (TaskState::Cancelled, 1));
}
