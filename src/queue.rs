//! The queue: waiting tasks, sleeping workers, and what is under way. Invariants: a task is handed
//! out once, to one worker, not before it is due; the wake-up protocol of [`crate::idle`] holds at
//! every unlock; under the lock nothing of a user is run, dropped or waited for.

use std::any::Any;

use crate::clock::{Pace, Timestamp, Waker};
use crate::deadlines::Calls;
use crate::ending::End;
use crate::error::Error;
use crate::heap::Entry;
use crate::hold::Resumed;
use crate::job::discard;
use crate::outcome::{Outcome, Over};
use crate::overtime::Since;
use crate::owed::{Last, Owed};
use crate::record::{Place, TaskRef};
use crate::room::{Phase, Room};
use crate::state::{CancelMove, Control, ControlOutcome};
use crate::stats::Stats;
use crate::sync::{Condvar, Generation, Mutex, MutexGuard};
use crate::taking::Take;

pub(crate) struct TaskQueue {
    room: Mutex<Room>,
    /// One bell a worker, and the last one for the announcer. All used with the one lock.
    pub(crate) bells: Box<[Condvar]>,
    /// Those of the two that watch over timeouts. Used with the same lock.
    pub(crate) watchdog: Condvar,
    pub(crate) enforcer: Condvar,
    pub(crate) pace: Pace,
    made_in: Generation,
}

impl TaskQueue {
    pub(crate) fn new(pace: Pace, room: Room) -> Self {
        Self {
            bells: (0..=room.workers).map(|_| Condvar::new()).collect(),
            watchdog: Condvar::new(),
            enforcer: Condvar::new(),
            room: Mutex::new(room),
            pace,
            made_in: Generation::current(),
        }
    }

    /// The lock. A thread that was inside the scheduler when its own listener, rule or destructor
    /// forked may come here as the child: its holder may not exist there, and the tasks are the
    /// parent's. So it unwinds, silently: a worker to its end, and the child's process with it.
    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Room> {
        if self.made_in.check().is_err() {
            std::panic::resume_unwind(Box::new("the scheduler belongs to the parent process"));
        }
        self.room.lock()
    }

    /// Whether a caller must read the clock to hand its time in; else any time will do.
    pub(crate) fn needs_now(&self) -> bool {
        !matches!(self.pace, Pace::Monotonic(_))
    }

    pub(crate) fn is_open(&self) -> bool {
        self.lock().phase == Phase::Open
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Whether the clock moves without anybody's call.
    pub(crate) fn moves_by_itself(&self) -> bool {
        !matches!(self.pace, Pace::Manual)
    }

    /// The numbers of one moment.
    pub(crate) fn stats(&self) -> Stats {
        let room = self.lock();
        let behind = &room.registry.dependents;
        let now = Stats {
            workers: room.workers,
            waiting: room.waiting_count() + behind.len(),
            running: room.running,
            paused: room.held + behind.paused(),
            crowded: room.crowded_count(),
            stuck: room.reserve.stuck(),
            ..Stats::default()
        };
        let totals = room.registry.totals.clone();
        drop(room);
        totals.stats(now)
    }

    /// Whether it drains, and all who could run what is left are stuck.
    pub(crate) fn is_lost(&self) -> bool {
        let room = self.lock();
        room.phase == Phase::Draining && !room.is_served()
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.lock().is_deserted()
    }

    /// Counts a thread that is about to start; `false` if there is no more work.
    pub(crate) fn enlist(&self) -> bool {
        let mut room = self.lock();
        let open = room.phase == Phase::Open;
        room.alive += usize::from(open);
        open
    }

    /// Takes one back that did not start.
    pub(crate) fn delist(&self) {
        self.lock().alive -= 1;
    }

    pub(crate) fn pace_is_free(&self) -> bool {
        matches!(self.pace, Pace::Free)
    }

    /// Brings `task` into the queue. `told`: the due time for which its DUE event was sent; it may have
    /// another by now. Gives the task back if it was cancelled on its way, or the queue is closed; the
    /// bringer then completes the cancel.
    pub(crate) fn add(
        &self,
        task: TaskRef,
        told: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), TaskRef> {
        let mut room = self.lock();
        let due = task.due();
        let refused = room.push(task, told);
        self.unlock_added(room, due, now);
        refused
    }

    /// Brings several tasks in under one lock; gives back what [`TaskQueue::add`] would. Of those
    /// for which `told` has no entry nobody was told.
    pub(crate) fn add_all(
        &self,
        tasks: Vec<TaskRef>,
        told: Vec<Option<Timestamp>>,
        now: Timestamp,
    ) -> Vec<TaskRef> {
        let mut room = self.lock();
        let told = told.into_iter().chain(std::iter::repeat(None));
        let tasks = tasks.into_iter().zip(told);
        let refused = tasks.filter_map(|(task, told)| room.push(task, told).err()).collect();
        self.unlock(room, now);
        refused
    }

    /// Cancels `task` if it waits, or tells it to stop if it runs. If listeners are to be `told`, a
    /// waiting one counts as being told of until the caller settles that; else it ends here.
    pub(crate) fn cancel(&self, task: &TaskRef, told: bool) -> (CancelMove, Option<Over>) {
        task.state.get(); // fetched before the lock is held: it may be in no cache
        let mut room = self.lock();
        let cancelled = task.state.try_cancel();
        room.note_cancel(task, cancelled, told);
        let ends = cancelled == CancelMove::Cancelled && !told;
        let over = if ends { Some(room.registry.finish(task, End::CANCEL)) } else { None };
        let sleepers = (cancelled == CancelMove::Stopping).then(|| {
            task.pull_leash();
            room.naps.end_of(task.number)
        });
        // A task less leaves the head covered; only a rebuild that began wants somebody, or another
        // of its group.
        if room.is_rebuilding() || task.is_grouped() {
            // In a drain it may have been the last that somebody slept for.
            let drains = room.phase == Phase::Draining;
            let summoned = if drains { room.idle.summon_all() } else { Vec::new() };
            self.unlock(room, Timestamp::MIN);
            self.ring(&summoned);
        } else {
            release(room);
        }
        sleepers.into_iter().for_each(call);
        (cancelled, over)
    }

    /// Takes out what a cancelled task ended with if only its entry and the caller refer to it.
    pub(crate) fn take_outcome(&self, task: &TaskRef) -> Option<Outcome> {
        let room = self.lock();
        let outcome = is_left(task).then(|| task.take_outcome());
        drop(room);
        outcome
    }

    /// Shows it, if so. `show` only looks: the lock is held.
    pub(crate) fn visit_outcome(&self, task: &TaskRef, show: &mut dyn FnMut(&dyn Any)) {
        let _room = self.lock();
        if is_left(task) {
            task.visit_outcome(show);
        }
    }

    /// Run control over one task.
    pub(crate) fn control(
        &self,
        task: &TaskRef,
        control: Control,
        now: Timestamp,
    ) -> Result<(ControlOutcome, Option<Resumed>), Error> {
        let mut room = self.lock();
        let controlled = room.control(task, control, now);
        self.unlock_and_tell(room, now);
        controlled
    }

    /// Whether nothing is to start. What is due may not be due any more, and the other way round.
    pub(crate) fn set_paused(&self, paused: bool, now: Timestamp) -> Result<(), Error> {
        let mut room = self.lock();
        if room.phase != Phase::Open {
            return Err(Error::SchedulerClosed);
        }
        room.paused = paused;
        self.unlock_and_tell(room, now);
        Ok(())
    }

    /// Takes the earliest task that is due at `now`. The worker's debts are settled first: the end of
    /// its last task and the start of the next are one step, unless somebody is to be told between.
    pub(crate) fn try_take(&self, now: Timestamp, owed: &mut Owed) -> Take {
        let mut room = self.lock();
        if let Some(Last { task, ran, ended }) = &mut owed.last {
            let over = room.registry.finish_ran(task, End::of_run(ran, ended));
            if over.work.is_some() || over.left.is_some() || !ended.is_bare() {
                drop(room);
                return Take::Over(over);
            }
        }
        room.settle(now, owed);
        owed.moves = room.moves; // the clock is read again before any sleep
        let take = room.take(now, owed);
        if room.keeps_sleepers(&take) {
            let summoned = room.idle.summon_all();
            self.unlock(room, now);
            self.ring(&summoned);
        } else {
            self.unlock(room, now);
        }
        owed.last = None; // perhaps with the last reference to a task
        take
    }

    /// Whether anybody listens for DUE. From then on nothing starts before its DUE event was sent.
    pub(crate) fn set_tells_due(&self, tells: bool) {
        self.lock().tells_due = tells;
    }

    /// Takes out all tasks whose DUE event is to be sent at `now`, in their order, to send it.
    pub(crate) fn take_unannounced(&self, now: Timestamp) -> Vec<Entry<TaskRef>> {
        self.lock().take_unannounced(now)
    }

    /// Puts them back.
    pub(crate) fn put_announced(&self, entries: Vec<Entry<TaskRef>>, now: Timestamp) {
        let mut room = self.lock();
        let gone = room.put_announced(entries);
        // Workers that wait for this to know whether the drain is over.
        let over = room.phase == Phase::Draining;
        let summoned = if over { room.idle.summon_all() } else { Vec::new() };
        self.unlock(room, now);
        self.ring(&summoned);
        discard(gone);
    }

    /// Pays what is owed without taking anything; tells those who wait for quiet, or for the end.
    pub(crate) fn settle(&self, now: Timestamp, owed: &mut Owed) {
        let mut room = self.lock();
        room.settle(now, owed);
        self.unlock_and_tell(room, now);
    }

    /// A run that went on elsewhere is over, at `now`.
    pub(crate) fn end_elsewhere(&self, group: Option<u16>, now: Timestamp) {
        let mut room = self.lock();
        room.end_run(group);
        self.unlock_and_tell(room, now);
    }

    /// Unlocks, and tells those who wait for quiet or for the end, if it is that.
    pub(crate) fn unlock_and_tell(&self, mut room: MutexGuard<'_, Room>, now: Timestamp) {
        let mut wakers = room.quiet_wakers(now);
        if room.is_deserted() {
            wakers.extend(room.wakers.take_exit());
        }
        self.unlock(room, now);
        call(wakers);
    }

    /// Ends every sleeper's sleep: the phase changed.
    pub(crate) fn set_phase(&self, phase: Phase, now: Timestamp) {
        let mut room = self.lock();
        if room.phase == Phase::Open {
            room.drained_at = now;
        }
        if room.phase == Phase::Open || phase == Phase::Closed {
            // While all is paused nothing is due that could be drained.
            let drains = !std::mem::take(&mut room.paused) && room.is_served();
            room.phase = if drains { phase } else { Phase::Closed };
        }
        let summoned = room.idle.summon_all();
        let left = if room.phase == Phase::Closed { room.naps.end_left() } else { Vec::new() };
        drop(room);
        self.ring(&summoned);
        self.ring(&[self.bells.len() - 1]);
        call(left);
        self.ring_watch(Calls { watchdog: true, enforcer: true });
    }

    pub(crate) fn ring_watch(&self, calls: Calls) {
        if calls.watchdog {
            self.watchdog.notify_one();
        }
        if calls.enforcer {
            self.enforcer.notify_one();
        }
    }

    pub(crate) fn ring(&self, workers: &[usize]) {
        workers.iter().for_each(|&worker| self.bells[worker].notify_one());
    }

    /// The clock moved to `now` otherwise than by itself.
    pub(crate) fn moved(&self, now: Timestamp) {
        let mut room = self.lock();
        room.moves += 1;
        room.latest = room.latest.max(now);
        // Before the sleepers: who sleeps as long as it has time is late.
        let mut sleepers = room.expire(now, Since::Deadline);
        sleepers.extend(room.naps.end_due(now));
        // Alarms were set by the clock as it was: somebody looks again.
        let look = room.head_for_workers().is_some_and(|due| due <= now || self.pace_is_free());
        let summoned = if look && !room.idle.someone_comes() { room.idle.summon() } else { None };
        self.unlock(room, now);
        if let Some(worker) = summoned {
            self.bells[worker].notify_one();
        }
        self.bells[self.bells.len() - 1].notify_one();
        self.watchdog.notify_one();
        call(sleepers);
    }

    /// Unlocks after a task was added that is due at `due`. If an alarm rings by then, somebody is
    /// on the way, or nobody sleeps, the head is covered as it was.
    #[inline]
    pub(crate) fn unlock_added(&self, room: MutexGuard<'_, Room>, due: Timestamp, now: Timestamp) {
        let alarms_count = matches!(self.pace, Pace::Monotonic(_));
        let is_covered = room.idle.is_empty() || room.idle.covers(due, alarms_count);
        if is_covered && !room.is_rebuilding() && room.announcer.is_none() {
            release(room);
        } else {
            self.unlock(room, now);
        }
    }

    /// Unlocks, and restores the wake-up invariant: every change of the heap or of who is idle
    /// ends here, or in [`TaskQueue::unlock_added`].
    #[inline]
    pub(crate) fn unlock(&self, room: MutexGuard<'_, Room>, now: Timestamp) {
        if room.concerns_nobody() { release(room) } else { self.unlock_and_wake(room, now) }
    }

    fn unlock_and_wake(&self, mut room: MutexGuard<'_, Room>, now: Timestamp) {
        let summoned = room.restore(self.pace, now);
        let announcer = room.recall_announcer().then_some(self.bells.len() - 1);
        let calls = room.deadlines.take_calls();
        release(room);
        self.ring_watch(calls);
        if let Some(bell) = summoned {
            self.bells[bell].notify_one();
        }
        if let Some(bell) = announcer {
            self.bells[bell].notify_one();
        }
    }

    /// A thread ends.
    pub(crate) fn exit(&self, now: Timestamp, owed: &mut Owed) {
        let mut room = self.lock();
        room.settle(now, owed);
        room.alive -= 1;
        // Those who watch over timeouts may have waited for this one to end.
        room.deadlines.calls = Calls { watchdog: true, enforcer: true };
        self.unlock_and_tell(room, now);
    }
}

/// Whether only the caller and the entry of a cancelled task refer to it. Nobody else can make a
/// reference then, and the entry cannot go while the lock is held.
fn is_left(task: &TaskRef) -> bool {
    task.place() != Place::Out && TaskRef::count(task) == 2
}

/// Unlocks, and then drops the tombstones that were taken out.
#[inline]
fn release(mut room: MutexGuard<'_, Room>) {
    if room.has_gone() {
        let gone = room.take_gone();
        drop(room);
        discard(gone);
    }
}

pub(crate) fn call(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(|waker| waker());
}
