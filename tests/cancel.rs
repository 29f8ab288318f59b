//! Cancel: what it answers and what it does.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::{Arc, Weak};

use common::{Gate, Held, Log, World, at, ms, secs};
use duetime::CancelOutcome::{Cancelled, Finished, Stopping, Unknown};
use duetime::{
    CancelOutcome, Event, EventKind, FixedRate, Run, Task, TaskError, TaskHandle, TaskState, retry,
};

const BOTH: [bool; 2] = [false, true];

/// Cancels by id or by handle: the answer must be the same.
fn cancel(world: &World, task: &TaskHandle, by_id: bool) -> CancelOutcome {
    if by_id { world.scheduler.cancel(task.id()).unwrap() } else { task.cancel().unwrap() }
}

#[test]
fn a_waiting_task_never_runs_and_lets_go_of_its_job_at_once() {
    for by_id in BOTH {
        let world = World::new(1);
        let captured = Arc::new(());
        let held: Weak<()> = Arc::downgrade(&captured);
        let task = world
            .scheduler
            .schedule(Task::new(at(10), move || drop(Arc::clone(&captured))).id("t"))
            .unwrap();
        assert!(held.upgrade().is_some());
        assert_eq!(cancel(&world, &task, by_id), Cancelled);
        assert!(held.upgrade().is_none(), "released before its due time");
        assert_eq!(cancel(&world, &task, by_id), Finished, "and again");
        world.advance(20);
        assert_eq!(task.state(), TaskState::Cancelled);
        assert!(matches!(task.result(None), Err(TaskError::Cancelled)));
        assert_eq!(task.info().runs, 0);
        assert_eq!(world.story(), ["0 SCHEDULED 't'", "0 CANCELLED 't'"]);
    }
}

#[test]
fn a_running_one_off_ends_as_its_run_does_without_a_retry() {
    for (by_id, ok) in [(false, true), (true, true), (false, false), (true, false)] {
        let world = World::new(1);
        let held = Held::new();
        let job = {
            let held = held.clone();
            move |run: &Run| {
                held.hold();
                assert!(run.stop_requested());
                ok
            }
        };
        let task = Task::new(at(0), job).retry(retry::FixedDelay::new(5, ms(1)));
        let task = world.scheduler.schedule(task).unwrap();
        held.runs.pass();
        assert_eq!(cancel(&world, &task, by_id), Stopping);
        assert_eq!(cancel(&world, &task, by_id), Stopping, "and again");
        assert_eq!(task.state(), TaskState::Running);
        held.go_on.open();
        assert!(task.wait(None));
        let (state, kind) = if ok {
            (TaskState::Done, EventKind::Completed)
        } else {
            (TaskState::Failed, EventKind::Failed)
        };
        assert_eq!(task.state(), state);
        world.advance(100);
        assert_eq!(task.info().runs, 1);
        let events = world.events.take();
        let last = events.last().unwrap();
        assert_eq!((last.kind, last.next_due), (kind, None));
    }
}

#[test]
fn a_running_series_is_cancelled_after_its_run() {
    for ok in BOTH {
        let world = World::new(1);
        let held = Held::new();
        let job = {
            let held = held.clone();
            move || {
                held.hold();
                ok
            }
        };
        let task = Task::new(at(0), job).id("t").recurrence(FixedRate::new(ms(10)));
        let task = world.scheduler.schedule(task).unwrap();
        held.runs.pass();
        assert_eq!(task.cancel().unwrap(), Stopping);
        held.go_on.open();
        assert!(task.wait(None));
        world.advance(100);
        assert_eq!(task.state(), TaskState::Cancelled);
        let ended = if ok { "0 COMPLETED 't'" } else { "0 FAILED 't'" };
        let expected = ["0 SCHEDULED 't'", "0 DUE 't'", "0 STARTED 't'", ended, "0 CANCELLED 't'"];
        assert_eq!(world.story(), expected);
    }
}

#[test]
fn a_series_that_is_stopped_in_its_last_run_is_cancelled_too() {
    for ok in BOTH {
        let world = World::quiet(1);
        let held = Held::new();
        let job = {
            let held = held.clone();
            move || {
                held.hold();
                ok
            }
        };
        let task = Task::new(at(0), job).recurrence(FixedRate::new(ms(10))).max_runs(1);
        let task = world.scheduler.schedule(task).unwrap();
        held.runs.pass();
        assert_eq!(task.cancel().unwrap(), Stopping);
        held.go_on.open();
        assert!(matches!(task.result(None), Err(TaskError::Cancelled)));
        assert_eq!(task.state(), TaskState::Cancelled);
    }
}

#[test]
fn what_has_ended_or_is_not_known_cannot_be_cancelled() {
    let world = World::new(1);
    let done = world.scheduler.after(ms(1), || true).unwrap();
    let failed = world.scheduler.after(ms(1), || false).unwrap();
    world.advance(1);
    world.events.take();
    for task in [&done, &failed] {
        assert_eq!(cancel(&world, task, false), Finished);
        assert_eq!(cancel(&world, task, true), Finished);
    }
    assert_eq!(world.scheduler.cancel("nobody").unwrap(), Unknown);
    world.scheduler.forget(done.id()).unwrap();
    assert_eq!(cancel(&world, &done, true), Unknown);
    assert_eq!(cancel(&world, &done, false), Finished);
    let waiting = world.scheduler.after(ms(1), || true).unwrap();
    world.scheduler.shutdown().unwrap();
    assert_eq!(waiting.cancel().unwrap(), Finished, "the shutdown cancelled it");
    assert_eq!(done.state(), TaskState::Done);
    assert_eq!(failed.state(), TaskState::Failed);
}

/// more-executors#151: while a retry waits, and from the listener of the failure.
#[test]
fn a_waiting_retry_is_cancelled_like_any_waiting_task() {
    let world = World::new(1);
    let task = Task::new(at(0), || false).retry(retry::FixedDelay::new(9, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(15);
    assert_eq!(task.info().runs, 2);
    assert_eq!(task.cancel().unwrap(), Cancelled);
    world.advance(100);
    assert_eq!(task.info().runs, 2);
    assert_eq!(task.state(), TaskState::Cancelled);
}

#[test]
fn a_listener_of_the_failure_may_cancel_the_retry() {
    let world = World::new(1);
    let answers = Log::new();
    let (scheduler, log) = (world.scheduler.downgrade(), answers.clone());
    let on_failure = move |event: &Event| {
        let scheduler = scheduler.upgrade().unwrap();
        log.push(scheduler.cancel(&event.task_id).unwrap());
        log.push(scheduler.cancel(&event.task_id).unwrap());
    };
    world.scheduler.add_listener(on_failure, &[EventKind::Failed]).unwrap();
    let task = Task::new(at(5), || false).id("t").retry(retry::FixedDelay::new(9, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(100);
    assert_eq!(answers.take(), [Cancelled, Finished]);
    assert_eq!((task.state(), task.info().runs), (TaskState::Cancelled, 1));
    let expected = [
        "0 SCHEDULED 't'",
        "5 DUE 't'",
        "5 STARTED 't'",
        "5 FAILED 't' next 15",
        "5 CANCELLED 't'",
    ];
    assert_eq!(world.story(), expected);
}

/// gocron#120, akka#214, jboss-threads#163: a series is stopped by its own job.
#[test]
fn a_job_may_cancel_its_own_series_in_any_run() {
    for last in [1, 2, 1000] {
        let world = World::quiet(1);
        let scheduler = world.scheduler.downgrade();
        let answers = Log::new();
        let log = answers.clone();
        let task = world.scheduler.every(FixedRate::new(ms(10)), move |run: &Run| {
            if run.number() == last {
                log.push(scheduler.upgrade().unwrap().cancel(run.id()).unwrap());
            }
        });
        world.advance(20_000);
        let info = task.unwrap().info();
        assert_eq!((info.runs, info.state), (last, TaskState::Cancelled));
        assert_eq!(answers.take(), [Stopping]);
    }
}

#[test]
fn a_due_task_behind_a_busy_worker_is_still_waiting() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let series = Task::new(at(0), || ()).recurrence(FixedRate::new(ms(10)));
    let series = world.scheduler.schedule(series).unwrap();
    assert_eq!(series.cancel().unwrap(), Cancelled);
    held.go_on.open();
    world.advance(100);
    assert_eq!(series.info().runs, 0);
}

/// cpython#81355: nobody waits for a task that was cancelled.
#[test]
fn a_cancel_ends_the_waits_for_a_task() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let due = world.scheduler.schedule(Task::new(at(0), || ())).unwrap();
    let waits = Gate::default();
    let (task, waiting) = (due.clone(), waits.clone());
    let waiter = std::thread::spawn(move || {
        waiting.open();
        task.result(None)
    });
    waits.pass();
    assert_eq!(due.cancel().unwrap(), Cancelled);
    assert!(matches!(waiter.join().unwrap(), Err(TaskError::Cancelled)));
    held.go_on.open();
    assert!(world.scheduler.wait_idle(None).unwrap());
}

/// tonio#35: the earliest is cancelled and the next one still starts.
#[test]
fn a_cancelled_head_does_not_hide_the_next_task() {
    for by in [0, 9, 10] {
        let world = World::quiet(1);
        let earliest = world.scheduler.schedule(Task::new(at(10), || ())).unwrap();
        let next = world.scheduler.schedule(Task::new(at(11), || ())).unwrap();
        world.advance(by);
        let answer = earliest.cancel().unwrap();
        assert_eq!(answer, if by < 10 { Cancelled } else { Finished });
        world.advance(11 - by);
        assert_eq!(next.state(), TaskState::Done);
    }
}

#[test]
fn of_a_run_that_was_cancelled_each_handle_can_ask_why_it_failed() {
    let world = World::new(1);
    let keeps = |task: &TaskHandle| {
        assert_eq!((task.state(), task.info().failures), (TaskState::Cancelled, 1));
        drop(task.clone()); // not the last one
        task.last_error().is_some()
    };
    let owner = world.scheduler.downgrade();
    let stops_itself = move |run: &Run| {
        let _ = owner.upgrade().unwrap().cancel(run.id()).unwrap();
        false
    };
    let task = Task::new(at(0), stops_itself).recurrence(FixedRate::new(secs(1)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(0);
    assert!(keeps(&task));

    // The same between two runs, while that is told.
    let owner = world.scheduler.downgrade();
    let cancels = move |event: &Event| drop(owner.upgrade().unwrap().cancel(event.task_id.clone()));
    world.scheduler.add_listener(cancels, &[EventKind::Failed]).unwrap();
    let task = Task::new(at(0), || false).recurrence(FixedRate::new(secs(1)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(0);
    assert!(keeps(&task));
}
