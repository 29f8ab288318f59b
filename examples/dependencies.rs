//! Dependencies: a pipeline whose steps wait for each other, and what a failure does to it.

use std::time::Duration;

use duetime::{Dependency, DependencyFailed, ManualClock, Scheduler, Task, TaskError};

fn main() -> Result<(), duetime::Error> {
    let clock = ManualClock::new();
    let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
    let now = scheduler.now();

    // In any order: by id, or by the place in the call.
    let load = Task::new(now, || println!("load")).id("load").depends_on(["parse"]);
    let parse = Task::new(now, || println!("parse")).id("parse").depends_on([Dependency::Nth(2)]);
    let fetch = Task::new(now + Duration::from_secs(10), || println!("fetch"));
    let tasks = scheduler.schedule_all(vec![load, parse, fetch])?;

    // By handle, and with a due time of its own.
    let report = Task::new(now + Duration::from_secs(60), || Err::<(), _>("no paper"));
    let report = scheduler.schedule(report.id("report").depends_on(&tasks))?;
    let mail = scheduler.schedule(Task::new(now, || println!("never")).depends_on([&report]))?;
    clock.advance(Duration::from_secs(60))?;

    assert!(matches!(mail.outcome(), Some(Err(TaskError::Cancelled))));
    if let Some(error) = mail.last_error()
        && let Some(root) = error.downcast_ref::<DependencyFailed>()
    {
        println!("mail: {error}"); // it depends on task 'report', which failed: no paper
        assert_eq!(root.id, "report".into());
    }
    Ok(())
}
