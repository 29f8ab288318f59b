//! Panics. Invariant: one that was not meant to happen is noticed, though the scheduler contains it.

use std::panic::{panic_any, set_hook, take_hook};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

static PANICKED: AtomicBool = AtomicBool::new(false);
const MEANT: &str = "meant to happen";

/// Panics on purpose, which says nothing.
pub(crate) fn on_purpose() {
    panic_any(MEANT);
}

/// Has panics on purpose say nothing.
pub(crate) fn quiet() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = take_hook();
        set_hook(Box::new(move |info| {
            if info.payload().downcast_ref::<&str>() != Some(&MEANT) {
                PANICKED.store(true, Ordering::SeqCst);
                hook(info);
            }
        }));
    });
}

/// Whether anything panicked that was not meant to.
pub(crate) fn were_there() -> bool {
    PANICKED.load(Ordering::SeqCst)
}
