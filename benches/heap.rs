//! What one task costs to put in, take out and cancel, by how many others wait; and beside it what
//! std's heap alone costs.
//!
//! All through the public face: putting in is `schedule`, taking out is a run of a job that does
//! nothing. With `DUETIME_BENCH_LARGE=1` also beside 10^7 others, which takes some 2 GB.

#![allow(clippy::disallowed_methods, reason = "a benchmark measures time")]

mod common;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use common::{criterion, far_task, fill, in_batches, scatter, sizes};
use criterion::{BenchmarkId, Criterion, Throughput};
use duetime::{ManualClock, Scheduler, Task, TaskHandle};

const BATCH: u64 = 10_000;

fn schedule(scheduler: &Scheduler, tasks: Vec<Task>) -> Vec<TaskHandle> {
    tasks.into_iter().map(|task| scheduler.schedule(task).expect("open")).collect()
}

fn cancel(handles: &[TaskHandle]) {
    for handle in handles {
        handle.cancel().expect("same process");
    }
}

fn push_and_cancel(c: &mut Criterion) {
    for waiting in sizes() {
        let scheduler = Scheduler::builder().workers(1).build().expect("in bounds");
        fill(&scheduler, waiting);
        let mut made = waiting;
        let mut tasks = |batch: u64| {
            made += batch;
            (made - batch..made).map(far_task).collect::<Vec<Task>>()
        };
        let mut group = c.benchmark_group("heap/push");
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(waiting), |b| {
            b.iter_custom(|iterations| {
                in_batches(iterations, BATCH, |batch| {
                    let tasks = tasks(batch);
                    let start = Instant::now();
                    let handles = schedule(&scheduler, tasks);
                    let spent = start.elapsed();
                    cancel(&handles);
                    spent
                })
            });
        });
        group.finish();
        let mut group = c.benchmark_group("heap/cancel");
        group.throughput(Throughput::Elements(1));
        group.bench_function(BenchmarkId::from_parameter(waiting), |b| {
            b.iter_custom(|iterations| {
                in_batches(iterations, BATCH, |batch| {
                    let handles = schedule(&scheduler, tasks(batch));
                    let start = Instant::now();
                    cancel(&handles);
                    start.elapsed()
                })
            });
        });
        group.finish();
    }
}

fn pop(c: &mut Criterion) {
    let mut group = c.benchmark_group("heap/pop");
    group.throughput(Throughput::Elements(1));
    for waiting in sizes() {
        let clock = ManualClock::new();
        let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build();
        let scheduler = scheduler.expect("in bounds");
        fill(&scheduler, waiting);
        group.bench_function(BenchmarkId::from_parameter(waiting), |b| {
            b.iter_custom(|iterations| {
                in_batches(iterations, BATCH, |batch| {
                    let now = clock.now();
                    let due = |n| now + Duration::from_nanos(1 + scatter(n).unsigned_abs() % BATCH);
                    let tasks = (0..batch).map(|n| Task::new(due(n), || ())).collect();
                    drop(scheduler.schedule_all(tasks).expect("open"));
                    let start = Instant::now();
                    clock.jump(Duration::from_nanos(BATCH)).expect("outside of jobs");
                    start.elapsed()
                })
            });
        });
    }
    group.finish();
}

/// An entry as large as one of ours.
type Bare = Reverse<(i64, i32, u64, usize)>;

fn bare(c: &mut Criterion) {
    let mut group = c.benchmark_group("heap/std");
    group.throughput(Throughput::Elements(1));
    for waiting in sizes() {
        let entry = |n: u64, far: i64| Reverse((far + scatter(n), 0, n, 0));
        let mut heap: BinaryHeap<Bare> = (0..waiting).map(|n| entry(n, 1 << 41)).collect();
        for timed in ["push", "pop"] {
            group.bench_function(BenchmarkId::new(timed, waiting), |b| {
                b.iter_custom(|iterations| {
                    in_batches(iterations, BATCH, |batch| {
                        let start = Instant::now();
                        for n in 0..batch {
                            heap.push(entry(n, 0));
                        }
                        let pushed = start.elapsed();
                        let start = Instant::now();
                        for _ in 0..batch {
                            std::hint::black_box(heap.pop());
                        }
                        if timed == "push" { pushed } else { start.elapsed() }
                    })
                });
            });
        }
    }
    group.finish();
}

fn main() {
    let mut c = criterion();
    push_and_cancel(&mut c);
    pop(&mut c);
    bare(&mut c);
    c.final_summary();
}
