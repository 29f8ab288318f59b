//! Enums and records that Python defines. Invariant: the members and fields that are named here are
//! those that `duetime._records` declares.

use pyo3::BoundObject;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::call::items;
use super::errors::exception;
use super::lookup::{Class, Lookup, Members, Names};
use super::numbers::{as_seconds, wrong_type};
use crate::{
    CancelOutcome, ControlOutcome, Event, EventKind, Lateness, Missed, Percentiles, Stats, TaskId,
    TaskInfo, TaskState,
};

const RECORDS: &str = "duetime._records";
static EVENT: Record<13> = Record::new(
    "Event",
    [
        "kind",
        "task_id",
        "time",
        "due",
        "run",
        "attempt",
        "lateness",
        "duration",
        "error",
        "next_due",
        "will_retry",
        "missed",
        "stack",
    ],
);
static STATS: Record<13> = Record::new(
    "Stats",
    [
        "workers",
        "waiting",
        "running",
        "runs",
        "failures",
        "done",
        "failed",
        "cancelled",
        "missed",
        "paused",
        "crowded",
        "lateness",
        "stuck",
    ],
);
static LATENESS: Record<2> = Record::new("Lateness", ["queue", "gil"]);
static PERCENTILES: Record<5> = Record::new("Percentiles", ["count", "p50", "p90", "p99", "max"]);
static TASK_INFO: Record<10> = Record::new(
    "TaskInfo",
    ["id", "state", "due", "runs", "failures", "missed", "error", "started", "finished", "paused"],
);
/// What making one takes.
static MAKING: Names<2> = Names::new(["__new__", "__dict__"]);
pub(super) static LOOKUPS: &[&dyn Lookup] = &[
    &EVENT,
    &STATS,
    &LATENESS,
    &PERCENTILES,
    &TASK_INFO,
    &MAKING,
    &STATES,
    &KINDS,
    &OUTCOMES,
    &CONTROLS,
    &POLICIES,
];

/// A frozen dataclass. Its own `__init__` takes ten times as long as filling the instance's dict.
struct Record<const N: usize> {
    class: Class,
    fields: Names<N>,
}

impl<const N: usize> Record<N> {
    const fn new(class: &'static str, fields: [&'static str; N]) -> Self {
        Self { class: Class::new(RECORDS, class), fields: Names::new(fields) }
    }

    /// An instance with these values, in the order of the fields.
    fn make<'py>(
        &'py self,
        py: Python<'py>,
        values: [Bound<'py, PyAny>; N],
    ) -> PyResult<Bound<'py, PyAny>> {
        let class = self.class.get(py);
        let [new, dict] = MAKING.get(py);
        let record = class.call_method1(new, (class,))?;
        let dict = record.getattr(dict)?.cast_into::<PyDict>()?;
        for (name, value) in self.fields.get(py).iter().zip(values) {
            dict.set_item(name, value)?;
        }
        Ok(record)
    }
}

impl<const N: usize> Lookup for Record<N> {
    fn fill(&self, py: Python<'_>) -> PyResult<()> {
        self.class.fill(py)?;
        self.fields.fill(py)
    }
}

static STATES: Members<5> =
    Members::new(RECORDS, "TaskState", ["WAITING", "RUNNING", "DONE", "FAILED", "CANCELLED"]);
const STATE_ORDER: [TaskState; 5] = [
    TaskState::Waiting,
    TaskState::Running,
    TaskState::Done,
    TaskState::Failed,
    TaskState::Cancelled,
];

static KINDS: Members<8> = Members::new(
    RECORDS,
    "EventKind",
    ["SCHEDULED", "DUE", "STARTED", "COMPLETED", "FAILED", "CANCELLED", "MISSED", "STUCK"],
);

static OUTCOMES: Members<4> =
    Members::new(RECORDS, "CancelOutcome", ["CANCELLED", "STOPPING", "FINISHED", "UNKNOWN"]);
const OUTCOME_ORDER: [CancelOutcome; 4] = [
    CancelOutcome::Cancelled,
    CancelOutcome::Stopping,
    CancelOutcome::Finished,
    CancelOutcome::Unknown,
];

static CONTROLS: Members<4> =
    Members::new(RECORDS, "ControlOutcome", ["APPLIED", "RUNNING", "FINISHED", "UNKNOWN"]);
const CONTROL_ORDER: [ControlOutcome; 4] = [
    ControlOutcome::Applied,
    ControlOutcome::Running,
    ControlOutcome::Finished,
    ControlOutcome::Unknown,
];

static POLICIES: Members<2> = Members::new(RECORDS, "Missed", ["SKIP", "CATCH_UP"]);
const POLICY_ORDER: [Missed; 2] = [Missed::Skip, Missed::CatchUp];

fn place<T: PartialEq>(order: &[T], value: &T) -> usize {
    order.iter().position(|other| other == value).unwrap_or(0)
}

pub(super) fn state(py: Python<'_>, state: TaskState) -> Bound<'_, PyAny> {
    STATES.get(py, place(&STATE_ORDER, &state))
}

pub(super) fn state_from(value: &Bound<'_, PyAny>) -> PyResult<TaskState> {
    let found = STATES.find(value);
    found.map(|at| STATE_ORDER[at]).ok_or_else(|| wrong_type("state", value, "a TaskState"))
}

pub(super) fn cancel_outcome(py: Python<'_>, outcome: CancelOutcome) -> Bound<'_, PyAny> {
    OUTCOMES.get(py, place(&OUTCOME_ORDER, &outcome))
}

pub(super) fn control_outcome(py: Python<'_>, outcome: ControlOutcome) -> Bound<'_, PyAny> {
    CONTROLS.get(py, place(&CONTROL_ORDER, &outcome))
}

pub(super) fn missed(py: Python<'_>, missed: Missed) -> Bound<'_, PyAny> {
    POLICIES.get(py, place(&POLICY_ORDER, &missed))
}

pub(super) fn missed_from(value: &Bound<'_, PyAny>) -> PyResult<Missed> {
    let found = POLICIES.find(value);
    found.map(|at| POLICY_ORDER[at]).ok_or_else(|| wrong_type("missed", value, "a Missed"))
}

const SOME_KINDS: &str = "EventKinds, such as [EventKind.FAILED]";

/// The kinds that a listener asked for: one, or several.
pub(super) fn kinds_from(kinds: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<EventKind>> {
    let Some(kinds) = kinds.filter(|kinds| !kinds.is_none()) else {
        return Ok(EventKind::ALL.to_vec());
    };
    let one = |kind: &Bound<'_, PyAny>| {
        let found = KINDS.find(kind);
        found.map(|at| EventKind::ALL[at]).ok_or_else(|| wrong_type("kinds", kind, SOME_KINDS))
    };
    if KINDS.find(kinds).is_some() {
        return Ok(vec![one(kinds)?]);
    }
    let several = items(kinds).map_err(|error| {
        let is_type = error.is_instance_of::<PyTypeError>(kinds.py());
        if is_type { wrong_type("kinds", kinds, SOME_KINDS) } else { error }
    })?;
    several.bind(kinds.py()).iter().map(|kind| one(&kind)).collect()
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
            KINDS.get(py, kind),
            id(py, &event.task_id)?,
            object(py, as_seconds(event.time))?,
            object(py, as_seconds(event.due))?,
            object(py, event.run)?,
            object(py, event.attempt)?,
            object(py, event.lateness.map(|late| late.as_secs_f64()))?,
            object(py, event.duration.map(|took| took.as_secs_f64()))?,
            object(py, event.error.as_ref().map(|error| exception(py, error)))?,
            object(py, event.next_due.map(as_seconds))?,
            object(py, event.will_retry)?,
            object(py, event.missed)?,
            object(py, event.stack.as_deref())?,
        ],
    )
}

pub(super) fn task_info<'py>(py: Python<'py>, info: &TaskInfo) -> PyResult<Bound<'py, PyAny>> {
    TASK_INFO.make(
        py,
        [
            id(py, &info.id)?,
            state(py, info.state),
            object(py, as_seconds(info.due))?,
            object(py, info.runs)?,
            object(py, info.failures)?,
            object(py, info.missed)?,
            object(py, info.error.as_deref())?,
            object(py, info.started.map(as_seconds))?,
            object(py, info.finished.map(as_seconds))?,
            object(py, info.paused)?,
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
            object(py, stats.paused)?,
            object(py, stats.crowded)?,
            lateness(py, &stats.lateness)?,
            object(py, stats.stuck)?,
        ],
    )
}

fn lateness<'py>(py: Python<'py>, lateness: &Lateness) -> PyResult<Bound<'py, PyAny>> {
    LATENESS.make(py, [percentiles(py, &lateness.queue)?, percentiles(py, &lateness.gil)?])
}

fn percentiles<'py>(py: Python<'py>, of: &Percentiles) -> PyResult<Bound<'py, PyAny>> {
    let [p50, p90, p99, max] =
        [of.p50, of.p90, of.p99, of.max].map(|value| object(py, value.as_secs_f64()));
    PERCENTILES.make(py, [object(py, of.count)?, p50?, p90?, p99?, max?])
}
