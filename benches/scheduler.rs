//! The calls of the public face beside 100,000 waiting tasks, and what series, retries and
//! listeners cost a run.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use std::time::{Duration, Instant};

use common::{criterion, far, far_task, fill, in_batches};
use criterion::{Criterion, Throughput};
use duetime::{Event, EventKind, FixedRate, ManualClock, Scheduler, Task, TaskHandle, retry};

const WAITING: u64 = 100_000;
const BATCH: u64 = 10_000;

/// Measures `call` on batches of what `prepare` makes; what it leaves is cancelled beside.
fn calls<T>(
    c: &mut Criterion,
    name: &str,
    prepare: impl Fn(&Scheduler, u64) -> T,
    call: impl Fn(&Scheduler, T) -> Vec<TaskHandle>,
) {
    let scheduler = Scheduler::new();
    fill(&scheduler, WAITING);
    let mut group = c.benchmark_group("scheduler");
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            in_batches(iterations, BATCH, |batch| {
                let prepared = prepare(&scheduler, batch);
                let start = Instant::now();
                let left = call(&scheduler, prepared);
                let spent = start.elapsed();
                cancel(&left);
                spent
            })
        });
    });
    group.finish();
}

fn tasks(batch: u64) -> Vec<Task> {
    (0..batch).map(far_task).collect()
}

fn schedule(scheduler: &Scheduler, tasks: Vec<Task>) -> Vec<TaskHandle> {
    tasks.into_iter().map(|task| scheduler.schedule(task).expect("open")).collect()
}

fn cancel(tasks: &[TaskHandle]) {
    for task in tasks {
        task.cancel().expect("same process");
    }
}

fn schedule_and_cancel(c: &mut Criterion) {
    calls(c, "schedule", |_, batch| tasks(batch), schedule);
    let all = |scheduler: &Scheduler, tasks| scheduler.schedule_all(tasks).expect("open");
    calls(c, "schedule_all", |_, batch| tasks(batch), all);
    let earliest = |_: &Scheduler, batch| {
        let due = |n: u64| far(0) + Duration::from_secs(86_400 * 365) * u32::from(n > batch);
        (0..batch).rev().map(|n| Task::new(due(n), || ())).collect()
    };
    calls(c, "schedule the earliest", earliest, schedule);
    let named =
        |_: &Scheduler, batch| (0..batch).map(|n| far_task(n).id(format!("task-{n}"))).collect();
    let replace = |scheduler: &Scheduler, tasks: Vec<Task>| {
        tasks.into_iter().map(|task| scheduler.replace(task).expect("nobody runs")).collect()
    };
    calls(c, "schedule with a name", named, replace);
    let waiting = |scheduler: &Scheduler, batch| schedule(scheduler, tasks(batch));
    let by_handle = |_: &Scheduler, tasks: Vec<TaskHandle>| {
        cancel(&tasks);
        Vec::new()
    };
    calls(c, "cancel", waiting, by_handle);
    let by_id = |scheduler: &Scheduler, tasks: Vec<TaskHandle>| {
        for task in tasks {
            scheduler.cancel(task.id()).expect("same process");
        }
        Vec::new()
    };
    calls(c, "cancel by id", waiting, by_id);
}

/// Runs on a manual clock: `start` says what runs once a second, and all of it is timed.
fn runs(c: &mut Criterion, name: &str, listens: bool, start: impl Fn(&Scheduler)) {
    let clock = ManualClock::new();
    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build();
    let scheduler = scheduler.expect("in bounds");
    if listens {
        let listener = |event: &Event| drop(std::hint::black_box(event.clone()));
        scheduler.add_listener(listener, &EventKind::ALL).expect("open");
    }
    start(&scheduler);
    let mut group = c.benchmark_group("scheduler/runs in virtual time");
    group.throughput(Throughput::Elements(1));
    group.bench_function(name, |b| {
        b.iter_custom(|iterations| {
            let seconds = Duration::from_secs(iterations);
            let begin = Instant::now();
            clock.advance(seconds).expect("outside of jobs");
            begin.elapsed()
        });
    });
    group.finish();
}

fn runs_in_virtual_time(c: &mut Criterion) {
    const SECOND: Duration = Duration::from_secs(1);
    let series = |scheduler: &Scheduler| {
        drop(scheduler.every(FixedRate::new(SECOND), || ()).expect("open"));
    };
    runs(c, "a series", false, series);
    runs(c, "a series with a listener", true, series);
    runs(c, "retries", false, |scheduler| {
        let fails = Task::new(scheduler.now(), || false);
        let policy = retry::FixedDelay::new(u64::MAX, SECOND);
        drop(scheduler.schedule(fails.retry(policy)).expect("open"));
    });
}

/// The same crowd of tasks without and with somebody who is told of each.
fn listeners(c: &mut Criterion) {
    let mut group = c.benchmark_group("scheduler/run a crowd");
    group.throughput(Throughput::Elements(1));
    for (name, kinds) in [
        ("nobody listens", &[][..]),
        ("one listens to completed", &[EventKind::Completed][..]),
        ("one listens to all", &EventKind::ALL[..]),
    ] {
        let scheduler = Scheduler::new();
        let listener = |event: &Event| drop(std::hint::black_box(event.clone()));
        scheduler.add_listener(listener, kinds).expect("open");
        group.bench_function(name, |b| {
            b.iter_custom(|iterations| {
                in_batches(iterations, BATCH, |batch| {
                    let now = scheduler.now();
                    let tasks = (0..batch).map(|_| Task::new(now, || ())).collect();
                    let start = Instant::now();
                    drop(scheduler.schedule_all(tasks).expect("open"));
                    scheduler.wait_idle(None).expect("outside of jobs");
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
}

fn main() {
    let mut c = criterion();
    schedule_and_cancel(&mut c);
    runs_in_virtual_time(&mut c);
    listeners(&mut c);
    c.final_summary();
}
