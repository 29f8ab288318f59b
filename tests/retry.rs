//! Retries: how many, when, and how they fit into the slots of a series.

mod common;

use std::time::Duration;

use common::{Log, ON_PURPOSE, World, at, cause, hush, millis, ms, secs};
use duetime::{
    Error, FixedRate, JobError, Panicked, RetryPolicy, ReturnedFalse, Run, Task, TaskError,
    TaskHandle, TaskState, Timestamp, retry,
};

/// Start and attempt of each run, in milliseconds.
type Attempts = Log<(i64, u64)>;

/// A task that fails, but for the runs in `good`.
fn fails(attempts: &Attempts, first: i64, good: &'static [u64]) -> Task {
    let attempts = attempts.clone();
    Task::new(at(first), move |run: &Run| {
        attempts.push((millis(run.now()), run.attempt()));
        good.contains(&run.number())
    })
}

fn failure(task: &TaskHandle) -> JobError {
    assert_eq!(task.state(), TaskState::Failed);
    match task.outcome() {
        Some(Err(TaskError::Failed(error))) => error,
        other => panic!("{other:?} is no failure"),
    }
}

/// airflow#47971: n retries are n + 1 attempts.
#[test]
fn as_many_attempts_as_retries_and_one() {
    for retries in [0, 1, 3, 1000] {
        let world = World::quiet(1);
        let attempts = Log::new();
        let task = fails(&attempts, 5, &[]).retry(retry::FixedDelay::new(retries, ms(10)));
        let task = world.scheduler.schedule(task).unwrap();
        world.advance(100_000);
        let expected = (0..=retries).map(|n| (5 + 10 * n.cast_signed(), n + 1));
        assert!(attempts.take().into_iter().eq(expected));
        assert_eq!((task.info().runs, task.info().failures), (retries + 1, retries + 1));
        cause::<ReturnedFalse>(&failure(&task));
    }
}

#[test]
fn the_first_success_is_the_end() {
    let world = World::new(1);
    let attempts = Log::new();
    let task = fails(&attempts, 5, &[3]).id("t").retry(retry::FixedDelay::new(9, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(100);
    assert_eq!(attempts.take(), [(5, 1), (15, 2), (25, 3)]);
    assert_eq!((task.state(), task.info().failures), (TaskState::Done, 2));
    let expected = [
        "0 SCHEDULED 't'",
        "5 DUE 't'",
        "5 STARTED 't'",
        "5 FAILED 't' next 15",
        "15 DUE 't'",
        "15 STARTED 't'",
        "15 FAILED 't' next 25",
        "25 DUE 't'",
        "25 STARTED 't'",
        "25 COMPLETED 't'",
    ];
    assert_eq!(world.story(), expected);
}

#[test]
fn the_delay_counts_from_the_end_of_the_failed_attempt() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let log = attempts.clone();
    let task = Task::new(at(0), move |run: &Run| {
        log.push((millis(run.now()), millis(run.due())));
        run.wait(ms(7))
    });
    let task = task.retry(retry::FixedDelay::new(2, ms(10)));
    world.scheduler.schedule(task).unwrap();
    world.advance(100);
    assert_eq!(attempts.take(), [(0, 0), (17, 17), (34, 34)]);
}

#[test]
fn without_a_policy_the_first_failure_is_final() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let plain = world.scheduler.schedule(fails(&attempts, 5, &[])).unwrap();
    let never = fails(&attempts, 6, &[]).retry(retry::Never);
    let never = world.scheduler.schedule(never).unwrap();
    world.advance(100);
    assert_eq!(attempts.take(), [(5, 1), (6, 1)]);
    assert_eq!(plain.state(), TaskState::Failed);
    assert_eq!(never.state(), TaskState::Failed);
}

#[test]
fn exponential_backoff_doubles_up_to_its_cap() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let policy = retry::ExponentialBackoff::new(6, ms(10)).cap(ms(100));
    world.scheduler.schedule(fails(&attempts, 0, &[]).retry(policy)).unwrap();
    world.advance(1_000);
    let starts: Vec<i64> = attempts.take().into_iter().map(|(start, _)| start).collect();
    assert_eq!(starts, [0, 10, 30, 70, 150, 250, 350]);
}

#[test]
fn a_waiting_retry_holds_no_thread() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let task = fails(&attempts, 0, &[2]).retry(retry::FixedDelay::new(1, secs(3600)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(0);
    assert_eq!(task.state(), TaskState::Waiting);
    assert_eq!(task.due(), at(3_600_000));
    for _ in 0..10 {
        let other = world.scheduler.after(ms(1), || ()).unwrap();
        world.advance(1);
        assert!(other.outcome().is_some());
    }
    world.advance(3_600_000);
    assert_eq!(attempts.take(), [(0, 1), (3_600_000, 2)]);
    assert_eq!(task.state(), TaskState::Done);
}

/// huey#260: retries within a slot.
#[test]
fn a_retry_comes_before_the_next_slot_or_gives_way_to_it() {
    let run = |delay, good| {
        let world = World::quiet(1);
        let attempts = Log::new();
        let task = fails(&attempts, 0, good).retry(retry::FixedDelay::new(1, ms(delay)));
        let task = task.recurrence(FixedRate::new(ms(10))).until(at(20));
        world.scheduler.schedule(task).unwrap();
        world.advance(1_000);
        attempts.take()
    };
    let failing = [(0, 1), (3, 2), (10, 1), (13, 2), (20, 1)];
    assert_eq!(run(3, &[]), failing, "each slot has attempts of its own");
    assert_eq!(run(3, &[2]), failing, "a retry that succeeds leaves the grid as it is");
    assert_eq!(run(3, &[1]), [(0, 1), (10, 1), (13, 2), (20, 1)]);
    let gives_way = [(0, 1), (10, 1), (20, 1)];
    assert_eq!(run(15, &[]), gives_way);
    assert_eq!(run(10, &[]), gives_way, "at the next slot is too late");
    assert_eq!(run(9, &[2])[..3], [(0, 1), (9, 2), (10, 1)]);
}

#[test]
fn until_bounds_retries_and_max_runs_does_not_count_them() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let policy = retry::FixedDelay::new(100, ms(10));
    let until = fails(&attempts, 0, &[]).retry(policy).until(at(20));
    let until = world.scheduler.schedule(until).unwrap();
    world.advance(1_000);
    assert_eq!(attempts.take(), [(0, 1), (10, 2), (20, 3)]);
    assert_eq!(until.state(), TaskState::Failed);
    let slots = fails(&attempts, 1_000, &[]).retry(retry::FixedDelay::new(1, ms(10)));
    let slots = slots.recurrence(FixedRate::new(ms(100))).max_runs(2);
    let slots = world.scheduler.schedule(slots).unwrap();
    world.advance(1_000);
    assert_eq!(attempts.take(), [(1_000, 1), (1_010, 2), (1_100, 1), (1_110, 2)]);
    assert_eq!(slots.state(), TaskState::Failed);
}

struct Custom<F>(F);

impl<F> RetryPolicy for Custom<F>
where
    F: Fn(u64) -> Result<Option<Duration>, JobError> + Send + 'static,
{
    fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
        (self.0)(failures)
    }
}

#[test]
fn a_custom_policy_decides_by_the_failures_of_the_slot() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let policy = Custom(|failures| Ok((failures < 4).then(|| ms(failures * failures))));
    world.scheduler.schedule(fails(&attempts, 0, &[]).retry(policy)).unwrap();
    world.advance(100);
    assert_eq!(attempts.take(), [(0, 1), (1, 2), (5, 3), (14, 4)]);
}

#[test]
fn a_custom_policy_that_fails_ends_the_task_with_its_error() {
    hush();
    let world = World::quiet(1);
    let attempts = Log::new();
    let broken = Custom(|_| Err(JobError::new("no idea")));
    let broken = fails(&attempts, 0, &[]).retry(broken).recurrence(FixedRate::new(ms(10)));
    let broken = world.scheduler.schedule(broken).unwrap();
    let panics = Custom(|_| panic!("{ON_PURPOSE}"));
    let panics = world.scheduler.schedule(fails(&attempts, 0, &[]).retry(panics)).unwrap();
    world.advance(100);
    assert_eq!(failure(&broken).to_string(), "no idea");
    assert_eq!(broken.info().error.as_deref(), Some("no idea"));
    assert_eq!(cause::<Panicked>(&failure(&panics)).message, ON_PURPOSE);
    assert_eq!(attempts.len(), 2);
}

#[test]
fn a_delay_beyond_the_end_of_time_waits_there() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let policy = Custom(|_| Ok(Some(Duration::MAX)));
    let task = fails(&attempts, 0, &[]).retry(policy);
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(1_000_000);
    assert_eq!(task.due(), Timestamp::MAX);
    assert_eq!(attempts.len(), 1);
}

/// more-executors#144: a shutdown while a retry waits.
#[test]
fn a_shutdown_cancels_a_waiting_retry() {
    let world = World::quiet(1);
    let attempts = Log::new();
    let task = fails(&attempts, 0, &[]).retry(retry::FixedDelay::new(1, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(5);
    assert!(world.scheduler.shutdown().unwrap());
    assert_eq!(task.state(), TaskState::Cancelled);
    assert_eq!(attempts.len(), 1);
    assert!(task.info().error.is_some(), "why it was to be retried is still known");
}

#[test]
fn policies_out_of_bounds_are_refused() {
    let world = World::quiet(1);
    let bad = |policy: retry::ExponentialBackoff| {
        let task = Task::new(at(0), || ()).retry(policy);
        match world.scheduler.schedule(task) {
            Err(Error::InvalidValue { parameter, .. }) => parameter,
            other => panic!("{other:?}"),
        }
    };
    let backoff = retry::ExponentialBackoff::new(1, ms(1));
    for factor in [0.0, 0.999, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(bad(backoff.factor(factor)), "factor");
    }
    for jitter in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert_eq!(bad(backoff.jitter(jitter)), "jitter");
    }
    assert_eq!(bad(backoff.cap(Duration::MAX)), "cap");
    let base = retry::ExponentialBackoff::new(1, Duration::MAX);
    assert_eq!(bad(base), "base");
    let delay = retry::FixedDelay::new(1, Duration::MAX);
    let delay = world.scheduler.schedule(Task::new(at(0), || ()).retry(delay));
    assert!(matches!(delay, Err(Error::InvalidValue { parameter: "delay", .. })));
}
