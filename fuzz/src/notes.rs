//! What the jobs and the listener write down, and what the world knows of its tasks. Invariant: what
//! is told of a task fits to its life.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use duetime::{Event, EventKind, TaskHandle, TaskId};

use crate::attempts::{Answer, Attempts};

/// The groups, each with as many places as its place in this list, and one.
pub(crate) const GROUPS: [&str; 2] = ["one", "two"];

#[derive(Default)]
pub(crate) struct Notes {
    pub(crate) runs: u64,
    pub(crate) failures: u64,
    pub(crate) missed: u64,
    pub(crate) scheduled: u64,
    pub(crate) ended: u64,
    pub(crate) stories: BTreeMap<TaskId, Story>,
    pub(crate) attempts: Attempts,
}

/// Where a task is in its life, by what was told of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Story {
    #[default]
    Unknown,
    Waiting,
    Due,
    Runs,
    Stuck,
    Ended,
    /// By its run; if it was stopped, CANCELLED may still follow.
    EndedByRun,
}

impl Notes {
    pub(crate) fn hear(&mut self, event: &Event) {
        let story = self.stories.entry(event.task_id.clone()).or_default();
        let before = *story;
        let told = || format!("{:?} of {} after {before:?}", event.kind, event.task_id);
        *story =
            match (event.kind, before) {
                (EventKind::Scheduled, Story::Unknown | Story::Ended | Story::EndedByRun) => {
                    Story::Waiting
                }
                // Once more after run control made it due at another time.
                (EventKind::Due, Story::Waiting | Story::Due) => {
                    assert!(event.time >= event.due, "{}, early", told());
                    Story::Due
                }
                (EventKind::Started, Story::Due) => Story::Runs,
                (EventKind::Stuck, Story::Runs) => Story::Stuck,
                (EventKind::Completed | EventKind::Failed, Story::Runs) => {
                    if event.next_due.is_some() { Story::Waiting } else { Story::EndedByRun }
                }
                (EventKind::Failed, Story::Stuck) if event.next_due.is_none() => Story::EndedByRun,
                (EventKind::Missed, Story::Waiting | Story::Due) => Story::Waiting,
                (EventKind::Cancelled, Story::Waiting | Story::Due | Story::EndedByRun) => {
                    Story::Ended
                }
                _ => panic!("{}", told()),
            };
        if let EventKind::Completed | EventKind::Failed = event.kind {
            let answer = Answer::of(event.error.as_ref());
            self.attempts.hear_end(&event.task_id, answer, before == Story::Stuck);
        }
        self.scheduled += u64::from(event.kind == EventKind::Scheduled);
        self.missed += event.missed.filter(|_| event.kind == EventKind::Missed).unwrap_or(0);
        let ends = matches!(*story, Story::Ended | Story::EndedByRun);
        self.ended += u64::from(ends && before != Story::EndedByRun);
    }
}

/// A task that was let in.
pub(crate) struct Known {
    pub(crate) handle: TaskHandle,
    pub(crate) parents: Vec<TaskHandle>,
    pub(crate) group: Option<usize>,
    /// Whether nothing may depend on it.
    pub(crate) endless: bool,
    /// How many runs it had when it was paused; it has no more until something lets it run.
    pub(crate) held_at: Option<u64>,
    /// How many it had when it was last made to run now, paused or not.
    pub(crate) let_pass_at: Option<u64>,
}

impl Known {
    pub(crate) fn new(
        handle: TaskHandle,
        parents: Vec<TaskHandle>,
        group: Option<usize>,
        endless: bool,
    ) -> Self {
        Self { handle, parents, group, endless, held_at: None, let_pass_at: None }
    }

    pub(crate) fn plain(handle: TaskHandle) -> Self {
        Self::new(handle, Vec::new(), None, false)
    }
}

/// A listener's or a job's panic would be contained; so the first one is kept and told at rest.
#[derive(Default)]
pub(crate) struct Shared {
    notes: Mutex<Notes>,
    fault: Mutex<Option<String>>,
    /// The last holder of each id. Held while one is scheduled, so that no other comes in between.
    known: Mutex<BTreeMap<i64, Known>>,
}

impl Shared {
    /// `None` if that panics.
    pub(crate) fn note<T>(&self, work: impl FnOnce(&mut Notes) -> T) -> Option<T> {
        let mut notes = self.notes();
        let work = AssertUnwindSafe(|| work(&mut notes));
        let blame = |panic: Box<dyn Any + Send>| {
            let text = panic.downcast_ref::<String>().cloned();
            self.blame(text.unwrap_or_else(|| "a panic in a listener or job".into()));
        };
        catch_unwind(work).map_err(blame).ok()
    }

    pub(crate) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has all runs that are held go on.
    pub(crate) fn let_all_go(&self) {
        while let Some(stand) = self.note(|notes| notes.attempts.let_go_nth(0)).flatten() {
            stand.end();
        }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, BTreeMap<i64, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn blame(&self, fault: String) {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    pub(crate) fn take_fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
