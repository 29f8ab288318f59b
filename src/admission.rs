//! How tasks come in. Invariant: all of a call's tasks or none; what is refused has changed nothing.
//!
//! The registry's lock is held from the first check to the last entry, so of two calls with one id
//! one wins. A task that is to be replaced is taken out of the queue in the same critical section
//! of the queue in which it is seen not to run.

use std::collections::HashSet;

use crate::chance::unit_random;
use crate::error::Error;
use crate::id::TaskId;
use crate::record::{Record, TaskRef, Work};
use crate::registry::{Holder, Registry};
use crate::shared::Shared;
use crate::task::Task;

/// Tasks that were let in.
pub(crate) struct Admitted {
    pub(crate) records: Vec<TaskRef>,
    /// Those whose ids they took, taken out of the queue; their cancel is to be completed.
    pub(crate) replaced: Vec<TaskRef>,
    /// Whether listeners are to be told of those.
    pub(crate) told: bool,
}

/// Enters one task whose id is free.
pub(crate) fn admit(shared: &Shared, task: Task) -> Result<TaskRef, Error> {
    let mut registry = shared.registry.lock();
    if registry.is_closed() {
        return Err(Error::SchedulerClosed);
    }
    if let Some(id) = &task.id {
        registry.check_free(id)?;
    }
    Ok(enter(&mut registry, task))
}

/// Enters tasks; with `replace` in place of those that have their ids.
pub(crate) fn admit_all(
    shared: &Shared,
    tasks: Vec<Task>,
    replace: bool,
) -> Result<Admitted, Error> {
    let mut registry = shared.registry.lock();
    if registry.is_closed() {
        return Err(Error::SchedulerClosed);
    }
    let holders = holders(&registry, &tasks, replace)?;
    let told = shared.tells_of_cancels();
    let replaced = shared.queue.recall_all(holders, told)?;
    let records = tasks
        .into_iter()
        .map(|task| {
            if let Some(id) = &task.id {
                registry.vacate(id);
            }
            enter(&mut registry, task)
        })
        .collect();
    Ok(Admitted { records, replaced, told })
}

/// The live holders of the ids that `tasks` want; an error if that is not allowed.
fn holders(registry: &Registry, tasks: &[Task], replace: bool) -> Result<Vec<TaskRef>, Error> {
    let mut wanted: HashSet<&TaskId> = HashSet::new();
    let mut holders = Vec::new();
    for id in tasks.iter().filter_map(|task| task.id.as_ref()) {
        if !wanted.insert(id) {
            return Err(Error::DuplicateTask(id.clone()));
        }
        match registry.find(id) {
            Some(_) if !replace => return Err(Error::DuplicateTask(id.clone())),
            Some(Holder::Live(task)) => holders.push(task),
            Some(Holder::Finished(_)) | None => {}
        }
    }
    Ok(holders)
}

fn enter(registry: &mut Registry, task: Task) -> TaskRef {
    let Task { id, due, job, priority, mut plan, label } = task;
    let due = plan.as_mut().map_or(due, |plan| plan.begin(due, unit_random));
    let number = registry.next_number();
    let work = Work { job, plan };
    let record = TaskRef::new(Record::new(number, id.clone(), due, priority, work, label));
    registry.insert(id, &record);
    record
}
