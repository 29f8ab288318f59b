//! What the benchmarks share.

#![allow(dead_code, reason = "each benchmark uses a part of it")]

use std::time::Duration;

use criterion::Criterion;
use duetime::{Scheduler, Task, Timestamp};

/// Short, so that all benchmarks together take a few minutes.
pub(crate) fn criterion() -> Criterion {
    Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_millis(1_200))
        .configure_from_args()
}

/// How many tasks wait: 10^3 to 10^6, and 10^7 where `DUETIME_BENCH_LARGE` is set.
pub(crate) fn sizes() -> Vec<u64> {
    let mut sizes = vec![1_000, 10_000, 100_000, 1_000_000];
    if std::env::var_os("DUETIME_BENCH_LARGE").is_some() {
        sizes.push(10_000_000);
    }
    sizes
}

/// The numbers below 2^40 in no order that a heap could profit from.
pub(crate) const fn scatter(n: u64) -> i64 {
    (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 24).cast_signed()
}

/// A due time that no benchmark lives to see.
pub(crate) const fn far(n: u64) -> Timestamp {
    Timestamp::from_nanos(i64::MAX - scatter(n) - 1)
}

/// A task that does nothing, far away.
pub(crate) fn far_task(n: u64) -> Task {
    Task::new(far(n), || ())
}

/// Lets `waiting` tasks wait.
pub(crate) fn fill(scheduler: &Scheduler, waiting: u64) {
    for from in (0..waiting).step_by(10_000) {
        let tasks = (from..waiting.min(from + 10_000)).map(far_task).collect();
        drop(scheduler.schedule_all(tasks).expect("open"));
    }
}

/// Calls `batch` with numbers of at most `most` that add up to `iterations`; adds up its answers.
pub(crate) fn in_batches(
    iterations: u64,
    most: u64,
    mut batch: impl FnMut(u64) -> Duration,
) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let now = left.min(most);
        spent += batch(now);
        left -= now;
    }
    spent
}
