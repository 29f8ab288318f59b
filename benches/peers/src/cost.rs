//! What a task costs: to schedule, to cancel, to run, to keep.

use std::mem::forget;
use std::time::{Duration, Instant};

use crate::peers::Peer;
use crate::system::{delay, each, resident, shuffle, sleep_until};

const SAMPLE: u64 = 10_000;
const PART: u64 = 1_000;

/// A process runs its batch that often; the median counts, the first starts the threads.
const BATCHES: usize = 5;

/// Of `size` waiting tasks, what one takes in memory, and what scheduling and cancelling costs
/// beside.
pub fn held<P: Peer>(size: u64, workers: usize) -> String {
    let mut peer = P::new(workers);
    for n in 0..100 {
        peer.schedule(delay(n), || ()); // threads have started
    }
    let before = resident();
    let start = Instant::now();
    for n in 0..size {
        peer.schedule(delay(n), || ());
    }
    let fill = start.elapsed();
    let grown = resident() - before;
    let schedule = typical(0..SAMPLE, |n| {
        peer.schedule(delay(size + n), || ());
    });
    let mut kept: Vec<_> =
        (0..SAMPLE).map(|n| peer.schedule(delay(size + SAMPLE + n), || ())).collect();
    shuffle(&mut kept);
    let cancel = typical(kept, |handle| peer.cancel(handle));
    forget(peer); // its end would take longer than all that was measured
    format!(
        r#"{{"bytes": {}, "total": {grown}, "fill_us": {}, "schedule_us": {}, "cancel_us": {}}}"#,
        grown / size,
        each(fill, size),
        each(schedule, PART),
        each(cancel, PART),
    )
}

/// What most parts of the items take: the machine stops now and then.
fn typical<T>(items: impl IntoIterator<Item = T>, mut call: impl FnMut(T)) -> Duration {
    let mut items = items.into_iter().peekable();
    let mut times = Vec::new();
    while items.peek().is_some() {
        let part = items.by_ref().take(usize::try_from(PART).expect("a few"));
        let start = Instant::now();
        part.for_each(&mut call);
        times.push(start.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

/// What a task of `size` costs: to schedule, to cancel when all are, and to run when all are due.
pub fn life<P: Peer>(size: u64, workers: usize) -> String {
    let mut peer = P::new(workers);
    peer.schedule(delay(0), || ());
    let start = Instant::now();
    let mut kept: Vec<_> = (0..size).map(|n| peer.schedule(delay(n), || ())).collect();
    let schedule = start.elapsed();
    shuffle(&mut kept);
    let start = Instant::now();
    kept.into_iter().for_each(|handle| peer.cancel(handle));
    let cancel = start.elapsed();
    let mut peer = P::new(workers);
    let margin = schedule * 3 + Duration::from_millis(50);
    let start = Instant::now();
    peer.run(size, margin);
    let run = start.elapsed().saturating_sub(margin);
    format!(
        r#"{{"schedule_us": {}, "cancel_us": {}, "run_us": {}}}"#,
        each(schedule, size),
        each(cancel, size),
        each(run, size),
    )
}

/// How many jobs a second are run that are due at once, scheduling included.
pub fn burst<P: Peer>(size: u64, workers: usize) -> String {
    let mut peer = P::new(workers);
    let mut times: Vec<Duration> = (0..BATCHES)
        .map(|_| {
            sleep_until(Instant::now() + Duration::from_millis(20));
            let start = Instant::now();
            peer.run(size, Duration::ZERO);
            start.elapsed()
        })
        .collect();
    times.sort();
    format!(r#"{{"per_second": {}}}"#, 1e6 / each(times[BATCHES / 2], size))
}
