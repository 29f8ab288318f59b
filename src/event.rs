//! What listeners are told. Invariants: with no listener an event costs one load and is never
//! made; a listener is called with no lock held, and one that panics harms nobody.

use std::sync::Arc;
use std::time::Duration;

use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::inside::{Place, enter};
use crate::job::{JobError, contain};
use crate::sync::{AtomicU8, Ordering, SmallMutex};

/// What happened to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// It was accepted.
    Scheduled = 1,
    /// Its due time came, whether or not a worker is free.
    Due = 2,
    /// Its job starts.
    Started = 4,
    /// A run succeeded.
    Completed = 8,
    /// A run failed; `next_due` says whether another follows, `will_retry` whether as a retry.
    Failed = 16,
    /// It was cancelled, or stopped while it ran.
    Cancelled = 32,
    /// Slots passed without a run.
    Missed = 64,
    /// A job still runs when the grace after its timeout is over. FAILED follows.
    Stuck = 128,
}

impl EventKind {
    /// All kinds, in the order of a task's life.
    pub const ALL: [Self; 8] = [
        Self::Scheduled,
        Self::Due,
        Self::Started,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::Missed,
        Self::Stuck,
    ];
}

/// One thing that happened. Fields that do not apply to the kind are `None`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// To which task.
    pub task_id: TaskId,
    /// When, on the scheduler's clock.
    pub time: Timestamp,
    /// The due time of the run that this is about.
    pub due: Timestamp,
    /// The number of that run, from 1.
    pub run: u64,
    /// The number of the attempt at the slot, from 1.
    pub attempt: u64,
    /// How late the run started: STARTED, COMPLETED, FAILED, STUCK.
    pub lateness: Option<Duration>,
    /// How long it took: COMPLETED, FAILED; so far: STUCK.
    pub duration: Option<Duration>,
    /// Why it failed: FAILED, STUCK. What cancelled it: CANCELLED, if a task that it depends on did.
    pub error: Option<JobError>,
    /// When the task is due next: COMPLETED, FAILED, MISSED.
    pub next_due: Option<Timestamp>,
    /// Whether that is another attempt at this slot, and not the next slot or nothing: FAILED.
    pub will_retry: Option<bool>,
    /// How many slots passed: MISSED.
    pub missed: Option<u64>,
    /// What the job is doing, as text: STUCK, if that can be told.
    pub stack: Option<Arc<str>>,
}

/// Who is told. Closures of one `&Event` are listeners too.
pub trait Listener: std::any::Any + Send + Sync {
    /// Called on the thread that made the move. It may call any method of the scheduler.
    fn on_event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync + 'static> Listener for F {
    fn on_event(&self, event: &Event) {
        self(event);
    }
}

/// Names a listener for its removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ListenerId(u64);

#[derive(Clone)]
struct Entry {
    id: ListenerId,
    kinds: u8,
    listener: Arc<dyn Listener>,
}

/// The listeners of one scheduler.
#[derive(Default)]
pub(crate) struct Listeners {
    /// Which kinds anybody wants. A mirror of `list`, written under its lock. Relaxed: a listener
    /// hears of what happens after it was added, and adding is ordered by that lock.
    wanted: AtomicU8,
    list: SmallMutex<List>,
}

#[derive(Default)]
struct List {
    made: u64,
    /// Replaced at each change, so that telling needs the lock only to take a reference.
    entries: Arc<Vec<Entry>>,
}

impl Listeners {
    pub(crate) fn wants(&self, kind: EventKind) -> bool {
        self.wanted.load(Ordering::Relaxed) & kind as u8 != 0
    }

    /// Whether anybody listens at all.
    pub(crate) fn anybody(&self) -> bool {
        self.wanted.load(Ordering::Relaxed) != 0
    }

    /// Adds a listener. `changed` is called under the lock with the kinds that are wanted now.
    pub(crate) fn add(
        &self,
        listener: Arc<dyn Listener>,
        kinds: &[EventKind],
        changed: impl FnOnce(&Self),
    ) -> ListenerId {
        let kinds = kinds.iter().fold(0, |mask, &kind| mask | kind as u8);
        let mut list = self.list.lock();
        list.made += 1;
        let id = ListenerId(list.made);
        let mut entries = Vec::clone(&list.entries);
        entries.push(Entry { id, kinds, listener });
        let old = self.replace(&mut list, entries);
        changed(self);
        drop(list);
        drop(old);
        id
    }

    /// Removes a listener. `changed` as for [`Listeners::add`].
    pub(crate) fn remove(&self, id: ListenerId, changed: impl FnOnce(&Self)) -> bool {
        let mut list = self.list.lock();
        let mut entries = Vec::clone(&list.entries);
        entries.retain(|entry| entry.id != id);
        let found = entries.len() < list.entries.len();
        let old = self.replace(&mut list, entries);
        changed(self);
        drop(list);
        drop(old); // the listener's own `Drop` may call us
        found
    }

    /// Removes all listeners. `changed` as for [`Listeners::add`].
    pub(crate) fn clear(&self, changed: impl FnOnce(&Self)) {
        let mut list = self.list.lock();
        let old = self.replace(&mut list, Vec::new());
        changed(self);
        drop(list);
        drop(old);
    }

    fn replace(&self, list: &mut List, entries: Vec<Entry>) -> Arc<Vec<Entry>> {
        let wanted = entries.iter().fold(0, |mask, entry| mask | entry.kinds);
        self.wanted.store(wanted, Ordering::Relaxed);
        std::mem::replace(&mut list.entries, Arc::new(entries))
    }

    /// Tells everybody who wants to hear of `kind`, at `place`.
    pub(crate) fn tell(&self, kind: EventKind, place: Place, event: &Event) {
        let entries = Arc::clone(&self.list.lock().entries);
        for entry in entries.iter().filter(|entry| entry.kinds & kind as u8 != 0) {
            // The panic hook has told of it; there is nobody else to tell.
            drop(enter(place, || contain(|| entry.listener.on_event(event))));
        }
    }

    /// Shows every listener, under the lock: `show` only looks.
    pub(crate) fn visit(&self, show: &mut dyn FnMut(&dyn std::any::Any)) {
        for entry in self.list.lock().entries.iter() {
            show(&*entry.listener);
        }
    }
}
