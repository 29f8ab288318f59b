//! The attempts that have a timeout, by what happens to them next. Invariant: an attempt is here from
//! when its job is about to be called until somebody claims its end: who ran it, or who finds it stuck.
//! Guarded by the queue's lock, so exactly one of them does.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use crate::attempt::Attempt;
use crate::clock::{Timestamp, Waker};
use crate::timeout::{Interrupt, TimeLimit};

/// An attempt with a timeout, while it goes on.
pub(crate) struct Timed {
    pub(crate) attempt: Attempt,
    pub(crate) limit: TimeLimit,
    pub(crate) timeout: Duration,
    /// The group whose place it has.
    pub(crate) group: Option<u16>,
    /// The worker that it holds; `None` once it goes on elsewhere.
    pub(crate) worker: Option<usize>,
    pub(crate) interrupt: Option<Arc<dyn Interrupt>>,
    /// Its time is up.
    pub(crate) late: bool,
    /// When something happens to it next: its time is up, or its grace.
    pub(crate) next: Timestamp,
}

/// What is to be done about an attempt, by the enforcer.
pub(crate) enum Overdue {
    /// Its time is up: it was told to stop, and this is whom else to tell.
    /// `sleepers`: threads that it gave its run to, and to wake which may take the GIL.
    Late { attempt: Attempt, sleepers: Vec<Waker>, interrupt: Option<Arc<dyn Interrupt>> },
    /// And it has not stopped. It is not among the deadlines any more: its end is the enforcer's.
    /// `replace`: another worker is to be made for the one that it holds.
    Stuck { timed: Box<Timed>, replace: bool },
}

/// Who has to be woken, after unlocking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) watchdog: bool,
    pub(crate) enforcer: bool,
}

#[derive(Default)]
pub(crate) struct Deadlines {
    /// By the number of the task: of each at most one attempt goes on.
    attempts: HashMap<u64, Timed>,
    order: BTreeSet<(Timestamp, u64)>,
    overdue: VecDeque<Overdue>,
    /// Attempts whose start is being told, and that are not here yet.
    expected: usize,
    /// What the watchdog sleeps for, if it sleeps.
    pub(crate) asleep_until: Option<Timestamp>,
    pub(crate) calls: Calls,
}

impl Timed {
    pub(crate) fn new(
        attempt: Attempt,
        limit: TimeLimit,
        timeout: Duration,
        group: Option<u16>,
        worker: usize,
    ) -> Self {
        let next = attempt.started + timeout;
        let worker = Some(worker);
        Self { attempt, limit, timeout, group, worker, interrupt: None, late: false, next }
    }

    /// Whether an end at `finished` is too late.
    pub(crate) fn is_late(&self, finished: Timestamp) -> bool {
        self.late || finished >= self.next
    }
}

impl Deadlines {
    pub(crate) fn is_empty(&self) -> bool {
        self.attempts.is_empty() && self.overdue.is_empty() && self.expected == 0
    }

    /// A task was taken; whether it has a timeout.
    pub(crate) fn expect(&mut self, timed: bool) {
        self.expected += usize::from(timed);
    }

    /// Notes an attempt that was expected.
    pub(crate) fn begin(&mut self, timed: Timed) {
        self.expected -= 1;
        self.add(timed);
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|&(next, _)| next)
    }

    fn add(&mut self, timed: Timed) {
        let (next, number) = (timed.next, timed.attempt.task.number);
        self.order.insert((next, number));
        self.attempts.insert(number, timed);
        self.calls.watchdog |= self.asleep_until.is_some_and(|until| next < until);
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Timed> {
        self.attempts.get_mut(&number)
    }

    /// Claims the end of an attempt; `None` if that was done before.
    pub(crate) fn claim(&mut self, number: u64) -> Option<Timed> {
        let timed = self.attempts.remove(&number)?;
        self.order.remove(&(timed.next, number));
        Some(timed)
    }

    /// Claims the first of those to which something happens at `now`.
    pub(crate) fn claim_due(&mut self, now: Timestamp) -> Option<Timed> {
        let (_, number) = self.order.first().copied().filter(|&(next, _)| next <= now)?;
        self.claim(number)
    }

    /// Notes that the time of an attempt is up; its grace begins at `told`.
    pub(crate) fn begin_grace(&mut self, mut timed: Timed, told: Timestamp, sleepers: Vec<Waker>) {
        timed.late = true;
        timed.next = told + timed.limit.grace;
        let interrupt = timed.interrupt.clone().filter(|_| timed.limit.interrupt);
        self.push(Overdue::Late { attempt: timed.attempt.clone(), sleepers, interrupt });
        self.add(timed);
    }

    /// Leaves something to the enforcer.
    pub(crate) fn push(&mut self, overdue: Overdue) {
        self.overdue.push_back(overdue);
        self.calls.enforcer = true;
    }

    pub(crate) fn take_overdue(&mut self) -> Option<Overdue> {
        self.overdue.pop_front()
    }

    /// Takes the calls that are to be made after unlocking.
    pub(crate) fn take_calls(&mut self) -> Calls {
        mem::take(&mut self.calls)
    }
}
