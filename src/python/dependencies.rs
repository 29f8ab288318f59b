//! What a Python task depends on. Invariant: a task that is named as an object is found as that
//! object, whether it was scheduled before or is by the same call.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString};

use super::call::{has, items};
use super::errors::unknown;
use super::numbers::{mistaken, task_id, wrong_type};
use super::own::Own;
use super::records;
use super::task::Task;
use crate::{Dependency, TaskId};

/// A task that another depends on, by its id or as the object.
pub(super) enum Needed {
    Id(TaskId),
    Task(Own<Task>),
}

impl Needed {
    /// Reads `depends_on`.
    pub(super) fn all(value: &Bound<'_, PyAny>) -> PyResult<Vec<Self>> {
        let wrong = |value| {
            let expected = "an iterable of tasks or ids";
            mistaken("depends_on", value, expected, "for a single one write [task]")
        };
        // Text is an iterable too, and of ids at that; but nobody means its letters.
        if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
            return Err(wrong(value));
        }
        let all = items(value);
        if all.is_err() && !has(value, "__iter__")? {
            return Err(wrong(value));
        }
        all?.bind(value.py()).iter().map(|item| Self::one(&item)).collect()
    }

    fn one(item: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(task) = item.cast::<Task>() {
            return Ok(Self::Task(task.clone().into()));
        }
        let is_number = item.is_instance_of::<PyInt>() && !item.is_instance_of::<PyBool>();
        if !is_number && !item.is_instance_of::<PyString>() {
            return Err(wrong_type("depends_on", item, "tasks or ids"));
        }
        Ok(Self::Id(task_id(item)?))
    }

    /// As a user sees it.
    pub(super) fn shown<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Id(id) => records::id(py, id),
            Self::Task(task) => Ok(task.bind(py).clone().into_any()),
        }
    }

    pub(super) fn copy(&self, py: Python<'_>) -> Self {
        match self {
            Self::Id(id) => Self::Id(id.clone()),
            Self::Task(task) => Self::Task(task.copy(py)),
        }
    }

    pub(super) fn object(&self) -> Option<&Py<Task>> {
        match self {
            Self::Id(_) => None,
            Self::Task(task) => Some(task),
        }
    }

    /// The same for the core. `place` tells where in the call that schedules it a task stands.
    pub(super) fn into_core(
        self,
        py: Python<'_>,
        place: impl Fn(&Py<Task>) -> Option<usize>,
    ) -> PyResult<Dependency> {
        let task = match self {
            Self::Id(id) => return Ok(id.into()),
            Self::Task(task) => task,
        };
        if let Some(place) = place(&task) {
            return Ok(Dependency::Nth(place));
        }
        let task = task.get();
        if task.is_scheduled() {
            return Ok(task.handle()?.into());
        }
        let id = task.draft_id().map(|id| format!(" {id}")).unwrap_or_default();
        let message = format!(
            "task{id}, which another depends on, is not scheduled; schedule it before, or both in \
             one schedule_all"
        );
        Err(unknown(py, message))
    }
}
