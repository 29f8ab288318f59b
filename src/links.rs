//! What the tasks of one call depend on. Invariants: tasks that depend on each other in a circle are
//! found before anything is scheduled, and a circle lies within one call, for what a scheduled task
//! depends on never changes; how a dependency that was scheduled before stands is looked up, and acted
//! upon, in one critical section.

use std::collections::HashMap;
use std::sync::Arc;

use crate::dependency::Dependency;
use crate::error::Error;
use crate::id::TaskId;
use crate::job::DependencyFailed;
use crate::record::TaskRef;
use crate::registry::{Holder, Registry};
use crate::run::identity;
use crate::shared::Shared;
use crate::task::Task;

/// What a task depends on that was scheduled before it, as it stands.
pub(crate) enum Tie {
    /// It is DONE.
    Met,
    /// It has not ended.
    To(u64),
    /// It ended otherwise.
    Broken(Arc<DependencyFailed>),
}

/// What the tasks of one call depend on.
#[derive(Default)]
pub(crate) struct Links {
    /// For each task the places of those of the same call. Empty if nobody looked, for none depends on
    /// anything.
    within: Vec<Vec<usize>>,
    /// All else: the place of the task, and what it depends on.
    beyond: Vec<(usize, Dependency)>,
}

impl Links {
    /// Takes from tasks what they depend on. Refuses a circle, a place that does not exist, and a
    /// series without an end.
    pub(crate) fn of(tasks: &mut [Task]) -> Result<Self, Error> {
        let mut links = Self::default();
        let taken: Vec<(usize, Dependency)> = tasks
            .iter_mut()
            .enumerate()
            .filter_map(|(place, task)| Some((place, task.depends_on.take()?)))
            .flat_map(|(place, all)| all.into_iter().map(move |other| (place, other)))
            .collect();
        let ids = tasks.iter().enumerate();
        let places: HashMap<&TaskId, usize> =
            ids.filter_map(|(place, task)| Some((task.id.as_ref()?, place))).collect();
        links.within.resize_with(tasks.len(), Vec::new);
        for (place, other) in taken {
            let within = match &other {
                Dependency::Nth(nth) => Some(*nth),
                Dependency::Id(id) => places.get(id).copied(),
                Dependency::Task(_) => None,
            };
            match within {
                Some(nth) if nth < tasks.len() => links.within[place].push(nth),
                Some(nth) => return Err(refused(nth.to_string(), "a place in the call")),
                None => links.beyond.push((place, other)),
            }
        }
        if let Some(path) = circle(&links.within) {
            let path = path.iter().map(|&place| name(tasks, place));
            return Err(Error::DependencyCycle(path.collect()));
        }
        let endless = |&&at: &&usize| tasks[at].plan.as_ref().is_some_and(|plan| plan.is_endless());
        match links.within.iter().flatten().find(endless) {
            Some(&at) => Err(refused(name(tasks, at), ENDS)),
            None => Ok(links),
        }
    }

    pub(crate) fn are_any(&self) -> bool {
        !self.within.is_empty()
    }

    /// Looks up what was scheduled before. What has not ended will do so after the queue's lock
    /// is let go.
    pub(crate) fn look_up(&self, shared: &Shared, registry: &Registry) -> Result<Vec<Tie>, Error> {
        self.beyond.iter().map(|(_, other)| look_up(shared, registry, other)).collect()
    }

    /// Has the tasks wait for what they depend on. Those that it is too late for are cancelled, which
    /// their bringer completes.
    pub(crate) fn tie(&self, registry: &mut Registry, records: &[TaskRef], ties: &[Tie]) {
        self.note(records);
        for (child, parents) in records.iter().zip(&self.within) {
            parents.iter().for_each(|&at| registry.dependents.add(records[at].number, child));
        }
        let ties = || self.beyond.iter().map(|&(place, _)| &records[place]).zip(ties);
        for (child, tie) in ties() {
            if let Tie::To(parent) = tie {
                registry.dependents.add(*parent, child);
            }
        }
        for (child, tie) in ties() {
            if let Tie::Broken(cause) = tie {
                registry.dependents.refuse(child, cause);
            }
        }
    }

    /// Has the records tell what they depend on.
    fn note(&self, records: &[TaskRef]) {
        let within = self.within.iter().enumerate();
        let within =
            within.flat_map(|(child, all)| all.iter().map(move |&at| (child, records[at].id())));
        let beyond = self.beyond.iter().map(|(child, other)| match other {
            Dependency::Id(id) => (*child, id.clone()),
            Dependency::Task(task) => (*child, task.id()),
            Dependency::Nth(nth) => (*child, records[*nth].id()),
        });
        let mut all: Vec<Vec<TaskId>> = vec![Vec::new(); records.len()];
        for (child, id) in within.chain(beyond) {
            all[child].push(id);
        }
        for (record, ids) in records.iter().zip(all).filter(|(_, ids)| !ids.is_empty()) {
            record.with(|full| full.depends_on = Some(ids.into()));
        }
    }
}

fn look_up(shared: &Shared, registry: &Registry, other: &Dependency) -> Result<Tie, Error> {
    let holder = match other {
        Dependency::Id(id) => registry.find(id).ok_or_else(|| Error::UnknownTask(id.clone()))?,
        Dependency::Task(task) if identity(&task.host) != shared.identity() => {
            return Err(refused(task.id().to_string(), "a task of this scheduler"));
        }
        Dependency::Task(task) => Holder::Live(task.record.clone()),
        Dependency::Nth(_) => unreachable!("it lies within the call"),
    };
    let info = match holder {
        Holder::Live(task) if task.state.get().is_end() => task.info(),
        Holder::Live(task) if task.is_endless() => {
            return Err(refused(task.id().to_string(), ENDS));
        }
        Holder::Live(task) => return Ok(Tie::To(task.number)),
        Holder::Finished(info) => info,
    };
    Ok(info.fall().map_or(Tie::Met, Tie::Broken))
}

/// The path of a circle, if there is one. `parents[n]` are those that `n` waits for.
fn circle(parents: &[Vec<usize>]) -> Option<Vec<usize>> {
    // How many parents of each were looked at; when all were, no circle goes through it.
    let mut looked_at = vec![0; parents.len()];
    let mut on_path = vec![false; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        path.push(start);
        while let Some(&last) = path.last() {
            on_path[last] = true;
            let Some(&parent) = parents[last].get(looked_at[last]) else {
                on_path[last] = false;
                path.pop();
                continue;
            };
            looked_at[last] += 1;
            path.push(parent);
            if on_path[parent] {
                let first = path.iter().position(|&place| place == parent);
                return Some(path.split_off(first.unwrap_or(0)));
            }
        }
    }
    None
}

fn name(tasks: &[Task], place: usize) -> String {
    let id = tasks[place].id.as_ref();
    id.map_or_else(|| format!("tasks[{place}]"), ToString::to_string)
}

/// What a task that another depends on has to be.
const ENDS: &str = "a task that ends, by max_runs, until or its rule";

/// Refuses a dependency.
fn refused(task: String, bound: &'static str) -> Error {
    Error::InvalidValue { parameter: "depends_on", value: task, bound }
}
