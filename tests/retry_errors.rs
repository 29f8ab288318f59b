//! Which errors are retried, and what a job says by `RetryAfter` and `GiveUp`.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::io;
use std::time::Duration;

use common::{Log, ON_PURPOSE, World, at, cause, hush, millis, ms};
use duetime::retry::{GiveUp, RetryAfter};
use duetime::{
    Error, FixedRate, JobError, Outcome, Panicked, RetryPolicy, ReturnedFalse, Run, Task,
    TaskError, TaskHandle, TaskState, retry,
};

/// Starts of the attempts, in milliseconds.
type Starts = Log<i64>;

/// A task due at 0 whose attempts fail with what `error` makes of their number; `None` succeeds.
fn fails<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
    starts: &Starts,
    mut error: impl FnMut(u64) -> Option<E> + Send + 'static,
) -> Task {
    let starts = starts.clone();
    Task::new(at(0), move |run: &Run| -> Outcome {
        starts.push(millis(run.now()));
        error(run.number()).map_or(Ok(()), Err).into()
    })
}

fn failure(task: &TaskHandle) -> JobError {
    assert_eq!(task.state(), TaskState::Failed);
    match task.outcome() {
        Some(Err(TaskError::Failed(error))) => error,
        other => panic!("{other:?} is no failure"),
    }
}

fn of_kind(kind: io::ErrorKind) -> impl Fn(&JobError) -> bool + Send {
    move |error| error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == kind)
}

/// When the attempts start, and the task's end.
fn attempts(task: impl FnOnce(&Starts) -> Task) -> (Vec<i64>, TaskHandle) {
    let world = World::quiet(1);
    let starts = Log::new();
    let task = world.scheduler.schedule(task(&starts)).unwrap();
    world.advance(1_000);
    (starts.take(), task)
}

#[test]
fn only_what_is_worth_it_is_retried() {
    let policy = || retry::FixedDelay::new(9, ms(10)).retry_on(of_kind(io::ErrorKind::TimedOut));
    let error = |run| match run {
        1 | 2 => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::NotFound,
    };
    let (starts, task) = attempts(|starts| {
        fails(starts, move |run| Some(io::Error::from(error(run)))).retry(policy())
    });
    assert_eq!(starts, [0, 10, 20]);
    let kind = failure(&task).downcast_ref::<io::Error>().unwrap().kind();
    assert_eq!(kind, io::ErrorKind::NotFound, "the last error is the task's");
}

#[test]
fn any_policy_can_be_narrowed_and_more_than_once() {
    struct Squares;
    impl RetryPolicy for Squares {
        fn delay_after_failure(&self, failures: u64) -> Result<Option<Duration>, JobError> {
            Ok((failures < 4).then(|| ms(failures * failures)))
        }
    }
    let text = |part: &'static str| move |error: &JobError| error.to_string().contains(part);
    let policy = move || Squares.retry_on(text("a")).retry_on(text("b"));
    let starts = |errors: &'static [&'static str]| {
        let error = move |run: u64| errors.get(usize::try_from(run - 1).unwrap()).copied();
        attempts(move |starts| fails(starts, error).retry(policy())).0
    };
    assert_eq!(starts(&["ab", "ba", "ab", "ab", "ab"]), [0, 1, 5, 14]);
    assert_eq!(starts(&["ab", "a", "ab"]), [0, 1]);
    assert_eq!(starts(&["b", "ab"]), [0]);
}

#[test]
fn a_policy_is_asked_about_false_and_panics_too() {
    hush();
    let policy = retry::FixedDelay::new(9, ms(10))
        .retry_on(|error| error.downcast_ref::<ReturnedFalse>().is_some());
    let (starts, task) = attempts(|starts| {
        let starts = starts.clone();
        let job = move |run: &Run| {
            starts.push(millis(run.now()));
            assert!(run.number() < 3, "{ON_PURPOSE}");
            false
        };
        Task::new(at(0), job).retry(policy)
    });
    assert_eq!(starts, [0, 10, 20]);
    assert_eq!(cause::<Panicked>(&failure(&task)).message, ON_PURPOSE);
}

#[test]
fn a_predicate_that_panics_fails_the_task() {
    hush();
    let policy = retry::FixedDelay::new(9, ms(10)).retry_on(|_| panic!("{ON_PURPOSE}"));
    let (starts, task) = attempts(|starts| fails(starts, |_| Some("no")).retry(policy));
    assert_eq!(starts, [0]);
    assert_eq!(cause::<Panicked>(&failure(&task)).message, ON_PURPOSE);
}

#[test]
fn a_narrowed_policy_is_checked_as_before() {
    let world = World::quiet(1);
    let policy = retry::FixedDelay::new(1, Duration::MAX).retry_on(|_| true);
    let refused = world.scheduler.schedule(Task::new(at(0), || ()).retry(policy));
    assert!(matches!(refused, Err(Error::InvalidValue { parameter: "delay", .. })));
}

#[test]
fn a_job_sets_the_delay_of_its_next_attempt() {
    let error = |run| match run {
        1 => Some(RetryAfter(ms(25))),
        2 => Some(RetryAfter(ms(0))),
        _ => None,
    };
    let policy = retry::FixedDelay::new(2, ms(500)).retry_on(|_| false); // not asked about these
    let (starts, task) = attempts(|starts| fails(starts, error).retry(policy));
    assert_eq!(starts, [0, 25, 25]);
    assert_eq!((task.state(), task.info().failures), (TaskState::Done, 2));
}

#[test]
fn such_an_attempt_counts_as_any_other() {
    let (starts, task) = attempts(|starts| {
        fails(starts, |_| Some(RetryAfter(ms(7)))).retry(retry::FixedDelay::new(2, ms(1)))
    });
    assert_eq!(starts, [0, 7, 14]);
    assert_eq!(failure(&task).downcast_ref(), Some(&RetryAfter(ms(7))));
    assert_eq!(task.info().error.as_deref(), Some("retry after 7ms"));
}

#[test]
fn without_a_policy_there_is_no_next_attempt() {
    for never in [false, true] {
        let (starts, task) = attempts(|starts| {
            let task = fails(starts, |_| Some(RetryAfter(ms(7))));
            if never { task.retry(retry::Never) } else { task }
        });
        assert_eq!(starts, [0]);
        assert!(failure(&task).downcast_ref::<RetryAfter>().is_some());
    }
}

#[test]
fn a_job_that_gives_up_is_not_retried() {
    let error = |run| -> Option<Box<dyn std::error::Error + Send + Sync>> {
        if run == 1 { Some("once more".into()) } else { Some(GiveUp::new("no such city").into()) }
    };
    let policy = || retry::FixedDelay::new(9, ms(10)).retry_on(|_| true);
    let (starts, task) = attempts(|starts| fails(starts, error).retry(policy()));
    assert_eq!(starts, [0, 10]);
    let error = failure(&task);
    assert_eq!(error.downcast_ref::<GiveUp>().unwrap().reason().to_string(), "no such city");
    assert_eq!(task.info().error.as_deref(), Some("no such city"));
}

#[test]
fn a_series_that_gives_up_goes_on_with_its_next_slot() {
    let error = |run| match run {
        1 | 3 => Some(GiveUp::new("not now")),
        _ => None,
    };
    let (starts, task) = attempts(|starts| {
        let task = fails(starts, error).retry(retry::FixedDelay::new(9, ms(1)));
        task.recurrence(FixedRate::new(ms(10))).max_runs(4)
    });
    assert_eq!(starts, [0, 10, 20, 30]);
    assert_eq!((task.state(), task.info().failures), (TaskState::Done, 2));
}

#[test]
fn a_retry_that_a_job_asks_for_gives_way_to_the_next_slot() {
    let starts = |delay, until| {
        attempts(move |starts| {
            let task = fails(starts, move |run| (run == 1).then_some(RetryAfter(ms(delay))));
            let task = task.retry(retry::FixedDelay::new(9, ms(1)));
            task.recurrence(FixedRate::new(ms(10))).until(at(until))
        })
        .0
    };
    assert_eq!(starts(9, 20), [0, 9, 10, 20]);
    assert_eq!(starts(10, 20), [0, 10, 20], "at the slot is too late");
    assert_eq!(starts(15, 20), [0, 10, 20]);
    assert_eq!(starts(9, 8), [0], "until bounds it");
    assert_eq!(starts(8, 8), [0, 8]);
}

#[test]
fn a_delay_beyond_all_bounds_waits_at_the_end_of_time() {
    let (starts, task) = attempts(|starts| {
        fails(starts, |_| Some(RetryAfter(Duration::MAX))).retry(retry::FixedDelay::new(1, ms(1)))
    });
    assert_eq!(starts, [0]);
    assert_eq!(task.due(), duetime::Timestamp::MAX);
}
