//! Who has which number: the live tasks that have no name, and those of them that are remembered.
//! Invariants: a page is kept exactly while somebody is on it, but for the open one and one spare;
//! nothing here takes longer the more tasks there are.
//!
//! The scheduler counts the numbers up, so tasks that come one after the other lie side by side: a
//! table that scatters them costs a cache miss a task, and one that grows in one piece stops the
//! scheduler for as long as that takes. So the pages are bound into volumes, of which even ten million
//! tasks fill but a few thousand. A task that ends stays where it is, as its spot in the history. The
//! spot of one that is forgotten is not looked for: nobody is at it any more, and only its page's count
//! falls, which is in the volume. So to forget a task touches nothing that is in no cache.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::mem;

use crate::history::Spot;
use crate::record::TaskRef;

/// Tasks to a page: a task that outlives its neighbours keeps 280 bytes, and 260 more if they are
/// remembered.
const PAGE: usize = 32;

/// Pages to a volume: one that outlives its neighbours keeps 520 bytes more.
const VOLUME: usize = 64;

/// Who has a number, or a name.
pub(crate) enum Holding<T> {
    Live(T),
    Finished(Spot),
}

#[derive(Default)]
struct Page {
    tasks: [Option<TaskRef>; PAGE],
    /// Of those that are remembered, or were. Made when the first of the page ends.
    spots: Option<Box<[Option<Spot>; PAGE]>>,
}

#[derive(Default)]
pub(crate) struct Roll {
    /// The page of the number that was given last, which one that is, and how many are on it.
    open: Box<Page>,
    index: u64,
    held: u8,
    /// Those before it.
    pages: Pages,
    /// The last page that was emptied, to be the next one.
    spare: Option<Box<Page>>,
}

/// Pages by their index. A volume is kept exactly while there is a page in it.
#[derive(Default)]
struct Pages(HashMap<u64, Box<Volume>, Counting>);

struct Volume {
    pages: [Option<Box<Page>>; VOLUME],
    /// How many are live or remembered, by page.
    held: [u8; VOLUME],
    /// How many pages there are.
    count: usize,
}

impl Pages {
    fn get(&self, index: u64) -> Option<&Page> {
        let (volume, place) = locate(index, VOLUME);
        self.0.get(&volume)?.pages[place].as_deref()
    }

    fn get_mut(&mut self, index: u64) -> Option<&mut Page> {
        let (volume, place) = locate(index, VOLUME);
        self.0.get_mut(&volume)?.pages[place].as_deref_mut()
    }

    /// Adds a page that is not there, with so many on it.
    fn insert(&mut self, index: u64, page: Box<Page>, held: u8) {
        let (volume, place) = locate(index, VOLUME);
        let new = || {
            let (pages, held) = ([const { None }; VOLUME], [0; VOLUME]);
            Box::new(Volume { pages, held, count: 0 })
        };
        let volume = self.0.entry(volume).or_insert_with(new);
        volume.pages[place] = Some(page);
        volume.held[place] = held;
        volume.count += 1;
    }

    /// One less is on a page. If nobody is left it is taken out.
    fn leave(&mut self, index: u64) -> Option<Box<Page>> {
        let (at, place) = locate(index, VOLUME);
        let volume = self.0.get_mut(&at)?;
        volume.held[place] -= 1;
        if volume.held[place] > 0 {
            return None;
        }
        let page = volume.pages[place].take()?;
        volume.count -= 1;
        if volume.count == 0 {
            self.0.remove(&at);
        }
        Some(page)
    }

    fn iter(&self) -> impl Iterator<Item = &Page> {
        self.0.values().flat_map(|volume| volume.pages.iter().flatten().map(|page| &**page))
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
        self.held += 1;
        self.open.tasks[place] = Some(task);
    }

    /// Opens the page after all others.
    fn turn_to(&mut self, index: u64) {
        let new = self.spare.take().unwrap_or_default();
        let full = mem::replace(&mut self.open, new);
        let at = mem::replace(&mut self.index, index);
        match mem::take(&mut self.held) {
            0 => self.put_away(full),
            held => self.pages.insert(at, full, held),
        }
    }

    fn page(&mut self, index: u64) -> Option<&mut Page> {
        if index == self.index {
            return Some(&mut self.open);
        }
        self.pages.get_mut(index)
    }

    /// Keeps a page on which nobody is left.
    fn put_away(&mut self, mut page: Box<Page>) {
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
        if page.tasks[place].take().is_none() {
            return false;
        }
        if spot.is_some() {
            page.spots.get_or_insert_default()[place] = spot;
        } else {
            self.forget(number);
        }
        true
    }

    /// Frees the number of a task that is not live and, since now, not remembered.
    pub(crate) fn forget(&mut self, number: u64) {
        let (index, _) = locate(number, PAGE);
        if index == self.index {
            self.held -= 1;
        } else if let Some(page) = self.pages.leave(index) {
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
        self.pages.iter().chain([&*self.open])
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
        let volumes = self.pages.0.values().flat_map(|volume| volume.held);
        volumes.chain([self.held]).map(usize::from).sum()
    }
}
