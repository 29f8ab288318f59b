//! Who has which number: the live tasks that have no name, and those of them that are remembered.
//! Invariants: a page is kept exactly while somebody is on it, but for one spare; nothing here takes
//! longer the more tasks there are.
//!
//! The scheduler counts the numbers up, so tasks that come one after the other lie side by side: a
//! table that scatters them costs a cache miss a task, and one that grows in one piece stops the
//! scheduler for as long as that takes. A task that ends stays where it is, as its spot in the history.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::history::Spot;
use crate::record::TaskRef;

/// Tasks to a page: a task that outlives its neighbours keeps 280 bytes, and 260 more if they are
/// remembered.
const PAGE: usize = 32;

/// Who has a number, or a name.
pub(crate) enum Holding<T> {
    Live(T),
    Finished(Spot),
}

#[derive(Default)]
struct Page {
    tasks: [Option<TaskRef>; PAGE],
    /// Of those that are remembered. Made when the first of the page ends.
    spots: Option<Box<[Option<Spot>; PAGE]>>,
    /// How many are live or remembered.
    held: usize,
}

impl Page {
    /// One less is on it. Says whether nobody is left.
    fn leave(&mut self) -> bool {
        self.held -= 1;
        self.held == 0
    }
}

#[derive(Default)]
pub(crate) struct Roll {
    pages: HashMap<u64, Box<Page>, Counting>,
    /// The last page that was emptied: tasks that come and go one at a time need no new one each.
    spare: Option<Box<Page>>,
}

/// For keys that the scheduler counts up.
type Counting = BuildHasherDefault<Counted>;

impl Roll {
    /// Enters a task whose number is free.
    pub(crate) fn insert(&mut self, task: TaskRef) {
        let (page, place) = locate(task.number);
        let spare = &mut self.spare;
        let page = self.pages.entry(page).or_insert_with(|| spare.take().unwrap_or_default());
        page.held += 1;
        page.tasks[place] = Some(task);
    }

    pub(crate) fn get(&self, number: u64) -> Option<Holding<&TaskRef>> {
        let (page, place) = locate(number);
        let page = self.pages.get(&page)?;
        match &page.tasks[place] {
            Some(task) => Some(Holding::Live(task)),
            None => page.spots.as_ref()?[place].map(Holding::Finished),
        }
    }

    /// A task has ended, and is remembered at `spot` from now on, or not at all; `false` if it had to
    /// leave its number before.
    pub(crate) fn end(&mut self, number: u64, spot: Option<Spot>) -> bool {
        let (index, place) = locate(number);
        let Some(page) = self.pages.get_mut(&index) else { return false };
        if page.tasks[place].take().is_none() {
            return false;
        }
        if spot.is_some() {
            page.spots.get_or_insert_default()[place] = spot;
        } else if page.leave() {
            self.spare = self.pages.remove(&index);
        }
        true
    }

    /// Frees a number, whoever has it.
    pub(crate) fn remove(&mut self, number: u64) {
        let (index, place) = locate(number);
        let Some(page) = self.pages.get_mut(&index) else { return };
        let was_live = page.tasks[place].take().is_some();
        let spot = page.spots.as_mut().and_then(|spots| spots[place].take());
        if (was_live || spot.is_some()) && page.leave() {
            self.spare = self.pages.remove(&index);
        }
    }

    /// The live ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskRef> {
        self.pages.values().flat_map(|page| page.tasks.iter().flatten())
    }
}

/// The page of a number, and the place on it.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
const fn locate(number: u64) -> (u64, usize) {
    (number / PAGE as u64, (number % PAGE as u64) as usize)
}

/// Hashes numbers that are counted up to themselves, so that neighbours stay neighbours.
#[derive(Default)]
pub(crate) struct Counted(u64);

impl Hasher for Counted {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u64(&mut self, number: u64) {
        // The table finds a place by the low bits and tells neighbours apart by the top seven.
        self.0 = number ^ (number << 57);
    }
}

#[cfg(test)]
impl Roll {
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// How many are live or remembered, of which each page counts its own.
    pub(crate) fn held(&self) -> usize {
        let counted: usize = self.pages.values().map(|page| page.held).sum();
        let spots = |page: &Page| page.spots.iter().flat_map(|all| all.iter().flatten()).count();
        let found =
            self.pages.values().map(|page| page.tasks.iter().flatten().count() + spots(page));
        assert_eq!(found.sum::<usize>(), counted);
        counted
    }
}
