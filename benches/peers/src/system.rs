//! What the system tells of this process, and numbers that look random.

use std::fs;
use std::time::{Duration, Instant};

/// Memory of this process that is in RAM, in bytes.
pub fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split(' ').nth(1).expect("resident").parse().expect("a number");
    pages * 4096
}

/// How often the threads of this process went to sleep of their own accord.
pub fn wakeups() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux");
    let status = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("status")).ok());
    status.map(|status| voluntary(&status)).sum()
}

fn voluntary(status: &str) -> u64 {
    let line = status.lines().find(|line| line.starts_with("voluntary"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).expect("a count")
}

/// Processor time of this process so far.
pub fn cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it fills in the struct that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).expect("below 10^9"))
}

/// Lets this thread's timers fire on time; the system's default is up to 50 µs late.
pub fn exact_timers() {
    // SAFETY: it changes only how this thread's timers fire.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

pub fn sleep_until(end: Instant) {
    std::thread::sleep(end.saturating_duration_since(Instant::now()));
}

/// Delays between one and two hours, in no order.
pub fn delay(n: u64) -> Duration {
    Duration::from_nanos(3_600_000_000_000 + scatter(n) % 3_600_000_000_000)
}

/// Numbers below 2^48 in no order.
pub const fn scatter(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    (n ^ (n >> 31)) >> 16
}

/// The same items in no order.
pub fn shuffle<T>(items: &mut [T]) {
    for n in (1..items.len()).rev() {
        let other = scatter(n as u64) % (n as u64 + 1);
        items.swap(n, usize::try_from(other).expect("an index"));
    }
}

pub fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// For each of `count`, in microseconds.
#[expect(clippy::cast_precision_loss, reason = "a measurement")]
pub fn each(time: Duration, count: u64) -> f64 {
    micros(time) / count as f64
}
