//! Order among due tasks: earlier due, then higher priority, then the order of adding.

mod common;

use common::{Held, Log, World, at, millis, ms, secs, watchdog};
use duetime::{FixedRate, Run, Scheduler, Task, TaskState, Timestamp, retry};
use proptest::prelude::*;

/// A job that writes its name down.
fn note<T: Copy + Send + 'static>(log: &Log<T>, name: T) -> impl FnMut() + Send + 'static {
    let log = log.clone();
    move || log.push(name)
}

#[test]
fn earlier_due_first_whatever_the_order_of_adding() {
    let world = World::quiet(1);
    let ran = Log::new();
    for due in [30, 10, 50, 20, 40] {
        world.scheduler.schedule(Task::new(at(due), note(&ran, due))).unwrap();
    }
    world.jump(100);
    assert_eq!(ran.take(), [10, 20, 30, 40, 50]);
}

#[test]
fn at_equal_due_the_higher_priority_and_then_the_order_of_adding() {
    let world = World::quiet(1);
    let ran = Log::new();
    let tasks =
        [("a", 0), ("b", 5), ("c", i32::MIN), ("d", 5), ("e", i32::MAX), ("f", -1), ("g", 0)];
    for (name, priority) in tasks {
        let task = Task::new(at(10), note(&ran, name)).priority(priority);
        let handle = world.scheduler.schedule(task).unwrap();
        assert_eq!(handle.priority(), priority);
    }
    world.scheduler.schedule(Task::new(at(9), note(&ran, "early")).priority(-9)).unwrap();
    world.jump(10);
    assert_eq!(ran.take(), ["early", "e", "b", "d", "a", "g", "f", "c"]);
}

#[test]
fn one_nanosecond_decides() {
    let world = World::quiet(1);
    let ran = Log::new();
    for nanos in [3_i64, 1, 2] {
        let task = Task::new(Timestamp::from_nanos(nanos), note(&ran, nanos));
        world.scheduler.schedule(task.priority(i32::try_from(nanos).unwrap())).unwrap();
    }
    world.jump(1);
    assert_eq!(ran.take(), [1, 2, 3]);
}

/// cpython#79124: equal keys and cancels must not disturb each other.
#[test]
fn a_thousand_equal_tasks_with_every_second_cancelled() {
    let world = World::quiet(1);
    let ran = Log::new();
    let tasks: Vec<Task> = (0..1000).map(|n| Task::new(at(10), note(&ran, n)).id(n)).collect();
    world.scheduler.schedule_all(tasks).unwrap();
    for n in (0..1000).step_by(2) {
        world.scheduler.cancel(n).unwrap();
    }
    world.advance(10);
    let odd: Vec<i32> = (0..1000).filter(|n| n % 2 == 1).collect();
    assert_eq!(ran.take(), odd);
}

#[test]
fn who_runs_again_goes_behind_its_equals() {
    let world = World::quiet(1);
    let ran = Log::new();
    let rate = FixedRate::new(ms(10));
    for name in ["a", "b"] {
        let first = Task::new(at(10), note(&ran, name));
        world.scheduler.schedule(first.recurrence(rate)).unwrap();
    }
    world.scheduler.schedule(Task::new(at(20), note(&ran, "once"))).unwrap();
    world.advance(10);
    assert_eq!(ran.take(), ["a", "b"]);
    world.advance(10);
    assert_eq!(ran.take(), ["once", "a", "b"], "the one-off was in the queue before");
}

#[test]
fn a_retry_goes_behind_its_equals() {
    let world = World::quiet(1);
    let ran = Log::new();
    let attempts = ran.clone();
    let fails = Task::new(at(10), move |run: &Run| {
        attempts.push(if run.attempt() == 1 { "first" } else { "retry" });
        run.attempt() > 1
    });
    let fails = fails.retry(retry::FixedDelay::new(1, ms(0)));
    world.scheduler.schedule(fails).unwrap();
    for name in ["b", "c"] {
        world.scheduler.schedule(Task::new(at(10), note(&ran, name))).unwrap();
    }
    world.advance(10);
    assert_eq!(ran.take(), ["first", "b", "c", "retry"]);
}

#[test]
fn when_every_worker_is_busy_a_due_task_waits_and_is_never_dropped() {
    let world = World::quiet(2);
    let ran = Log::new();
    let held = [Held::new(), Held::new()];
    for held in &held {
        world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
        held.runs.pass();
    }
    let late: Vec<_> = (0..100)
        .rev()
        .map(|n| {
            let lateness = ran.clone();
            let job = move |run: &Run| lateness.push(millis(run.now()) - millis(run.due()));
            world.scheduler.schedule(Task::new(at(-n), job)).unwrap()
        })
        .collect();
    assert!(late.iter().all(|task| task.state() == TaskState::Waiting));
    assert_eq!(ran.len(), 0);
    held[1].go_on.open(); // the other worker stays busy
    assert!(late.iter().all(|task| task.wait(None)));
    assert_eq!(ran.take(), (0..100).rev().collect::<Vec<_>>());
    held[0].go_on.open();
}

/// celery#4493: a crowd in one instant.
#[test]
fn a_crowd_due_in_one_instant_all_starts_in_it() {
    let world = World::quiet(4);
    let ran = Log::new();
    for _ in 0..1000 {
        let starts = ran.clone();
        let job = move |run: &Run| starts.push(run.now());
        world.scheduler.after(secs(7), job).expect("nothing is refused");
    }
    world.advance(7_000);
    assert_eq!(ran.take(), vec![at(7_000); 1000]);
}

#[test]
fn no_task_starts_before_its_due_time_on_the_real_clock() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::new();
    let starts = Log::new();
    let now = scheduler.now().as_nanos();
    let tasks = (0..500_i64).map(|n| {
        let starts = starts.clone();
        let job = move |run: &Run| starts.push(run.now() >= run.due());
        let due = Timestamp::from_nanos(now + (n * 7_919) % 500 * 100_000);
        scheduler.schedule(Task::new(due, job)).unwrap()
    });
    let tasks: Vec<_> = tasks.collect();
    assert!(tasks.iter().all(|task| task.wait(None)));
    assert_eq!(starts.take(), [true; 500]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_tasks_run_in_the_order_of_a_stable_sort(
        tasks in prop::collection::vec((0..20_i64, -2..=2_i32), 0..60),
        jumps in prop::bool::ANY,
    ) {
        let world = World::quiet(1);
        let ran = Log::new();
        for (n, &(due, priority)) in tasks.iter().enumerate() {
            let task = Task::new(at(due + 1), note(&ran, n)).priority(priority);
            world.scheduler.schedule(task).unwrap();
        }
        if jumps { world.jump(30) } else { world.advance(30) }
        let mut expected: Vec<usize> = (0..tasks.len()).collect();
        expected.sort_by_key(|&n| (tasks[n].0, -tasks[n].1));
        prop_assert_eq!(ran.take(), expected);
    }
}
