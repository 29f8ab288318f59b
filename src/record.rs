//! What a scheduler knows of one task. Invariants: the job and its rules are owned by exactly one
//! place at a time (this record while the task waits, the worker while it runs, nobody after the
//! end; only the series is shared, with who looks ahead), and no user value is dropped under a
//! lock: what goes is handed out to be dropped.
//!
//! A plain one-off task is small: 64 bytes, and its job if that is larger than a pointer. How a task
//! ends is in [`crate::outcome`].

use std::any::Any;
use std::sync::Arc;

use crate::body::{Body, Full, Label, Work};
use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::info::{Facts, Ran, TaskInfo};
use crate::job::JobError;
use crate::leash::Leash;
use crate::recurrence::Next;
use crate::series::Ahead;
use crate::state::StateCell;
use crate::sync::{AtomicI64, AtomicU8, AtomicU16, Ordering, SmallMutex};

/// A shared record. Without the weak count of std's `Arc`, which nobody needs here.
pub(crate) type TaskRef = triomphe::Arc<Record>;

/// The same before anybody shares it.
pub(crate) type UniqueRef = triomphe::UniqueArc<Record>;

#[derive(Debug)]
pub(crate) struct Record {
    pub(crate) state: StateCell,
    /// A [`Place`] and the bits below. All but NAMED, GROUPED and TIMED is guarded by the queue's lock, so Relaxed
    /// everywhere.
    marks: AtomicU8,
    /// Renewed when the task's entry is replaced or taken back: those that it had before are
    /// tombstones. Guarded by the queue's lock, so Relaxed everywhere.
    ticket: AtomicU16,
    pub(crate) priority: i32,
    /// Which task of its scheduler this is, from 1. The id of a task without a name.
    pub(crate) number: u64,
    /// Written under this record's lock: by the thread that takes the task from one run to the next,
    /// or by run control. Read by anybody for information, so Relaxed everywhere.
    due: AtomicI64,
    /// Taken after the queue's lock, never before it.
    pub(crate) body: SmallMutex<Body>,
}

/// Where a task's entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Place {
    /// In no heap: it is not in the queue, or its DUE event is being sent.
    Out = 0,
    /// Among those whose DUE event is still to be sent, or is not wanted.
    Waiting = 1,
    /// Among those whose DUE event was sent.
    Announced = 2,
    /// In no heap: the task is paused.
    Held = 3,
    /// Among those that wait for a place in their group.
    Crowded = 4,
}

/// The bits of [`Record::marks`] that say a [`Place`].
const PLACE: u8 = 0b0000_0111;
/// The task has a name.
const NAMED: u8 = 0b0000_1000;
/// The task is paused: when a run that goes on has ended, it is held.
const PAUSED: u8 = 0b0001_0000;
/// The task is of a group.
const GROUPED: u8 = 0b0100_0000;
/// It is paused and on its way into the queue, but that run is not held.
const PASS: u8 = 0b0010_0000;
/// Its attempts have a timeout.
const TIMED: u8 = 0b1000_0000;

const _: () = assert!(size_of::<Record>() <= 48);

impl Record {
    /// Its number is still to be set.
    #[inline]
    pub(crate) fn new(
        name: Option<TaskId>,
        due: Timestamp,
        priority: i32,
        work: Work,
        label: Option<Label>,
    ) -> Self {
        let named = if name.is_some() { NAMED } else { 0 };
        let of_group = work.plan.as_ref().is_some_and(|plan| plan.group != 0);
        let grouped = if of_group { GROUPED } else { 0 };
        let has_timeout = work.plan.as_ref().is_some_and(|plan| plan.timeout().is_some());
        let timed = if has_timeout { TIMED } else { 0 };
        let body = match (name, work, label) {
            (None, Work { job, plan: None }, None) => Body::Plain(job),
            (name, work, label) => {
                let endless = work.plan.as_ref().is_some_and(|plan| plan.is_endless());
                let group = work.plan.as_ref().map_or(0, |plan| plan.group);
                let work = Some(work);
                let full = Full { name, work, label, group, endless, ..Full::default() };
                Body::Full(Some(Box::new(full)))
            }
        };
        Self {
            state: StateCell::new(),
            marks: AtomicU8::new(Place::Out as u8 | named | grouped | timed),
            ticket: AtomicU16::new(0),
            priority,
            number: 0,
            due: AtomicI64::new(due.as_nanos()),
            body: SmallMutex::new(body),
        }
    }

    pub(crate) fn id(&self) -> TaskId {
        let name = if self.is_named() { self.with(|full| full.name.clone()) } else { None };
        name.unwrap_or_else(|| TaskId::made(self.number))
    }

    pub(crate) fn label(&self) -> Option<Label> {
        match &*self.body.lock() {
            Body::Full(Some(full)) => full.label.clone(),
            _ => None,
        }
    }

    /// The label, or the one that it has from now on.
    pub(crate) fn label_or(&self, label: Label) -> Label {
        self.with(|full| Arc::clone(full.label.get_or_insert(label)))
    }

    pub(crate) fn is_named(&self) -> bool {
        self.is_marked(NAMED)
    }

    pub(crate) fn due(&self) -> Timestamp {
        Timestamp::from_nanos(self.due.load(Ordering::Relaxed))
    }

    fn set_due(&self, due: Timestamp) {
        self.due.store(due.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn place(&self) -> Place {
        match self.marks.load(Ordering::Relaxed) & PLACE {
            1 => Place::Waiting,
            2 => Place::Announced,
            3 => Place::Held,
            4 => Place::Crowded,
            _ => Place::Out,
        }
    }

    pub(crate) fn set_place(&self, place: Place) {
        let others = self.marks.load(Ordering::Relaxed) & !(PLACE | PASS);
        self.marks.store(others | place as u8, Ordering::Relaxed);
    }

    fn is_marked(&self, mark: u8) -> bool {
        self.marks.load(Ordering::Relaxed) & mark != 0
    }

    fn mark(&self, mark: u8, on: bool) {
        let others = self.marks.load(Ordering::Relaxed) & !mark;
        self.marks.store(others | if on { mark } else { 0 }, Ordering::Relaxed);
    }

    pub(crate) fn is_grouped(&self) -> bool {
        self.is_marked(GROUPED)
    }

    /// The group of a task that waits, if it is of one.
    #[inline]
    pub(crate) fn group(&self) -> Option<u16> {
        if self.is_grouped() { self.planned_group() } else { None }
    }

    fn planned_group(&self) -> Option<u16> {
        self.body.lock().plan().map(|plan| plan.group)
    }

    /// The group that it is of, and the tasks that it depends on, whatever its state.
    pub(crate) fn bonds(&self) -> (Option<u16>, Option<Arc<[TaskId]>>) {
        match &*self.body.lock() {
            Body::Full(Some(full)) => {
                (Some(full.group).filter(|&group| group != 0), full.depends_on.clone())
            }
            _ => (None, None),
        }
    }

    pub(crate) fn is_timed(&self) -> bool {
        self.is_marked(TIMED)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_marked(PAUSED)
    }

    /// Called under the queue's lock.
    pub(crate) fn set_paused(&self, paused: bool) {
        self.mark(PAUSED, paused);
        self.mark(PASS, false);
    }

    /// Lets a paused task pass, on its way to its place in the queue. Called under the queue's lock.
    pub(crate) fn let_pass(&self) {
        self.mark(PASS, true);
    }

    /// Whether the task is to be held on its way into the queue. Called under the queue's lock.
    pub(crate) fn is_held(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & (PAUSED | PASS) == PAUSED
    }

    pub(crate) fn ticket(&self) -> u16 {
        self.ticket.load(Ordering::Relaxed)
    }

    /// Makes a tombstone of the task's entry. Called under the queue's lock.
    pub(crate) fn renew_ticket(&self) {
        self.ticket.store(self.ticket().wrapping_add(1), Ordering::Relaxed);
    }

    /// Whether an entry with this due time and ticket is the task's last. Tickets come round; an
    /// entry that then fits is due when the task is, and does no harm.
    pub(crate) fn is_entered(&self, due: Timestamp, ticket: u16) -> bool {
        self.state.is_waiting() && self.ticket() == ticket && self.due() == due
    }

    /// Makes the task, which waits, due at `due`, and what its plan counts from that.
    pub(crate) fn reschedule(&self, due: Timestamp) {
        let mut body = self.body.lock();
        self.set_due(due);
        if let Some(plan) = body.plan() {
            plan.reschedule(due);
        }
    }

    /// Makes the task, which waits, due at `now` if it is not yet.
    pub(crate) fn hurry(&self, now: Timestamp) {
        let mut body = self.body.lock();
        if now < self.due() {
            self.set_due(now);
            if let Some(plan) = body.plan() {
                plan.hurry();
            }
        }
    }

    /// Goes on at `now` with a task that was paused; gives the slots that passed meanwhile.
    pub(crate) fn go_on(&self, now: Timestamp, chance: fn() -> f64) -> u64 {
        let mut body = self.body.lock();
        let due = self.due();
        let next = body.plan().and_then(|plan| plan.go_on(due, now, chance));
        let Some(next) = next else { return 0 };
        self.set_due(next.due);
        if let Body::Full(Some(full)) = &mut *body {
            full.facts.missed += next.missed;
        }
        next.missed
    }

    /// Works on the full part, which is made if it was not there. `code` is ours, short, and
    /// drops nothing of a user.
    pub(crate) fn with<T>(&self, code: impl FnOnce(&mut Full) -> T) -> T {
        let mut body = self.body.lock();
        code(body.full())
    }

    /// Takes the job out, to run it from `started` on; with the number of the run.
    #[inline]
    pub(crate) fn check_out(&self, started: Timestamp) -> Option<(Work, u64)> {
        let mut body = self.body.lock();
        let work = body.take_work()?;
        let number = match &mut *body {
            Body::Full(Some(full)) => {
                full.facts.started = Some(started);
                full.position = work.plan.as_ref().and_then(|plan| plan.position());
                full.facts.runs + 1
            }
            _ => 1,
        };
        Some((work, number))
    }

    /// The leash of the run that goes on, for who keeps the run. Whoever tells the run to stop moves
    /// the state before it looks for the leash, under this lock: it finds one that was made before,
    /// and one that is made later starts as told.
    pub(crate) fn leash(&self) -> Arc<Leash> {
        self.with(|full| {
            let new = || Arc::new(Leash::new(self.state.must_stop()));
            Arc::clone(full.leash.get_or_insert_with(new))
        })
    }

    /// Tells who keeps the run that it is to stop, after the state was moved.
    pub(crate) fn pull_leash(&self) {
        if let Body::Full(Some(full)) = &*self.body.lock()
            && let Some(leash) = &full.leash
        {
            leash.pull();
        }
    }

    pub(crate) fn is_endless(&self) -> bool {
        matches!(&*self.body.lock(), Body::Full(Some(full)) if full.endless)
    }

    /// Puts the job back after a run that `next` follows, and moves the task on to that, in one step
    /// for run control: a task on its way into the queue has its plan. Gives the error of an earlier
    /// run, to be dropped; or the job, if the task was told to stop.
    pub(crate) fn check_in(
        &self,
        work: Work,
        ran: &Ran,
        next: Next,
    ) -> Result<Option<JobError>, Work> {
        self.with(|full| {
            if !self.state.try_tell() {
                return Err(work);
            }
            self.set_due(next.due);
            full.position = None; // shared with `work`, so nothing of a user is dropped
            full.work = Some(work);
            full.leash = None;
            full.facts.missed += next.missed;
            Ok(full.note(ran))
        })
    }

    pub(crate) fn facts(&self) -> Facts {
        match &*self.body.lock() {
            Body::Full(Some(full)) => full.facts.clone(),
            _ => Facts::default(),
        }
    }

    pub(crate) fn info(&self) -> TaskInfo {
        TaskInfo {
            paused: self.is_paused() && !self.state.get().is_end(),
            ..self.facts().into_info(self.id(), self.state.get(), self.due())
        }
    }

    /// The numbers of the run and the attempt that come next.
    pub(crate) fn outlook(&self) -> (u64, u64) {
        match &*self.body.lock() {
            Body::Full(Some(full)) => {
                let plan = full.work.as_ref().and_then(|work| work.plan.as_ref());
                (full.facts.runs + 1, plan.map_or(1, |plan| plan.attempt()))
            }
            _ => (1, 1),
        }
    }

    /// What can be told of the due times to come. Nothing follows a stop or an end.
    pub(crate) fn ahead(&self) -> Ahead {
        let body = self.body.lock();
        if self.state.is_stopping() || self.state.get().is_end() {
            return Ahead::default();
        }
        let Body::Full(full) = &*body else {
            return Ahead { due: Some(self.due()), series: None };
        };
        let waiting = full.as_ref().and_then(|full| full.work.as_ref());
        let series = match waiting {
            Some(work) => work.plan.as_ref().and_then(|plan| plan.position()),
            None => full.as_ref().and_then(|full| full.position.clone()),
        };
        Ahead { due: waiting.map(|_| self.due()), series }
    }

    /// Shows every user value that this record owns, under its lock: `show` only looks.
    pub(crate) fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        match &*self.body.lock() {
            Body::Plain(job) => show(&**job),
            Body::Full(Some(full)) => full.visit(show),
            Body::Full(None) => {}
        }
    }
}
