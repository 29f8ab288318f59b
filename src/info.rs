//! What is known of a task, as plain data. Invariant: it holds nothing of a user, so it can be kept
//! for as long as anybody likes.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::job::{DependencyFailed, JobError};
use crate::state::TaskState;

/// What is known, or remembered, of a task.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TaskInfo {
    /// Its id.
    pub id: TaskId,
    /// Where it is in its life.
    pub state: TaskState,
    /// When it is due, or was due last.
    pub due: Timestamp,
    /// How often it ran, retries included.
    pub runs: u64,
    /// How many of its runs failed.
    pub failures: u64,
    /// How many of its slots passed without a run.
    pub missed: u64,
    /// The last error, as text; of a task that was cancelled because of another, what did it.
    pub error: Option<Arc<str>>,
    /// When its last run started.
    pub started: Option<Timestamp>,
    /// When its last finished run ended.
    pub finished: Option<Timestamp>,
    /// Whether it is paused.
    pub paused: bool,
    /// What cancelled it, if that was a task that it depended on.
    pub(crate) cause: Option<Arc<DependencyFailed>>,
}

impl TaskInfo {
    /// What those that depend on the task, which has ended, are cancelled with; `None` if it is DONE.
    pub(crate) fn fall(&self) -> Option<Arc<DependencyFailed>> {
        let error = match self.state {
            TaskState::Failed => self.error.clone(),
            TaskState::Cancelled => None,
            _ => return None,
        };
        let first = || Arc::new(DependencyFailed { id: self.id.clone(), error });
        Some(self.cause.clone().unwrap_or_else(first))
    }
}

/// What is counted and noted of a task's runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    pub(crate) missed: u64,
    pub(crate) error: Option<Arc<str>>,
    pub(crate) started: Option<Timestamp>,
    pub(crate) finished: Option<Timestamp>,
    pub(crate) cause: Option<Arc<DependencyFailed>>,
}

/// A run that ended.
pub(crate) struct Ran {
    pub(crate) started: Timestamp,
    pub(crate) finished: Timestamp,
    /// Why it failed, and the same as text.
    pub(crate) error: Option<(JobError, Arc<str>)>,
}

impl Ran {
    pub(crate) fn error(&self) -> Option<&JobError> {
        self.error.as_ref().map(|(error, _)| error)
    }
}

impl Facts {
    /// Those of one run.
    pub(crate) fn of(ran: &Ran) -> Self {
        let mut facts = Self::default();
        facts.note(ran);
        facts
    }

    pub(crate) fn note(&mut self, ran: &Ran) {
        self.runs += 1;
        self.started = Some(ran.started);
        self.finished = Some(ran.finished);
        if let Some((_, text)) = &ran.error {
            self.failures += 1;
            self.error = Some(Arc::clone(text));
        }
    }

    /// Whether there is nothing to tell of a task but that it `ran` once, and well, or never.
    pub(crate) fn are_brief(&self, ran: Option<&Ran>) -> bool {
        let is_well = self.failures == 0 && self.error.is_none() && self.cause.is_none();
        let is_all = self.runs == u64::from(ran.is_some());
        is_well && is_all && self.missed == 0 && self.started == ran.map(|ran| ran.started)
    }

    pub(crate) fn into_info(self, id: TaskId, state: TaskState, due: Timestamp) -> TaskInfo {
        let Self { runs, failures, missed, error, started, finished, cause } = self;
        let paused = false;
        TaskInfo { id, state, due, runs, failures, missed, error, started, finished, paused, cause }
    }
}
