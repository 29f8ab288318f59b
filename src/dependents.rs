//! Who waits for whose end. Invariants: an edge from a task to one that depends on it lies here until
//! one of the two has ended, and no longer, but where tasks fall; one that waits here has not ended, and
//! is in no queue. All of it is guarded by the queue's lock.
//!
//! A task that depends on others is entered with its edges in the same critical section in which
//! they are seen not to have ended; and a task ends and gives up its edges in one critical section.
//! So no end is missed. Whoever brings the new task finds its last edge gone or blocks it, and
//! whoever takes the last edge away finds it blocked or leaves it to its bringer.
//!
//! All that depend on a task that did not end DONE fall with it: the nearest in that critical section,
//! the others in later ones, [`AT_ONCE`] in each, so that nobody waits long for the lock. Whoever
//! ended the task goes on with that before it tells who waited for the end. Until its turn comes such
//! a task waits as before: it can be cancelled, or closed with the scheduler; others may come to
//! depend on it, and fall after it; it cannot be set free, for the edge that it falls by still lies
//! here. One whose turn has come has ended, and the edges to those behind it lie here until theirs
//! comes.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use crate::job::DependencyFailed;
use crate::record::TaskRef;
use crate::state::CancelMove;

/// How many tasks fall in one critical section.
const AT_ONCE: usize = 256;

/// What falls with a task that did not end DONE.
struct Fall {
    cause: Arc<DependencyFailed>,
    /// The cause as text.
    text: Arc<str>,
    /// The numbers of those that fell, and may have others behind them.
    fallen: VecDeque<u64>,
}

/// The edges, by the numbers of their tasks.
#[derive(Default)]
pub(crate) struct Dependents {
    /// (parent, child): so the children of a parent lie together, in the order of their coming.
    children: BTreeMap<(u64, u64), TaskRef>,
    /// (child, parent).
    parents: BTreeSet<(u64, u64)>,
    /// How many children there are.
    waiting: usize,
    /// How many of those are paused.
    paused: usize,
    /// Those that have not all come to their turn, by the number of the task that they fall with.
    falls: BTreeMap<u64, Fall>,
}

impl Fall {
    fn of(task: &TaskRef, cause: Arc<DependencyFailed>) -> Self {
        let text = cause.to_string().into();
        Self { cause, text, fallen: VecDeque::from([task.number]) }
    }
}

impl Dependents {
    pub(crate) fn is_empty(&self) -> bool {
        debug_assert_eq!(self.waiting == 0, self.children.is_empty() && self.parents.is_empty());
        self.waiting == 0
    }

    /// How many tasks wait for others.
    pub(crate) fn len(&self) -> usize {
        self.waiting
    }

    /// How many of them are paused.
    pub(crate) fn paused(&self) -> usize {
        self.paused
    }

    /// Takes note that `task`, which may wait here, is going to be paused, or not to be any more.
    pub(crate) fn note_pause(&mut self, task: &TaskRef, paused: bool) {
        if paused != task.is_paused() && self.waits(task.number) {
            if paused { self.paused += 1 } else { self.paused -= 1 }
        }
    }

    /// Has `child`, which is new, wait for the end of `parent`.
    pub(crate) fn add(&mut self, parent: u64, child: &TaskRef) {
        self.waiting += usize::from(!self.waits(child.number));
        self.parents.insert((child.number, parent));
        self.children.insert((parent, child.number), child.clone());
    }

    /// Blocks a task that its bringer is about to bring, if it has to wait; `false` if it need not,
    /// or was recalled.
    pub(crate) fn block(&self, task: &TaskRef) -> bool {
        self.waits(task.number) && task.state.try_block()
    }

    /// The numbers of all that `task` waits for, however remotely.
    pub(crate) fn ahead_of(&self, task: u64) -> HashSet<u64> {
        let mut found = HashSet::new();
        let mut left = vec![task];
        while let Some(child) = left.pop() {
            let parents = self.parents.range((child, 0)..=(child, u64::MAX));
            left.extend(parents.map(|&(_, parent)| parent).filter(|&parent| found.insert(parent)));
        }
        found
    }

    /// Takes note of the end of a task. If it is DONE, gives those that are to be brought now, for
    /// they waited for nobody else. Else, with why those behind it `fall`, gives the first that were
    /// cancelled; their cancel is to be completed, and then [`Dependents::more`] is to be asked.
    pub(crate) fn end_of(
        &mut self,
        task: &TaskRef,
        fall: Option<Arc<DependencyFailed>>,
        fell: bool,
    ) -> Vec<TaskRef> {
        self.forget(task);
        match fall {
            None => self.free(task.number),
            // Those behind one that `fell` with another fall with that, too.
            Some(_) if fell => Vec::new(),
            Some(cause) => {
                self.falls.insert(task.number, Fall::of(task, cause));
                self.more(task.number)
            }
        }
    }

    /// Cancels the next of those that fall with the task of this number, the nearest first; gives those
    /// whose cancel is to be completed. None: that was all.
    pub(crate) fn more(&mut self, number: u64) -> Vec<TaskRef> {
        let Some(mut fall) = self.falls.remove(&number) else { return Vec::new() };
        let mut cancelled = Vec::new();
        // Of those that are on their way in none is to be completed here.
        while cancelled.is_empty() && !fall.fallen.is_empty() {
            cancelled = self.fell(&mut fall);
        }
        if !fall.fallen.is_empty() {
            self.falls.insert(number, fall);
        }
        cancelled
    }

    /// Cancels a task that is being entered, with all that depend on it: for one that has ended.
    /// They are of one call, and on their way in, so whoever brings them completes that.
    pub(crate) fn refuse(&mut self, task: &TaskRef, cause: &Arc<DependencyFailed>) {
        self.forget(task);
        let mut fall = Fall::of(task, Arc::clone(cause));
        let _: CancelMove = cancel(task, &fall);
        while !fall.fallen.is_empty() {
            self.fell(&mut fall);
        }
    }

    fn fell(&mut self, fall: &mut Fall) -> Vec<TaskRef> {
        let mut children = Vec::new();
        while children.len() < AT_ONCE
            && let Some(&parent) = fall.fallen.front()
        {
            if let Some(child) = self.take_child(parent) {
                self.forget(&child);
                fall.fallen.push_back(child.number);
                children.push(child);
            } else {
                fall.fallen.pop_front();
            }
        }
        children.retain(|child| cancel(child, fall) == CancelMove::Cancelled);
        children
    }

    fn free(&mut self, parent: u64) -> Vec<TaskRef> {
        let mut freed = Vec::new();
        while let Some(child) = self.take_child(parent) {
            self.parents.remove(&(child.number, parent));
            if !self.waits(child.number) {
                self.leave(&child);
                freed.push(child);
            }
        }
        freed.retain(|child| child.state.try_free());
        freed
    }

    fn waits(&self, child: u64) -> bool {
        self.parents.range((child, 0)..=(child, u64::MAX)).next().is_some()
    }

    /// Takes an edge of `parent` away, the oldest child first.
    fn take_child(&mut self, parent: u64) -> Option<TaskRef> {
        let (&edge, _) = self.children.range((parent, 0)..=(parent, u64::MAX)).next()?;
        self.children.remove(&edge)
    }

    /// Takes all edges away that `child` has as a child.
    fn forget(&mut self, child: &TaskRef) {
        let number = child.number;
        if self.waits(number) {
            self.leave(child);
        }
        while let Some(&edge) = self.parents.range((number, 0)..=(number, u64::MAX)).next() {
            self.parents.remove(&edge);
            self.children.remove(&(edge.1, number));
        }
    }

    /// A child waits no more.
    fn leave(&mut self, child: &TaskRef) {
        self.waiting -= 1;
        self.paused -= usize::from(child.is_paused());
    }
}

/// Cancels a task that falls.
fn cancel(task: &TaskRef, fall: &Fall) -> CancelMove {
    let cancelled = task.state.try_cancel();
    if cancelled != CancelMove::Finished {
        task.note_cause(&fall.cause, &fall.text);
    }
    cancelled
}
