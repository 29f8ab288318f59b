//! Locks and atomics. Invariants: no other file names `parking_lot` or `std::sync::atomic`; a
//! panic poisons nothing; in a forked child no lock of ours goes through `parking_lot`.
//!
//! The fork rule. `parking_lot` keeps one table of parked threads for the whole process. If a thread
//! is changing that table in the instant of a `fork`, the child inherits a table that is locked
//! for ever, and even a lock made afterwards hangs there. std's locks keep no such table, so every
//! [`Mutex`] made in a forked child is one of std's. Locks made before the fork are not touched in
//! the child at all: a scheduler compares its [`Generation`] first.

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::{Duration, Instant};

pub(crate) use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU64, Ordering,
};

use crate::clock::Alarm;
use crate::error::Error;

/// A lock that costs little and is rarely contended: a task's, a list's.
#[derive(Debug, Default)]
pub(crate) struct SmallMutex<T>(std::sync::Mutex<T>);

impl<T> SmallMutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, T> {
        // Poison says that a holder panicked. No holder runs user code, so the value is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, for who alone has the lock.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue's lock, the one that every thread meets at.
#[derive(Debug)]
pub(crate) enum Mutex<T> {
    Parking(parking_lot::Mutex<T>),
    Forked(std::sync::Mutex<T>),
}

pub(crate) enum MutexGuard<'a, T> {
    Parking(parking_lot::MutexGuard<'a, T>),
    Forked(std::sync::MutexGuard<'a, T>),
}

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        if Generation::current().is_forked() {
            Self::Forked(std::sync::Mutex::new(value))
        } else {
            Self::Parking(parking_lot::Mutex::new(value))
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self {
            Self::Parking(lock) => MutexGuard::Parking(lock.lock()),
            Self::Forked(lock) => {
                MutexGuard::Forked(lock.lock().unwrap_or_else(PoisonError::into_inner))
            }
        }
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Parking(guard) => guard,
            Self::Forked(guard) => guard,
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match self {
            Self::Parking(guard) => guard,
            Self::Forked(guard) => guard,
        }
    }
}

/// A condition variable for [`Mutex`].
#[derive(Debug)]
pub(crate) enum Condvar {
    Parking(parking_lot::Condvar),
    Forked(std::sync::Condvar),
}

impl Condvar {
    pub(crate) fn new() -> Self {
        if Generation::current().is_forked() {
            Self::Forked(std::sync::Condvar::new())
        } else {
            Self::Parking(parking_lot::Condvar::new())
        }
    }

    pub(crate) fn notify_one(&self) {
        match self {
            Self::Parking(condvar) => {
                condvar.notify_one();
            }
            Self::Forked(condvar) => condvar.notify_one(),
        }
    }

    /// Sleeps until a signal, the alarm, or no reason at all: the caller looks again.
    pub(crate) fn wait<'a, T>(&self, guard: MutexGuard<'a, T>, alarm: Alarm) -> MutexGuard<'a, T> {
        match (self, guard) {
            (Self::Parking(condvar), MutexGuard::Parking(mut guard)) => {
                match alarm {
                    Alarm::At(instant) => drop(condvar.wait_until(&mut guard, instant)),
                    Alarm::After(time) => drop(condvar.wait_for(&mut guard, time)),
                    Alarm::Never => condvar.wait(&mut guard),
                }
                MutexGuard::Parking(guard)
            }
            (Self::Forked(condvar), MutexGuard::Forked(guard)) => {
                MutexGuard::Forked(wait_std(condvar, guard, alarm))
            }
            // Both were made by one scheduler, in one process.
            (_, guard) => guard,
        }
    }
}

fn wait_std<'a, T>(
    condvar: &std::sync::Condvar,
    guard: std::sync::MutexGuard<'a, T>,
    alarm: Alarm,
) -> std::sync::MutexGuard<'a, T> {
    let time = match alarm {
        Alarm::At(instant) => instant.saturating_duration_since(crate::clock::instant()),
        Alarm::After(time) => time,
        Alarm::Never => Duration::MAX,
    };
    if time == Duration::MAX {
        return condvar.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// One thread waits until another says so.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    given: std::sync::Mutex<bool>,
    changed: std::sync::Condvar,
}

impl Signal {
    pub(crate) fn give(&self) {
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits for [`Signal::give`]; `false` if `deadline` comes first.
    pub(crate) fn wait(&self, deadline: Option<Instant>) -> bool {
        let alarm = deadline.map_or(Alarm::Never, Alarm::At);
        let mut given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        while !*given {
            if deadline.is_some_and(|deadline| deadline <= crate::clock::instant()) {
                return false;
            }
            given = wait_std(&self.changed, given, alarm);
        }
        true
    }
}

/// Which process of a line of forks this is: 0 where the program started, one more in each child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Forks between the program's start and this process. Written only by the child handler, while
/// the child has one thread.
static FORKS: AtomicU64 = AtomicU64::new(0);

impl Generation {
    pub(crate) fn current() -> Self {
        // Relaxed: a forked child's only thread wrote it itself.
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Refuses a call in a child of the process of this generation.
    pub(crate) fn check(self) -> Result<(), Error> {
        if self == Self::current() { Ok(()) } else { Err(Error::Forked) }
    }

    fn is_forked(self) -> bool {
        self.0 > 0
    }
}

/// Counts forks from here on. Called before the first scheduler is made.
pub(crate) fn watch_forks() {
    #[cfg(unix)]
    {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Ordering::Relaxed);
        }
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler is async-signal-safe: one atomic addition. It can fail only for
            // lack of memory; forks then go unnoticed, as they would without it.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
    }
}
