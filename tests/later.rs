//! Runs that go on elsewhere after their job returned: they hold no worker, and all else is as for
//! any run.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use common::{World, at, listen, ms, secs, watchdog};
use duetime::{
    CancelOutcome, Completion, EventKind, FixedDelay, FixedRate, JobError, Later, NeverEnded,
    Outcome, Panicked, Scheduler, Shutdown, Task, TaskError, TaskState, Timestamp, Value, retry,
};

/// Where runs go on: a job that sends its completions, and who gets them.
fn elsewhere() -> (impl FnMut() -> Later + Send + Clone + 'static, Receiver<Completion>) {
    let (send, receive): (Sender<Completion>, _) = channel();
    let job = move || {
        let send = send.clone();
        Later::new(move |completion| send.send(completion).unwrap())
    };
    (job, receive)
}

fn failure(text: &str) -> JobError {
    JobError::new(text.to_owned())
}

#[test]
fn a_run_goes_on_until_its_completion_says_how_it_ended() {
    let world = World::quiet(1);
    listen(&world.scheduler, &world.events);
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(ms(0), job).unwrap();
    let completion = runs.recv().unwrap();
    assert_eq!((task.state(), task.outcome().is_none()), (TaskState::Running, true));
    assert_eq!(world.scheduler.stats().unwrap().running, 1);
    assert_eq!(kinds(&world), [EventKind::Scheduled, EventKind::Due, EventKind::Started]);
    completion.finish(Value::new(7_u8));
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!(task.result(None).unwrap().downcast_ref(), Some(&7_u8));
    assert_eq!(world.scheduler.stats().unwrap().running, 0);
    assert_eq!(kinds(&world), [EventKind::Completed]);
}

fn kinds(world: &World) -> Vec<EventKind> {
    world.events.take().iter().map(|event| event.kind).collect()
}

#[test]
fn no_worker_is_held_meanwhile() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (job, runs) = elsewhere();
    let tasks: Vec<_> = (0..1000).map(|_| scheduler.after(ms(0), job.clone()).unwrap()).collect();
    let under_way: Vec<Completion> = runs.iter().take(1000).collect();
    assert_eq!(scheduler.stats().unwrap().running, 1000);
    assert!(scheduler.after(ms(0), || ()).unwrap().result(None).is_ok());
    under_way.into_iter().for_each(|completion| completion.finish(()));
    assert!(tasks.iter().all(|task| task.result(None).is_ok()));
    assert!(scheduler.wait_idle(None).unwrap());
}

#[test]
fn the_duration_is_that_of_the_whole_run_and_the_next_slot_comes_after_it() {
    let world = World::quiet(1);
    listen(&world.scheduler, &world.events);
    let (job, runs) = elsewhere();
    let task = Task::new(at(0), job).recurrence(FixedDelay::new(ms(10))).max_runs(2);
    let task = world.scheduler.schedule(task).unwrap();
    let first = runs.recv().unwrap();
    let passing = jump(&world, at(5));
    first.finish(());
    passing.join().unwrap();
    assert_eq!((task.due(), task.state()), (at(15), TaskState::Waiting));
    let starting = jump(&world, at(15));
    let second = runs.recv().unwrap();
    let passing = jump(&world, at(22));
    second.finish(());
    [starting, passing].into_iter().for_each(|moving| moving.join().unwrap());
    let events = world.events.take();
    let durations: Vec<_> = events.iter().filter_map(|event| event.duration).collect();
    assert_eq!((durations, task.state()), (vec![ms(5), ms(7)], TaskState::Done));
}

/// Moves the clock, on which a run goes on; the thread ends when all is quiet.
fn jump(world: &World, to: Timestamp) -> thread::JoinHandle<()> {
    let clock = world.clock.clone();
    let moving = thread::spawn({
        let clock = clock.clone();
        move || clock.jump(to.since(clock.now())).unwrap()
    });
    while clock.now() < to {
        thread::yield_now();
    }
    moving
}

#[test]
fn a_failure_is_retried_and_a_series_goes_on() {
    let world = World::quiet(1);
    let (job, runs) = elsewhere();
    let task = Task::new(at(0), job)
        .recurrence(FixedRate::new(secs(60)))
        .retry(retry::FixedDelay::new(1, secs(1)))
        .max_runs(2);
    let task = world.scheduler.schedule(task).unwrap();
    runs.recv().unwrap().finish(Outcome::Failed(failure("first")));
    assert_eq!((task.due(), task.state()), (at(1000), TaskState::Waiting));
    let moving = jump(&world, at(1000));
    runs.recv().unwrap().finish(());
    moving.join().unwrap();
    assert_eq!(task.due(), at(60_000));
    let moving = jump(&world, at(60_000));
    runs.recv().unwrap().finish(false);
    moving.join().unwrap();
    assert_eq!(task.due(), at(61_000));
    let moving = jump(&world, at(61_000));
    runs.recv().unwrap().finish(false);
    moving.join().unwrap();
    let info = task.info();
    assert_eq!((info.state, info.runs, info.failures), (TaskState::Failed, 4, 3));
}

#[test]
fn advance_and_wait_idle_wait_for_it() {
    let world = World::quiet(1);
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(secs(1), job).unwrap();
    let clock = world.clock.clone();
    let advancing = thread::spawn(move || clock.advance(secs(5)).unwrap());
    let completion = runs.recv().unwrap();
    assert!(!world.scheduler.wait_idle(Some(ms(1))).unwrap());
    assert_eq!(world.clock.now(), at(1000), "the clock stands while the run goes on");
    let scheduler = world.scheduler.clone();
    let waiting = thread::spawn(move || scheduler.wait_idle(None).unwrap());
    completion.finish(());
    assert!(waiting.join().unwrap());
    advancing.join().unwrap();
    assert_eq!((world.clock.now(), task.state()), (at(5000), TaskState::Done));
}

#[test]
fn a_completion_that_is_dropped_is_a_failure() {
    let world = World::quiet(1);
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(ms(0), job).unwrap();
    drop(runs.recv().unwrap());
    let Err(TaskError::Failed(error)) = task.result(None) else { panic!("it failed") };
    assert!(error.downcast_ref::<NeverEnded>().is_some());
}

#[test]
fn a_launch_that_panics_or_drops_is_a_failure() {
    let world = World::quiet(1);
    let panics = world
        .scheduler
        .after(ms(0), || Later::new(|_| std::panic::resume_unwind(Box::new("on purpose"))));
    assert!(matches!(panics.unwrap().result(None), Err(TaskError::Failed(_))));
    let drops = world.scheduler.after(ms(0), || Later::new(drop)).unwrap();
    assert!(matches!(drops.result(None), Err(TaskError::Failed(_))));
    let job = || -> Outcome { std::panic::resume_unwind(Box::new("before")) };
    let Err(TaskError::Failed(error)) = world.scheduler.after(ms(0), job).unwrap().result(None)
    else {
        panic!("it failed")
    };
    assert!(error.downcast_ref::<Panicked>().is_some(), "the worker goes on");
}

#[test]
fn it_may_end_where_it_was_launched_and_go_on_from_there() {
    let world = World::quiet(1);
    let at_once = world
        .scheduler
        .after(ms(0), || Later::new(|completion| completion.finish(Value::new(1_u8))));
    assert_eq!(at_once.unwrap().result(None).unwrap().downcast_ref(), Some(&1_u8));
    let twice = world.scheduler.after(ms(0), || {
        Later::new(|completion| {
            completion.finish(Later::new(|completion| completion.finish(Value::new(2_u8))));
        })
    });
    assert_eq!(twice.unwrap().result(None).unwrap().downcast_ref(), Some(&2_u8));
}

#[test]
fn a_task_never_overlaps_itself() {
    let world = World::quiet(4);
    let (job, runs) = elsewhere();
    let task = Task::new(at(0), job).recurrence(FixedRate::new(ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    let completion = runs.recv().unwrap();
    let moving = jump(&world, at(95));
    assert!(runs.try_recv().is_err(), "nine slots have passed");
    completion.finish(());
    moving.join().unwrap();
    assert_eq!((task.due(), task.info().missed), (at(100), 9));
}

#[test]
fn a_cancel_reaches_who_holds_it_once() {
    let world = World::quiet(1);
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(ms(0), job).unwrap();
    let completion = runs.recv().unwrap();
    let (told, hears) = channel();
    let replaced = told.clone();
    completion.on_stop(move || replaced.send("the first").unwrap());
    completion.on_stop(move || told.send("the last").unwrap());
    assert!(hears.try_recv().is_err());
    assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
    assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
    assert_eq!(hears.iter().collect::<Vec<_>>(), ["the last"]);
    let (told, hears) = channel();
    completion.on_stop(move || told.send("at once").unwrap());
    assert_eq!(hears.recv().unwrap(), "at once");
    completion.finish(());
    assert_eq!(task.state(), TaskState::Done, "a one-off ends as its run did");
}

#[test]
fn a_hook_that_panics_harms_nobody() {
    let world = World::quiet(1);
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(ms(0), job).unwrap();
    let completion = runs.recv().unwrap();
    completion.on_stop(|| std::panic::resume_unwind(Box::new("on purpose")));
    assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
    completion.finish(());
    assert_eq!(task.state(), TaskState::Done);
}

#[test]
fn one_that_gives_way_to_a_stop_is_cancelled_and_else_has_failed() {
    let world = World::quiet(1);
    listen(&world.scheduler, &world.events);
    for series in [false, true] {
        let (job, runs) = elsewhere();
        let mut task = Task::new(world.scheduler.now(), job);
        task = task.retry(retry::FixedDelay::new(5, ms(1)));
        if series {
            task = task.recurrence(FixedRate::new(secs(1)));
        }
        let task = world.scheduler.schedule(task).unwrap();
        let completion = runs.recv().unwrap();
        assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
        world.events.take();
        completion.give_way(failure("told to stop"));
        assert!(matches!(task.result(None), Err(TaskError::Cancelled)));
        assert_eq!(kinds(&world), [EventKind::Failed, EventKind::Cancelled]);
    }
    let (job, runs) = elsewhere();
    let task = world.scheduler.after(ms(0), job).unwrap();
    runs.recv().unwrap().give_way(failure("of its own"));
    assert_eq!(task.state(), TaskState::Failed);
}

#[test]
fn a_shutdown_tells_it_to_stop_and_waits_for_it() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (job, runs) = elsewhere();
    let task = scheduler.after(ms(0), job).unwrap();
    let completion = runs.recv().unwrap();
    let (told, hears) = channel();
    completion.on_stop(move || told.send(()).unwrap());
    assert!(!scheduler.shutdown_with(Shutdown::wait().timeout(ms(1))).unwrap());
    hears.recv().unwrap();
    assert!(!scheduler.has_ended());
    let ending = thread::spawn({
        let scheduler = scheduler.clone();
        move || scheduler.shutdown().unwrap()
    });
    completion.finish(());
    assert!(ending.join().unwrap());
    assert!(scheduler.has_ended());
    assert_eq!(task.state(), TaskState::Done);
}

#[test]
fn a_drain_waits_for_it() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (job, runs) = elsewhere();
    let tasks: Vec<_> = (0..3).map(|_| scheduler.after(ms(0), job.clone()).unwrap()).collect();
    let draining = thread::spawn({
        let scheduler = scheduler.clone();
        move || scheduler.shutdown_with(Shutdown::wait().drain()).unwrap()
    });
    runs.iter().take(3).for_each(|completion| completion.finish(()));
    assert!(draining.join().unwrap());
    assert!(tasks.iter().all(|task| task.state() == TaskState::Done));
}

#[test]
fn a_scheduler_that_is_dropped_tells_it_to_stop() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (job, runs) = elsewhere();
    let task = scheduler.after(ms(0), job).unwrap();
    let completion = runs.recv().unwrap();
    let (told, hears) = channel();
    completion.on_stop(move || told.send(()).unwrap());
    drop(scheduler);
    hears.recv().unwrap();
    completion.finish(Value::new(3_u8));
    assert_eq!(task.result(None).unwrap().downcast_ref(), Some(&3_u8));
}

#[test]
fn a_cancel_races_the_end() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let (job, runs) = elsewhere();
    for _ in 0..2000 {
        let task = scheduler.after(ms(0), job.clone()).unwrap();
        let completion = runs.recv().unwrap();
        let (told, hears) = channel();
        completion.on_stop(move || told.send(()).unwrap());
        let ending = thread::spawn(move || completion.give_way(failure("given up")));
        let answer = task.cancel().unwrap();
        ending.join().unwrap();
        match answer {
            CancelOutcome::Stopping => assert_eq!(task.state(), TaskState::Cancelled),
            answer => {
                assert_eq!(answer, CancelOutcome::Finished);
                assert_eq!(task.state(), TaskState::Failed);
                assert!(hears.try_recv().is_err());
            }
        }
    }
}
