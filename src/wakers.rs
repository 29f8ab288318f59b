//! Who waits for a scheduler. Invariant: each waker is called once or handed back, never both.

use crate::clock::Waker;

/// Guarded by the queue's lock; the wakers themselves are called after unlocking.
#[derive(Default)]
pub(crate) struct Wakers {
    quiet: Vec<Quiet>,
    exit: Vec<(u64, Waker)>,
    made: u64,
}

struct Quiet {
    key: u64,
    /// Whether runs that sleep on the clock count as quiet: they do for whoever moves it.
    despite_naps: bool,
    waker: Waker,
}

impl Wakers {
    /// `waker` waits for the moment when nothing runs and nothing is due.
    pub(crate) fn add_quiet(&mut self, despite_naps: bool, waker: Waker) -> u64 {
        let key = self.new_key();
        self.quiet.push(Quiet { key, despite_naps, waker });
        key
    }

    /// `waker` waits for the end of the last worker.
    pub(crate) fn add_exit(&mut self, waker: Waker) -> u64 {
        let key = self.new_key();
        self.exit.push((key, waker));
        key
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Waker> {
        if let Some(at) = self.quiet.iter().position(|quiet| quiet.key == key) {
            return Some(self.quiet.remove(at).waker);
        }
        let at = self.exit.iter().position(|(other, _)| *other == key)?;
        Some(self.exit.remove(at).1)
    }

    pub(crate) fn nobody_waits_for_quiet(&self) -> bool {
        self.quiet.is_empty()
    }

    /// Takes those who wait for quiet; all of them if no run sleeps either (`idle`).
    pub(crate) fn take_quiet(&mut self, idle: bool) -> Vec<Waker> {
        let quiet = self.quiet.extract_if(.., |quiet| idle || quiet.despite_naps);
        quiet.map(|quiet| quiet.waker).collect()
    }

    pub(crate) fn take_exit(&mut self) -> Vec<Waker> {
        self.exit.drain(..).map(|(_, waker)| waker).collect()
    }

    fn new_key(&mut self) -> u64 {
        self.made += 1;
        self.made
    }
}
