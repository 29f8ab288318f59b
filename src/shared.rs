//! What all threads of one scheduler share. Invariant: the queue's lock is taken before a record's,
//! and each is let go before anything of a user is run, dropped or waited for.

use std::any::Any;
use std::sync::{Arc, Weak};

use crate::clock::{Driven, Rest, Timestamp, Waker};
use crate::ending::{End, Ended};
use crate::error::Error;
use crate::event::{Event, EventKind, Listeners};
use crate::handle::TaskHandle;
use crate::hold::Resumed;
use crate::inside::{Identity, Place, enter, enter_all, holds_any, is_inside};
use crate::job::{contain, discard};
use crate::limits::Names;
use crate::nap::{Look, Sleeper};
use crate::outcome::{Left, Over};
use crate::owed::{Last, Owed};
use crate::patience::Patience;
use crate::queue::TaskQueue;
use crate::reading::Reading;
use crate::record::TaskRef;
use crate::run::{Host, inside_run_of_any};
use crate::state::{CancelMove, CancelOutcome, Control, ControlOutcome, TaskState};
use crate::stops::Stops;
use crate::sync::Generation;
use crate::timeout::Interrupt;

pub(crate) struct Shared {
    pub(crate) me: Weak<Shared>,
    pub(crate) name: String,
    pub(crate) workers: usize,
    pub(crate) clock: Reading,
    pub(crate) queue: TaskQueue,
    pub(crate) listeners: Listeners,
    pub(crate) stops: Stops,
    pub(crate) groups: Names,
    pub(crate) made_in: Generation,
}

impl Shared {
    pub(crate) fn handle(&self, record: TaskRef) -> TaskHandle {
        TaskHandle { record, host: self.host(), made_in: self.made_in }
    }

    pub(crate) fn host(&self) -> Weak<dyn Host> {
        self.me.clone() // coerced
    }

    pub(crate) fn identity(&self) -> Identity {
        Identity(self.me.as_ptr().addr())
    }

    /// Whether the scheduler cannot be idle, and cannot end, before the calling code returns.
    pub(crate) fn is_inside(&self) -> bool {
        is_inside(self.identity())
    }

    pub(crate) fn check_process(&self) -> Result<(), Error> {
        self.made_in.check()
    }

    /// The time for a change of the queue; any time where the queue does not ask.
    pub(crate) fn queue_time(&self) -> Timestamp {
        if self.queue.needs_now() { self.clock.now() } else { Timestamp::MIN }
    }

    /// Brings a task that is TELLING into the queue: a new one, a retry or a next slot.
    pub(crate) fn bring(&self, task: TaskRef) {
        let told = self.announce_if_due(&task);
        if let Err(recalled) = self.queue.add(task, told, self.queue_time()) {
            self.complete_cancel(&recalled);
        }
    }

    /// Brings several under one lock, so that no worker sees a part of them.
    pub(crate) fn bring_all(&self, tasks: Vec<TaskRef>) {
        let announces = self.listeners.wants(EventKind::Due);
        let announced = tasks.iter().filter(|_| announces);
        let told: Vec<_> = announced.map(|task| self.announce_if_due(task)).collect();
        let recalled = self.queue.add_all(tasks, told, self.queue_time());
        for task in &recalled {
            self.complete_cancel(task);
        }
    }

    /// Takes those out of new tasks that have to wait for others. Whoever ends the last of those
    /// brings them.
    pub(crate) fn block(&self, tasks: &mut Vec<TaskRef>) {
        let room = self.queue.lock();
        tasks.retain(|task| !room.registry.dependents.block(task));
    }

    /// Sends DUE for a task on its way into the queue if its time has come already; gives that time.
    pub(crate) fn announce_if_due(&self, task: &TaskRef) -> Option<Timestamp> {
        let due = task.due();
        let announces = self.listeners.wants(EventKind::Due)
            && task.state.get() == TaskState::Waiting
            && due <= self.clock.now()
            && !task.is_held();
        announces.then(|| {
            self.emit_due(task, due);
            due
        })
    }

    /// Who listens has changed. Called under the listeners' lock, so that the last change counts.
    pub(crate) fn listen(&self, listeners: &Listeners) {
        self.queue.set_tells_due(listeners.wants(EventKind::Due));
    }

    /// Sends DUE for every task in the queue whose time has come.
    pub(crate) fn announce_due(&self, now: Timestamp) {
        if !self.listeners.wants(EventKind::Due) {
            return;
        }
        let entries = self.queue.take_unannounced(now);
        if !entries.is_empty() {
            entries.iter().for_each(|entry| self.emit_due(&entry.task, entry.due));
            self.queue.put_announced(entries, self.queue_time());
        }
    }

    /// Tells of a task that is due, at `due`: run control may be giving it another time.
    fn emit_due(&self, task: &TaskRef, due: Timestamp) {
        self.emit(EventKind::Due, task, || {
            let (run, attempt) = task.outlook();
            Event { due, run, attempt, ..self.event(EventKind::Due, task) }
        });
    }

    /// Tells of a task's next run.
    pub(crate) fn emit_next(&self, kind: EventKind, task: &TaskRef) {
        self.emit(kind, task, || {
            let (run, attempt) = task.outlook();
            Event { run, attempt, ..self.event(kind, task) }
        });
    }

    /// Tells the listeners of `task`, if any wants to know.
    #[inline]
    pub(crate) fn emit(&self, kind: EventKind, task: &TaskRef, event: impl FnOnce() -> Event) {
        if self.listeners.wants(kind) {
            let place = match kind {
                EventKind::Due => Place::announcing(self.identity()),
                _ => Place::telling(self.identity(), task),
            };
            self.listeners.tell(kind, place, &event());
        }
    }

    /// An event without the fields that only some kinds have.
    pub(crate) fn event(&self, kind: EventKind, task: &TaskRef) -> Event {
        Event {
            kind,
            task_id: task.id(),
            time: self.clock.now(),
            due: task.due(),
            run: 0,
            attempt: 1,
            lateness: None,
            duration: None,
            error: None,
            next_due: None,
            will_retry: None,
            missed: None,
            stack: None,
        }
    }

    /// What remains to be done once a task that was not running is cancelled.
    pub(crate) fn complete_cancel(&self, task: &TaskRef) {
        let outlook = self.tells_of_cancels().then(|| task.outlook());
        self.finish(task, End::CANCEL, |_| {
            let (run, attempt) = outlook.unwrap_or((1, 1));
            self.emit(EventKind::Cancelled, task, || Event {
                run,
                attempt,
                error: task.cause(),
                ..self.event(EventKind::Cancelled, task)
            });
        });
    }

    /// Ends a task: state, outcome and registry in one step, then the listeners, then those that
    /// depend on it, then whoever waits. In this order a listener can ask for the result, and who
    /// waited before the end finds the listeners told, also of those that were cancelled with it.
    pub(crate) fn finish(
        &self,
        task: &TaskRef,
        end: End<'_>,
        tell_listeners: impl FnOnce(TaskState),
    ) {
        let over = self.queue.lock().registry.finish(task, end);
        self.conclude(task, over, tell_listeners);
    }

    /// Ends the task of a worker's last run, for a worker that takes no other now.
    pub(crate) fn end_last(&self, owed: &mut Owed) {
        if let Some(Last { task, ran, ended }) = &mut owed.last {
            let over = self.queue.lock().registry.finish_ran(task, End::of_run(ran, ended));
            self.conclude_last(owed, over);
        }
    }

    /// What remains to be done once the task of a worker's last run ended.
    pub(crate) fn conclude_last(&self, owed: &mut Owed, over: Over) {
        if let Some(Last { task, ended, .. }) = owed.last.take() {
            self.conclude(&task, over, |_| ());
            self.drop_ended(ended);
        }
    }

    /// What remains to be done once a task ended.
    pub(crate) fn conclude(
        &self,
        task: &TaskRef,
        over: Over,
        tell_listeners: impl FnOnce(TaskState),
    ) {
        let Over { state, work, left } = over;
        if let Some(work) = work {
            self.drop_contained(work);
        }
        let Some(left) = left else { return tell_listeners(state) };
        let Left { dependents, watchers, old_error, position } = *left;
        self.drop_contained((old_error, position));
        if dependents.is_empty() {
            tell_listeners(state);
        } else {
            // Those that it set free go on only after the listeners were told.
            let freed = dependents.iter().map(|task| Place::telling(self.identity(), task));
            enter_all(freed, || tell_listeners(state));
            self.follow(task, state, dependents);
        }
        let place = Place::telling(self.identity(), task);
        for (_, watcher) in watchers {
            drop(enter(place, || contain(|| watcher.ended(task))));
        }
    }

    /// Drops what a task ended with.
    pub(crate) fn drop_ended(&self, ended: Ended) {
        if !ended.is_bare() {
            self.drop_contained(ended);
        }
    }

    /// What becomes of those that depended on a task that ended.
    fn follow(&self, task: &TaskRef, state: TaskState, mut dependents: Vec<TaskRef>) {
        if self.check_process().is_err() {
            return; // a listener forked, and this is the child
        }
        if state == TaskState::Done {
            return self.bring_all(dependents);
        }
        // Else they were cancelled with it, and what is behind them falls with it too.
        while !dependents.is_empty() {
            for fallen in &dependents {
                self.complete_cancel(fallen);
                if self.check_process().is_err() {
                    return;
                }
            }
            dependents = self.queue.lock().registry.dependents.more(task.number);
        }
    }

    /// Drops what a task held of a user: a `Drop` may panic, or call the scheduler.
    pub(crate) fn drop_contained<T>(&self, of_user: T) {
        enter(Place::of(self.identity()), || discard(of_user));
    }

    pub(crate) fn cancel(&self, task: &TaskRef) -> CancelOutcome {
        let told = self.tells_of_cancels();
        let (cancelled, over) = self.queue.cancel(task, told);
        match over {
            Some(over) => self.conclude(task, over, |_| ()),
            None if cancelled == CancelMove::Cancelled => self.complete_taken(task, told),
            None => {}
        }
        match cancelled {
            CancelMove::Cancelled | CancelMove::Recalled => CancelOutcome::Cancelled,
            CancelMove::Stopping => {
                self.stops.call(task);
                CancelOutcome::Stopping
            }
            CancelMove::Finished => CancelOutcome::Finished,
        }
    }

    pub(crate) fn control(
        &self,
        task: &TaskRef,
        control: Control,
    ) -> Result<ControlOutcome, Error> {
        let now = self.clock.now();
        let (outcome, resumed) = self.queue.control(task, control, now)?;
        match resumed {
            Some(Resumed { due, missed }) => {
                self.tell_missed(task, due, missed);
                self.bring(task.clone());
            }
            // It may be due now, and every worker busy.
            None => self.announce_due(now),
        }
        Ok(outcome)
    }

    /// Counts and tells what a task missed while it was paused. It was due at `due`.
    fn tell_missed(&self, task: &TaskRef, due: Timestamp, missed: u64) {
        if missed == 0 {
            return;
        }
        self.queue.lock().registry.totals.add_missed(missed);
        self.emit(EventKind::Missed, task, || {
            let (run, attempt) = task.outlook();
            let (missed, next_due) = (Some(missed), Some(task.due()));
            Event { due, run, attempt, next_due, missed, ..self.event(EventKind::Missed, task) }
        });
    }

    pub(crate) fn tells_of_cancels(&self) -> bool {
        self.listeners.wants(EventKind::Cancelled)
    }

    /// Completes the cancel of a task that was taken out of the queue, as `told` of.
    pub(crate) fn complete_taken(&self, task: &TaskRef, told: bool) {
        self.complete_cancel(task);
        if told && self.check_process().is_ok() {
            self.queue.settle(self.clock.now(), &mut Owed { telling: true, ..Owed::default() });
        }
    }

    /// Shows every user value that only the scheduler owns. `show` only looks: locks are held.
    /// While anything runs the listeners are not shown, for a worker is going to call them.
    pub(crate) fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        let room = self.queue.lock();
        // What runs is its worker's.
        let waits = |task: &&TaskRef| task.state.get() == TaskState::Waiting;
        room.registry.live().filter(waits).for_each(|task| task.visit(show));
        let nothing_runs = room.running == 0;
        drop(room);
        if nothing_runs {
            self.listeners.visit(show);
        }
        if let Some(clock) = self.clock.clock() {
            show(clock);
        }
    }
}

impl Host for Shared {
    fn look(&self, sleeper: &Sleeper<'_>, patience: &mut Patience) -> Option<Look> {
        self.queue.look(sleeper, patience, &|| self.clock.now())
    }

    fn nap(&self, sleeper: &Sleeper<'_>, look: Look, waker: Waker) -> Option<u64> {
        self.queue.nap(sleeper, look, waker)
    }

    fn end_nap(&self, key: u64) {
        self.queue.end_nap(key);
    }

    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn cancel(&self, task: &TaskRef) -> CancelOutcome {
        Self::cancel(self, task)
    }

    fn release(&self, task: &TaskRef) {
        let outcome = self.queue.take_outcome(task);
        self.drop_contained(outcome);
    }

    fn visit_outcome(&self, task: &TaskRef, show: &mut dyn FnMut(&dyn Any)) {
        self.queue.visit_outcome(task, show);
    }

    fn is_behind_caller(&self, task: &TaskRef) -> bool {
        let me = self.identity();
        // Only code that is inside holds anything up, and it may take the time to look.
        self.check_process().is_ok() && self.is_inside() && {
            let ahead = self.queue.lock().registry.dependents.ahead_of(task.number);
            let ahead = |number| ahead.contains(&number);
            inside_run_of_any(me, ahead) || holds_any(me, ahead)
        }
    }

    fn set_interrupt(&self, task: u64, run: u64, interrupt: Arc<dyn Interrupt>) {
        if let Some(now) = self.queue.set_interrupt(task, run, interrupt) {
            drop(contain(|| now.interrupt()));
        }
    }

    fn group(&self, group: u16) -> String {
        self.groups.get(group).into()
    }

    fn control(&self, task: &TaskRef, control: Control) -> Result<ControlOutcome, Error> {
        Self::control(self, task, control)
    }
}

impl Driven for Shared {
    fn is_inside(&self) -> bool {
        Self::is_inside(self)
    }

    fn quiet(&self) -> Option<Rest> {
        self.queue.quiet(self.clock.now())
    }

    fn when_quiet(&self, waker: Waker) -> Option<u64> {
        self.queue.when_quiet(self.clock.now(), true, waker)
    }

    fn forget_waker(&self, key: u64) {
        self.queue.forget_waker(key);
    }

    fn moved(&self) {
        let now = self.clock.now();
        self.announce_due(now);
        self.queue.moved(now);
    }
}

impl Shared {
    pub(crate) fn as_driven(self: &Arc<Self>) -> Weak<dyn Driven> {
        let weak: Weak<Self> = Arc::downgrade(self);
        weak
    }
}
