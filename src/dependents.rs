//! Who waits for whose end. Invariants: an edge from a task to one that depends on it lies here until
//! one of the two has ended, and no longer; a task of which an edge starts or ends here has not ended,
//! and one that waits here is in no queue. All of it is guarded by the queue's lock.
//!
//! A task that depends on others is entered with its edges in the same critical section in which
//! they are seen not to have ended; and a task ends and gives up its edges in one critical section.
//! So no end is missed. Whoever brings the new task finds its last edge gone or blocks it, and
//! whoever takes the last edge away finds it blocked or leaves it to its bringer.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use crate::job::DependencyFailed;
use crate::record::TaskRef;
use crate::state::CancelMove;

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
    /// they waited for nobody else. Else, with why they `fall`, gives all that depended on it,
    /// however remotely, in the order of their distance: they are cancelled, and their cancel is to
    /// be completed.
    pub(crate) fn end_of(
        &mut self,
        task: &TaskRef,
        fall: Option<&Arc<DependencyFailed>>,
    ) -> Vec<TaskRef> {
        self.forget(task);
        match fall {
            None => self.free(task.number),
            Some(cause) => {
                let mut children = Vec::new();
                self.cut_off(task.number, &mut children);
                self.cancel(children, cause)
            }
        }
    }

    /// Cancels a task that is being entered, with all that depend on it: for one that has ended.
    /// They are on their way in, so whoever brings them completes that.
    pub(crate) fn refuse(&mut self, task: &TaskRef, cause: &Arc<DependencyFailed>) {
        self.forget(task);
        self.cancel(vec![task.clone()], cause);
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

    /// Cancels tasks, and all that depend on them; gives those whose cancel is to be completed.
    fn cancel(&mut self, mut tasks: Vec<TaskRef>, cause: &Arc<DependencyFailed>) -> Vec<TaskRef> {
        let mut looked_at = 0;
        while let Some(parent) = tasks.get(looked_at).map(|task| task.number) {
            self.cut_off(parent, &mut tasks);
            looked_at += 1;
        }
        let text: Arc<str> = cause.to_string().into();
        tasks.retain(|task| {
            let cancelled = task.state.try_cancel();
            if cancelled != CancelMove::Finished {
                task.note_cause(cause, &text);
            }
            cancelled == CancelMove::Cancelled
        });
        tasks
    }

    /// Takes the children of `parent` out, each with all of its own waits.
    fn cut_off(&mut self, parent: u64, children: &mut Vec<TaskRef>) {
        while let Some(child) = self.take_child(parent) {
            self.forget(&child);
            children.push(child);
        }
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
