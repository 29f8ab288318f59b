//! One measurement of one Rust scheduler, in the process that it is started in:
//! `duetime-peers MEASURE PEER SIZE WORKERS [EXTRA]`. Prints JSON.

#![allow(clippy::disallowed_methods, reason = "it measures time")]

mod beat;
mod cost;
mod pause;
mod peers;
mod system;

use peers::{Delays, Duetime, DuetimeBatch, Peer, Pool};

fn measure<P: Peer>(measure: &str, numbers: &[u64]) -> String {
    let (size, workers) = (numbers[0], usize::try_from(numbers[1]).expect("a few"));
    match measure {
        "held" => cost::held::<P>(size, workers),
        "life" => cost::life::<P>(size, workers),
        "burst" => cost::burst::<P>(size, workers),
        "beat" => beat::beat::<P>(size, workers),
        "idle" => beat::idle::<P>(size, workers, numbers.get(2).copied().unwrap_or(10)),
        other => panic!("no measure {other}"),
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let numbers: Vec<u64> =
        arguments[2..].iter().map(|number| number.parse().expect("a number")).collect();
    let (what, peer) = (arguments[0].as_str(), arguments[1].as_str());
    let found = match (what, peer) {
        ("bare", _) => beat::bare_beat(numbers[0]),
        ("pause", _) => pause::pause(numbers[0]),
        (_, "duetime") => measure::<Duetime>(what, &numbers),
        (_, "duetime, schedule_all") => measure::<DuetimeBatch>(what, &numbers),
        (_, "scheduled-thread-pool") => measure::<Pool>(what, &numbers),
        (_, "DelayQueue") => measure::<Delays>(what, &numbers),
        (_, other) => panic!("no peer {other}"),
    };
    println!("{found}");
    // Nobody waits for tasks that are due in an hour.
    std::process::exit(0);
}
