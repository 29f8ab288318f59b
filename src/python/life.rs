//! Whether the Python objects of a scheduler may still be used. Invariant: once the scheduler is
//! finalized, no thread calls its clock or its listeners.
//!
//! The garbage collector takes a circle of objects apart one by one: a listener may have lost its
//! globals while the scheduler that would call it still stands, and calling it would crash. Before
//! that it calls every `__del__`, and an argument that is finalized is not one to run a job with.
//! And before that it calls back those who hold weak references. That is when a scheduler ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use pyo3::prelude::*;

use super::core::Core;

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

/// The callback of the weak reference: it ends the scheduler's life.
#[pyclass(frozen, module = "duetime._native")]
pub(super) struct End(Weak<Core>);

impl End {
    pub(super) fn of(core: Weak<Core>) -> Self {
        Self(core)
    }
}

#[pymethods]
impl End {
    fn __call__(&self, reference: &Bound<'_, PyAny>) {
        let _ = reference;
        if let Some(core) = self.0.upgrade() {
            core.finalize();
        }
    }
}
