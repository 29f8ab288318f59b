//! Ids: given and made, unique among all that is known; and what is remembered of the finished.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::collections::HashSet;
use std::sync::Barrier;

use common::{Held, Log, World, at, ms};
use duetime::{Error, FixedRate, ManualClock, Scheduler, Task, TaskId, TaskState};

fn task(id: impl Into<TaskId>) -> Task {
    Task::new(at(10), || ()).id(id)
}

fn ids(world: &World, state: Option<TaskState>) -> Vec<TaskId> {
    let tasks = world.scheduler.tasks(state).unwrap();
    tasks.into_iter().map(|info| info.id).collect()
}

fn is_duplicate<T>(result: Result<T, Error>, id: impl Into<TaskId>) -> bool {
    matches!(result, Err(Error::DuplicateTask(found)) if found == id.into())
}

#[test]
fn an_id_is_a_name_or_a_number_or_made_by_the_scheduler() {
    let world = World::quiet(1);
    let name = world.scheduler.schedule(task("7")).unwrap();
    let number = world.scheduler.schedule(task(7)).unwrap();
    let made: HashSet<TaskId> =
        (0..100).map(|_| world.scheduler.after(ms(1), || ()).unwrap().id()).collect();
    assert_eq!(name.id(), TaskId::from("7"));
    assert_eq!(number.id(), TaskId::from(7), "a name and a number are never equal");
    assert_eq!(made.len(), 100);
    assert!(made.iter().all(|id| matches!(id, TaskId::Int(..0))));
    assert_eq!((name.id().to_string(), number.id().to_string()), ("'7'".into(), "7".into()));
}

#[test]
fn a_made_id_steps_around_the_negative_ones_that_were_given() {
    let world = World::quiet(1);
    for given in [-1, -2, -4, i64::MIN] {
        world.scheduler.schedule(task(given)).unwrap();
    }
    let made: HashSet<TaskId> =
        (0..10).map(|_| world.scheduler.after(ms(1), || ()).unwrap().id()).collect();
    assert_eq!(made.len(), 10);
    assert!([-1, -2, -4].iter().all(|&given| !made.contains(&TaskId::Int(given))));
    let taken = made.into_iter().next().unwrap();
    assert!(is_duplicate(world.scheduler.schedule(task(&taken)), &taken));
}

#[test]
fn an_id_is_taken_from_scheduling_until_it_is_forgotten() {
    let world = World::quiet(1);
    let again = || world.scheduler.schedule(task("a")).map(drop);
    again().unwrap();
    assert!(is_duplicate(again(), "a"), "it waits");
    assert!(matches!(world.scheduler.forget("a"), Err(Error::TaskWaiting(_))));
    world.advance(10);
    assert!(is_duplicate(again(), "a"), "it is remembered");
    world.scheduler.forget("a").unwrap();
    assert!(matches!(world.scheduler.info("a"), Err(Error::UnknownTask(_))));
    assert!(matches!(world.scheduler.forget("a"), Err(Error::UnknownTask(_))));
    again().unwrap();
    let held = Held::new();
    let running = Task::new(at(0), held.clone()).id("runs");
    world.scheduler.schedule(running).unwrap();
    held.runs.pass();
    assert!(matches!(world.scheduler.forget("runs"), Err(Error::TaskRunning(_))));
    assert!(is_duplicate(world.scheduler.schedule(task("runs")), "runs"));
    held.go_on.open();
}

#[test]
fn a_refused_call_changes_nothing() {
    let world = World::new(1);
    world.scheduler.schedule(task("a")).unwrap();
    world.story();
    let three = || vec![task("b"), task("a"), task("c")];
    assert!(is_duplicate(world.scheduler.schedule_all(three()), "a"));
    let twice = vec![task("b"), task("b")];
    assert!(is_duplicate(world.scheduler.schedule_all(twice), "b"));
    let twice = vec![task("b"), task("b")];
    assert!(is_duplicate(world.scheduler.replace_all(twice), "b"));
    let bad = vec![task("b"), task("c").recurrence(FixedRate::new(ms(0)))];
    assert!(matches!(world.scheduler.schedule_all(bad), Err(Error::InvalidValue { .. })));
    assert_eq!(ids(&world, None), [TaskId::from("a")]);
    assert_eq!(world.scheduler.stats().unwrap().waiting, 1);
    assert!(world.story().is_empty());
    assert!(world.scheduler.schedule_all(Vec::new()).unwrap().is_empty());
}

/// apscheduler#373: one id from many threads at once.
#[test]
fn of_a_hundred_threads_one_gets_the_id() {
    let world = World::quiet(2);
    for round in 0..50 {
        let barrier = Barrier::new(100);
        let winners = std::thread::scope(|scope| {
            let tries: Vec<_> = (0..100)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        world.scheduler.schedule(task(round)).is_ok()
                    })
                })
                .collect();
            tries.into_iter().map(|tried| tried.join().unwrap()).filter(|&won| won).count()
        });
        assert_eq!(winners, 1);
    }
    world.advance(10);
    assert_eq!(world.scheduler.stats().unwrap().done, 50);
}

#[test]
fn replace_cancels_a_waiting_holder_and_forgets_a_finished_one() {
    let world = World::new(1);
    let ran = Log::new();
    let named = |name: &'static str, due| {
        let ran = ran.clone();
        Task::new(at(due), move || ran.push(name)).id("id")
    };
    let first = world.scheduler.replace(named("first", 10)).unwrap();
    let second = world.scheduler.replace(named("second", 20)).unwrap();
    assert_eq!(first.state(), TaskState::Cancelled);
    world.advance(20);
    assert_eq!(ran.take(), ["second"]);
    let third = world.scheduler.replace(named("third", 30)).unwrap();
    assert_eq!(second.state(), TaskState::Done, "what has ended stays so");
    assert_eq!(world.scheduler.info("id").unwrap().state, TaskState::Waiting);
    world.advance(10);
    assert_eq!(ran.take(), ["third"]);
    assert_eq!(third.state(), TaskState::Done);
    assert_eq!(ids(&world, None).len(), 1, "the id has one record");
    let expected = [
        "0 SCHEDULED 'id'",
        "0 CANCELLED 'id'",
        "0 SCHEDULED 'id'",
        "20 DUE 'id'",
        "20 STARTED 'id'",
        "20 COMPLETED 'id'",
        "20 SCHEDULED 'id'",
        "30 DUE 'id'",
        "30 STARTED 'id'",
        "30 COMPLETED 'id'",
    ];
    assert_eq!(world.story(), expected);
}

#[test]
fn a_running_holder_is_not_replaced_nor_is_anything_beside_it() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone()).id("runs")).unwrap();
    world.scheduler.schedule(task("waits")).unwrap();
    held.runs.pass();
    let both = vec![task("waits"), task("runs")];
    assert!(matches!(
        world.scheduler.replace_all(both),
        Err(Error::TaskRunning(id)) if id == "runs".into()
    ));
    assert_eq!(world.scheduler.stats().unwrap().cancelled, 0);
    held.go_on.open();
    world.advance(10);
    assert_eq!(world.scheduler.info("waits").unwrap().runs, 1);
}

#[test]
fn the_last_finished_tasks_are_remembered_and_older_ids_are_free() {
    for history in [0_i64, 1, 10] {
        let clock = ManualClock::new();
        let scheduler = Scheduler::builder()
            .clock(clock.clone())
            .workers(1)
            .history(usize::try_from(history).unwrap())
            .build()
            .unwrap();
        let live = scheduler.schedule(task("live").recurrence(FixedRate::new(ms(10)))).unwrap();
        for n in 0..100 {
            scheduler.schedule(Task::new(at(n), || ()).id(n)).unwrap();
        }
        clock.advance(ms(100)).unwrap();
        assert_eq!(scheduler.stats().unwrap().done, 100, "counted all the same");
        let known = |n: i64| scheduler.info(n).is_ok();
        assert!((0..100).all(|n| known(n) == (n >= 100 - history)));
        let finished = scheduler.tasks(Some(TaskState::Done)).unwrap();
        let order: Vec<TaskId> = finished.into_iter().map(|info| info.id).collect();
        let last: Vec<TaskId> = (100 - history..100).map(TaskId::from).collect();
        assert_eq!(order, last, "the oldest first");
        assert!(scheduler.schedule(Task::new(at(999), || ()).id(0)).is_ok(), "its id is free");
        assert_eq!(is_duplicate(scheduler.schedule(task(99)), 99), history > 0);
        assert_eq!(scheduler.info("live").unwrap().runs, live.info().runs);
    }
}

#[test]
fn tasks_lists_what_is_known_by_state() {
    let world = World::quiet(1);
    world.scheduler.schedule(task("waits").recurrence(FixedRate::new(ms(10)))).unwrap();
    world.scheduler.schedule(Task::new(at(1), || false).id("fails")).unwrap();
    world.scheduler.schedule(Task::new(at(2), || ()).id("ends")).unwrap();
    world.scheduler.schedule(task("stops")).unwrap();
    world.scheduler.cancel("stops").unwrap();
    world.advance(10);
    let by_state = |state| ids(&world, Some(state));
    assert_eq!(by_state(TaskState::Waiting), [TaskId::from("waits")]);
    assert_eq!(by_state(TaskState::Failed), [TaskId::from("fails")]);
    assert_eq!(by_state(TaskState::Done), [TaskId::from("ends")]);
    assert_eq!(by_state(TaskState::Cancelled), [TaskId::from("stops")]);
    assert!(by_state(TaskState::Running).is_empty());
    assert_eq!(ids(&world, None).len(), 4);
    assert!(world.scheduler.get("waits").unwrap().is_some());
    assert!(world.scheduler.get("ends").unwrap().is_none(), "only its record is kept");
}

/// gocron#492: one function, several tasks.
#[test]
fn one_of_three_tasks_with_the_same_job_is_cancelled() {
    let world = World::quiet(1);
    let tasks: Vec<_> = (0..3).map(|_| world.scheduler.after(ms(1), || ()).unwrap()).collect();
    tasks[1].cancel().unwrap();
    world.advance(1);
    let states: Vec<TaskState> = tasks.iter().map(duetime::TaskHandle::state).collect();
    assert_eq!(states, [TaskState::Done, TaskState::Cancelled, TaskState::Done]);
}
