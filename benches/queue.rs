//! From the queue to the workers: throughput and hand-over by the number of workers, and how late
//! a timed wait ends beside the system's own.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use common::{criterion, fill, in_batches};
use criterion::{BenchmarkId, Criterion, Throughput};
use duetime::{Run, Scheduler, Task};

const WORKERS: [usize; 4] = [1, 2, 4, 8];
const BATCH: u64 = 10_000;

fn scheduler(workers: usize) -> Scheduler {
    let scheduler = Scheduler::builder().workers(workers).build().expect("in bounds");
    fill(&scheduler, 1_000);
    scheduler
}

/// Tasks that are due at once, scheduled one by one or all in one call, to the end of the last.
fn schedule_and_run(c: &mut Criterion) {
    for (name, at_once) in [("queue/run one by one", false), ("queue/run all at once", true)] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        for workers in WORKERS {
            let scheduler = scheduler(workers);
            group.bench_function(BenchmarkId::from_parameter(workers), |b| {
                b.iter_custom(|iterations| {
                    in_batches(iterations, BATCH, |batch| {
                        let now = scheduler.now();
                        let tasks: Vec<Task> = (0..batch).map(|_| Task::new(now, || ())).collect();
                        let start = Instant::now();
                        if at_once {
                            drop(scheduler.schedule_all(tasks).expect("open"));
                        } else {
                            for task in tasks {
                                drop(scheduler.schedule(task).expect("open"));
                            }
                        }
                        scheduler.wait_idle(None).expect("outside of jobs");
                        start.elapsed()
                    })
                });
            });
        }
        group.finish();
    }
}

/// One task at a time: wake a sleeping worker, run, and wake whoever waits for the result.
fn round_trip(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue/round trip");
    for workers in WORKERS {
        let scheduler = scheduler(workers);
        group.bench_function(BenchmarkId::from_parameter(workers), |b| {
            b.iter(|| {
                let task = Task::new(scheduler.now(), || ());
                scheduler.schedule(task).expect("open").result(None)
            });
        });
    }
    group.finish();
}

/// How far ahead the timed waits are.
const AHEAD: Duration = Duration::from_millis(1);

/// How late a task starts that an idle pool waits for: the sum of `iterations` times.
fn lateness(scheduler: &Scheduler, iterations: u64) -> Duration {
    let late = |_| {
        let job = |run: &Run| Ok::<_, std::fmt::Error>(run.now().since(run.due()));
        let task = scheduler.after(AHEAD, job).expect("open");
        let result = task.result(None).expect("it does not fail");
        *result.downcast_ref::<Duration>().expect("as returned")
    };
    (0..iterations).map(late).sum()
}

/// How late the system ends the same waits of a thread that does nothing else.
fn bare_lateness(iterations: u64) -> Duration {
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let late = |_| {
        let due = Instant::now() + AHEAD;
        let mut guard = lock.lock().expect("nobody panics");
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return due.elapsed();
            }
            guard = never.wait_timeout(guard, left).expect("nobody panics").0;
        }
    };
    (0..iterations).map(late).sum()
}

/// Lets the timers of the calling thread end when they are due, not up to 50 µs later.
#[cfg(target_os = "linux")]
fn without_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes one number and changes only how this thread's timers fire.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(not(target_os = "linux"))]
fn without_slack() {}

fn timed_waits(c: &mut Criterion) {
    let mut group = c.benchmark_group("queue/lateness");
    for workers in [1, 4] {
        let scheduler = scheduler(workers);
        group.bench_function(BenchmarkId::new("duetime", workers), |b| {
            b.iter_custom(|iterations| lateness(&scheduler, iterations));
        });
    }
    group.bench_function("bare wait", |b| b.iter_custom(bare_lateness));
    group.bench_function("bare wait, 1 ns slack", |b| {
        b.iter_custom(|iterations| {
            let thread = std::thread::spawn(move || {
                without_slack();
                bare_lateness(iterations)
            });
            thread.join().expect("it does not panic")
        });
    });
    group.finish();
}

fn main() {
    let mut c = criterion();
    schedule_and_run(&mut c);
    round_trip(&mut c);
    timed_waits(&mut c);
    c.final_summary();
}
