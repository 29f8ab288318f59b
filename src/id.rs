//! A task's name. Invariant: ids that the scheduler makes are negative, so they never meet an id
//! that a caller gives by accident.

use std::fmt;
use std::sync::Arc;

/// The id of a task: a number or a name.
///
/// ```
/// use duetime::TaskId;
/// assert_eq!(TaskId::from("report").to_string(), "'report'");
/// assert_eq!(TaskId::from(17).to_string(), "17");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskId {
    /// A number. The scheduler itself counts downwards from -1.
    Int(i64),
    /// A name. Clones share the text.
    Name(Arc<str>),
}

impl TaskId {
    /// The id of the `number`-th task that a scheduler had to name itself.
    pub(crate) fn made(number: u64) -> Self {
        Self::Int(-i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(number) => write!(f, "{number}"),
            Self::Name(name) => write!(f, "'{name}'"),
        }
    }
}

impl From<i64> for TaskId {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<i32> for TaskId {
    fn from(number: i32) -> Self {
        Self::Int(number.into())
    }
}

impl From<&str> for TaskId {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<String> for TaskId {
    fn from(name: String) -> Self {
        Self::Name(name.into())
    }
}

impl From<&TaskId> for TaskId {
    fn from(id: &TaskId) -> Self {
        id.clone()
    }
}
