//! A morning in virtual time: the first part of `examples/tour.py`, in Rust.

use duetime::{
    CancelOutcome, Error, Event, EventKind, FixedRate, ManualClock, Outcome, Run, Scheduler, Task,
    Timestamp, Value, retry,
};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

fn at(hour: u64, minute: u64, second: u64) -> Timestamp {
    Timestamp::ZERO + Duration::from_secs((hour * 60 + minute) * 60 + second)
}

/// Time since midnight, as a wall-clock time.
fn wall(time: Timestamp) -> String {
    let seconds = time.since(Timestamp::ZERO).as_secs();
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Prints one event as one line.
fn tell(event: &Event) {
    let next =
        |word| event.next_due.map_or(String::new(), |due| format!(", {word} at {}", wall(due)));
    let detail = match event.kind {
        EventKind::Due => return, // here a worker is always free, so STARTED follows at once
        EventKind::Scheduled => format!("due at {}", wall(event.due)),
        EventKind::Started => format!("run {}", event.run),
        EventKind::Completed => {
            let took = event.duration.unwrap_or_default().as_secs();
            format!("after {took} s{}", next("next"))
        }
        EventKind::Failed => {
            let error = event.error.as_ref().map_or(String::new(), ToString::to_string);
            format!("{error}{}", next("again"))
        }
        EventKind::Cancelled | EventKind::Missed | EventKind::Stuck => String::new(),
    };
    let kind = format!("{:?}", event.kind).to_uppercase();
    let id = event.task_id.to_string();
    let line = format!("{}  {kind:<9}  {id:<9}  {detail}", wall(event.time));
    println!("{}", line.trim_end());
}

/// Fails once: the printer has no paper at nine.
fn report(run: &Run) -> Result<&'static str, &'static str> {
    if run.attempt() == 1 { Err("the printer has no paper") } else { Ok("12 pages") }
}

/// Takes a minute and a half, unless told to stop.
fn index(run: &Run) -> Outcome {
    let stopped = run.wait(Duration::from_secs(90));
    Outcome::Done(Value::new(if stopped { "half an index" } else { "an index" }))
}

/// Cancels a task, and prints the answer below the events that the cancel led to.
fn cancel(scheduler: &Scheduler, id: &str) -> Result<CancelOutcome, Error> {
    let answer = scheduler.cancel(id)?;
    scheduler.wait_idle(None)?;
    println!("{:10}cancel(\"{id}\") answers {answer:?}", "");
    Ok(answer)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::starting_at(at(8, 58, 0));
    let scheduler = Scheduler::builder().workers(4).clock(clock.clone()).build()?;
    scheduler.add_listener(tell, &EventKind::ALL)?;

    let policy = retry::FixedDelay::new(3, 5 * MINUTE);
    let task = scheduler.schedule(Task::once(at(9, 0, 0), report).id("report").retry(policy))?;
    scheduler.schedule(Task::once(at(9, 0, 0), || println!("mail")).id("mail"))?;
    scheduler.schedule(Task::once(at(9, 0, 30), index).id("index"))?;
    let refresh = Task::new(at(9, 2, 0), || ()).id("refresh").max_runs(2);
    scheduler.schedule(refresh.recurrence(FixedRate::new(10 * MINUTE)))?;

    clock.advance(MINUTE)?; // 08:59: the mail has not started, so it never will
    assert_eq!(cancel(&scheduler, "mail")?, CancelOutcome::Cancelled);
    clock.advance(2 * MINUTE)?; // 09:01: the index runs; it is told to stop, and does
    assert_eq!(cancel(&scheduler, "index")?, CancelOutcome::Stopping);
    clock.advance(5 * MINUTE)?; // 09:06: the report was made at the second attempt
    assert_eq!(cancel(&scheduler, "report")?, CancelOutcome::Finished);
    clock.advance(14 * MINUTE)?; // 09:20

    let info = task.info();
    let result = task.result(None)?;
    println!(
        "{:10}the report is {:?} after {} runs, {} of them failed: {:?}",
        "",
        info.state,
        info.runs,
        info.failures,
        result.downcast_ref::<&str>().unwrap_or(&"")
    );
    Ok(())
}
