//! Which task starts next. Invariants: none before it is due, none while the scheduler is paused, none
//! over the limit of its group, and where DUE is told none before it was; in a drain, what was due when it
//! began.

use crate::clock::Timestamp;
use crate::heap::Entry;
use crate::outcome::Over;
use crate::owed::Owed;
use crate::record::TaskRef;
use crate::room::{Phase, Room};

/// How many due tasks one call lets wait for their groups: less than a millisecond's work. The worker
/// then finds that there are more.
const AT_ONCE: usize = 4096;

/// What a worker got.
pub(crate) enum Take {
    /// Nothing yet: of the task that it has ended somebody is to be told first, or something dropped.
    Over(Over),
    /// A task, moved to RUNNING.
    Task(Entry<TaskRef>),
    /// Nothing is due.
    Nothing,
    /// Nothing will ever be due.
    Closed,
}

impl Room {
    pub(crate) fn take(&mut self, now: Timestamp, owed: &mut Owed) -> Take {
        if self.phase == Phase::Closed {
            return Take::Closed;
        }
        if self.paused {
            return Take::Nothing;
        }
        let mut turned_away = 0;
        while turned_away < AT_ONCE
            && let Some(entry) = self.pop_ready(now)
        {
            let group = entry.task.group();
            if let Some(group) = group
                && !self.groups.enter(group)
            {
                self.groups.turn_away(group, entry);
                turned_away += 1;
                continue;
            }
            // A cancel needs the lock to leave WAITING, so this start always wins; the move still
            // says so itself.
            if entry.task.state.try_start() {
                self.running += 1;
                owed.group = group;
                self.note_start(entry.due, now);
                self.deadlines.expect(entry.task.is_timed());
                return Take::Task(entry);
            }
        }
        if self.is_over() { Take::Closed } else { Take::Nothing }
    }

    /// A run that was due at `due` starts.
    fn note_start(&mut self, due: Timestamp, now: Timestamp) {
        let (late, waited) = (now.nanos_since(due), self.door.waited(due, now));
        self.registry.totals.starts.note(late, waited);
    }

    /// Whether no task that is not due now will ever be taken.
    pub(crate) fn is_over(&mut self) -> bool {
        match self.phase {
            Phase::Open => false,
            Phase::Draining => {
                // Also what waits for its group: its place may be taken by a run that goes on
                // elsewhere, whose end wakes a worker.
                let left = self.next_due().is_some_and(|due| due <= self.drained_at);
                self.announcing == 0 && !left
            }
            Phase::Closed => true,
        }
    }

    /// Takes the earliest entry out that is due and may start: its DUE event was sent, or nobody
    /// wants it.
    fn pop_ready(&mut self, now: Timestamp) -> Option<Entry<TaskRef>> {
        let now = now.max(self.drained_at);
        if self.tells_due {
            let unannounced = self.waiting.head_due().is_some_and(|due| due <= now);
            return if unannounced || self.announcing > 0 {
                None
            } else {
                self.announced.pop_due(now)
            };
        }
        if self.announced.is_empty() {
            return self.waiting.pop_due(now);
        }
        let announced = match (self.announced.head(), self.waiting.head()) {
            (Some(announced), Some(waiting)) => announced > waiting, // greatest comes first
            (announced, _) => announced.is_some(),
        };
        if announced { self.announced.pop_due(now) } else { self.waiting.pop_due(now) }
    }

    /// The due time of the earliest waiting task.
    pub(crate) fn head_due(&mut self) -> Option<Timestamp> {
        match (self.announced.head_due(), self.waiting.head_due()) {
            (Some(announced), Some(waiting)) => Some(announced.min(waiting)),
            (announced, waiting) => announced.or(waiting),
        }
    }

    /// The same, of all that wait.
    pub(crate) fn next_due(&mut self) -> Option<Timestamp> {
        self.head_due().into_iter().chain(self.groups.head_due()).min()
    }

    /// The same as [`Room::head_due`] for the workers, to whom nothing is due while DUE events are being
    /// sent, nor while the scheduler is paused.
    pub(crate) fn head_for_workers(&mut self) -> Option<Timestamp> {
        if self.announcing > 0 || self.paused { None } else { self.head_due() }
    }

    pub(crate) fn second_due(&self) -> Option<Timestamp> {
        self.waiting.second_due()
    }

    /// When something happens next after `now`: a task is due, a sleeping run wakes, or the time of a
    /// run is up.
    pub(crate) fn next_step(&mut self, now: Timestamp) -> Option<Timestamp> {
        let head = self.waiting.head_due().filter(|&due| due > now);
        head.into_iter().chain(self.naps.next_due()).chain(self.deadlines.next()).min()
    }

    /// Whether workers sleep though all is over: they slept for tasks that waited for their group.
    pub(crate) fn keeps_sleepers(&self, take: &Take) -> bool {
        matches!(take, Take::Closed) && self.phase == Phase::Draining && !self.idle.is_empty()
    }
}
