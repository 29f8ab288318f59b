//! Jobs a millisecond apart: how late each starts, and what it costs. And a pool with none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::peers::Peer;
use crate::system::{cpu, delay, each, exact_timers, sleep_until, wakeups};

const PERIOD: Duration = Duration::from_millis(1);
const LEAD: Duration = Duration::from_millis(100);
const SLICE: u64 = 100;

/// What a run of jobs has shown.
#[derive(Default)]
struct Beats {
    late: Vec<u64>,
    wakes: u64,
    cpu: Duration,
}

/// In slices: some jobs of the scheduler's, then as many bare waits, so that both meet the same
/// machine.
pub fn beat<P: Peer>(size: u64, workers: usize) -> String {
    let mut peer = P::new(workers);
    let (mut jobs, mut bare) = (Beats::default(), Beats::default());
    for _ in 0..size / SLICE {
        scheduled(&mut peer, SLICE, &mut jobs);
        std::thread::scope(|scope| {
            scope.spawn(|| alone(SLICE, &mut bare));
        });
    }
    let [p50, p90, p99] = [50, 90, 99].map(|part| quantile(&mut bare.late, part * 10));
    let bare = format!(r#""bare_p50": {p50}, "bare_p90": {p90}, "bare_p99": {p99}"#);
    format!("{{{}, {bare}}}", shown(&mut jobs))
}

/// Bare waits alone.
pub fn bare_beat(size: u64) -> String {
    let mut bare = Beats::default();
    std::thread::scope(|scope| {
        scope.spawn(|| alone(size, &mut bare));
    });
    format!("{{{}}}", shown(&mut bare))
}

fn scheduled<P: Peer>(peer: &mut P, size: u64, found: &mut Beats) {
    let start = Instant::now() + LEAD;
    let late: Arc<[AtomicU64]> = (0..size).map(|_| AtomicU64::new(u64::MAX)).collect();
    for (n, due) in dues(start, size).enumerate() {
        let late = Arc::clone(&late);
        peer.schedule(due.saturating_duration_since(Instant::now()), move || {
            late[n].store(since(due), Ordering::Relaxed);
        });
    }
    sleep_until(start - LEAD / 10);
    let (wakes, used) = (wakeups(), cpu());
    peer.spend(start + PERIOD * u32::try_from(size).expect("a few") + LEAD / 10);
    // One sleep was the caller's own.
    found.wakes += wakeups() - wakes - 1;
    found.cpu += cpu() - used;
    let read = || late.iter().map(|late| late.load(Ordering::Relaxed));
    for _ in 0..100 {
        if read().all(|late| late != u64::MAX) {
            found.late.extend(read());
            return;
        }
        peer.spend(Instant::now() + LEAD); // the machine had other things to do
    }
    panic!("a job did not run");
}

/// A thread that does nothing but wait for each instant.
fn alone(size: u64, found: &mut Beats) {
    exact_timers();
    let start = Instant::now() + LEAD / 10;
    let (wakes, used) = (wakeups(), cpu());
    for due in dues(start, size) {
        sleep_until(due);
        found.late.push(since(due));
    }
    found.wakes += wakeups() - wakes;
    found.cpu += cpu() - used;
}

fn dues(start: Instant, size: u64) -> impl Iterator<Item = Instant> {
    (0..u32::try_from(size).expect("a few")).map(move |n| start + PERIOD * n)
}

fn since(due: Instant) -> u64 {
    let late = Instant::now().checked_duration_since(due).expect("never before it is due");
    u64::try_from(late.as_nanos()).expect("soon")
}

/// In microseconds; `part` of a thousand.
#[expect(clippy::cast_precision_loss, reason = "a measurement")]
fn quantile(late: &mut [u64], part: usize) -> f64 {
    late.sort_unstable();
    late[(late.len() * part / 1000).min(late.len() - 1)] as f64 / 1e3
}

fn shown(beats: &mut Beats) -> String {
    let size = beats.late.len() as u64;
    let late: Vec<f64> = (0..=200).map(|n| quantile(&mut beats.late, n * 5)).collect();
    let [p50, p90, p99] = [50, 90, 99].map(|part| quantile(&mut beats.late, part * 10));
    let wakes = each(Duration::from_micros(beats.wakes), size);
    let cpu = each(beats.cpu, size);
    format!(
        r#""late_us": {late:?}, "p50": {p50}, "p90": {p90}, "p99": {p99}, "wakes": {wakes}, "cpu_us": {cpu}"#
    )
}

/// How often the process wakes while all tasks wait.
pub fn idle<P: Peer>(size: u64, workers: usize, seconds: u64) -> String {
    let mut peer = P::new(workers);
    for n in 0..size {
        peer.schedule(delay(n), || ());
    }
    peer.spend(Instant::now() + Duration::from_millis(500));
    let wakes = wakeups();
    peer.spend(Instant::now() + Duration::from_secs(seconds));
    format!(r#"{{"wakes": {}}}"#, (wakeups() - wakes).saturating_sub(1))
}
