//! A task's life: its states, how its job may end, and what its holder learns of it.

mod common;

use std::fmt;
use std::panic::panic_any;
use std::sync::Arc;

use common::{Gate, Held, Log, ON_PURPOSE, World, at, blow_up, cause, hush, millis, ms};
use duetime::{
    FixedRate, Job, JobError, Outcome, Panicked, ReturnedFalse, Run, Task, TaskError, TaskHandle,
    TaskState, Value, current_run,
};

/// Runs the task that is due now, to its end.
fn outcome(world: &World, task: Task) -> Result<Value, TaskError> {
    world.scheduler.schedule(task).expect("open").result(None)
}

fn failure(result: Result<Value, TaskError>) -> JobError {
    match result {
        Err(TaskError::Failed(error)) => error,
        other => panic!("{other:?} is no failure"),
    }
}

#[test]
fn a_task_waits_runs_and_is_done() {
    let world = World::quiet(1);
    let held = Held::new();
    let first = world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    let second = world.scheduler.schedule(Task::new(at(0), || ())).unwrap();
    held.runs.pass();
    assert_eq!(first.state(), TaskState::Running);
    assert_eq!(second.state(), TaskState::Waiting);
    assert!(first.outcome().is_none() && second.outcome().is_none());
    held.go_on.open();
    assert!(first.wait(None) && second.wait(None));
    assert_eq!(first.state(), TaskState::Done);
    assert_eq!(second.state(), TaskState::Done);
    assert!(TaskState::Done.is_end() && !TaskState::Running.is_end());
}

#[test]
fn what_a_job_may_return_to_succeed() {
    let world = World::quiet(1);
    let now = at(0);
    let unit = outcome(&world, Task::new(now, || ())).unwrap();
    assert_eq!(unit.downcast_ref::<()>(), Some(&()));
    let yes = outcome(&world, Task::new(now, || true)).unwrap();
    assert_eq!(yes.downcast_ref::<bool>(), Some(&true));
    let text = outcome(&world, Task::new(now, || Ok::<_, fmt::Error>("text"))).unwrap();
    assert_eq!(text.downcast_ref::<&str>(), Some(&"text"));
    let zero = outcome(&world, Task::new(now, |_: &Run| Ok::<_, fmt::Error>(0_u8))).unwrap();
    assert_eq!(zero.downcast_ref::<u8>(), Some(&0), "only false is false");
    let whole = Task::new(now, || Outcome::Done(Value::new(vec![1, 2])));
    let whole = outcome(&world, whole).unwrap();
    assert_eq!(whole.downcast_ref::<Vec<i32>>(), Some(&vec![1, 2]));
    assert_eq!(whole.downcast_ref::<Vec<u32>>(), None);
}

#[test]
fn how_a_job_may_fail() {
    hush();
    let world = World::quiet(1);
    let now = at(0);
    let error = failure(outcome(&world, Task::new(now, || false)));
    cause::<ReturnedFalse>(&error);
    assert_eq!(error.to_string(), "the job returned false");
    let error = failure(outcome(&world, Task::new(now, || Ok::<_, fmt::Error>(false))));
    cause::<ReturnedFalse>(&error);
    let error = failure(outcome(&world, Task::new(now, || Err::<(), _>(fmt::Error))));
    cause::<fmt::Error>(&error);
    let error = failure(outcome(&world, Task::new(now, || Err::<(), _>("words"))));
    assert_eq!(error.to_string(), "words");
    let own = Task::new(now, || Outcome::Failed(JobError::new(fmt::Error)));
    cause::<fmt::Error>(&failure(outcome(&world, own)));

    let text = Task::new(now, blow_up);
    assert_eq!(cause::<Panicked>(&failure(outcome(&world, text))).message, ON_PURPOSE);
    let string = || -> Outcome { panic_any(format!("{ON_PURPOSE} {}", 7)) };
    let string = Task::new(now, string);
    let error = failure(outcome(&world, string));
    assert_eq!(error.to_string(), format!("panicked: {ON_PURPOSE} 7"));
    let number = Task::new(now, || -> Outcome { std::panic::resume_unwind(Box::new(7)) }); // past the hook
    let message = cause::<Panicked>(&failure(outcome(&world, number))).message;
    assert_eq!(message, "(no message)");
}

#[test]
fn a_failure_harms_neither_the_worker_nor_the_next_task() {
    struct DropPanics;
    impl Drop for DropPanics {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "{ON_PURPOSE}, in drop");
        }
    }
    hush();
    let world = World::quiet(1);
    let thread = || Ok::<_, fmt::Error>(std::thread::current().id());
    let worker = outcome(&world, Task::new(at(0), thread)).unwrap();
    let worker = *worker.downcast_ref::<std::thread::ThreadId>().unwrap();
    let bad = [
        Task::new(at(0), blow_up),
        Task::new(at(0), || false),
        Task::new(at(0), {
            let captured = DropPanics;
            move || {
                let _ = &captured;
            }
        }),
        Task::new(at(0), || -> Outcome { std::panic::resume_unwind(Box::new(DropPanics)) }),
    ];
    for task in bad {
        drop(outcome(&world, task));
        let again = outcome(&world, Task::new(at(0), thread)).unwrap();
        assert_eq!(again.downcast_ref(), Some(&worker), "the same thread lives");
    }
    assert_eq!(world.scheduler.stats().unwrap().runs, 9);
}

#[test]
fn an_error_that_cannot_be_shown_is_an_error_all_the_same() {
    #[derive(Debug)]
    struct Hostile;
    impl fmt::Display for Hostile {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            panic!("{ON_PURPOSE}, in Display")
        }
    }
    impl std::error::Error for Hostile {}

    hush();
    let world = World::quiet(1);
    let task = Task::new(at(0), || Err::<(), _>(Hostile)).id("hostile");
    let error = failure(outcome(&world, task));
    assert!(error.downcast_ref::<Hostile>().is_some());
    let info = world.scheduler.info("hostile").unwrap();
    assert_eq!(info.state, TaskState::Failed);
    assert!(info.error.is_some());
}

#[test]
fn a_task_counts_its_runs_and_keeps_its_last_error() {
    let world = World::quiet(1);
    let mut run = 0;
    let task = world.scheduler.every(FixedRate::new(ms(10)), move || {
        run += 1;
        if run % 2 == 0 { Err(format!("run {run}")) } else { Ok(run) }
    });
    let task = task.unwrap();
    world.advance(50);
    let info = task.info();
    assert_eq!((info.runs, info.failures, info.missed), (5, 2, 0));
    assert_eq!(info.error.as_deref(), Some("run 4"), "also after a success");
    assert_eq!(info.started, Some(at(50)));
    assert_eq!(info.finished, Some(at(50)));
    assert_eq!((info.state, millis(info.due)), (TaskState::Waiting, 60));
    assert_eq!(task.last_error().unwrap().to_string(), "run 4");
    assert_eq!(world.scheduler.info(task.id()).unwrap(), info);
}

#[test]
fn a_job_sees_its_run() {
    struct Sees(Log<(i64, i64, u64, u64)>);
    impl Job for Sees {
        fn run(&mut self, run: &Run) -> Outcome {
            let current = current_run().unwrap();
            assert_eq!((current.id(), current.number()), (run.id(), run.number()));
            assert!(!run.stop_requested());
            self.0.push((millis(run.due()), millis(run.now()), run.number(), run.attempt()));
            ().into()
        }
    }
    let world = World::quiet(1);
    let seen = Log::new();
    let rate = FixedRate::new(ms(10));
    let handle = world.scheduler.every(rate, Sees(seen.clone())).unwrap();
    world.advance(20);
    world.jump(15); // to 35, past 30
    assert_eq!(seen.take(), [(10, 10, 1, 1), (20, 20, 2, 1), (30, 35, 3, 1)]);
    assert!(current_run().is_none() && !world.scheduler.is_inside() && !handle.is_current());
}

#[test]
fn who_waits_too_long_is_told_so_and_may_wait_again() {
    let world = World::quiet(1);
    let task = world.scheduler.after(ms(10), || true).unwrap();
    assert!(matches!(task.result(Some(ms(0))), Err(TaskError::Timeout)));
    assert!(!task.wait(Some(ms(1))));
    world.advance(10);
    assert!(task.wait(Some(ms(0))), "it has ended: no need to wait");
    assert!(task.result(Some(ms(0))).is_ok());
}

#[test]
fn a_job_cannot_wait_for_its_own_end() {
    let world = World::quiet(1);
    let me: Log<TaskHandle> = Log::new();
    let (known, mine) = (Gate::default(), me.clone());
    let wait = known.clone();
    let task = Task::new(at(0), move || {
        wait.pass();
        let own = mine.take().pop().unwrap();
        matches!(own.result(None), Err(TaskError::InsideJob))
    });
    let task = world.scheduler.schedule(task).unwrap();
    me.push(task.clone());
    known.open();
    assert!(task.result(None).is_ok());
}

#[test]
fn callbacks_come_once_whether_added_before_or_after_the_end() {
    hush();
    let world = World::quiet(1);
    let called = Log::new();
    let callback = |name: &'static str| {
        let called = called.clone();
        move |task: &TaskHandle| called.push((name, task.state(), task.outcome().is_some()))
    };
    let task = world.scheduler.after(ms(10), || ()).unwrap();
    task.on_done(callback("first"));
    task.on_done(|_: &TaskHandle| panic!("{ON_PURPOSE}, in a callback"));
    task.on_done(callback("second"));
    let key = task.watch(callback("never")).ok().unwrap();
    assert!(task.unwatch(key));
    assert!(!task.unwatch(key));
    assert_eq!(called.len(), 0);
    world.advance(10);
    task.on_done(|_: &TaskHandle| panic!("{ON_PURPOSE}, in a callback"));
    task.on_done(callback("late"));
    assert!(task.watch(callback("too late")).is_err());
    let expected = ["first", "second", "late"].map(|name| (name, TaskState::Done, true));
    assert_eq!(called.take(), expected);
}

#[test]
fn a_result_lives_as_long_as_its_handle_and_the_job_no_longer_than_its_task() {
    let world = World::quiet(1);
    let shared = Arc::new(());
    let (in_job, in_result) = (Arc::clone(&shared), Arc::clone(&shared));
    let task = world.scheduler.schedule(Task::new(at(5), move || {
        let _ = &in_job;
        Ok::<_, fmt::Error>(Arc::clone(&in_result))
    }));
    let task = task.unwrap();
    assert_eq!(Arc::strong_count(&shared), 3);
    world.advance(5);
    assert_eq!(Arc::strong_count(&shared), 2, "the job is gone, its result not");
    drop(world);
    assert!(task.result(None).unwrap().downcast_ref::<Arc<()>>().is_some());
    drop(task);
    assert_eq!(Arc::strong_count(&shared), 1);
}
