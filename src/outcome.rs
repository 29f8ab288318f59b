//! The end of a record. Invariants: the state moves, how the task ended is kept, and those who watch
//! are taken, in one step under the record's lock; what goes is handed out to be dropped.

use std::any::Any;
use std::mem;
use std::sync::Arc;

use crate::body::{Body, Label, Work};
use crate::ending::{End, Ended, Watch, Watchers};
use crate::id::TaskId;
use crate::info::{Facts, TaskInfo};
use crate::job::{DependencyFailed, JobError};
use crate::record::{Record, TaskRef};
use crate::series::Position;
use crate::state::TaskState;

/// What a task ended with, why a run before failed, and its label.
pub(crate) type Outcome = (Option<Ended>, Option<JobError>, Option<Label>);

/// What comes of an end.
pub(crate) struct Over {
    pub(crate) state: TaskState,
    /// The job of a task that was cancelled. To be dropped with no lock held, as all that is left.
    pub(crate) work: Option<Work>,
    /// `None`, if that was all.
    pub(crate) left: Option<Box<Left>>,
}

/// What an end leaves besides. To be looked at, and dropped, with no lock held.
#[derive(Default)]
pub(crate) struct Left {
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

impl Left {
    fn if_any(self) -> Option<Box<Self>> {
        let unused = self.old_error.is_none() && self.position.is_none();
        let nothing = unused && self.dependents.is_empty() && self.watchers.is_empty();
        if nothing { None } else { Some(Box::new(self)) }
    }
}

impl Record {
    pub(crate) fn last_error(&self) -> Option<JobError> {
        match &*self.body.lock() {
            Body::Full(Some(full)) => full.error.clone(),
            _ => None,
        }
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

    /// Whether there may be anything in a task that has ended that [`Record::take_outcome`] would take.
    pub(crate) fn keeps_anything(&self) -> bool {
        matches!(&*self.body.lock(), Body::Full(Some(_)))
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

    /// Moves the state to its end and keeps how it ended, in one step for whoever waits. Where
    /// nobody `can_ask` and nothing is kept, nothing is made to keep it in. A job that is still
    /// there goes. Gives what there is to tell of the task too, if that is more than its state and the
    /// run that it ended with.
    pub(crate) fn end(&self, end: End<'_>, can_ask: bool) -> (Over, Option<Box<TaskInfo>>) {
        let mut body = self.body.lock();
        let stopped = self.state.end(end.as_it_ran.state(), end.if_stopped.state());
        let ended = if stopped { end.if_stopped } else { end.as_it_ran };
        let state = ended.state();
        // How a cancelled task ended can be told from its state.
        let keep = can_ask && state != TaskState::Cancelled;
        let work = body.take_work();
        if let Body::Full(None) = *body
            && !keep
        {
            let failed = end.ran.filter(|ran| ran.error.is_some());
            let info = failed.map(|ran| Box::new(self.remembered(state, None, Facts::of(ran))));
            return (Over { state, work, left: None }, info);
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
        let position = full.position.take();
        let left = Left { dependents: Vec::new(), watchers, old_error, position };
        let info = if full.name.is_none() && full.facts.are_brief(end.ran) {
            None
        } else {
            Some(Box::new(self.remembered(state, full.name.as_ref(), full.facts.clone())))
        };
        (Over { state, work, left: left.if_any() }, info)
    }

    /// The same for a plain task that ran well, and of which nobody else knows any more: without its
    /// lock. `None`: it is not that, and nothing was done.
    pub(crate) fn end_alone(&mut self, end: End<'_>) -> Option<TaskState> {
        let ran_well = end.ran.is_some_and(|ran| ran.error.is_none());
        if !ran_well || !matches!(self.body.get_mut(), Body::Full(None)) {
            return None;
        }
        let stopped = self.state.end(end.as_it_ran.state(), end.if_stopped.state());
        Some(if stopped { end.if_stopped.state() } else { end.as_it_ran.state() })
    }

    fn remembered(&self, state: TaskState, name: Option<&TaskId>, facts: Facts) -> TaskInfo {
        let id = name.cloned().unwrap_or_else(|| TaskId::made(self.number));
        facts.into_info(id, state, self.due())
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
}
