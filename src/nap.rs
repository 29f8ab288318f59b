//! Runs that sleep on the scheduler's clock. Invariant: a nap is on the list exactly while its
//! thread may sleep; who ends it takes it off the list, so that the run counts as awake at once.

use crate::clock::{Alarm, Timestamp, Waker};

/// Guarded by the queue's lock; the wakers themselves are called after unlocking.
#[derive(Default)]
pub(crate) struct Naps {
    list: Vec<Nap>,
    made: u64,
}

struct Nap {
    key: u64,
    task: u64,
    whole_run: bool,
    deadline: Timestamp,
    waker: Waker,
}

/// Who wants to sleep.
pub(crate) struct Sleeper<'a> {
    /// The number of its task.
    pub(crate) task: u64,
    /// Whether the job itself sleeps, and not another thread that it gave its run to.
    pub(crate) whole_run: bool,
    pub(crate) deadline: Timestamp,
    pub(crate) is_stopping: &'a dyn Fn() -> bool,
}

/// What a sleeper saw of the clock before it fell asleep.
#[derive(Clone, Copy)]
pub(crate) struct Look {
    pub(crate) time: Timestamp,
    /// How often the clock was moved by hand before that.
    pub(crate) moves: u64,
    /// What its sleep ends with, besides its waker.
    pub(crate) alarm: Alarm,
}

impl Naps {
    /// How many runs sleep.
    pub(crate) fn runs(&self) -> usize {
        self.list.iter().filter(|nap| nap.whole_run).count()
    }

    /// `waker` is called when the sleeper is to look again.
    pub(crate) fn begin(&mut self, sleeper: &Sleeper<'_>, waker: Waker) -> u64 {
        let Sleeper { task, whole_run, deadline, .. } = *sleeper;
        self.made += 1;
        self.list.push(Nap { key: self.made, task, whole_run, deadline, waker });
        self.made
    }

    /// The sleeper itself takes its nap off the list, if nobody did.
    pub(crate) fn end(&mut self, key: u64) -> Option<Waker> {
        self.end_if(|nap| nap.key == key).pop()
    }

    /// Ends the naps of a task in which its job itself sleeps. To wake that takes no other lock.
    pub(crate) fn end_of_run(&mut self, task: u64) -> Vec<Waker> {
        self.end_if(|nap| nap.task == task && nap.whole_run)
    }

    /// Ends the naps of a task.
    pub(crate) fn end_of(&mut self, task: u64) -> Vec<Waker> {
        self.end_if(|nap| nap.task == task)
    }

    /// Ends the naps that are over.
    pub(crate) fn end_due(&mut self, now: Timestamp) -> Vec<Waker> {
        self.end_if(|nap| nap.deadline <= now)
    }

    /// Ends the naps of threads that only keep a run.
    pub(crate) fn end_left(&mut self) -> Vec<Waker> {
        self.end_if(|nap| !nap.whole_run)
    }

    fn end_if(&mut self, over: impl Fn(&Nap) -> bool) -> Vec<Waker> {
        self.list.extract_if(.., |nap| over(nap)).map(|nap| nap.waker).collect()
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.list.iter().map(|nap| nap.deadline).min()
    }
}
