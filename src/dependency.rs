//! What a task depends on, as its maker says it. Invariant: a name only; whether there is such a task
//! is found out when the task is scheduled.

use crate::handle::TaskHandle;
use crate::id::TaskId;

/// A task that another one depends on; see [`Task::depends_on`](crate::Task::depends_on).
///
/// ```
/// use duetime::{Dependency, Scheduler, Task};
/// let scheduler = Scheduler::new();
/// let now = scheduler.now();
/// let tasks = scheduler.schedule_all(vec![
///     Task::new(now, || println!("first")),
///     Task::new(now, || println!("second")).depends_on([Dependency::Nth(0)]),
/// ])?;
/// assert!(tasks[1].result(None).is_ok());
/// # Ok::<_, duetime::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Dependency {
    /// The task of this id: of the same call if it has one, else one that the scheduler knows.
    Id(TaskId),
    /// A task that was scheduled before.
    Task(TaskHandle),
    /// The task at this place in the same [`schedule_all`](crate::Scheduler::schedule_all), from 0.
    /// It need not have an id.
    Nth(usize),
}

impl<T: Into<TaskId>> From<T> for Dependency {
    fn from(id: T) -> Self {
        Self::Id(id.into())
    }
}

impl From<TaskHandle> for Dependency {
    fn from(task: TaskHandle) -> Self {
        Self::Task(task)
    }
}

impl From<&TaskHandle> for Dependency {
    fn from(task: &TaskHandle) -> Self {
        Self::Task(task.clone())
    }
}
