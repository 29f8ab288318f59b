//! Timeouts: each attempt has its time, and what outlives it has failed.

mod common;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{Gate, Log, World, at, cause, ms, secs};
use duetime::{
    CancelOutcome, Completion, FixedRate, Later, Outcome, Run, Scheduler, Task, TaskError,
    TaskHandle, TaskState, TaskStuck, TaskTimeout, Value, retry,
};

/// Sleeps on the clock, whatever it is told.
fn sleep(run: &Run, duration: Duration) {
    let _told: bool = run.wait(duration);
}

fn failed(task: &TaskHandle) -> duetime::JobError {
    match task.outcome() {
        Some(Err(TaskError::Failed(error))) => error,
        other => panic!("{other:?}"),
    }
}

fn is_late(task: &TaskHandle) -> bool {
    failed(task).downcast_ref::<TaskTimeout>().is_some()
}

fn is_stuck(task: &TaskHandle) -> bool {
    failed(task).downcast_ref::<TaskStuck>().is_some()
}

/// A task that is due now.
fn task<Kind>(world: &World, job: impl duetime::IntoJob<Kind>) -> Task {
    Task::new(world.clock.now(), job)
}

#[test]
fn each_attempt_has_its_own_time() {
    let world = World::new(1);
    let job = |run: &Run| {
        sleep(run, ms(900));
        run.attempt() == 2
    };
    let task = task(&world, job).id("t").timeout(secs(1)).retry(retry::FixedDelay::new(1, ms(500)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(5000);
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!(task.info().finished, Some(at(2300)));
    assert_eq!(
        world.story(),
        [
            "0 SCHEDULED 't'",
            "0 DUE 't'",
            "0 STARTED 't'",
            "900 FAILED 't' next 1400",
            "1400 DUE 't'"
        ]
        .into_iter()
        .chain(["1400 STARTED 't'", "2300 COMPLETED 't'"])
        .collect::<Vec<_>>()
    );
}

#[test]
fn the_time_in_the_queue_does_not_count() {
    let world = World::new(1);
    world.scheduler.schedule(task(&world, |run: &Run| sleep(run, secs(2)))).unwrap();
    let behind = task(&world, |run: &Run| sleep(run, ms(900))).timeout(secs(1));
    let behind = world.scheduler.schedule(behind).unwrap();
    world.advance(5000);
    assert_eq!(behind.state(), TaskState::Done);
    assert_eq!(behind.info().started, Some(at(2000)));
}

#[test]
fn a_run_is_told_to_stop_when_its_time_is_up() {
    let world = World::new(1);
    let seen = Log::new();
    let seen_by_job = seen.clone();
    let job = move |run: &Run| {
        let told = run.wait(secs(100));
        seen_by_job.push((told, run.stop_requested(), run.deadline()));
    };
    let task = world.scheduler.schedule(task(&world, job).id("t").timeout(secs(10))).unwrap();
    world.advance(9_999);
    assert_eq!(task.state(), TaskState::Running);
    world.advance(1);
    assert_eq!(seen.take(), [(true, true, Some(at(10_000)))]);
    let error: TaskTimeout = cause(&failed(&task));
    assert_eq!(error.timeout, secs(10));
    assert_eq!(task.info().finished, Some(at(10_000)));
    assert_eq!(
        task.info().error.as_deref(),
        Some("the attempt had not ended when its timeout of 10s was up")
    );
    assert_eq!(world.story().last().unwrap(), "10000 FAILED 't'");
    assert_eq!(world.scheduler.stats().unwrap().stuck, 0);
}

#[test]
fn a_leap_ends_it_too() {
    let world = World::new(1);
    let job = |run: &Run| sleep(run, secs(100));
    let task = world.scheduler.schedule(task(&world, job).timeout(secs(10))).unwrap();
    world.scheduler.after(secs(3600), || ()).unwrap();
    world.advance(0); // it has begun
    world.jump(50_000);
    assert!(is_late(&task), "who sleeps on the clock has its grace after the leap");
    assert_eq!(task.info().finished, Some(at(50_000)));
}

#[test]
fn who_needs_all_of_its_time_needs_too_much() {
    let world = World::new(2);
    for (needs, in_time) in [(999, true), (1000, false), (1001, false)] {
        let job = move |run: &Run| sleep(run, ms(needs));
        let task = world.scheduler.schedule(task(&world, job).timeout(secs(1))).unwrap();
        world.advance(2000);
        assert_eq!(task.state() == TaskState::Done, in_time, "{needs}");
    }
}

#[test]
fn whatever_a_late_attempt_answers_it_has_failed() {
    let world = World::new(1);
    let late = |outcome: fn() -> Outcome| {
        let job = move |run: &Run| {
            sleep(run, secs(1));
            outcome()
        };
        let task = world.scheduler.schedule(task(&world, job).timeout(ms(1))).unwrap();
        world.advance(2000);
        cause::<TaskTimeout>(&failed(&task)).cause.map(|cause| cause.to_string())
    };
    assert_eq!(late(|| Value::new(7).into()), None);
    assert_eq!(late(|| false.into()).as_deref(), Some("the job returned false"));
    assert_eq!(late(|| Err::<(), _>("too late").into()).as_deref(), Some("too late"));
}

#[test]
fn a_late_attempt_is_retried_by_the_policy() {
    let world = World::new(1);
    let job = |run: &Run| sleep(run, if run.attempt() < 3 { secs(60) } else { ms(1) });
    let policy = retry::FixedDelay::new(2, secs(5));
    let task = task(&world, job).id("t").timeout(secs(1)).retry(policy);
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(60_000);
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!((task.info().runs, task.info().failures), (3, 2));
    assert_eq!(task.info().started, Some(at(12_000)));
}

#[test]
fn a_series_goes_on_after_a_late_run() {
    let world = World::new(1);
    let job = |run: &Run| sleep(run, if run.number() == 2 { secs(60) } else { ms(1) });
    let task = task(&world, job).recurrence(FixedRate::new(secs(10))).timeout(secs(3));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(35_000);
    assert_eq!((task.info().runs, task.info().failures, task.info().missed), (4, 1, 0));
    assert_eq!(task.cancel().unwrap(), CancelOutcome::Cancelled);
}

#[test]
fn a_cancel_of_a_late_run_ends_it_as_any_cancel() {
    let world = World::new(1);
    let told = Gate::default();
    let held = Gate::default();
    let job = {
        let (told, held) = (told.clone(), held.clone());
        move |run: &Run| {
            sleep(run, secs(60));
            told.open();
            held.pass();
        }
    };
    let task = task(&world, job).recurrence(FixedRate::new(secs(10))).timeout(secs(3));
    let task = world.scheduler.schedule(task.grace(secs(1000))).unwrap();
    world.advance(0);
    std::thread::scope(|scope| {
        scope.spawn(|| world.advance(4000));
        told.pass();
        assert_eq!(task.state(), TaskState::Running);
        assert_eq!(task.preview(1).unwrap(), [at(10_000)], "what follows a late run still may");
        assert_eq!(task.cancel().unwrap(), CancelOutcome::Stopping);
        assert_eq!(task.preview(1).unwrap(), []);
        held.open();
    });
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!((task.info().runs, task.info().failures), (1, 1));
}

#[test]
fn a_pause_stops_no_clock_of_a_run() {
    let world = World::new(1);
    let job = |run: &Run| sleep(run, secs(100));
    let late = task(&world, job).timeout(secs(1)).retry(retry::FixedDelay::new(1, secs(1)));
    let late = world.scheduler.schedule(late).unwrap();
    world.advance(0);
    assert_eq!(late.pause().unwrap(), duetime::ControlOutcome::Running);
    world.scheduler.pause().unwrap();
    world.advance(10_000);
    assert_eq!((late.state(), late.info().runs), (TaskState::Waiting, 1));
    world.scheduler.resume().unwrap();
    assert_eq!(late.resume().unwrap(), duetime::ControlOutcome::Applied);
    world.advance(10_000);
    assert_eq!((late.state(), late.info().runs), (TaskState::Failed, 2));
}

#[test]
fn a_run_elsewhere_is_told_to_stop_and_may_be_late_or_stuck() {
    let world = World::new(1);
    let flights: Log<Completion> = Log::new();
    let told = Arc::new(AtomicU64::new(0));
    let fly = || {
        let (flights, told) = (flights.clone(), Arc::clone(&told));
        let job = move || {
            let (flights, told) = (flights.clone(), Arc::clone(&told));
            Later::new(move |completion| {
                completion.on_stop(move || {
                    told.fetch_add(1, Ordering::Relaxed);
                });
                flights.push(completion);
            })
        };
        let task = task(&world, job).timeout(secs(1)).grace(secs(5));
        world.scheduler.schedule(task).unwrap()
    };
    let launched = || loop {
        if let Some(flight) = flights.take().pop() {
            break flight;
        }
        std::thread::yield_now();
    };
    let in_time = fly();
    launched().finish(Value::new(1));
    assert_eq!(in_time.state(), TaskState::Done);

    let stuck = fly();
    let flight = launched();
    assert!(!flight.is_stuck());
    world.jump(6000);
    assert!(is_stuck(&stuck) && flight.is_stuck());
    assert_eq!(told.load(Ordering::Relaxed), 1);
    assert_eq!(world.scheduler.stats().unwrap().stuck, 1);
    flight.finish(Value::new(1)); // nobody wants it any more
    assert!(is_stuck(&stuck));
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.stuck, stats.running, stats.runs), (0, 0, 2));
}

#[test]
fn a_run_elsewhere_that_gives_way_to_its_timeout_is_late_and_retried() {
    let world = World::new(1);
    let job = |run: &Run| {
        let first = run.attempt() == 1;
        Later::new(move |completion| {
            if !first {
                return completion.finish(Value::default());
            }
            let completion = Arc::new(Mutex::new(Some(completion)));
            let later = Arc::clone(&completion);
            let at_once =
                completion.lock().unwrap().as_ref().unwrap().try_on_stop(Box::new(move || {
                    let completion = later.lock().unwrap().take();
                    completion.unwrap().give_way(duetime::JobError::new("I was told to"));
                }));
            assert!(at_once.is_none());
        })
    };
    let policy = retry::FixedDelay::new(1, Duration::ZERO);
    let task = world.scheduler.schedule(task(&world, job).timeout(secs(1)).retry(policy)).unwrap();
    while task.state() != TaskState::Running {
        std::thread::yield_now();
    }
    world.jump(1000);
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!((task.info().runs, task.info().failures), (2, 1));
}

#[test]
fn bad_values_are_refused() {
    let scheduler = Scheduler::new();
    let refused = |task: Task| scheduler.schedule(task).unwrap_err().to_string();
    let task = || Task::new(scheduler.now(), || ());
    let long = Duration::from_secs(u64::MAX);
    assert_eq!(
        refused(task().timeout(Duration::ZERO)),
        "timeout must be at least 1 nanosecond, not 0ns"
    );
    assert!(refused(task().timeout(long)).starts_with("timeout must be at most 100 years"));
    assert!(refused(task().timeout(secs(1)).grace(long)).starts_with("grace must be at most"));
    assert_eq!(
        refused(task().interrupt(true)),
        "interrupt must be false for a task without a timeout, not true"
    );
    assert_eq!(scheduler.stats().unwrap().waiting, 0);
}

#[test]
fn many_at_once_are_each_stopped_in_their_time() {
    let world = World::quiet(64);
    let log = Log::new();
    for n in (0..64_u64).rev() {
        let log = log.clone();
        let job = move |run: &Run| {
            sleep(run, secs(1000));
            log.push(n);
        };
        let task = task(&world, job).timeout(secs(n + 1));
        world.scheduler.schedule(task).unwrap();
    }
    world.advance(100_000);
    assert_eq!(log.take(), (0..64).collect::<Vec<_>>());
}
