//! Chance. Invariant: it spreads things in time, and decides nothing else.

use std::hash::{BuildHasher, Hasher, RandomState};

/// A random number from 0 up to 1. The standard library seeds each `RandomState` differently,
/// which is all the randomness that a spread needs.
pub(crate) fn unit_random() -> f64 {
    let bits = RandomState::new().build_hasher().finish();
    #[expect(clippy::cast_precision_loss, reason = "53 bits are kept, as many as an f64 has")]
    let unit = (bits >> 11) as f64 / (1_u64 << 53) as f64;
    unit
}
