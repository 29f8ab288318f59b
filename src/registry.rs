//! Which ids are taken. Invariants: an id is held by one task at a time; every live task is known,
//! and so are the last finished ones, as plain records that hold nothing of a user.

use std::collections::{HashMap, VecDeque};
use std::mem;

use foldhash::fast::RandomState;

use crate::dependents::Dependents;
use crate::ending::End;
use crate::error::Error;
use crate::id::TaskId;
use crate::info::TaskInfo;
use crate::outcome::Over;
use crate::record::TaskRef;
use crate::roll::{Counting, Roll};
use crate::stats::Totals;

/// All of it is guarded by the queue's lock, so that to schedule, to end and to cancel are one step.
pub(crate) struct Registry {
    numbered: Roll,
    named: HashMap<TaskId, TaskRef, RandomState>,
    history: History,
    pub(crate) totals: Totals,
    pub(crate) dependents: Dependents,
    /// Tasks numbered so far.
    made: u64,
    /// Whether a caller ever gave a negative id.
    negative_given: bool,
    closed: bool,
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
            history: History { limit: history, ..History::default() },
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
        match self.find(id) {
            Some(_) => Err(Error::DuplicateTask(id.clone())),
            None => Ok(()),
        }
    }

    /// Enters a task. Its id is free.
    pub(crate) fn insert(&mut self, name: Option<TaskId>, task: &TaskRef) {
        match name {
            Some(id) => {
                self.negative_given |= matches!(id, TaskId::Int(..0));
                self.named.insert(id, task.clone());
            }
            None => self.numbered.insert(task.clone()),
        }
    }

    pub(crate) fn find(&self, id: &TaskId) -> Option<Holder> {
        if let Some(task) = self.live_task(id) {
            return Some(Holder::Live(task.clone()));
        }
        self.history.find(id).cloned().map(Holder::Finished)
    }

    fn live_task(&self, id: &TaskId) -> Option<&TaskRef> {
        if let Some(task) = self.named.get(id) {
            return Some(task);
        }
        match *id {
            TaskId::Int(number) if number < 0 => self.numbered.get(number.unsigned_abs()),
            _ => None,
        }
    }

    /// Frees an id, whoever holds it, without a trace: another is to have it.
    pub(crate) fn vacate(&mut self, id: &TaskId) {
        if self.history.forget(id) || self.named.remove(id).is_some() {
            return;
        }
        if let Some(number) = self.live_task(id).map(|task| task.number) {
            self.numbered.remove(number);
        }
    }

    /// Ends a task, and moves it from the live ones to the history, in one step for whoever looks
    /// for it or depends on it. One that was replaced leaves no record.
    pub(crate) fn finish(&mut self, task: &TaskRef, end: &End<'_>) -> Over {
        let live = self.remove(task);
        // Besides the caller only handles refer to a task that ran, and no new handle can be made:
        // where there is none, nobody can ask for the outcome any more.
        let mut over = task.end(end, TaskRef::count(task) > 1);
        self.totals.add(over.ended.state(), end.ran);
        let facts = mem::take(&mut over.facts);
        let info = facts.into_info(task.id(), over.ended.state(), task.due());
        if !self.dependents.is_empty() {
            let fell = info.cause.is_some();
            over.dependents = self.dependents.end_of(task, info.fall(), fell);
        }
        if live {
            self.history.push(info);
        }
        over
    }

    fn remove(&mut self, task: &TaskRef) -> bool {
        if !task.is_named() {
            return self.numbered.remove(task.number).is_some();
        }
        let id = task.id();
        let live = self.named.get(&id).is_some_and(|live| TaskRef::ptr_eq(live, task));
        live && self.named.remove(&id).is_some()
    }

    pub(crate) fn forget(&mut self, id: &TaskId) -> bool {
        self.history.forget(id)
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &TaskRef> {
        self.numbered.iter().chain(self.named.values())
    }

    pub(crate) fn finished(&self) -> impl Iterator<Item = &TaskInfo> {
        self.history.records.iter().flatten()
    }
}

/// The last finished tasks, the oldest first.
#[derive(Default)]
struct History {
    limit: usize,
    /// `None` where one was forgotten.
    records: VecDeque<Option<TaskInfo>>,
    /// How many records were dropped at the front: the place of the first one.
    dropped: u64,
    places: Places,
}

/// Id → place. Most ids are numbers that the scheduler made.
#[derive(Default)]
struct Places {
    made: HashMap<u64, u64, Counting>,
    given: HashMap<TaskId, u64, RandomState>,
}

impl Places {
    fn get(&self, id: &TaskId) -> Option<u64> {
        match *id {
            TaskId::Int(number @ ..0) => self.made.get(&number.unsigned_abs()),
            _ => self.given.get(id),
        }
        .copied()
    }

    fn insert(&mut self, id: &TaskId, place: u64) {
        match *id {
            TaskId::Int(number @ ..0) => self.made.insert(number.unsigned_abs(), place),
            _ => self.given.insert(id.clone(), place),
        };
    }

    fn remove(&mut self, id: &TaskId) {
        match *id {
            TaskId::Int(number @ ..0) => self.made.remove(&number.unsigned_abs()),
            _ => self.given.remove(id),
        };
    }
}

impl History {
    fn push(&mut self, info: TaskInfo) {
        if self.limit == 0 {
            return;
        }
        if self.records.len() == self.limit {
            if let Some(Some(oldest)) = self.records.pop_front() {
                self.places.remove(&oldest.id);
            }
            self.dropped += 1;
        }
        self.places.insert(&info.id, self.dropped + self.records.len() as u64);
        self.records.push_back(Some(info));
    }

    fn index(&self, id: &TaskId) -> Option<usize> {
        usize::try_from(self.places.get(id)? - self.dropped).ok()
    }

    fn find(&self, id: &TaskId) -> Option<&TaskInfo> {
        self.records[self.index(id)?].as_ref()
    }

    fn forget(&mut self, id: &TaskId) -> bool {
        let Some(index) = self.index(id) else {
            return false;
        };
        self.records[index] = None;
        self.places.remove(id);
        true
    }
}

#[cfg(test)]
mod tests;
