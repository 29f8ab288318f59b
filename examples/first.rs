//! The example of README.md.

use duetime::{FixedRate, ManualClock, Run, Scheduler, Task, retry};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = ManualClock::new(); // leave it out for real time
    let scheduler = Scheduler::builder().clock(clock.clone()).build()?;

    let task = Task::once(scheduler.now() + Duration::from_secs(5), |run: &Run| {
        if run.attempt() == 1 { Err("no paper") } else { Ok("12 pages") }
    });
    let policy = retry::FixedDelay::new(3, Duration::from_secs(300));
    let report = scheduler.schedule(task.id("report").retry(policy))?;
    scheduler.every(FixedRate::new(Duration::from_secs(600)), || println!("tick"))?;

    clock.advance(Duration::from_secs(1800))?; // half an hour, at once: prints "tick" three times
    assert_eq!(report.result(None)?.downcast_ref(), Some(&"12 pages"));
    assert_eq!(report.info().runs, 2);
    Ok(())
}
