//! What a fuzzer's bytes mean, and what must hold whatever they are.
//!
//! An input is a sequence of calls on a scheduler with one worker and a clock that is moved by
//! hand. Between any two calls the scheduler comes to rest, but for runs of which it is known what
//! holds them, so each answer is known beforehand.
//! All times are in milliseconds.

mod attempts;
mod bytes;
mod deed;
mod draft;
mod elsewhere;
mod notes;
mod panics;
mod passing;
mod rest;
mod world;

use bytes::Bytes;
use world::World;

const CALLS: usize = 40;

/// Plays the calls that `bytes` stand for.
///
/// # Panics
/// If anything is not as it must be.
pub fn check(bytes: &[u8]) {
    panics::quiet();
    let mut bytes = Bytes::new(bytes);
    let mut world = World::decode(&mut bytes);
    for _ in 0..CALLS {
        if bytes.is_over() {
            break;
        }
        world.call(&mut bytes);
        world.rest();
    }
    world.end(&mut bytes);
}
