//! How long an attempt may take, and what is said of one that takes longer. Invariant: plain values,
//! checked before a task is scheduled.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use crate::clock::{check_duration, check_period};
use crate::error::Error;
use crate::job::JobError;

/// What a task says of its attempts' time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeLimit {
    /// `None`: as long as it takes, and the rest means nothing.
    pub(crate) timeout: Option<Duration>,
    /// How long after the timeout a job that still runs is stuck.
    pub(crate) grace: Duration,
    /// Whether the job is interrupted when its time is up, if it can be.
    pub(crate) interrupt: bool,
}

impl Default for TimeLimit {
    fn default() -> Self {
        Self { timeout: None, grace: Duration::from_secs(5), interrupt: false }
    }
}

impl TimeLimit {
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.timeout {
            Some(timeout) => check_period("timeout", timeout)?,
            None if self.interrupt => {
                return Err(Error::invalid(
                    "interrupt",
                    true,
                    "false for a task without a timeout",
                ));
            }
            None => {}
        }
        check_duration("grace", self.grace)
    }
}

/// What can be done about a job that outlives its timeout, by who knows how it is run. A job hands it
/// to its run: [`Run::set_interrupt`](crate::Run::set_interrupt).
///
/// Both are called on a thread of the scheduler's, with no lock held, and may be called when the job
/// has just ended: then they must do no harm.
pub trait Interrupt: Send + Sync {
    /// Makes the job end. Called once, if the task has [`Task::interrupt`](crate::Task::interrupt),
    /// when the run has been told to stop.
    fn interrupt(&self);

    /// What the job is doing, as text, for the STUCK event.
    fn stack(&self) -> Option<String> {
        None
    }
}

/// The error of an attempt that outlived its task's timeout, whatever its job answered later.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskTimeout {
    /// How long an attempt may take.
    pub timeout: Duration,
    /// What the attempt failed with after all, if it did.
    pub cause: Option<JobError>,
}

impl fmt::Display for TaskTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the attempt had not ended when its timeout of {:?} was up", self.timeout)
    }
}

impl StdError for TaskTimeout {}

/// The error of a task whose job still ran when the grace after its timeout was over. No retry
/// follows, since the job may still be running.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TaskStuck {
    /// How long an attempt may take.
    pub timeout: Duration,
    /// How long after that it may still take to stop.
    pub grace: Duration,
}

impl fmt::Display for TaskStuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { timeout, grace } = self;
        write!(f, "the job still ran {grace:?} after its timeout of {timeout:?}, and is stuck")
    }
}

impl StdError for TaskStuck {}
