//! The runs that go on, and what each waits for. Invariant: it is known beforehand when a run is told
//! to stop and when it is given up, and so is how it may end.

use std::collections::BTreeMap;
use std::sync::mpsc::Sender;
use std::time::Duration;

use duetime::{JobError, Run, TaskId, TaskStuck, TaskTimeout, Timestamp};

use crate::notes::GROUPS;

/// What keeps a run from going on.
pub(crate) enum Stand {
    /// It sleeps on the clock.
    Sleep(Timestamp),
    /// It waits until the sender is dropped, whatever it is told; or until it is interrupted.
    Gate { _closed: Sender<()>, interrupted: bool },
    /// It goes on elsewhere, until this is called; or until it is told to stop.
    Flight { finish: Box<dyn FnOnce() + Send>, obeys: bool },
}

/// A run of a job that the input describes.
pub(crate) struct Attempt {
    pub(crate) run: Run,
    pub(crate) group: Option<usize>,
    grace: Duration,
    /// Since when it stands, and does not sleep: only then it outlives its grace.
    held_at: Option<Timestamp>,
    stand: Option<Stand>,
}

/// What is told of the end of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Answer {
    Good,
    Fails,
    Late,
    Stuck,
}

impl Answer {
    pub(crate) fn of(error: Option<&JobError>) -> Self {
        match error {
            None => Self::Good,
            Some(error) if error.downcast_ref::<TaskTimeout>().is_some() => Self::Late,
            Some(error) if error.downcast_ref::<TaskStuck>().is_some() => Self::Stuck,
            Some(_) => Self::Fails,
        }
    }
}

impl Attempt {
    /// Whether nothing happens to it before somebody acts, or the clock moves.
    pub(crate) fn stands(&self, now: Timestamp) -> bool {
        match &self.stand {
            None => false,
            Some(Stand::Sleep(until)) => now < *until && !self.run.stop_requested(),
            Some(Stand::Gate { interrupted, .. }) => !(*interrupted && self.is_late(now)),
            Some(Stand::Flight { obeys, .. }) => !(*obeys && self.run.stop_requested()),
        }
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.stand, Some(Stand::Gate { .. } | Stand::Flight { .. }))
    }

    pub(crate) fn holds_worker(&self) -> bool {
        !matches!(self.stand, Some(Stand::Flight { .. }))
    }

    fn is_late(&self, now: Timestamp) -> bool {
        self.run.deadline().is_some_and(|deadline| deadline <= now)
    }

    /// When it is given up, if it stands as it does at `now`. The grace of who sleeps begins when that
    /// ends.
    pub(crate) fn given_up_at(&self, now: Timestamp) -> Option<Timestamp> {
        let deadline = self.run.deadline()?;
        Some(deadline.max(self.held_at.unwrap_or(now)) + self.grace)
    }

    pub(crate) fn is_given_up(&self, now: Timestamp) -> bool {
        self.given_up_at(now).is_some_and(|end| end <= now)
    }
}

/// All of them, stuck ones too, by a number of their own.
#[derive(Default)]
pub(crate) struct Attempts {
    all: BTreeMap<u64, Attempt>,
    made: u64,
    /// How those ended whose end has not been told yet.
    answers: BTreeMap<TaskId, Answer>,
}

impl Attempts {
    /// A run begins; in its group there are no more than its limit at once.
    pub(crate) fn enter(&mut self, run: &Run, group: Option<usize>, grace: Duration) -> u64 {
        let (run, now) = (run.clone(), run.now());
        self.made += 1;
        self.all.insert(self.made, Attempt { run, group, grace, held_at: None, stand: None });
        if let Some(group) = group {
            let inside = self.go_on(now).filter(|attempt| attempt.group == Some(group)).count();
            assert!(inside <= group + 1, "group {} is crowded", GROUPS[group]);
        }
        self.made
    }

    pub(crate) fn stand(&mut self, key: u64, stand: Option<Stand>, now: Timestamp) {
        let Some(attempt) = self.all.get_mut(&key) else { return };
        attempt.stand = stand;
        attempt.held_at = attempt.held_at.or(attempt.is_held().then_some(now));
    }

    /// The job is about to end its run, and says how.
    pub(crate) fn leave(&mut self, key: u64, good: bool, now: Timestamp) {
        let Some(attempt) = self.all.remove(&key) else { return };
        if !attempt.is_given_up(now) {
            let answer = if good { Answer::Good } else { Answer::Fails };
            let answer = if attempt.is_late(now) { Answer::Late } else { answer };
            self.answers.insert(attempt.run.id(), answer);
        }
    }

    /// The end that was told of a run of a task is how it ended: as its job said, unless it was late.
    pub(crate) fn hear_end(&mut self, task: &TaskId, told: Answer, as_stuck: bool) {
        let fits = match self.answers.remove(task) {
            Some(answer) => told == answer && !as_stuck,
            None if as_stuck => told == Answer::Stuck,
            None => told == Answer::Good, // a job that does nothing
        };
        assert!(fits, "{told:?} of {task}, stuck: {as_stuck}");
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.all.values()
    }

    /// Those that were not given up.
    pub(crate) fn go_on(&self, now: Timestamp) -> impl Iterator<Item = &Attempt> {
        self.iter().filter(move |attempt| !attempt.is_given_up(now))
    }

    pub(crate) fn stuck(&self, now: Timestamp) -> impl Iterator<Item = &Attempt> {
        self.iter().filter(move |attempt| attempt.is_given_up(now))
    }

    /// Takes what holds the n-th of those that are held.
    pub(crate) fn let_go_nth(&mut self, n: usize) -> Option<Stand> {
        let held = self.all.values_mut().filter(|attempt| attempt.is_held());
        let mut held: Vec<_> = held.collect();
        let place = n.checked_rem(held.len())?;
        held[place].stand.take()
    }

    pub(crate) fn let_go(&mut self, key: u64) -> Option<Stand> {
        self.all.get_mut(&key)?.stand.take()
    }
}

impl Stand {
    /// Lets its run go on. Called with no lock held.
    pub(crate) fn end(self) {
        if let Self::Flight { finish, .. } = self {
            finish();
        }
    }
}
