//! How a task ends, and who wants to know. Invariant: whatever is of a user in here is cloned or moved,
//! never dropped, where a lock is held.

use std::any::Any;

use crate::info::Ran;
use crate::job::{JobError, Value};
use crate::record::TaskRef;
use crate::state::TaskState;

/// How a task ended, with what its holder may ask for.
#[derive(Clone, Debug)]
pub(crate) enum Ended {
    Done(Value),
    Failed(JobError),
    Cancelled,
}

impl Ended {
    /// Whether there is nothing of a user in it.
    pub(crate) fn is_bare(&self) -> bool {
        match self {
            Self::Done(value) => value.is_unit(),
            Self::Failed(_) => false,
            Self::Cancelled => true,
        }
    }

    pub(crate) fn state(&self) -> TaskState {
        match self {
            Self::Done(_) => TaskState::Done,
            Self::Failed(_) => TaskState::Failed,
            Self::Cancelled => TaskState::Cancelled,
        }
    }
}

/// What a task is ended with. Whoever ends it drops that, when no lock is held.
#[derive(Clone, Copy)]
pub(crate) struct End<'a> {
    pub(crate) ran: Option<&'a Ran>,
    pub(crate) as_it_ran: &'a Ended,
    pub(crate) if_stopped: &'a Ended,
}

impl<'a> End<'a> {
    /// A cancel of a task that does not run.
    pub(crate) const CANCEL: Self =
        Self { ran: None, as_it_ran: &Ended::Cancelled, if_stopped: &Ended::Cancelled };

    /// The end of a task with its run, whether it was told to stop or not.
    pub(crate) fn of_run(ran: &'a Ran, ended: &'a Ended) -> Self {
        Self { ran: Some(ran), as_it_ran: ended, if_stopped: ended }
    }
}

/// Who wants to know of a task's end: a waiting thread, or a done-callback.
pub(crate) trait Watch: Any + Send {
    fn ended(self: Box<Self>, task: &TaskRef);

    /// The user's value in it.
    fn shown(&self) -> &dyn Any;
}

pub(crate) type Watchers = Vec<(u64, Box<dyn Watch>)>;
