//! What a scheduler knows of one task. Invariants: the job and its rules are owned by exactly one
//! place at a time (this record while the task waits, the worker while it runs, nobody after the
//! end; only the series is shared, with who looks ahead), and no user value is dropped under a
//! lock: what goes is handed out to be dropped.
//!
//! A plain one-off task is small (64 bytes and its job): what only some tasks have lies in a
//! [`Full`] part, made when it is first needed.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::info::{Facts, Ran, TaskInfo};
use crate::job::{DependencyFailed, Job, JobError, Value};
use crate::leash::Leash;
use crate::plan::Plan;
use crate::recurrence::Next;
use crate::series::{Ahead, Position};
use crate::state::{StateCell, TaskState};
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
    body: SmallMutex<Body>,
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

enum Body {
    /// A job without rules, that nobody waits for.
    Plain(Box<dyn Job>),
    /// All else. `None`: a plain job that was taken out.
    Full(Option<Box<Full>>),
}

#[derive(Default)]
pub(crate) struct Full {
    pub(crate) name: Option<TaskId>,
    pub(crate) work: Option<Work>,
    pub(crate) label: Option<Label>,
    /// Whether it is a series that never ends by itself.
    pub(crate) endless: bool,
    pub(crate) facts: Facts,
    /// Where in its series a running task is, for who looks ahead.
    pub(crate) position: Option<Position>,
    /// Why the last failed run failed, or what cancelled a task that never ran.
    pub(crate) error: Option<JobError>,
    pub(crate) ended: Option<Ended>,
    pub(crate) watchers: Watchers,
    pub(crate) watchers_made: u64,
    /// That of the run that goes on, if somebody keeps it.
    pub(crate) leash: Option<Arc<Leash>>,
}

/// What the describer of a task put on it.
pub(crate) type Label = Arc<dyn Any + Send + Sync>;

/// What a task ended with, why a run before failed, and its label.
pub(crate) type Outcome = (Option<Ended>, Option<JobError>, Option<Label>);

/// A job with its rules.
pub(crate) struct Work {
    pub(crate) job: Box<dyn Job>,
    pub(crate) plan: Option<Box<Plan>>,
}

/// How a task ended, with what its holder may ask for.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Done(Value),
    Failed(JobError),
    Cancelled,
}

impl Ended {
    pub(crate) fn state(&self) -> TaskState {
        match self {
            Self::Done(_) => TaskState::Done,
            Self::Failed(_) => TaskState::Failed,
            Self::Cancelled => TaskState::Cancelled,
        }
    }
}

/// What a task is ended with.
pub(crate) struct End<'a> {
    pub(crate) ran: Option<&'a Ran>,
    pub(crate) as_it_ran: Ended,
    pub(crate) if_stopped: Ended,
}

impl<'a> End<'a> {
    /// A cancel of a task that does not run.
    pub(crate) const CANCEL: Self =
        Self { ran: None, as_it_ran: Ended::Cancelled, if_stopped: Ended::Cancelled };

    /// The end of a one-off task with its run.
    pub(crate) fn of_run(ran: &'a Ran, ended: &Ended) -> Self {
        Self { ran: Some(ran), as_it_ran: ended.clone(), if_stopped: ended.clone() }
    }
}

/// What comes of an end. To be looked at, and dropped, with no lock held.
pub(crate) struct Over {
    pub(crate) ended: Ended,
    /// The job of a task that was cancelled.
    pub(crate) work: Option<Work>,
    pub(crate) facts: Facts,
    /// Those that depended on it and are to be brought, if it is DONE; else the first of those that
    /// were cancelled with it.
    pub(crate) dependents: Vec<TaskRef>,
    /// Whom to call, once.
    pub(crate) watchers: Watchers,
    /// The error of an earlier run.
    pub(crate) old_error: Option<JobError>,
    /// What was kept for who looks ahead.
    pub(crate) position: Option<Position>,
}

impl Over {
    /// Whether nobody is to be told, and there is nothing of a user in it.
    pub(crate) fn is_quiet(&self) -> bool {
        let nothing = match &self.ended {
            Ended::Done(value) => value.is_unit(),
            Ended::Failed(_) => false,
            Ended::Cancelled => true,
        };
        let unused = self.work.is_none() && self.old_error.is_none() && self.position.is_none();
        nothing && unused && self.dependents.is_empty() && self.watchers.is_empty()
    }
}

/// Who wants to know of a task's end: a waiting thread, or a done-callback.
pub(crate) trait Watch: Any + Send {
    fn ended(self: Box<Self>, task: &TaskRef);

    /// The user's value in it.
    fn shown(&self) -> &dyn Any;
}

pub(crate) type Watchers = Vec<(u64, Box<dyn Watch>)>;

const _: () = assert!(size_of::<Body>() == 16 && size_of::<Record>() <= 48);

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
                let work = Some(work);
                let full = Full { name, work, label, endless, ..Full::default() };
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
    pub(crate) fn group(&self) -> Option<u16> {
        if self.is_grouped() { self.body.lock().plan().map(|plan| plan.group) } else { None }
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
    fn with<T>(&self, code: impl FnOnce(&mut Full) -> T) -> T {
        let mut body = self.body.lock();
        code(body.full())
    }

    /// Takes the job out, to run it from `started` on; with the number of the run.
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

    pub(crate) fn last_error(&self) -> Option<JobError> {
        match &*self.body.lock() {
            Body::Full(Some(full)) => full.error.clone(),
            _ => None,
        }
    }

    pub(crate) fn is_endless(&self) -> bool {
        matches!(&*self.body.lock(), Body::Full(Some(full)) if full.endless)
    }

    /// Notes what cancelled the task, which never ran.
    pub(crate) fn note_cause(&self, cause: &Arc<DependencyFailed>, text: &Arc<str>) {
        self.with(|full| {
            full.error = Some(Arc::clone(cause).into());
            full.facts.error = Some(Arc::clone(text));
            full.facts.cause = Some(Arc::clone(cause));
        });
    }

    /// What cancelled the task, if that was one that it depended on.
    pub(crate) fn cause(&self) -> Option<JobError> {
        self.facts().cause.map(JobError::from)
    }

    pub(crate) fn visit_outcome(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Body::Full(Some(full)) = &*self.body.lock() {
            if let Some(Ended::Done(value)) = &full.ended {
                show(value);
            }
            full.show_error(show);
            full.show_label(show);
        }
    }

    /// Takes out what the task ended with; from now on it is as if it had no result.
    pub(crate) fn take_outcome(&self) -> Outcome {
        match &mut *self.body.lock() {
            Body::Full(Some(full)) => {
                let ended = full.ended.as_mut().map(|ended| mem::replace(ended, Ended::Cancelled));
                (ended, full.error.take(), full.label.take())
            }
            _ => (None, None, None),
        }
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

    /// Moves the state to its end and keeps how it ended, in one step for whoever waits. Where
    /// nobody `can_ask` and nothing is kept, nothing is made to keep it in. A job that is still
    /// there goes.
    pub(crate) fn end(&self, end: &End<'_>, can_ask: bool) -> Over {
        let mut body = self.body.lock();
        let stopped = self.state.end(end.as_it_ran.state(), end.if_stopped.state());
        let ended = if stopped { &end.if_stopped } else { &end.as_it_ran }.clone();
        // How a cancelled task ended can be told from its state.
        let keep = can_ask && !matches!(ended, Ended::Cancelled);
        let work = body.take_work();
        if let Body::Full(None) = *body
            && !keep
        {
            let mut facts = Facts::default();
            end.ran.into_iter().for_each(|ran| facts.note(ran));
            return Over {
                ended,
                work,
                facts,
                dependents: Vec::new(),
                watchers: Vec::new(),
                old_error: None,
                position: None,
            };
        }
        let full = body.full();
        if let Some(leash) = full.leash.take()
            && stopped
        {
            leash.pull();
        }
        let old_error = end.ran.and_then(|ran| full.note(ran));
        full.ended = Some(ended.clone());
        let watchers = mem::take(&mut full.watchers);
        let (dependents, position) = (Vec::new(), full.position.take());
        let facts = full.facts.clone();
        Over { ended, work, facts, dependents, watchers, old_error, position }
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        let body = self.body.lock();
        match (&*body, self.state.get()) {
            (Body::Full(Some(full)), _) if full.ended.is_some() => full.ended.clone(),
            (_, TaskState::Cancelled) => Some(Ended::Cancelled),
            _ => None,
        }
    }

    /// Has `watcher` called at the end, or gives it back if the end was before. Whoever ends the
    /// task moves the state before it takes the watchers, and takes them under this lock: a watcher
    /// that comes before the move is taken, and one that comes after it is given back.
    pub(crate) fn watch(&self, watcher: Box<dyn Watch>) -> Result<u64, Box<dyn Watch>> {
        let mut body = self.body.lock();
        if self.state.get().is_end() {
            return Err(watcher);
        }
        let full = body.full();
        full.watchers_made += 1;
        full.watchers.push((full.watchers_made, watcher));
        Ok(full.watchers_made)
    }

    /// Takes a watcher back.
    pub(crate) fn unwatch(&self, key: u64) -> Option<Box<dyn Watch>> {
        self.with(|full| {
            let at = full.watchers.iter().position(|(made, _)| *made == key)?;
            Some(full.watchers.remove(at).1)
        })
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

impl Full {
    fn note(&mut self, ran: &Ran) -> Option<JobError> {
        self.facts.note(ran);
        ran.error().and_then(|error| self.error.replace(error.clone()))
    }

    /// Shows the error if nobody else shares it: an event that is on its way, say.
    fn show_error(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(error) = &self.error {
            let again = matches!(&self.ended, Some(Ended::Failed(other)) if other.is(error));
            if error.sharers() == 1 + usize::from(again) {
                show(error);
            }
        }
    }

    /// The same for the label.
    fn show_label(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(label) = self.label.as_ref().filter(|label| Arc::strong_count(label) == 1) {
            show(&**label);
        }
    }

    fn visit(&self, show: &mut dyn FnMut(&dyn Any)) {
        if let Some(Work { job, plan }) = &self.work {
            show(&**job);
            plan.iter().for_each(|plan| plan.visit(show));
        }
        self.show_error(show);
        self.show_label(show);
        for (_, watcher) in &self.watchers {
            show(watcher.shown());
        }
    }
}

impl Body {
    fn take_work(&mut self) -> Option<Work> {
        if let Self::Full(full) = self {
            return full.as_mut()?.work.take();
        }
        match mem::replace(self, Self::Full(None)) {
            Self::Plain(job) => Some(Work { job, plan: None }),
            Self::Full(_) => None,
        }
    }

    /// The rules of a task that waits, if it has any.
    fn plan(&mut self) -> Option<&mut Plan> {
        match self {
            Self::Full(Some(full)) => full.work.as_mut()?.plan.as_deref_mut(),
            _ => None,
        }
    }

    fn full(&mut self) -> &mut Full {
        if let Self::Plain(_) = self
            && let Self::Plain(job) = mem::replace(self, Self::Full(None))
        {
            let work = Some(Work { job, plan: None });
            *self = Self::Full(Some(Box::new(Full { work, ..Full::default() })));
        }
        match self {
            Self::Full(full) => full.get_or_insert_default(),
            Self::Plain(_) => unreachable!("replaced above"),
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Body")
    }
}
