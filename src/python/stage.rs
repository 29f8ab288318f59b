//! What stands behind a Python task: its description, and then what was scheduled by it. Invariant: the
//! one becomes the other once, and what was scheduled stays for as long as the task.
//!
//! The two lie in one place, for no task has both, and a program that schedules many tasks at once has
//! all of their descriptions.

use std::cell::UnsafeCell;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::draft::Draft;
use super::stay;
use crate::TaskHandle;

pub(super) struct Stage {
    /// Whether a call is scheduling the task, or has. Relaxed: the GIL orders those calls, and on a build
    /// without one the exchange alone decides.
    claimed: AtomicBool,
    /// Whether `content` is a handle. From then on it is only read: who sees this, acquiring what was
    /// released with it, needs no lock.
    scheduled: AtomicBool,
    /// Guards `content` before. Locked for a moment, never while Python runs.
    lock: Mutex<()>,
    content: UnsafeCell<Content>,
}

enum Content {
    Described(Draft),
    Scheduled(TaskHandle),
    /// The garbage collector took the description.
    Cleared,
}

// SAFETY: what several threads see of it at once is a handle, which they may. All else is seen by the one
// that has the lock, and may be sent to it.
unsafe impl Sync for Stage
where
    Content: Send,
    TaskHandle: Sync,
{
}

impl Stage {
    pub(super) fn described(draft: Draft) -> Self {
        Self::new(Content::Described(draft), false)
    }

    pub(super) fn scheduled(handle: TaskHandle) -> Self {
        Self::new(Content::Scheduled(handle), true)
    }

    fn new(content: Content, scheduled: bool) -> Self {
        Self {
            claimed: AtomicBool::new(scheduled),
            scheduled: AtomicBool::new(scheduled),
            lock: Mutex::new(()),
            content: UnsafeCell::new(content),
        }
    }

    /// Claims it for one call of `schedule`; `false` if another was first.
    pub(super) fn claim(&self) -> bool {
        !self.claimed.swap(true, Ordering::Relaxed)
    }

    /// The call was refused: the task is as it was.
    pub(super) fn unclaim(&self) {
        self.claimed.store(false, Ordering::Relaxed);
    }

    /// What was scheduled, if it was.
    pub(super) fn handle(&self) -> Option<&TaskHandle> {
        stay::here();
        if !self.scheduled.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody writes any more.
        match unsafe { &*self.content.get() } {
            Content::Scheduled(handle) => Some(handle),
            Content::Described(_) | Content::Cleared => None,
        }
    }

    /// Looks at the description, if there still is one.
    pub(super) fn look<T>(&self, look: impl FnOnce(&Draft) -> T) -> Option<T> {
        self.look_behind(&self.lock(), look)
    }

    /// The same, unless somebody else does: for the garbage collector, which must not wait.
    pub(super) fn try_look<T>(&self, look: impl FnOnce(&Draft) -> T) -> Option<T> {
        self.look_behind(&self.lock.try_lock().ok()?, look)
    }

    fn look_behind<T>(&self, _: &MutexGuard<'_, ()>, look: impl FnOnce(&Draft) -> T) -> Option<T> {
        // SAFETY: behind the lock nobody writes.
        match unsafe { &*self.content.get() } {
            Content::Described(draft) => Some(look(draft)),
            Content::Scheduled(_) | Content::Cleared => None,
        }
    }

    /// It was scheduled; gives the description. Once, by the call that claimed it.
    pub(super) fn settle(&self, handle: TaskHandle) -> Option<Draft> {
        let lock = self.lock();
        let draft = self.replace(&lock, Content::Scheduled(handle));
        self.scheduled.store(true, Ordering::Release);
        draft
    }

    /// Gives the description away.
    pub(super) fn clear(&self) -> Option<Draft> {
        self.replace(&self.lock(), Content::Cleared)
    }

    /// Replaces all but a handle.
    fn replace(&self, _: &MutexGuard<'_, ()>, content: Content) -> Option<Draft> {
        if self.handle().is_some() {
            return None;
        }
        // SAFETY: behind the lock, and nobody has a reference to a handle that is not there yet.
        match mem::replace(unsafe { &mut *self.content.get() }, content) {
            Content::Described(draft) => Some(draft),
            Content::Scheduled(_) | Content::Cleared => None,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.lock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
