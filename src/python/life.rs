//! Whether the Python objects of a scheduler may still be used. Invariant: once the scheduler is
//! finalized, no thread calls its clock or its listeners.
//!
//! The garbage collector takes a circle of objects apart one by one: a listener may have lost its
//! globals while the scheduler that would call it still stands, and calling it would crash. It
//! finalizes all of them before it takes the first one apart, so that is when a scheduler ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared by a Python scheduler and what the core calls for it.
#[derive(Clone, Default)]
pub(super) struct Life(Arc<AtomicBool>);

impl Life {
    // Relaxed: it is written and read under the GIL.
    pub(super) fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
