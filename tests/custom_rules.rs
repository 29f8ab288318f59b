//! Custom recurrences that go nowhere: they end their task, and nothing else suffers.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use common::{ON_PURPOSE, World, at, cause, hush, ms};
use duetime::{
    Event, EventKind, FixedRate, JobError, Next, NotForward, Panicked, Recurrence, Task, TaskError,
    TaskHandle, TaskState, Timestamp,
};

/// How a task with this rule ends after its first run, and that nothing else suffers.
fn broken(
    rule: impl Fn(Timestamp) -> Result<Option<Next>, JobError> + Send + Sync + 'static,
) -> TaskHandle {
    struct Rule<F>(F);
    impl<F> Recurrence for Rule<F>
    where
        F: Fn(Timestamp) -> Result<Option<Next>, JobError> + Send + Sync + 'static,
    {
        fn next_due(&self, due: Timestamp, _: Timestamp) -> Result<Option<Next>, JobError> {
            (self.0)(due)
        }
    }
    let world = World::new(1);
    let task = Task::new(at(10), || true).id("broken").recurrence(Rule(rule));
    let task = world.scheduler.schedule(task).unwrap();
    let other = world.scheduler.every(FixedRate::new(ms(10)), || ()).unwrap();
    world.advance(30);
    assert_eq!(other.info().runs, 3);
    assert_eq!(task.info().runs, 1);
    let told = |event: &Event| event.task_id == "broken".into() && event.next_due.is_none();
    let last = world.events.take().into_iter().rfind(told).unwrap();
    let expected = match task.state() {
        TaskState::Failed => EventKind::Failed,
        _ => EventKind::Completed,
    };
    assert_eq!(last.kind, expected);
    assert_eq!(last.error.is_some(), task.state() == TaskState::Failed);
    task
}

fn failure(task: &TaskHandle) -> JobError {
    assert_eq!(task.state(), TaskState::Failed);
    assert!(task.info().error.is_some(), "{:?}", task.info());
    match task.outcome() {
        Some(Err(TaskError::Failed(error))) => error,
        other => panic!("{other:?} is no failure"),
    }
}

/// robfig/cron#311: custom rules that go nowhere.
#[test]
fn a_custom_rule_that_does_not_move_forward_ends_its_task() {
    assert_eq!(broken(|_| Ok(None)).state(), TaskState::Done);
    let same = cause::<NotForward>(&failure(&broken(|due| Ok(Some(due.into())))));
    assert_eq!((same.due, same.next), (at(10), at(10)));
    let past = failure(&broken(|_| Ok(Some(Timestamp::MIN.into()))));
    assert_eq!(cause::<NotForward>(&past).next, Timestamp::MIN);
    let error = failure(&broken(|_| Err(JobError::new("no idea"))));
    assert_eq!(error.to_string(), "no idea");
    hush();
    let panic = failure(&broken(|_| panic!("{ON_PURPOSE}")));
    assert_eq!(cause::<Panicked>(&panic).message, ON_PURPOSE);
}
