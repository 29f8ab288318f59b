//! The live tasks that have no name, by number. Invariants: a page is kept exactly while a task is
//! on it, but for one spare; nothing here takes longer the more tasks there are.
//!
//! The scheduler counts the numbers up, so tasks that come one after the other lie side by side: a
//! table that scatters them costs a cache miss a task, and one that grows in one piece stops the
//! scheduler for as long as that takes.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::record::TaskRef;

/// Tasks to a page: a task that outlives its neighbours keeps 280 bytes.
const PAGE: usize = 32;

#[derive(Default)]
struct Page {
    tasks: [Option<TaskRef>; PAGE],
    live: usize,
}

#[derive(Default)]
pub(crate) struct Roll {
    pages: HashMap<u64, Box<Page>, Counting>,
    /// The last page that was emptied: tasks that come and go one at a time need no new one each.
    spare: Option<Box<Page>>,
}

/// For keys that the scheduler counts up.
pub(crate) type Counting = BuildHasherDefault<Counted>;

impl Roll {
    /// Enters a task whose number is free.
    pub(crate) fn insert(&mut self, task: TaskRef) {
        let (page, place) = locate(task.number);
        let spare = &mut self.spare;
        let page = self.pages.entry(page).or_insert_with(|| spare.take().unwrap_or_default());
        page.live += 1;
        page.tasks[place] = Some(task);
    }

    pub(crate) fn get(&self, number: u64) -> Option<&TaskRef> {
        let (page, place) = locate(number);
        self.pages.get(&page)?.tasks[place].as_ref()
    }

    pub(crate) fn remove(&mut self, number: u64) -> Option<TaskRef> {
        let (index, place) = locate(number);
        let page = self.pages.get_mut(&index)?;
        let task = page.tasks[place].take()?;
        page.live -= 1;
        if page.live == 0 {
            self.spare = self.pages.remove(&index);
        }
        Some(task)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskRef> {
        self.pages.values().flat_map(|page| page.tasks.iter().flatten())
    }
}

/// The page of a number, and the place on it.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
const fn locate(number: u64) -> (u64, usize) {
    (number / PAGE as u64, (number % PAGE as u64) as usize)
}

/// Hashes numbers that are counted up to themselves, so that neighbours stay neighbours. Who makes
/// them collide is a caller that gives negative ids itself, and harms nobody else.
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
