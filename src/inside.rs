//! Whose code a thread is in. Invariant: a wait that could end only after the calling code has
//! returned is known as such, and refused instead of waited for.
//!
//! A worker is inside its scheduler for its whole life: not only jobs run there, but also what their
//! values do when they are dropped. Any other thread is inside while it calls a listener or a
//! callback. A thread may be inside several: a job of one scheduler may wait for another.

use std::cell::RefCell;

use crate::record::TaskRef;

/// A scheduler, told from others by its address. It outlives what is done inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(pub(crate) usize);

/// What cannot go on before the code that is entered has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The end of the scheduler, and its being idle.
    Scheduler,
    /// The task of this number too: it is being told of.
    Task(u64),
    /// Every task of the scheduler too: DUE events are being sent, and meanwhile nothing starts.
    Starts,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    scheduler: Identity,
    held: Held,
}

impl Place {
    /// In the middle of a worker's life, or of dropping what a task held.
    pub(crate) fn of(scheduler: Identity) -> Self {
        Self { scheduler, held: Held::Scheduler }
    }

    /// In a listener or callback that is told of `task`.
    pub(crate) fn telling(scheduler: Identity, task: &TaskRef) -> Self {
        Self { scheduler, held: Held::Task(task.number) }
    }

    /// In a listener that is told that a task is due.
    pub(crate) fn announcing(scheduler: Identity) -> Self {
        Self { scheduler, held: Held::Starts }
    }
}

thread_local! {
    static PLACES: RefCell<Vec<Place>> = const { RefCell::new(Vec::new()) };
}

/// Takes the places off again, also when the code panics.
struct Leave(usize);

impl Drop for Leave {
    fn drop(&mut self) {
        PLACES.with_borrow_mut(|places| places.truncate(self.0));
    }
}

/// Runs code of a user at `place`.
pub(crate) fn enter<T>(place: Place, code: impl FnOnce() -> T) -> T {
    let outside = PLACES.with_borrow_mut(|places| {
        places.push(place);
        places.len() - 1
    });
    let _leave = Leave(outside);
    code()
}

/// The same at several places.
pub(crate) fn enter_all<T>(here: impl Iterator<Item = Place>, code: impl FnOnce() -> T) -> T {
    let outside = PLACES.with_borrow_mut(|places| {
        let outside = places.len();
        places.extend(here);
        outside
    });
    let _leave = Leave(outside);
    code()
}

fn any(found: impl Fn(&Place) -> bool) -> bool {
    // No answer: the thread is ending, and inside nothing any more.
    PLACES.try_with(|places| places.borrow().iter().any(found)).unwrap_or(false)
}

/// Whether the calling code is such that `scheduler` cannot be idle before it returns.
pub(crate) fn is_inside(scheduler: Identity) -> bool {
    any(|place| place.scheduler == scheduler)
}

/// Whether `task` of `scheduler` cannot go on before the calling listener or callback returns. While
/// DUE events are sent that is said of one that runs, too: it may have to run again before it ends.
pub(crate) fn holds(scheduler: Identity, task: &TaskRef) -> bool {
    any(|place| match place.held {
        Held::Scheduler => false,
        Held::Task(held) => held == task.number && place.scheduler == scheduler,
        Held::Starts => place.scheduler == scheduler,
    })
}

/// Whether any task of `scheduler` that cannot go on before the calling listener or callback returns
/// is one of `those`, by its number.
pub(crate) fn holds_any(scheduler: Identity, those: impl Fn(u64) -> bool) -> bool {
    any(|place| match place.held {
        Held::Task(held) => place.scheduler == scheduler && those(held),
        Held::Scheduler | Held::Starts => false,
    })
}
