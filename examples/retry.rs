//! Retries: for some errors only, when a server says, and not at all.

use duetime::{
    Event, EventKind, ManualClock, RetryPolicy, Run, Scheduler, Task, Timestamp, retry,
    retry::{GiveUp, RetryAfter},
};
use std::{io, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A server that is slow, then busy, then answers: by the number of the attempt.
fn fetch(run: &Run) -> Result<&'static str, Failure> {
    match run.attempt() {
        1 => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
        2 => Err(RetryAfter(30 * SECOND).into()), // what its reply says
        _ => Ok("sunny"),
    }
}

/// No number will ever come of it.
fn parse(_: &Run) -> Result<u32, Failure> {
    Ok("12a".parse().map_err(GiveUp::new)?)
}

/// A fault of ours: it is no error of the network.
fn faulty(_: &Run) -> Result<(), Failure> {
    Err("a fault".into())
}

fn tell(event: &Event) {
    let (time, id, attempt) = (event.time, &event.task_id, event.attempt);
    let error = event.error.as_ref().map_or(String::new(), ToString::to_string);
    let then = event.next_due.map_or("given up".into(), |due| format!("again at {due}"));
    println!("{time:>4}  {id}, attempt {attempt}: {error}; {then}");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::new();
    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build()?;
    scheduler.add_listener(tell, &[EventKind::Failed])?;

    // Up to five retries for what may pass: errors of input and output.
    let five = retry::FixedDelay::new(5, SECOND);
    let passing = five.retry_on(|error| error.downcast_ref::<io::Error>().is_some());
    let now = Timestamp::ZERO;
    let weather = scheduler.schedule(Task::new(now, fetch).id("weather").retry(passing))?;
    scheduler.schedule(Task::new(now, parse).id("parse").retry(five))?;
    scheduler.schedule(Task::new(now, faulty).id("faulty").retry(passing))?;

    clock.advance(60 * SECOND)?;
    let answer = weather.result(None)?;
    println!("weather: {:?}", answer.downcast_ref::<&str>());
    Ok(())
}
