//! Who has which number: the live tasks that have no name, and those of them that are remembered.
//! Invariants: a page is kept exactly while somebody is on it, but for the open one and one spare;
//! nothing here takes longer the more tasks there are.
//!
//! The scheduler counts the numbers up, so tasks that come one after the other lie side by side: a
//! table that scatters them costs a cache miss a task, and one that grows in one piece stops the
//! scheduler for as long as that takes. So the pages are bound into volumes, of which even ten million
//! tasks fill but a few thousand. A task that ends stays where it is, as its spot in the history. The
//! spot of one that is forgotten is not looked for: nobody is at it any more, and only its page's count
//! falls. So to forget a task touches nothing that is in no cache.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;

use crate::history::Spot;
use crate::record::TaskRef;

/// Tasks to a page: a task that outlives its neighbours keeps 260 bytes, and 260 more if they are
/// remembered.
const PAGE: usize = 32;

/// Pages to a volume: one that outlives its neighbours keeps 1,550 bytes more.
const VOLUME: usize = 64;

/// Who has a number, or a name.
pub(crate) enum Holding<T> {
    Live(T),
    Finished(Spot),
}

/// Small: what it refers to may be in no cache, and both are found from here at once.
#[derive(Default)]
struct Page {
    tasks: Box<[Option<TaskRef>; PAGE]>,
    /// Of those that are remembered, or were. Made when the first of the page ends.
    spots: Option<Box<[Option<Spot>; PAGE]>>,
    /// How many are live or remembered.
    held: u8,
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
    /// The page of the number that was given last, and which one that is.
    open: Page,
    index: u64,
    /// Those before it.
    pages: Pages,
    /// The last page that was emptied, to be the next one.
    spare: Option<Page>,
}

/// Pages by their index. A volume is kept exactly while there is a page in it.
#[derive(Default)]
struct Pages(HashMap<u64, Box<Volume>, Counting>);

struct Volume {
    pages: [Option<Page>; VOLUME],
    count: usize,
}

impl Pages {
    fn get(&self, index: u64) -> Option<&Page> {
        let (volume, place) = locate(index, VOLUME);
        self.0.get(&volume)?.pages[place].as_ref()
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut Page> {
        let (volume, place) = locate(index, VOLUME);
        self.0.get_mut(&volume)?.pages[place].as_mut()
    }

    /// Adds a page that is not there.
    fn insert(&mut self, index: u64, page: Page) {
        let (volume, place) = locate(index, VOLUME);
        let new = || Box::new(Volume { pages: [const { None }; VOLUME], count: 0 });
        let volume = self.0.entry(volume).or_insert_with(new);
        volume.pages[place] = Some(page);
        volume.count += 1;
    }

    /// Takes a page out that is there.
    fn remove(&mut self, index: u64) -> Option<Page> {
        let (at, place) = locate(index, VOLUME);
        let volume = self.0.get_mut(&at)?;
        let page = volume.pages[place].take()?;
        volume.count -= 1;
        if volume.count == 0 {
            self.0.remove(&at);
        }
        Some(page)
    }

    fn iter(&self) -> impl Iterator<Item = &Page> {
        self.0.values().flat_map(|volume| volume.pages.iter().flatten())
    }
}

/// For keys that the scheduler counts up.
type Counting = BuildHasherDefault<Counted>;

impl Roll {
    /// Enters a task whose number is higher than those before.
    pub(crate) fn insert(&mut self, task: TaskRef) {
        let (index, place) = locate(task.number, PAGE);
        if index != self.index {
            self.turn_to(index);
        }
        self.open.held += 1;
        self.open.tasks[place] = Some(task);
    }

    /// Opens the page after all others.
    fn turn_to(&mut self, index: u64) {
        let new = self.spare.take().unwrap_or_default();
        let full = mem::replace(&mut self.open, new);
        let at = mem::replace(&mut self.index, index);
        if full.held > 0 {
            self.pages.insert(at, full);
        } else {
            self.put_away(full);
        }
    }

    fn page(&mut self, index: u64) -> Option<&mut Page> {
        if index == self.index {
            return Some(&mut self.open);
        }
        self.pages.get_mut(index)
    }

    /// Keeps a page on which nobody is left.
    fn put_away(&mut self, mut page: Page) {
        if let Some(spots) = &mut page.spots {
            spots.fill(None);
        }
        self.spare = Some(page);
    }

    /// Who has a number. The spot may be one that is not in the history any more: then nobody has it.
    pub(crate) fn get(&self, number: u64) -> Option<Holding<&TaskRef>> {
        let (index, place) = locate(number, PAGE);
        let page = if index == self.index { &self.open } else { self.pages.get(index)? };
        match &page.tasks[place] {
            Some(task) => Some(Holding::Live(task)),
            None => page.spots.as_ref()?[place].map(Holding::Finished),
        }
    }

    /// A task has ended, and is remembered at `spot` from now on, or not at all; `false` if it had to
    /// leave its number before.
    pub(crate) fn end(&mut self, number: u64, spot: Option<Spot>) -> bool {
        let (index, place) = locate(number, PAGE);
        let Some(page) = self.page(index) else { return false };
        let live = page.tasks[place].take();
        if live.is_none() {
            return false;
        }
        if spot.is_some() {
            page.spots.get_or_insert_default()[place] = spot;
        } else {
            self.forget(number);
        }
        // Not before: to count references waits for whatever comes from memory, and what follows for it.
        drop(live);
        true
    }

    /// Frees the number of a task that is not live and, since now, not remembered.
    pub(crate) fn forget(&mut self, number: u64) {
        let (index, _) = locate(number, PAGE);
        let empty = self.page(index).is_some_and(Page::leave);
        if empty && let Some(page) = self.pages.remove(index) {
            self.put_away(page);
        }
    }

    /// Frees the number of a live task.
    pub(crate) fn remove(&mut self, number: u64) {
        self.end(number, None);
    }

    /// The live ones.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &TaskRef> {
        self.all().flat_map(|page| page.tasks.iter().flatten())
    }

    fn all(&self) -> impl Iterator<Item = &Page> {
        self.pages.iter().chain([&self.open])
    }
}

/// In which part of `size` a number is, and its place there.
#[expect(clippy::cast_possible_truncation, reason = "the remainder is small")]
const fn locate(number: u64, size: usize) -> (u64, usize) {
    (number / size as u64, (number % size as u64) as usize)
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
        self.pages.0.values().map(|volume| volume.count).sum() // the open one is always there
    }

    /// How many are live or remembered.
    pub(crate) fn held(&self) -> usize {
        self.all().map(|page| usize::from(page.held)).sum()
    }
}
