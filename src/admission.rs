//! How tasks come in. Invariant: all of a call's tasks or none; what is refused has changed nothing.
//!
//! The lock is held from the first check to the last entry, so of two calls with one id one wins. A
//! task that is to be replaced is taken out of the queue in the same critical section.

use std::collections::HashSet;

use crate::body::Work;
use crate::chance::unit_random;
use crate::error::Error;
use crate::id::TaskId;
use crate::links::Links;
use crate::record::{Record, TaskRef, UniqueRef};
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

/// A task that has no number yet.
struct Candidate {
    id: Option<TaskId>,
    record: UniqueRef,
}

impl Candidate {
    /// Made before the lock is taken: to find memory takes longer than all that is done under it.
    #[inline]
    fn new(task: Task) -> Self {
        let Task { id, due, job, priority, mut plan, label, depends_on: _ } = task;
        let due = plan.as_mut().map_or(due, |plan| plan.begin(due, unit_random));
        let record = Record::new(id.clone(), due, priority, Work { job, plan }, label);
        Self { id, record: UniqueRef::new(record) }
    }

    fn check(&self, registry: &Registry) -> Result<(), Error> {
        if registry.is_closed() {
            return Err(Error::SchedulerClosed);
        }
        self.id.as_ref().map_or(Ok(()), |id| registry.check_free(id))
    }

    fn enter(mut self, registry: &mut Registry) -> TaskRef {
        self.record.number = registry.next_number();
        let record = self.record.shareable();
        registry.insert(self.id, &record);
        record
    }
}

/// Enters one task whose id is free.
pub(crate) fn admit(shared: &Shared, task: Task) -> Result<TaskRef, Error> {
    let candidate = Candidate::new(task);
    let mut room = shared.queue.lock();
    candidate.check(&room.registry)?;
    Ok(candidate.enter(&mut room.registry))
}

/// Enters one task whose id is free, and brings it into the queue in the same step: nobody is to be
/// told of it in between.
#[inline]
pub(crate) fn admit_and_bring(shared: &Shared, task: Task) -> Result<TaskRef, Error> {
    let mut candidate = Candidate::new(task);
    candidate.record.state.enter_unseen();
    let now = shared.queue_time();
    let mut room = shared.queue.lock();
    candidate.check(&room.registry)?;
    let record = candidate.enter(&mut room.registry);
    room.queue(record.clone(), false); // the registry is open, and so is the queue
    shared.queue.unlock_added(room, record.due(), now);
    Ok(record)
}

/// Enters tasks, with what they depend on; with `replace` in place of those that have their ids.
pub(crate) fn admit_all(
    shared: &Shared,
    tasks: Vec<Task>,
    links: &Links,
    replace: bool,
) -> Result<Admitted, Error> {
    let candidates: Vec<Candidate> = tasks.into_iter().map(Candidate::new).collect();
    let mut room = shared.queue.lock();
    if room.registry.is_closed() {
        return Err(Error::SchedulerClosed);
    }
    let holders = holders(&room.registry, &candidates, replace)?;
    let ties = links.look_up(shared, &room.registry)?;
    let told = shared.tells_of_cancels();
    let replaced = room.recall_all(holders, told)?;
    let registry = &mut room.registry;
    let enter = |candidate: Candidate| {
        candidate.id.iter().for_each(|id| registry.vacate(id));
        candidate.enter(registry)
    };
    let records: Vec<TaskRef> = candidates.into_iter().map(enter).collect();
    if links.are_any() {
        links.tie(&mut room.registry, &records, &ties);
    }
    Ok(Admitted { records, replaced, told })
}

/// The live holders of the ids that `tasks` want; an error if that is not allowed.
fn holders(registry: &Registry, tasks: &[Candidate], replace: bool) -> Result<Vec<TaskRef>, Error> {
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
