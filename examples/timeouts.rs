//! Timeouts: a slow attempt is tried again, and a job that cannot be stopped is written off.

use duetime::{Event, EventKind, ManualClock, Run, Scheduler, Task, TaskStuck, retry};
use std::{sync::mpsc, time::Duration};

const SECOND: Duration = Duration::from_secs(1);

/// Finds a server that does not answer the first time.
fn fetch(run: &Run) -> Result<&'static str, &'static str> {
    if run.attempt() == 1 && run.wait(60 * SECOND) {
        return Err("told to stop");
    }
    Ok("a page")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::new();
    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build()?;
    let tell = |event: &Event| println!("{:>3}  {:?}", event.time.to_string(), event.kind);
    scheduler.add_listener(tell, &[EventKind::Started, EventKind::Failed, EventKind::Stuck])?;

    let page = Task::new(scheduler.now(), fetch).timeout(10 * SECOND);
    let page = scheduler.schedule(page.retry(retry::FixedDelay::new(1, 5 * SECOND)))?;
    clock.advance(20 * SECOND)?;
    assert_eq!(page.result(None)?.downcast_ref(), Some(&"a page"));

    let (begun, begins) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let stuck = Task::new(scheduler.now(), move || {
        begun.send(()).expect("somebody listens");
        released.recv().is_ok() // nothing can end this from outside
    });
    let stuck = scheduler.schedule(stuck.timeout(10 * SECOND).grace(5 * SECOND))?;
    begins.recv()?;
    let behind = scheduler.after(SECOND, || ())?;
    clock.jump(15 * SECOND)?; // `advance` would wait for the job
    assert!(stuck.last_error().is_some_and(|error| error.downcast_ref::<TaskStuck>().is_some()));
    assert!(behind.result(None).is_ok(), "another worker serves");
    assert_eq!(scheduler.stats()?.stuck, 1);
    release.send(())?;
    Ok(())
}
