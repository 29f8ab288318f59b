//! The same checks without a fuzzer: on random bytes for some seconds, or on given files.
//!
//! `random SECONDS [SEED]`, or `random FILE…` to repeat what a fuzzer found.

#![expect(clippy::disallowed_methods, reason = "a test run has a length in real time")]

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The seed of the input that is being played.
static INPUT: AtomicU64 = AtomicU64::new(0);

/// splitmix64: short, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Ends the process if an input hangs.
fn watch(end: Instant) {
    std::thread::spawn(move || {
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        eprintln!("an input hangs; it alone: random 1 {}", INPUT.load(Ordering::Relaxed));
        std::process::abort();
    });
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(Ok(seconds)) = arguments.first().map(|first| first.parse::<u64>()) else {
        for file in &arguments {
            println!("{file}");
            duetime_fuzz::check(&std::fs::read(file).expect("a file that can be read"));
        }
        return;
    };
    let seed = arguments.get(1).map_or_else(
        || RandomState::new().build_hasher().finish(),
        |seed| seed.parse().expect("a seed is a number"),
    );
    println!("seed {seed}");
    let end = Instant::now() + Duration::from_secs(seconds);
    watch(end + Duration::from_secs(60));
    let mut inputs = 0_u64;
    while Instant::now() < end {
        // Each input has a seed of its own, which a failure tells.
        let own = seed.wrapping_add(inputs);
        INPUT.store(own, Ordering::Relaxed);
        let mut random = Random(own);
        let length = usize::try_from(random.next() % 200).expect("small");
        let bytes: Vec<u8> = (0..length).map(|_| random.next().to_le_bytes()[0]).collect();
        if std::panic::catch_unwind(|| duetime_fuzz::check(&bytes)).is_err() {
            eprintln!("input {inputs} fails; it alone: random 1 {own}");
            std::process::exit(1);
        }
        inputs += 1;
    }
    println!("{inputs} inputs, no failure");
}
