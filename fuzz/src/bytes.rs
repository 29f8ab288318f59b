//! The input as numbers. Invariant: it never ends; after its last byte come zeros.

use std::time::Duration;

/// How many ids there are: few, so that they meet.
pub(crate) const IDS: u8 = 5;

pub(crate) struct Bytes<'a>(std::slice::Iter<'a, u8>);

impl<'a> Bytes<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.iter())
    }

    pub(crate) fn next(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.len() == 0
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: u8) -> u8 {
        self.next() % end
    }

    pub(crate) fn millis(&mut self, end: u8) -> Duration {
        Duration::from_millis(self.below(end).into())
    }

    pub(crate) fn id(&mut self) -> i64 {
        self.below(IDS).into()
    }
}
