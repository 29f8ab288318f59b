//! The main use case, step by step: a report at 9:00 and what may become of it, in virtual time.

mod common;

use std::time::Duration;

use common::{World, at, listen, secs};
use duetime::{
    CancelOutcome, Event, EventKind, FixedRate, ManualClock, Run, Scheduler, Task, TaskState, retry,
};

const MINUTE: u64 = 60;
const NINE: i64 = 9 * 60 * 60 * 1000;

/// An event as a person would note it: the time of day, what, and whom.
fn note(event: &Event) -> String {
    let minutes = event.time.since(at(0)).as_secs() / MINUTE;
    assert_eq!(event.time, at(0) + secs(minutes * MINUTE), "on the minute");
    let (hour, minute) = (minutes / 60, minutes % 60);
    let kind = format!("{:?}", event.kind).to_lowercase();
    format!("{hour}:{minute:02} {} {kind}", event.task_id)
}

#[test]
fn the_story_of_the_report() {
    let world = World::quiet(4);
    listen(&world.scheduler, &world.events);
    let story = || world.events.take().iter().map(note).collect::<Vec<_>>();
    let until = |hour: u64, minute: u64| {
        let target = at(0) + secs((hour * 60 + minute) * MINUTE);
        world.clock.advance(target.since(world.clock.now())).unwrap();
    };
    let ten_minutes = FixedRate::new(secs(10 * MINUTE));

    // 1. A caller schedules the report for 9:00. Its id can be used only once.
    let report = |due| Task::new(due, || true).id("report").recurrence(ten_minutes);
    let report_task = world.scheduler.schedule(report(at(NINE))).unwrap();
    assert!(world.scheduler.schedule(report(at(NINE))).is_err());

    // 2. The queue holds it, ordered by due time and then by the order of scheduling.
    let second = world.scheduler.schedule(Task::new(at(NINE), || ()).id("second")).unwrap();
    assert_eq!(world.scheduler.next_due().unwrap(), Some(at(NINE)));
    assert_eq!(world.scheduler.stats().unwrap().waiting, 2);
    until(8, 58);
    assert_eq!(story(), ["0:00 'report' scheduled", "0:00 'second' scheduled"]);

    // 7, first half. A cancel at 8:59 wins.
    until(8, 59);
    assert_eq!(second.cancel().unwrap(), CancelOutcome::Cancelled);
    assert_eq!(story(), ["8:59 'second' cancelled"]);

    // 4 and 5. At 9:00 a worker takes the report and runs it; then it waits for 9:10.
    until(9, 0);
    assert_eq!(story(), ["9:00 'report' due", "9:00 'report' started", "9:00 'report' completed"]);
    assert_eq!(
        (report_task.state(), report_task.due()),
        (TaskState::Waiting, at(NINE) + secs(600))
    );

    // 3. A new earliest task is run when it is due, though the workers sleep until 9:10.
    world.scheduler.schedule(Task::new(at(NINE) + secs(MINUTE), || ()).id("early")).unwrap();
    until(9, 5);
    let early = ["scheduled", "due", "started", "completed"];
    let early: Vec<String> = early
        .iter()
        .map(|kind| format!("9:0{} 'early' {kind}", u8::from(*kind != "scheduled")))
        .collect();
    assert_eq!(story(), early);

    // 6. A one-off that fails is tried again in 5 minutes, and is FAILED after its last retry.
    let backup = Task::new(at(NINE) + secs(6 * MINUTE), || false).id("backup");
    let backup = backup.retry(retry::FixedDelay::new(1, secs(5 * MINUTE)));
    let backup = world.scheduler.schedule(backup).unwrap();
    until(9, 15);
    let expected = [
        "9:05 'backup' scheduled",
        "9:06 'backup' due",
        "9:06 'backup' started",
        "9:06 'backup' failed",
        "9:10 'report' due",
        "9:10 'report' started",
        "9:10 'report' completed",
        "9:11 'backup' due",
        "9:11 'backup' started",
        "9:11 'backup' failed",
    ];
    assert_eq!(story(), expected);
    assert_eq!((backup.state(), backup.info().runs), (TaskState::Failed, 2));

    // 7, second half. A cancel while the task runs does not stop the run.
    let slow = Task::new(at(NINE) + secs(16 * MINUTE), |run: &Run| run.wait(secs(2 * MINUTE)));
    let slow = world.scheduler.schedule(slow.id("slow")).unwrap();
    until(9, 17);
    assert_eq!(slow.state(), TaskState::Running);
    assert_eq!(slow.cancel().unwrap(), CancelOutcome::Stopping);
    assert!(slow.result(None).is_ok(), "the run saw that it was told to stop");
    assert!(world.scheduler.wait_idle(None).unwrap());
    let expected = [
        "9:15 'slow' scheduled",
        "9:16 'slow' due",
        "9:16 'slow' started",
        "9:17 'slow' completed",
    ];
    assert_eq!(story(), expected);

    // The day ends.
    assert!(world.scheduler.shutdown().unwrap());
    assert_eq!(story(), ["9:17 'report' cancelled"]);
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.runs, stats.failures), (6, 2));
    assert_eq!((stats.done, stats.failed, stats.cancelled), (2, 1, 2));
}

#[test]
fn the_tour_of_the_documentation() {
    let clock = ManualClock::new();
    let scheduler = Scheduler::builder().workers(4).clock(clock.clone()).build().unwrap();
    let report =
        Task::once(scheduler.now() + Duration::from_secs(5), |run: &Run| run.attempt() == 2);
    let report = report.id("report").retry(retry::FixedDelay::new(3, Duration::from_secs(300)));
    let report = scheduler.schedule(report).unwrap();
    let refresh = scheduler.every(FixedRate::new(Duration::from_secs(600)), || ()).unwrap();
    let kinds = common::Log::new();
    let log = kinds.clone();
    scheduler
        .add_listener(move |event: &Event| log.push(event.kind), &[EventKind::Failed])
        .unwrap();
    clock.advance(Duration::from_secs(3600)).unwrap();
    assert_eq!(report.result(None).unwrap().downcast_ref(), Some(&true));
    assert_eq!(kinds.take(), [EventKind::Failed]);
    assert_eq!(refresh.info().runs, 6);
    assert_eq!(scheduler.cancel("report").unwrap(), CancelOutcome::Finished);
    assert_eq!(scheduler.cancel(refresh.id()).unwrap(), CancelOutcome::Cancelled);
}
