//! Groups of tasks of which only so many run at once. Invariant: while a group has a free place and
//! due tasks that want one, one of these is among those that may start, so that a task which waits
//! for its group holds no worker, wakes nobody, and is in nobody's way.

use crate::clock::Timestamp;
use crate::error::Error;
use crate::heap::{DueHeap, Entry};
use crate::record::{Place, TaskRef};

/// The names of the groups, in the order of [`Groups`]. What a task keeps is its place here, from 1;
/// 0 is no group.
pub(crate) struct Names(Box<[String]>);

impl Names {
    /// The place of a task's group.
    pub(crate) fn find(&self, name: &str) -> Result<u16, Error> {
        let at = self.0.iter().position(|known| known == name);
        let place = at.and_then(|at| u16::try_from(at + 1).ok());
        place.ok_or_else(|| Error::UnknownGroup { group: name.into(), known: self.0.to_vec() })
    }

    /// The name of a group that was found.
    pub(crate) fn get(&self, group: u16) -> &str {
        &self.0[usize::from(group) - 1]
    }
}

/// All groups. Guarded by the queue's lock.
pub(crate) struct Groups(Box<[Group]>);

struct Group {
    limit: usize,
    running: usize,
    /// Due tasks that found no free place.
    crowded: DueHeap<TaskRef>,
}

impl Group {
    fn is_full(&self) -> bool {
        self.running >= self.limit
    }
}

/// The most groups a scheduler may have.
const MAX_GROUPS: usize = u16::MAX as usize;

/// The groups that a builder was given, if they are in bounds.
pub(crate) fn groups(limits: Vec<(String, usize)>) -> Result<(Names, Groups), Error> {
    if limits.len() > MAX_GROUPS {
        return Err(Error::invalid("limits", limits.len(), "at most 65535 groups"));
    }
    if let Some((_, limit)) = limits.iter().find(|(_, limit)| *limit == 0) {
        return Err(Error::invalid("limit", limit, "at least 1"));
    }
    let (names, limits): (Vec<String>, Vec<usize>) = limits.into_iter().unzip();
    let group = |limit| Group { limit, running: 0, crowded: DueHeap::default() };
    Ok((Names(names.into()), Groups(limits.into_iter().map(group).collect())))
}

impl Groups {
    fn get(&mut self, group: u16) -> &mut Group {
        &mut self.0[usize::from(group) - 1]
    }

    /// Takes a place for a run; `false` if there is none.
    pub(crate) fn enter(&mut self, group: u16) -> bool {
        let group = self.get(group);
        let enters = !group.is_full();
        group.running += usize::from(enters);
        enters
    }

    /// Gives the place of a run back.
    pub(crate) fn leave(&mut self, group: u16) {
        self.get(group).running -= 1;
    }

    /// Keeps a due task that found no place.
    pub(crate) fn turn_away(&mut self, group: u16, entry: Entry<TaskRef>) {
        entry.task.set_place(Place::Crowded);
        self.get(group).crowded.push(entry);
    }

    /// The first of those that wait for a place, if there is one.
    pub(crate) fn let_in(&mut self, group: u16) -> Option<Entry<TaskRef>> {
        let group = self.get(group);
        if group.is_full() { None } else { group.crowded.pop_due(Timestamp::MAX) }
    }

    /// A task that waits for a place does so no more.
    pub(crate) fn note_tombstone(&mut self, group: u16) {
        self.get(group).crowded.note_tombstone();
    }

    /// The due time of the first task that waits for a place.
    pub(crate) fn head_due(&mut self) -> Option<Timestamp> {
        self.0.iter_mut().filter_map(|group| group.crowded.head_due()).min()
    }

    /// How many tasks wait for a place.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|group| group.crowded.len()).sum()
    }

    /// Goes on with the rebuild of the heaps.
    pub(crate) fn rebuild(&mut self, count: usize) {
        self.0.iter_mut().for_each(|group| group.crowded.step(count));
    }

    pub(crate) fn left_to_rebuild(&self) -> usize {
        self.0.iter().map(|group| group.crowded.left_to_rebuild()).sum()
    }

    pub(crate) fn is_rebuilding(&self) -> bool {
        self.0.iter().any(|group| group.crowded.is_retiring())
    }

    /// Tombstones that were taken out, to be dropped with no lock held.
    pub(crate) fn take_gone(&mut self) -> Vec<Entry<TaskRef>> {
        self.0.iter_mut().flat_map(|group| group.crowded.take_gone()).collect()
    }
}
