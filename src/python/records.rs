//! Enums and records that Python defines. Invariant: the members and fields that are named here are
//! those that `duetime._records` declares.

use pyo3::BoundObject;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString};

use super::errors::{Class, exception};
use super::numbers::{as_seconds, wrong_type};
use crate::{CancelOutcome, Event, EventKind, Missed, Stats, TaskId, TaskInfo, TaskState};

const RECORDS: &str = "duetime._records";
static EVENT: Record<11> = Record::new(
    "Event",
    [
        "kind", "task_id", "time", "due", "run", "attempt", "lateness", "duration", "error",
        "next_due", "missed",
    ],
);
static STATS: Record<9> = Record::new(
    "Stats",
    ["workers", "waiting", "running", "runs", "failures", "done", "failed", "cancelled", "missed"],
);
static TASK_INFO: Record<9> = Record::new(
    "TaskInfo",
    ["id", "state", "due", "runs", "failures", "missed", "error", "started", "finished"],
);

/// A frozen dataclass. Its own `__init__` takes ten times as long as filling the instance's dict.
struct Record<const N: usize> {
    class: Class,
    fields: [&'static str; N],
    names: PyOnceLock<[Py<PyString>; N]>,
}

impl<const N: usize> Record<N> {
    const fn new(class: &'static str, fields: [&'static str; N]) -> Self {
        Self { class: Class::new(RECORDS, class), fields, names: PyOnceLock::new() }
    }

    /// An instance with these values, in the order of the fields.
    fn make<'py>(
        &'py self,
        py: Python<'py>,
        values: [Bound<'py, PyAny>; N],
    ) -> PyResult<Bound<'py, PyAny>> {
        let intern = |name: &str| PyString::intern(py, name).unbind();
        let names = self.names.get_or_init(py, || self.fields.map(intern));
        let class = self.class.get(py)?;
        let record = class.call_method1(intern!(py, "__new__"), (class,))?;
        let dict = record.getattr(intern!(py, "__dict__"))?.cast_into::<PyDict>()?;
        for (name, value) in names.iter().zip(values) {
            dict.set_item(name, value)?;
        }
        Ok(record)
    }
}

/// The members of an enum, looked up once.
struct Members<const N: usize> {
    class: &'static str,
    names: [&'static str; N],
    found: PyOnceLock<[Py<PyAny>; N]>,
}

impl<const N: usize> Members<N> {
    const fn new(class: &'static str, names: [&'static str; N]) -> Self {
        Self { class, names, found: PyOnceLock::new() }
    }

    fn get<'py>(&self, py: Python<'py>, member: usize) -> PyResult<Bound<'py, PyAny>> {
        let found = self.found.get_or_try_init(py, || {
            let class = py.import(RECORDS)?.getattr(self.class)?;
            let members: Vec<Py<PyAny>> = self
                .names
                .iter()
                .map(|&name| class.getattr(name).map(Bound::unbind))
                .collect::<PyResult<_>>()?;
            Ok::<_, PyErr>(
                <[Py<PyAny>; N]>::try_from(members)
                    .unwrap_or_else(|_| unreachable!("as many members as names")),
            )
        })?;
        Ok(found[member].bind(py).clone())
    }

    /// Which member `value` is.
    fn find(&self, value: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        for member in 0..N {
            if self.get(value.py(), member)?.is(value) {
                return Ok(Some(member));
            }
        }
        Ok(None)
    }
}

static STATES: Members<5> =
    Members::new("TaskState", ["WAITING", "RUNNING", "DONE", "FAILED", "CANCELLED"]);
const STATE_ORDER: [TaskState; 5] = [
    TaskState::Waiting,
    TaskState::Running,
    TaskState::Done,
    TaskState::Failed,
    TaskState::Cancelled,
];

static KINDS: Members<7> = Members::new(
    "EventKind",
    ["SCHEDULED", "DUE", "STARTED", "COMPLETED", "FAILED", "CANCELLED", "MISSED"],
);

static OUTCOMES: Members<4> =
    Members::new("CancelOutcome", ["CANCELLED", "STOPPING", "FINISHED", "UNKNOWN"]);
const OUTCOME_ORDER: [CancelOutcome; 4] = [
    CancelOutcome::Cancelled,
    CancelOutcome::Stopping,
    CancelOutcome::Finished,
    CancelOutcome::Unknown,
];

static POLICIES: Members<2> = Members::new("Missed", ["SKIP", "CATCH_UP"]);
const POLICY_ORDER: [Missed; 2] = [Missed::Skip, Missed::CatchUp];

fn place<T: PartialEq>(order: &[T], value: &T) -> usize {
    order.iter().position(|other| other == value).unwrap_or(0)
}

pub(super) fn state(py: Python<'_>, state: TaskState) -> PyResult<Bound<'_, PyAny>> {
    STATES.get(py, place(&STATE_ORDER, &state))
}

pub(super) fn state_from(value: &Bound<'_, PyAny>) -> PyResult<TaskState> {
    let found = STATES.find(value)?;
    found.map(|at| STATE_ORDER[at]).ok_or_else(|| wrong_type("state", value, "a TaskState"))
}

pub(super) fn cancel_outcome(py: Python<'_>, outcome: CancelOutcome) -> PyResult<Bound<'_, PyAny>> {
    OUTCOMES.get(py, place(&OUTCOME_ORDER, &outcome))
}

pub(super) fn missed(py: Python<'_>, missed: Missed) -> PyResult<Bound<'_, PyAny>> {
    POLICIES.get(py, place(&POLICY_ORDER, &missed))
}

pub(super) fn missed_from(value: &Bound<'_, PyAny>) -> PyResult<Missed> {
    let found = POLICIES.find(value)?;
    found.map(|at| POLICY_ORDER[at]).ok_or_else(|| wrong_type("missed", value, "a Missed"))
}

/// The kinds that a listener asked for: one, or several.
pub(super) fn kinds_from(kinds: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<EventKind>> {
    let Some(kinds) = kinds.filter(|kinds| !kinds.is_none()) else {
        return Ok(EventKind::ALL.to_vec());
    };
    let one = |kind: &Bound<'_, PyAny>| {
        let found = KINDS.find(kind)?;
        found.map(|at| EventKind::ALL[at]).ok_or_else(|| wrong_type("kinds", kind, "EventKinds"))
    };
    if KINDS.find(kinds)?.is_some() {
        return Ok(vec![one(kinds)?]);
    }
    let several = kinds.try_iter().map_err(|_| wrong_type("kinds", kinds, "EventKinds"))?;
    several.map(|kind| one(&kind?)).collect()
}

pub(super) fn id<'py>(py: Python<'py>, id: &TaskId) -> PyResult<Bound<'py, PyAny>> {
    match id {
        TaskId::Int(number) => Ok(number.into_pyobject(py)?.into_any()),
        TaskId::Name(name) => Ok((**name).into_pyobject(py)?.into_any()),
    }
}

/// A field that may be `None`.
fn object<'py, T: IntoPyObject<'py>>(py: Python<'py>, value: T) -> PyResult<Bound<'py, PyAny>>
where
    PyErr: From<T::Error>,
{
    Ok(value.into_pyobject(py)?.into_bound().into_any())
}

pub(super) fn event<'py>(py: Python<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
    let kind = EventKind::ALL.iter().position(|kind| *kind == event.kind).unwrap_or(0);
    EVENT.make(
        py,
        [
            KINDS.get(py, kind)?,
            id(py, &event.task_id)?,
            object(py, as_seconds(event.time))?,
            object(py, as_seconds(event.due))?,
            object(py, event.run)?,
            object(py, event.attempt)?,
            object(py, event.lateness.map(|late| late.as_secs_f64()))?,
            object(py, event.duration.map(|took| took.as_secs_f64()))?,
            object(py, event.error.as_ref().map(|error| exception(py, error)))?,
            object(py, event.next_due.map(as_seconds))?,
            object(py, event.missed)?,
        ],
    )
}

pub(super) fn task_info<'py>(py: Python<'py>, info: &TaskInfo) -> PyResult<Bound<'py, PyAny>> {
    TASK_INFO.make(
        py,
        [
            id(py, &info.id)?,
            state(py, info.state)?,
            object(py, as_seconds(info.due))?,
            object(py, info.runs)?,
            object(py, info.failures)?,
            object(py, info.missed)?,
            object(py, info.error.as_deref())?,
            object(py, info.started.map(as_seconds))?,
            object(py, info.finished.map(as_seconds))?,
        ],
    )
}

pub(super) fn stats<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyAny>> {
    STATS.make(
        py,
        [
            object(py, stats.workers)?,
            object(py, stats.waiting)?,
            object(py, stats.running)?,
            object(py, stats.runs)?,
            object(py, stats.failures)?,
            object(py, stats.done)?,
            object(py, stats.failed)?,
            object(py, stats.cancelled)?,
            object(py, stats.missed)?,
        ],
    )
}
