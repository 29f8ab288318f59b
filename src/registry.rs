//! Which ids are taken. Invariants: an id is held by one task at a time; every live task is known,
//! and so are the last finished ones, as plain records that hold nothing of a user.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

use crate::dependents::Dependents;
use crate::ending::End;
use crate::error::Error;
use crate::history::{History, Memory, Spot};
use crate::id::TaskId;
use crate::info::{Ran, TaskInfo};
use crate::outcome::Over;
use crate::record::TaskRef;
use crate::roll::{Holding, Roll};
use crate::state::TaskState;
use crate::stats::Totals;

/// All of it is guarded by the queue's lock, so that to schedule, to end and to cancel are one step.
pub(crate) struct Registry {
    numbered: Roll,
    /// Live and remembered.
    named: HashMap<TaskId, Holding<TaskRef>, RandomState>,
    history: History,
    pub(crate) totals: Totals,
    pub(crate) dependents: Dependents,
    /// Tasks numbered so far.
    made: u64,
    /// Whether a caller ever gave a negative id.
    negative_given: bool,
    closed: bool,
}

/// What is remembered of a task of which there is no more to tell.
fn brief(task: &TaskRef, state: TaskState, ran: Option<&Ran>) -> Memory {
    let ran = ran.map(|ran| (ran.started, ran.finished));
    Memory::Brief { number: task.number, state, due: task.due(), ran }
}

/// Who holds an id.
pub(crate) enum Holder {
    Live(TaskRef),
    Finished(TaskInfo),
}

impl Registry {
    pub(crate) fn new(history: usize) -> Self {
        Self {
            numbered: Roll::default(),
            named: HashMap::default(),
            history: History::new(history),
            totals: Totals::new(),
            dependents: Dependents::default(),
            made: 0,
            negative_given: false,
            closed: false,
        }
    }

    /// The number of the next task. Its id is free: only a caller that gives negative ids itself
    /// can be in the way.
    pub(crate) fn next_number(&mut self) -> u64 {
        loop {
            self.made += 1;
            if !self.negative_given || self.check_free(&TaskId::made(self.made)).is_ok() {
                return self.made;
            }
        }
    }

    /// Refuses all ids from now on, and gives all live tasks. None of them waits for another any
    /// more: none will follow one that ends, and each is cancelled for itself.
    pub(crate) fn close(&mut self) -> Vec<TaskRef> {
        self.closed = true;
        self.dependents = Dependents::default();
        self.live().cloned().collect()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether `id` can be given to a new task.
    pub(crate) fn check_free(&self, id: &TaskId) -> Result<(), Error> {
        match self.holding(id) {
            Some(_) => Err(Error::DuplicateTask(id.clone())),
            None => Ok(()),
        }
    }

    /// Enters a task. Its id is free.
    pub(crate) fn insert(&mut self, name: Option<TaskId>, task: &TaskRef) {
        match name {
            Some(id) => {
                self.negative_given |= matches!(id, TaskId::Int(..0));
                self.named.insert(id, Holding::Live(task.clone()));
            }
            None => self.numbered.insert(task.clone()),
        }
    }

    pub(crate) fn find(&self, id: &TaskId) -> Option<Holder> {
        match self.holding(id)? {
            Holding::Live(task) => Some(Holder::Live(task.clone())),
            Holding::Finished(spot) => self.history.get(spot).map(Holder::Finished),
        }
    }

    fn holding(&self, id: &TaskId) -> Option<Holding<&TaskRef>> {
        let holding = match (self.named.get(id), id) {
            (Some(Holding::Live(task)), _) => Some(Holding::Live(task)),
            (Some(Holding::Finished(spot)), _) => Some(Holding::Finished(*spot)),
            (None, TaskId::Int(number @ ..0)) => self.numbered.get(number.unsigned_abs()),
            (None, _) => None,
        };
        holding.filter(|holding| match holding {
            Holding::Live(_) => true,
            Holding::Finished(spot) => self.history.has(*spot),
        })
    }

    /// Frees an id, whoever holds it, without a trace: another is to have it.
    pub(crate) fn vacate(&mut self, id: &TaskId) {
        match self.holding(id) {
            Some(Holding::Live(_)) => self.remove(id, Roll::remove),
            Some(Holding::Finished(spot)) => {
                self.history.forget(spot);
                self.remove(id, Roll::forget);
            }
            None => {}
        }
    }

    /// Frees an id that only one holds: a name; or a number, which the roll is told by `of_number`.
    fn remove(&mut self, id: &TaskId, of_number: fn(&mut Roll, u64)) {
        if self.named.remove(id).is_none()
            && let TaskId::Int(number @ ..0) = id
        {
            of_number(&mut self.numbered, number.unsigned_abs());
        }
    }

    /// Ends a task, and moves it from the live ones to the history, in one step for whoever looks
    /// for it or depends on it. One that was replaced leaves no record.
    pub(crate) fn finish(&mut self, task: &TaskRef, end: End<'_>) -> Over {
        let live = self.leave(task, self.history.next_spot());
        // Besides the caller only handles refer to a task that ran, and no new handle can be made:
        // where there is none, nobody can ask for the outcome any more.
        let (over, info) = task.end(end, TaskRef::count(task) > 1);
        self.note_end(task, end, live, over, info)
    }

    /// The same for the worker that ran the task. Of most tasks nobody else has a reference left.
    #[inline]
    pub(crate) fn finish_ran(&mut self, task: &mut TaskRef, end: End<'_>) -> Over {
        let live = self.leave(task, self.history.next_spot());
        let alone = TaskRef::get_mut(task).and_then(|record| record.end_alone(end));
        let (over, info) = match alone {
            Some(state) => (Over { state, work: None, left: None }, None),
            None => task.end(end, TaskRef::count(task) > 1),
        };
        self.note_end(task, end, live, over, info)
    }

    #[inline]
    fn note_end(
        &mut self,
        task: &TaskRef,
        end: End<'_>,
        live: bool,
        mut over: Over,
        info: Option<Box<TaskInfo>>,
    ) -> Over {
        let memory = info.map_or_else(|| brief(task, over.state, end.ran), Memory::Full);
        self.totals.add(over.state, end.ran);
        if !self.dependents.is_empty() {
            let info = memory.info();
            let dependents = self.dependents.end_of(task, info.fall(), info.cause.is_some());
            if !dependents.is_empty() {
                over.left.get_or_insert_default().dependents = dependents;
            }
        }
        if live {
            self.remember(memory);
        }
        over
    }

    /// A task is live no more, and will be remembered at `spot`; `false` if its id has become another's.
    fn leave(&mut self, task: &TaskRef, spot: Option<Spot>) -> bool {
        if !task.is_named() {
            return self.numbered.end(task.number, spot);
        }
        let Entry::Occupied(mut entry) = self.named.entry(task.id()) else { return false };
        if !matches!(entry.get(), Holding::Live(live) if TaskRef::ptr_eq(live, task)) {
            return false;
        }
        match spot {
            Some(spot) => drop(entry.insert(Holding::Finished(spot))),
            None => drop(entry.remove()),
        }
        true
    }

    /// Remembers a task at the spot that was said.
    fn remember(&mut self, memory: Memory) {
        match self.history.push(memory) {
            Some(Memory::Brief { number, .. }) => self.numbered.forget(number),
            Some(Memory::Full(oldest)) => self.remove(&oldest.id, Roll::forget),
            None => {}
        }
    }

    /// Forgets a finished task.
    pub(crate) fn forget(&mut self, id: &TaskId) {
        if let Some(Holding::Finished(_)) = self.holding(id) {
            self.vacate(id);
        }
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &TaskRef> {
        let named = self.named.values().filter_map(|holding| match holding {
            Holding::Live(task) => Some(task),
            Holding::Finished(_) => None,
        });
        self.numbered.iter().chain(named)
    }

    /// The oldest first.
    pub(crate) fn finished(&self) -> impl Iterator<Item = TaskInfo> {
        self.history.iter()
    }
}

#[cfg(test)]
mod tests;
