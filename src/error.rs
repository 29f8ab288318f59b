//! Every way in which a call can be refused. Invariant: a refused call has changed nothing.

use std::{error, fmt, io};

use crate::id::TaskId;

/// Why a call was refused. The message names the parameter, the value and the bound, or the id
/// and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The id belongs to a task that the scheduler still knows.
    DuplicateTask(TaskId),
    /// No task of this id is known.
    UnknownTask(TaskId),
    /// The holder of the id runs now, so it can be neither replaced nor forgotten.
    TaskRunning(TaskId),
    /// Only finished tasks can be forgotten; this one waits.
    TaskWaiting(TaskId),
    /// The scheduler was shut down.
    SchedulerClosed,
    /// The scheduler was made before this process was forked off.
    Forked,
    /// A value is out of its bounds.
    InvalidValue {
        /// The name of the parameter.
        parameter: &'static str,
        /// The value that was given.
        value: String,
        /// What it has to be.
        bound: &'static str,
    },
    /// The tasks of the call depend on each other in a circle. Each waits for the next, and the last
    /// is the first again. One without an id is `tasks[n]`, by its place in the call.
    DependencyCycle(Vec<String>),
    /// No such group has a limit.
    UnknownGroup {
        /// The name that was given.
        group: String,
        /// The groups of the scheduler.
        known: Vec<String>,
    },
    /// The call would wait for the job or listener that makes it.
    InsideJob(&'static str),
    /// The wait's timeout came first.
    WaitTimeout,
    /// The system gave no thread.
    SpawnWorker(io::Error),
}

impl Error {
    pub(crate) fn invalid(
        parameter: &'static str,
        value: impl fmt::Debug,
        bound: &'static str,
    ) -> Self {
        Self::InvalidValue { parameter, value: format!("{value:?}"), bound }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateTask(id) => write!(
                f,
                "task id {id} is already known; choose another id, forget the finished task, or \
                 schedule with replace"
            ),
            Self::UnknownTask(id) => write!(f, "no task with id {id} is known"),
            Self::TaskRunning(id) => {
                write!(f, "task {id} is running; cancel it and wait for its end first")
            }
            Self::TaskWaiting(id) => write!(f, "task {id} is waiting; cancel it first"),
            Self::SchedulerClosed => f.write_str("the scheduler was shut down; make a new one"),
            Self::Forked => f.write_str(
                "this scheduler, task or clock belongs to the process that was forked; make a new \
                 one in the child",
            ),
            Self::InvalidValue { parameter, value, bound } => {
                write!(f, "{parameter} must be {bound}, not {value}")
            }
            Self::DependencyCycle(path) => {
                write!(f, "tasks depend on each other in a circle: {}", circle(path))
            }
            Self::UnknownGroup { group, known } if known.is_empty() => {
                write!(
                    f,
                    "group must be one that the scheduler has a limit for, not {group:?}; it has none"
                )
            }
            Self::UnknownGroup { group, known } => {
                let known: Vec<String> = known.iter().map(|name| format!("{name:?}")).collect();
                write!(f, "group must be one of {}, not {group:?}", known.join(", "))
            }
            Self::InsideJob(call) => write!(
                f,
                "{call} waits for running jobs to end, so a job, listener or callback cannot \
                 call it"
            ),
            Self::WaitTimeout => f.write_str("the timeout came first"),
            Self::SpawnWorker(cause) => write!(f, "cannot start a worker thread: {cause}"),
        }
    }
}

/// A path, the middle of a long one left out.
fn circle(path: &[String]) -> String {
    const SHOWN: usize = 20;
    let arrow = " \u{2192} ";
    if path.len() <= 2 * SHOWN + 1 {
        return path.join(arrow);
    }
    let (head, rest) = path.split_at(SHOWN);
    let (middle, tail) = rest.split_at(rest.len() - SHOWN);
    let (head, tail) = (head.join(arrow), tail.join(arrow));
    format!("{head}{arrow}\u{2026} {} more \u{2026}{arrow}{tail}", middle.len())
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            Self::SpawnWorker(cause) => Some(cause),
            _ => None,
        }
    }
}
