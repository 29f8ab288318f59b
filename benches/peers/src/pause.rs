//! The longest that a call takes while another thread cancels half of all tasks.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use duetime::{Scheduler, Task, TaskHandle, Timestamp};

use crate::system::{delay, micros, scatter, shuffle};

/// The machine's own pauses are beside it: the same calls while the other thread only computes.
pub fn pause(size: u64) -> String {
    let scheduler = Scheduler::new();
    let base = scheduler.now();
    let tasks = (0..size).map(|n| scheduler.schedule(far(base, n)).expect("open"));
    let mut handles: Vec<TaskHandle> = tasks.collect();
    shuffle(&mut handles);
    handles.truncate(handles.len() / 2);
    let start = Instant::now();
    let alone = longest(&scheduler, || {
        let mut n = 0;
        while start.elapsed() < Duration::from_secs(1) {
            n = black_box(scatter(n));
        }
    });
    let start = Instant::now();
    let beside = longest(&scheduler, || {
        for handle in &handles {
            handle.cancel().expect("same process");
        }
    });
    let spent = start.elapsed();
    std::mem::forget((scheduler, handles)); // their end would take longer
    format!(
        r#"{{"alone_ms": {}, "pause_ms": {}, "cancel_s": {}}}"#,
        micros(alone) / 1e3,
        micros(beside) / 1e3,
        spent.as_secs_f64(),
    )
}

fn far(base: Timestamp, n: u64) -> Task {
    Task::new(base + delay(n), || ())
}

/// Schedules and cancels tasks of its own while `other` works on another thread.
fn longest(scheduler: &Scheduler, other: impl FnOnce() + Send) -> Duration {
    let (ended, base) = (AtomicBool::new(false), scheduler.now());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            other();
            ended.store(true, Ordering::Release);
        });
        let mut longest = Duration::ZERO;
        let mut n = 0;
        while !ended.load(Ordering::Acquire) {
            let task = far(base, n);
            let start = Instant::now();
            let handle = scheduler.schedule(task).expect("open");
            let middle = Instant::now();
            handle.cancel().expect("same process");
            longest = longest.max(middle - start).max(middle.elapsed());
            n += 1;
        }
        longest
    })
}
