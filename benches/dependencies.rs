//! Tasks that wait for others: a diamond, and what a link of a long chain costs when the chain comes,
//! when it runs, and when it is cancelled as one.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use std::time::{Duration, Instant};

use common::criterion;
use criterion::{Criterion, Throughput};
use duetime::{Dependency, ManualClock, Scheduler, Task, TaskHandle, Timestamp};

const CHAIN: usize = 10_000;

/// Each depends on the one before. The first is due in a second.
fn chain() -> Vec<Task> {
    let link = |n: usize| {
        let due = Timestamp::ZERO + Duration::from_secs(u64::from(n == 0));
        Task::new(due, || ()).depends_on(n.checked_sub(1).map(Dependency::Nth))
    };
    (0..CHAIN).map(link).collect()
}

/// Two tasks a level, each of which depends on both of the level before.
fn diamond(depth: usize) -> Vec<Task> {
    let node = |n: usize| {
        let above = (n / 2).checked_sub(1).map(|level| [2 * level, 2 * level + 1]);
        let above = above.into_iter().flatten().map(Dependency::Nth);
        Task::new(Timestamp::ZERO, || ()).depends_on(above)
    };
    (0..2 * depth).map(node).collect()
}

/// Times one of the three things that happen to many tasks.
fn measure(
    c: &mut Criterion,
    name: &str,
    tasks: fn() -> Vec<Task>,
    part: fn(&Scheduler, &ManualClock, Vec<Task>) -> Duration,
) {
    let mut group = c.benchmark_group("dependencies");
    group.throughput(Throughput::Elements(tasks().len() as u64));
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            (0..iterations)
                .map(|_| {
                    let clock = ManualClock::new();
                    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build();
                    part(&scheduler.expect("in bounds"), &clock, tasks())
                })
                .sum()
        });
    });
    group.finish();
}

fn schedule(scheduler: &Scheduler, _: &ManualClock, tasks: Vec<Task>) -> Duration {
    let start = Instant::now();
    let handles = scheduler.schedule_all(tasks).expect("open");
    let spent = start.elapsed();
    drop(handles);
    spent
}

fn run(scheduler: &Scheduler, clock: &ManualClock, tasks: Vec<Task>) -> Duration {
    let handles = scheduler.schedule_all(tasks).expect("open");
    let start = Instant::now();
    clock.advance(Duration::from_secs(1)).expect("outside of jobs");
    let spent = start.elapsed();
    assert!(handles.iter().all(|task| task.state() == duetime::TaskState::Done));
    spent
}

fn cancel(scheduler: &Scheduler, _: &ManualClock, tasks: Vec<Task>) -> Duration {
    let handles: Vec<TaskHandle> = scheduler.schedule_all(tasks).expect("open");
    let start = Instant::now();
    handles[0].cancel().expect("same process");
    start.elapsed()
}

fn main() {
    let mut c = criterion();
    measure(&mut c, "schedule a diamond of depth 30", || diamond(30), schedule);
    measure(&mut c, "schedule a chain of 10,000", chain, schedule);
    measure(&mut c, "run a chain of 10,000", chain, run);
    measure(&mut c, "cancel a chain of 10,000", chain, cancel);
    c.final_summary();
}
