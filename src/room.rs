//! The waiting room: what the queue's lock guards. Invariant: every method leaves the counts true;
//! nothing here blocks, reads a clock or calls anybody.

use crate::clock::{Pace, Timestamp, Waker};
use crate::deadlines::{Calls, Deadlines};
use crate::door::{Door, Side};
use crate::error::Error;
use crate::heap::{DueHeap, Entry, Live};
use crate::idle::Idle;
use crate::limits::Groups;
use crate::nap::{Naps, Sleeper};
use crate::owed::Owed;
use crate::record::{Place, TaskRef};
use crate::registry::Registry;
use crate::reserve::Reserve;
use crate::state::{CancelMove, TaskState};
use crate::wakers::Wakers;

impl Live for TaskRef {
    fn is_live(entry: &Entry<Self>) -> bool {
        entry.task.is_entered(entry.due, entry.ticket)
    }
}

/// How far the queue is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Tasks come and go.
    Open,
    /// Nothing comes in; what was due when the drain began still goes out.
    Draining,
    /// Nothing comes or goes.
    Closed,
}

/// Guarded by the queue's lock.
pub(crate) struct Room {
    /// Those whose DUE event is still to be sent, or is not wanted.
    pub(crate) waiting: DueHeap<TaskRef>,
    /// Those whose DUE event was sent. Empty while nobody listens for it.
    pub(crate) announced: DueHeap<TaskRef>,
    /// Due tasks that wait for a place in their group.
    pub(crate) groups: Groups,
    pub(crate) registry: Registry,
    pub(crate) idle: Idle,
    /// Whether a worker that has nothing else to do tends a rebuild.
    pub(crate) tended: bool,
    pub(crate) door: Door,
    pub(crate) phase: Phase,
    /// Whether nothing is to start, for now.
    pub(crate) paused: bool,
    /// Tasks that are paused, and in neither heap.
    pub(crate) held: usize,
    /// The size of the pool.
    pub(crate) workers: usize,
    /// Runs that go on.
    pub(crate) running: usize,
    /// Cancelled tasks that listeners are being told of.
    pub(crate) telling: usize,
    /// Whether anybody listens for DUE.
    pub(crate) tells_due: bool,
    /// Due tasks that were taken out to send their DUE event, and come back.
    pub(crate) announcing: usize,
    pub(crate) naps: Naps,
    /// The attempts that have a timeout.
    pub(crate) deadlines: Deadlines,
    /// What is done about workers that are stuck.
    pub(crate) reserve: Reserve,
    /// Who waits for quiet, or for the end.
    pub(crate) wakers: Wakers,
    /// Entries ever added: the last key of the order.
    sequence: u64,
    /// What the announcer sleeps for, if it sleeps.
    pub(crate) announcer: Option<Timestamp>,
    /// How often the clock was moved by hand; see [`Room::has_moved`].
    pub(crate) moves: u64,
    /// The latest time that such a move showed.
    pub(crate) latest: Timestamp,
    /// When the drain began: what was due then is due, whatever older reading a worker goes by.
    pub(crate) drained_at: Timestamp,
    /// Threads that have not ended, but for those that are stuck.
    pub(crate) alive: usize,
}

/// How many entries of a heap that is rebuilt a worker moves in one hold of the lock: a few microseconds'
/// work.
pub(crate) const PIECE: usize = 32;

/// How many it moves between two looks at what else there is to do.
pub(crate) const SHARE: usize = 16 * PIECE;

impl Room {
    pub(crate) fn new(workers: usize, registry: Registry, groups: Groups) -> Self {
        Self {
            waiting: DueHeap::default(),
            announced: DueHeap::default(),
            groups,
            registry,
            idle: Idle::default(),
            tended: false,
            door: Door::new(),
            phase: Phase::Open,
            paused: false,
            held: 0,
            workers,
            running: 0,
            telling: 0,
            tells_due: false,
            announcing: 0,
            naps: Naps::default(),
            deadlines: Deadlines::default(),
            reserve: Reserve::default(),
            wakers: Wakers::default(),
            sequence: 0,
            announcer: None,
            moves: 0,
            latest: Timestamp::MIN,
            drained_at: Timestamp::MIN,
            alive: 0,
        }
    }

    /// Takes in a task on its way; for `told` see [`TaskQueue::add`](crate::queue::TaskQueue::add).
    pub(crate) fn push(&mut self, task: TaskRef, told: Option<Timestamp>) -> Result<(), TaskRef> {
        let held = task.is_held();
        let enters = |task: &TaskRef| if held { task.state.rest() } else { task.state.enter() };
        if self.phase != Phase::Open || !enters(&task) {
            return Err(task);
        }
        if held {
            self.hold(&task);
        } else {
            let announced = told == Some(task.due());
            self.queue(task, announced);
        }
        Ok(())
    }

    /// Takes in a task that is PAUSED.
    pub(crate) fn hold(&mut self, task: &TaskRef) {
        task.set_place(Place::Held);
        self.held += 1;
    }

    /// Queues a task that is WAITING, while the queue is open.
    pub(crate) fn queue(&mut self, task: TaskRef, announced: bool) {
        self.sequence += 1;
        task.set_place(if announced { Place::Announced } else { Place::Waiting });
        let (due, priority, ticket) = (task.due(), task.priority, task.ticket());
        let entry = Entry { due, priority, ticket, sequence: self.sequence, task };
        if announced {
            self.announced.push(entry);
        } else {
            self.waiting.push(entry);
        }
    }

    /// Takes out all tasks whose DUE event is to be sent at `now`, in their order. While they are
    /// out nobody else gets any, and nothing starts: so DUE is sent in order, and before STARTED.
    pub(crate) fn take_unannounced(&mut self, now: Timestamp) -> Vec<Entry<TaskRef>> {
        let now = now.max(self.drained_at);
        if !self.tells_due || self.announcing > 0 {
            return Vec::new();
        }
        let entries: Vec<_> = std::iter::from_fn(|| self.waiting.pop_due(now)).collect();
        entries.iter().for_each(|entry| entry.task.set_place(Place::Out));
        self.announcing = entries.len();
        entries
    }

    /// Puts them back; gives those that were taken away meanwhile, to be dropped.
    pub(crate) fn put_announced(&mut self, entries: Vec<Entry<TaskRef>>) -> Vec<Entry<TaskRef>> {
        self.announcing = 0;
        let mut gone = Vec::new();
        for entry in entries {
            if Live::is_live(&entry) {
                entry.task.set_place(Place::Announced);
                self.announced.push(entry);
            } else {
                gone.push(entry);
            }
        }
        gone
    }

    pub(crate) fn note_cancel(&mut self, task: &TaskRef, cancelled: CancelMove, told: bool) {
        match cancelled {
            CancelMove::Cancelled => {
                self.telling += usize::from(told);
                self.leave(task);
            }
            // A run took it from where it was, and it goes nowhere any more.
            CancelMove::Stopping | CancelMove::Recalled => task.set_place(Place::Out),
            CancelMove::Finished => {}
        }
    }

    /// A task is not to be found where it was any more.
    pub(crate) fn leave(&mut self, task: &TaskRef) {
        match task.place() {
            Place::Waiting => self.waiting.note_tombstone(),
            Place::Announced => self.announced.note_tombstone(),
            Place::Held => {
                self.held -= 1;
                task.set_place(Place::Out);
            }
            Place::Crowded => task.group().into_iter().for_each(|g| self.groups.note_tombstone(g)),
            Place::Out => {}
        }
        if let Some(group) = task.group() {
            self.let_in(group); // it may have been the one that stands for its group
        }
    }

    /// Lets the first of those in that wait for a place in `group`, if one is free.
    pub(crate) fn let_in(&mut self, group: u16) {
        self.announced.bury(self.groups.take_gone());
        if let Some(entry) = self.groups.let_in(group) {
            entry.task.set_place(Place::Announced); // or nobody wanted to hear of it
            self.announced.push(entry);
        }
    }

    /// Cancels all of the tasks if none of them runs. Gives those whose cancel the caller is to
    /// complete; the others are completed by whoever brings them. `told` as for a cancel.
    pub(crate) fn recall_all(
        &mut self,
        mut tasks: Vec<TaskRef>,
        told: bool,
    ) -> Result<Vec<TaskRef>, Error> {
        if let Some(running) = tasks.iter().find(|task| task.state.get() == TaskState::Running) {
            return Err(Error::TaskRunning(running.id()));
        }
        tasks.retain(|task| {
            let cancelled = task.state.try_cancel();
            self.note_cancel(task, cancelled, told);
            cancelled == CancelMove::Cancelled
        });
        Ok(tasks)
    }

    /// A worker that is ready for work goes to enter its surroundings.
    pub(crate) fn come_to_door(&mut self, now: Timestamp, owed: &mut Owed) {
        if owed.side == Side::Inside {
            owed.side = Side::Outside;
            self.door.come(now);
        }
    }

    /// It went in. Once a wake-up, not once a job.
    #[cold]
    pub(crate) fn go_in(&mut self, now: Timestamp, owed: &mut Owed) {
        owed.side = Side::Inside;
        self.door.enter(now);
    }

    #[inline]
    pub(crate) fn settle(&mut self, now: Timestamp, owed: &mut Owed) {
        if std::mem::take(&mut owed.arrival) {
            self.idle.arrive();
        }
        if owed.side == Side::Outside {
            self.go_in(now, owed);
        }
        if std::mem::take(&mut owed.run) {
            self.end_run(owed.group.take());
        }
        self.telling -= usize::from(std::mem::take(&mut owed.telling));
    }

    /// A run is over, of this group if it was of one.
    pub(crate) fn end_run(&mut self, group: Option<u16>) {
        self.running -= 1;
        if let Some(group) = group {
            self.groups.leave(group);
            self.let_in(group);
        }
    }

    /// How many tasks wait.
    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len() + self.announced.len() + self.groups.len() + self.held
    }

    /// How many of them are due, and wait for a place in their group.
    pub(crate) fn crowded_count(&self) -> usize {
        self.groups.len()
    }

    /// Whether there is anything to take by [`Room::take_gone`].
    pub(crate) fn has_gone(&self) -> bool {
        self.waiting.has_gone() || self.announced.has_gone()
    }

    /// Takes the tombstones that left the heaps, to be dropped with no lock held.
    pub(crate) fn take_gone(&mut self) -> [Vec<Entry<TaskRef>>; 2] {
        let gone = [self.waiting.take_gone(), self.announced.take_gone()];
        // An entry that was replaced says nothing of where the task is.
        let last = |entry: &&Entry<TaskRef>| {
            entry.ticket == entry.task.ticket() && entry.task.state.get().is_end()
        };
        gone.iter().flatten().filter(last).for_each(|entry| entry.task.set_place(Place::Out));
        gone
    }

    /// Goes on with the rebuild of a heap, one piece of it.
    pub(crate) fn rebuild(&mut self) {
        self.waiting.step(PIECE);
        self.announced.step(PIECE);
        self.groups.rebuild(PIECE);
        self.announced.bury(self.groups.take_gone());
    }

    /// How many entries a rebuild has still to look at.
    pub(crate) fn left_to_rebuild(&self) -> usize {
        self.waiting.left_to_rebuild()
            + self.announced.left_to_rebuild()
            + self.groups.left_to_rebuild()
    }

    /// Whether an idle worker is to go on with a rebuild. One tends it: the one that has a `share`, which
    /// is how much was left when it looked last. While calls do as much as it would, it would only
    /// be in their way.
    pub(crate) fn wants_hand(&mut self, share: &mut Option<usize>) -> bool {
        let left = self.left_to_rebuild();
        if left == 0 {
            self.stop_tending(share);
        }
        if left == 0 || (self.tended && share.is_none()) {
            return false;
        }
        self.tended = true;
        let before = share.replace(left).unwrap_or(left);
        before.saturating_sub(left) < SHARE
    }

    /// The worker has something else to do.
    pub(crate) fn stop_tending(&mut self, share: &mut Option<usize>) {
        if share.take().is_some() {
            self.tended = false;
        }
    }

    pub(crate) fn is_rebuilding(&self) -> bool {
        self.waiting.is_retiring() || self.announced.is_retiring() || self.groups.is_rebuilding()
    }

    /// Whether a reading of the clock is out of date.
    ///
    /// A clock is read without the lock, for reading it may be user code. It may be moved after the
    /// reading and before the lock, by somebody who then finds no sleeper to wake: the reader would
    /// go to sleep over a task that is due. So whoever moves the clock counts the move under the
    /// lock, after the clock shows it; and whoever reads the clock in order to sleep notes the
    /// count under the lock before it reads, and reads again if the count is another afterwards.
    pub(crate) fn has_moved(&self, seen: &mut u64) -> bool {
        std::mem::replace(seen, self.moves) != self.moves
    }

    /// Whether the head is covered whatever it is: nobody sleeps over it, or somebody is on the way.
    fn is_covered(&self) -> bool {
        self.idle.is_empty() || self.idle.someone_comes()
    }

    /// Whether nobody has to be woken, whatever has changed.
    pub(crate) fn concerns_nobody(&self) -> bool {
        self.is_covered() && self.announcer.is_none() && self.deadlines.calls == Calls::default()
    }

    /// Whom to wake so that the head is covered again, if it is not.
    pub(crate) fn restore(&mut self, pace: Pace, now: Timestamp) -> Option<usize> {
        if self.is_covered() {
            return None;
        }
        if self.is_rebuilding() && !self.tended {
            return self.idle.summon();
        }
        let due = self.head_for_workers()?;
        let now = now.max(self.latest); // `now` may be out of date; who is woken looks for itself
        let alarms_count = match pace {
            Pace::Monotonic(_) => true,
            Pace::Free => due > now,
            // Nobody has an alarm: who moves the clock rings, and until then nothing is due.
            Pace::Manual if due > now => return None,
            Pace::Manual => false,
        };
        if self.idle.covers(due, alarms_count) { None } else { self.idle.summon() }
    }

    /// Whether the announcer must be woken for an earlier task than the one that it sleeps for.
    pub(crate) fn recall_announcer(&mut self) -> bool {
        let Some(asleep) = self.announcer else {
            return false;
        };
        let earlier = self.waiting.head_due().is_some_and(|due| due < asleep);
        if earlier {
            self.announcer = None;
        }
        earlier
    }

    /// Whether a run's sleep is over. Nobody tells a run that has ended to stop, but with the scheduler
    /// its sleep ends too.
    pub(crate) fn has_slept(&self, sleeper: &Sleeper<'_>, now: Timestamp) -> bool {
        let is_left = !sleeper.whole_run && self.phase == Phase::Closed;
        is_left || (sleeper.is_stopping)() || now >= sleeper.deadline
    }

    pub(crate) fn is_quiet(&mut self, now: Timestamp, despite_naps: bool) -> bool {
        let asleep = if despite_naps { self.naps.runs() } else { 0 };
        // While every worker's run sleeps, what is due cannot start before the clock moves.
        let all_sleep = despite_naps && asleep == self.reserve.serving(self.workers);
        let nothing_starts = all_sleep || self.paused;
        self.running == asleep
            && self.telling + self.announcing == 0
            && (nothing_starts || self.head_due().is_none_or(|due| due > now))
    }

    /// Whether there are workers that are not stuck.
    pub(crate) fn is_served(&self) -> bool {
        self.reserve.serving(self.workers) > 0
    }

    /// Whether the last worker and the last run have ended.
    pub(crate) fn is_deserted(&self) -> bool {
        self.alive + self.running == 0
    }

    /// Takes those who wait for what is now, to be called after unlocking.
    pub(crate) fn quiet_wakers(&mut self, now: Timestamp) -> Vec<Waker> {
        if self.wakers.nobody_waits_for_quiet() || !self.is_quiet(now, true) {
            return Vec::new();
        }
        let idle = self.is_quiet(now, false);
        self.wakers.take_quiet(idle)
    }
}

#[cfg(test)]
mod tests;
