//! The queue: waiting tasks, sleeping workers, and what is under way. Invariants: a task is handed
//! out once, to one worker, not before it is due; the wake-up protocol of [`crate::idle`] holds at
//! every unlock; under the lock nothing of a user is run, dropped or waited for.

use crate::clock::{Alarm, Pace, Timestamp, Waker};
use crate::heap::{DueHeap, Entry, Live};
use crate::idle::Idle;
use crate::nap::Naps;
use crate::record::TaskRef;
use crate::state::CancelMove;
use crate::sync::{Condvar, Mutex, MutexGuard};

impl Live for TaskRef {
    fn is_live(&self) -> bool {
        self.state.is_waiting()
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
pub(crate) struct State {
    /// Those whose DUE event is still to be sent, or is not wanted.
    pub(crate) waiting: DueHeap<TaskRef>,
    /// Those whose DUE event was sent. Empty while nobody listens for it.
    pub(crate) announced: DueHeap<TaskRef>,
    pub(crate) idle: Idle,
    pub(crate) phase: Phase,
    /// The size of the pool.
    workers: usize,
    /// Runs that go on.
    pub(crate) running: usize,
    /// Moves out of the queue, other than starts, that listeners are being told of.
    pub(crate) telling: usize,
    pub(crate) naps: Naps,
    /// Whom to call when nothing is in hand and nothing is due.
    quiet_wakers: Vec<QuietWaker>,
    wakers_made: u64,
    /// Entries ever added: the last key of the order.
    sequence: u64,
    /// What the announcer sleeps for, if it sleeps.
    announcer: Option<Timestamp>,
    /// Worker threads that have not ended.
    pub(crate) alive: usize,
    exit_wakers: Vec<(u64, Waker)>,
}

struct QuietWaker {
    key: u64,
    /// Whether runs that sleep on the clock count as quiet: they do for whoever moves it.
    naps_are_quiet: bool,
    waker: Waker,
}

/// What a worker owes the queue since it last held the lock.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// It was woken and is on its way.
    pub(crate) arrival: bool,
    /// Its run is over.
    pub(crate) run: bool,
    /// What it took out of the queue has been told.
    pub(crate) telling: bool,
}

/// What a worker got.
pub(crate) enum Take {
    /// A task, moved to RUNNING.
    Task(Entry<TaskRef>),
    /// Nothing is due.
    Nothing,
    /// Nothing will ever be due.
    Closed,
}

/// What became of a task that was brought to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Added {
    Waiting,
    /// It was cancelled on its way; the bringer completes the cancel.
    Recalled,
    /// The queue is closed; the bringer cancels it.
    Refused,
}

pub(crate) struct TaskQueue {
    state: Mutex<State>,
    /// One bell a worker, and the last one for the announcer. All used with the one lock.
    bells: Box<[Condvar]>,
    pace: Pace,
}

impl TaskQueue {
    pub(crate) fn new(workers: usize, pace: Pace) -> Self {
        Self {
            state: Mutex::new(State {
                waiting: DueHeap::default(),
                announced: DueHeap::default(),
                idle: Idle::default(),
                phase: Phase::Open,
                workers,
                running: 0,
                telling: 0,
                naps: Naps::default(),
                quiet_wakers: Vec::new(),
                wakers_made: 0,
                sequence: 0,
                announcer: None,
                alive: 0,
                exit_wakers: Vec::new(),
            }),
            bells: (0..=workers).map(|_| Condvar::new()).collect(),
            pace,
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
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

    /// How many tasks wait, and how many run.
    pub(crate) fn load(&self) -> (usize, usize) {
        let state = self.lock();
        (state.waiting.len() + state.announced.len(), state.running)
    }

    pub(crate) fn is_deserted(&self) -> bool {
        self.lock().alive == 0
    }

    /// Counts a worker thread that is about to start; `false` if there is no more work.
    pub(crate) fn enlist(&self) -> bool {
        let mut state = self.lock();
        let open = state.phase == Phase::Open;
        state.alive += usize::from(open);
        open
    }

    /// Takes a worker back that did not start.
    pub(crate) fn delist(&self) {
        self.lock().alive -= 1;
    }

    fn pace_is_free(&self) -> bool {
        matches!(self.pace, Pace::Free)
    }

    /// Brings `task` into the queue. `announced`: its DUE event was sent.
    pub(crate) fn add(&self, task: TaskRef, announced: bool, now: Timestamp) -> Added {
        self.add_all(std::iter::once((task, announced)), now, |_, _| ())
    }

    /// Brings several tasks in under one lock, so that no worker sees a part of them. `refused`
    /// is told, after unlocking, of each that did not come in; the answer is the last one's.
    pub(crate) fn add_all(
        &self,
        tasks: impl Iterator<Item = (TaskRef, bool)>,
        now: Timestamp,
        mut refused: impl FnMut(TaskRef, Added),
    ) -> Added {
        let mut out = Vec::new();
        let mut last = Added::Waiting;
        let mut state = self.lock();
        for (task, announced) in tasks {
            last = state.push(&task, announced);
            if last != Added::Waiting {
                out.push((task, last));
            }
        }
        self.unlock(state, now);
        out.into_iter().for_each(|(task, added)| refused(task, added));
        last
    }

    /// Cancels `task` if it waits, or tells it to stop if it runs. A waiting one counts as being
    /// told of until the caller settles that.
    pub(crate) fn cancel(&self, task: &TaskRef) -> CancelMove {
        let mut state = self.lock();
        let cancelled = task.state.try_cancel();
        state.note_cancel(task, cancelled);
        let bell = match cancelled {
            CancelMove::Stopping => state.naps.end(task),
            _ => None,
        };
        drop(state);
        if let Some(bell) = bell {
            bell.notify_one();
        }
        cancelled
    }

    /// Cancels `task` only if it waits.
    pub(crate) fn recall(&self, task: &TaskRef) -> CancelMove {
        let mut state = self.lock();
        let recalled = task.state.try_recall();
        state.note_cancel(task, recalled);
        recalled
    }

    /// Takes the earliest task that is due at `now`. The worker's debts are settled first.
    pub(crate) fn try_take(&self, now: Timestamp, owed: &mut Owed) -> Take {
        let mut state = self.lock();
        state.settle(owed);
        let take = state.take(now);
        self.unlock(state, now);
        take
    }

    /// Takes the earliest task whose DUE event is to be sent at `now`, to send it.
    pub(crate) fn take_unannounced(&self, now: Timestamp) -> Option<Entry<TaskRef>> {
        let mut state = self.lock();
        let entry = state.waiting.pop_due(now);
        state.telling += usize::from(entry.is_some());
        entry
    }

    /// Puts a task back whose DUE event was sent. It may have been cancelled meanwhile.
    pub(crate) fn put_announced(&self, entry: Entry<TaskRef>, now: Timestamp) {
        let mut state = self.lock();
        state.telling -= 1;
        entry.task.set_announced(true);
        let stays = entry.task.is_live();
        let gone = if stays {
            state.announced.push(entry);
            None
        } else {
            Some(entry)
        };
        self.unlock(state, now);
        drop(gone);
    }

    /// The announcer's sleep: until a task is due whose DUE event was not sent. `false` when the
    /// queue closes.
    pub(crate) fn sleep_announcer(&self, now: &dyn Fn() -> Timestamp) -> bool {
        let mut patience = Patience::default();
        loop {
            let time = now();
            let mut state = self.lock();
            if state.phase == Phase::Closed {
                return false;
            }
            let due = state.waiting.head_due();
            if due.is_some_and(|due| due <= time) {
                return true;
            }
            let alarm = due.map_or(Alarm::Never, |due| self.pace.alarm(time, due));
            let alarm = patience.stretch(alarm, time);
            state.announcer = Some(due.unwrap_or(Timestamp::MAX));
            let bell = &self.bells[self.bells.len() - 1];
            state = crate::slack::precisely(alarm, || bell.wait(state, alarm));
            state.announcer = None;
        }
    }

    /// Pays what is owed without taking anything; tells those who wait for quiet.
    pub(crate) fn settle(&self, now: Timestamp, owed: &mut Owed) {
        let mut state = self.lock();
        state.settle(owed);
        let wakers = state.quiet_wakers(now);
        self.unlock(state, now);
        call(wakers);
    }

    /// Puts `worker` to sleep until a task is due at the clock's time or the queue closes. The
    /// clock is read with no lock held.
    pub(crate) fn sleep(&self, worker: usize, owed: &mut Owed, now: &dyn Fn() -> Timestamp) {
        let mut patience = Patience::default();
        loop {
            let time = now();
            let mut state = self.lock();
            if state.phase != Phase::Open || state.head_due().is_some_and(|due| due <= time) {
                if !owed.arrival {
                    state.idle.depart();
                    owed.arrival = true;
                }
                return;
            }
            state.settle(owed);
            let wakers = state.quiet_wakers(time);
            if !wakers.is_empty() {
                self.unlock(state, time);
                call(wakers);
                continue;
            }
            self.doze(worker, state, time, owed, &mut patience);
        }
    }

    /// One stretch of sleep. Afterwards the worker is off the list of the idle.
    fn doze<'a>(
        &'a self,
        worker: usize,
        mut state: MutexGuard<'a, State>,
        now: Timestamp,
        owed: &mut Owed,
        patience: &mut Patience,
    ) {
        let (head, second) = (state.head_due(), state.second_due());
        let due = state.idle.enter(worker, head, second);
        let alarm = due.map_or(Alarm::Never, |due| self.pace.alarm(now, due));
        let alarm = patience.stretch(alarm, now);
        state = crate::slack::precisely(alarm, || self.bells[worker].wait(state, alarm));
        let by_itself = state.idle.leave(worker);
        owed.arrival = !by_itself;
    }

    /// Ends every sleeper's sleep: the phase changed.
    pub(crate) fn set_phase(&self, phase: Phase) {
        let mut state = self.lock();
        if state.phase == Phase::Open || phase == Phase::Closed {
            state.phase = phase;
        }
        let summoned = state.idle.summon_all();
        let announcer = self.bells.len() - 1;
        drop(state);
        for worker in summoned.into_iter().chain([announcer]) {
            self.bells[worker].notify_one();
        }
    }

    /// The clock moved to `now` otherwise than by itself.
    pub(crate) fn moved(&self, now: Timestamp) {
        let mut state = self.lock();
        let bells = state.naps.end_due(now);
        // Alarms were set by the clock as it was: somebody looks again.
        let look = state.head_due().is_some_and(|due| due <= now || self.pace_is_free());
        let summoned = if look && !state.idle.someone_comes() { state.idle.summon() } else { None };
        self.unlock(state, now);
        if let Some(worker) = summoned {
            self.bells[worker].notify_one();
        }
        self.bells[self.bells.len() - 1].notify_one();
        bells.iter().for_each(|bell| bell.notify_one());
    }

    /// Unlocks, and restores the wake-up invariant: every change of the heap or of who is idle
    /// ends here.
    fn unlock(&self, mut state: MutexGuard<'_, State>, now: Timestamp) {
        let summoned = state.restore(self.pace, now);
        let announcer = state.recall_announcer().then_some(self.bells.len() - 1);
        drop(state);
        for bell in summoned.into_iter().chain(announcer) {
            self.bells[bell].notify_one();
        }
    }

    /// Has `waker` called once when nothing is in hand and nothing is due; `Err` gives it back if
    /// that is now.
    pub(crate) fn when_quiet(
        &self,
        now: Timestamp,
        naps_are_quiet: bool,
        waker: Waker,
    ) -> Result<u64, (Waker, Option<Timestamp>)> {
        let mut state = self.lock();
        if state.is_quiet(now, naps_are_quiet) {
            let next = state.next_step(now);
            drop(state);
            return Err((waker, next));
        }
        let key = state.new_key();
        state.quiet_wakers.push(QuietWaker { key, naps_are_quiet, waker });
        Ok(key)
    }

    /// Has `waker` called once when the last worker ended; `None` if that was before.
    pub(crate) fn when_exited(&self, waker: Waker) -> Option<u64> {
        let mut state = self.lock();
        if state.alive == 0 {
            return None;
        }
        let key = state.new_key();
        state.exit_wakers.push((key, waker));
        Some(key)
    }

    /// Takes back a waker of either kind.
    pub(crate) fn forget_waker(&self, key: u64) {
        let mut state = self.lock();
        let quiet = state.quiet_wakers.iter().position(|waker| waker.key == key);
        let quiet = quiet.map(|at| state.quiet_wakers.remove(at));
        let exit = state.exit_wakers.iter().position(|(other, _)| *other == key);
        let exit = exit.map(|at| state.exit_wakers.remove(at));
        drop(state);
        drop((quiet, exit));
    }

    /// A worker thread ends.
    pub(crate) fn exit(&self, now: Timestamp, owed: &mut Owed) {
        let mut state = self.lock();
        state.settle(owed);
        state.alive -= 1;
        let mut wakers = state.quiet_wakers(now);
        if state.alive == 0 {
            wakers.extend(std::mem::take(&mut state.exit_wakers).into_iter().map(|(_, w)| w));
        }
        self.unlock(state, now);
        call(wakers);
    }

    /// Sleeps for a run that waits on the clock, until `deadline` or until the run is told to stop.
    pub(crate) fn nap(&self, task: &TaskRef, deadline: Timestamp, now: &dyn Fn() -> Timestamp) {
        let bell = std::sync::Arc::new(Condvar::new());
        let mut patience = Patience::default();
        loop {
            let time = now();
            let mut state = self.lock();
            if task.state.is_stopping() || time >= deadline {
                return;
            }
            state.naps.begin(task, deadline, &bell);
            let wakers = state.quiet_wakers(time);
            if !wakers.is_empty() {
                state.naps.end(task);
                drop(state);
                call(wakers);
                continue;
            }
            let alarm = patience.stretch(self.pace.alarm(time, deadline), time);
            state = crate::slack::precisely(alarm, || bell.wait(state, alarm));
            state.naps.end(task);
        }
    }
}

fn call(wakers: Vec<Waker>) {
    wakers.into_iter().for_each(|waker| waker());
}

impl State {
    fn push(&mut self, task: &TaskRef, announced: bool) -> Added {
        if self.phase != Phase::Open {
            return Added::Refused;
        }
        if !task.state.enter() {
            return Added::Recalled;
        }
        self.sequence += 1;
        task.set_announced(announced);
        let entry = Entry {
            due: task.due(),
            priority: task.priority,
            sequence: self.sequence,
            task: task.clone(),
        };
        self.heap_of(task).push(entry);
        Added::Waiting
    }

    fn note_cancel(&mut self, task: &TaskRef, cancelled: CancelMove) {
        if cancelled == CancelMove::Cancelled {
            self.telling += 1;
            self.heap_of(task).note_tombstone();
        }
    }

    fn heap_of(&mut self, task: &TaskRef) -> &mut DueHeap<TaskRef> {
        if task.is_announced() { &mut self.announced } else { &mut self.waiting }
    }

    fn settle(&mut self, owed: &mut Owed) {
        if std::mem::take(&mut owed.arrival) {
            self.idle.arrive();
        }
        self.running -= usize::from(std::mem::take(&mut owed.run));
        self.telling -= usize::from(std::mem::take(&mut owed.telling));
    }

    fn take(&mut self, now: Timestamp) -> Take {
        if self.phase == Phase::Closed {
            return Take::Closed;
        }
        while let Some(entry) = self.pop_due(now) {
            // A cancel needs the lock to leave WAITING, so this start always wins; the move still
            // says so itself.
            if entry.task.state.try_start() {
                self.running += 1;
                return Take::Task(entry);
            }
        }
        if self.phase == Phase::Draining { Take::Closed } else { Take::Nothing }
    }

    fn pop_due(&mut self, now: Timestamp) -> Option<Entry<TaskRef>> {
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

    fn second_due(&self) -> Option<Timestamp> {
        self.waiting.second_due()
    }

    /// When something happens next after `now`: a task is due, or a sleeping run wakes.
    fn next_step(&mut self, now: Timestamp) -> Option<Timestamp> {
        let head = self.waiting.head_due().filter(|&due| due > now);
        head.into_iter().chain(self.naps.next_due()).min()
    }

    /// Whom to wake so that the head is covered again, if it is not.
    fn restore(&mut self, pace: Pace, now: Timestamp) -> Option<usize> {
        if self.idle.is_empty() {
            return None;
        }
        let due = self.head_due()?;
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
    fn recall_announcer(&mut self) -> bool {
        let Some(asleep) = self.announcer else { return false };
        let earlier = self.waiting.head_due().is_some_and(|due| due < asleep);
        if earlier {
            self.announcer = None;
        }
        earlier
    }

    fn is_quiet(&mut self, now: Timestamp, naps_are_quiet: bool) -> bool {
        let asleep = if naps_are_quiet { self.naps.len() } else { 0 };
        // While every worker's run sleeps, what is due cannot start before the clock moves.
        let all_asleep = asleep == self.workers;
        self.running == asleep
            && self.telling == 0
            && (all_asleep || self.head_due().is_none_or(|due| due > now))
    }

    /// Takes those whose moment this is, to be called after unlocking.
    fn quiet_wakers(&mut self, now: Timestamp) -> Vec<Waker> {
        if self.quiet_wakers.is_empty() || !self.is_quiet(now, true) {
            return Vec::new();
        }
        let idle = self.is_quiet(now, false);
        self.quiet_wakers
            .extract_if(.., |waker| idle || waker.naps_are_quiet)
            .map(|waker| waker.waker)
            .collect()
    }

    fn new_key(&mut self) -> u64 {
        self.wakers_made += 1;
        self.wakers_made
    }
}

/// How long to wait for a clock of unknown pace that stands still: twice as long each time, and
/// after a second until somebody says that it moved. Without this a stopped clock would be polled.
#[derive(Debug, Default)]
struct Patience {
    last: Option<Timestamp>,
    millis: u64,
}

impl Patience {
    fn stretch(&mut self, alarm: Alarm, now: Timestamp) -> Alarm {
        let Alarm::After(time) = alarm else { return alarm };
        let stood_still = self.last.replace(now) == Some(now);
        self.millis = if stood_still { (self.millis * 2).max(1) } else { 0 };
        if self.millis > 1024 {
            return Alarm::Never;
        }
        Alarm::After(time.max(std::time::Duration::from_millis(self.millis)))
    }
}
