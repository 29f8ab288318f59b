//! Who finishes a rebuild.

use std::time::Duration;

use crate::{ManualClock, Scheduler, Task};

#[test]
fn an_idle_worker_finishes_a_rebuild_that_no_call_goes_on_with() {
    let scheduler = Scheduler::builder().workers(2).clock(ManualClock::new()).build().unwrap();
    let due = |n: u64| scheduler.now() + Duration::from_nanos(1 + n * 7_919 % 10_007);
    let task = |n| scheduler.schedule(Task::new(due(n), || ())).unwrap();
    let tasks: Vec<_> = (0..20_000).map(task).collect();
    // With the last of these half are tombstones.
    tasks.iter().take(10_001).for_each(|task| assert!(task.cancel().is_ok()));
    let queue = &scheduler.shared().queue;
    while queue.lock().is_rebuilding() {
        std::thread::yield_now();
    }
    assert_eq!(queue.lock().left_to_rebuild(), 0);
}
