//! What a person wants to know of a task. Invariant: it never fails and never waits.

use std::time::Duration;

use pyo3::prelude::*;

use super::recurrences::{FixedDelay, FixedRate, OneTime};
use super::task::Task;
use crate::{TaskId, TaskInfo, TaskState, Timestamp};

/// `<Task 'report' WAITING due in 4m12s, every 10m, 3 runs, 1 failure>`.
pub(super) fn task(py: Python<'_>, task: &Task) -> String {
    if !task.is_scheduled() {
        return match task.draft_id() {
            Some(id) => format!("<Task {id} not scheduled>"),
            None => "<Task not scheduled>".into(),
        };
    }
    let Ok(handle) = task.handle() else {
        return "<Task of the parent process>".into();
    };
    let info = handle.info();
    let due = handle.now().and_then(|now| due(&info, now));
    let rule = task.recurrence_object(py).and_then(|rule| recurrence(&rule));
    let runs = counted(info.runs, "run");
    let failures = counted(info.failures, "failure");
    let missed = counted(info.missed, "missed slot");
    let paused = info.paused.then(|| "paused".to_owned());
    let group = handle.group().map(|group| format!("group {}", TaskId::from(group)));
    let behind = behind(&handle.depends_on());
    let parts = [paused, due, rule, behind, group, runs, failures, missed].into_iter().flatten();
    let state = state(info.state);
    let parts: Vec<String> = parts.collect();
    let gap = if parts.is_empty() { "" } else { " " };
    format!("<Task {} {state}{gap}{}>", info.id, parts.join(", "))
}

fn state(state: TaskState) -> &'static str {
    match state {
        TaskState::Waiting => "WAITING",
        TaskState::Running => "RUNNING",
        TaskState::Done => "DONE",
        TaskState::Failed => "FAILED",
        TaskState::Cancelled => "CANCELLED",
    }
}

fn due(info: &TaskInfo, now: Timestamp) -> Option<String> {
    if info.state != TaskState::Waiting {
        return None;
    }
    if info.due >= now {
        return Some(format!("due in {}", length(info.due.since(now))));
    }
    Some(format!("due {} ago", length(now.since(info.due))))
}

/// What it depends on, up to a few.
fn behind(others: &[TaskId]) -> Option<String> {
    match others {
        [] => None,
        [_, _, _, _, ..] => Some(format!("after {} tasks", others.len())),
        few => {
            let few: Vec<String> = few.iter().map(ToString::to_string).collect();
            Some(format!("after {}", few.join(" and ")))
        }
    }
}

fn recurrence(rule: &Bound<'_, PyAny>) -> Option<String> {
    if let Ok(rate) = rule.cast::<FixedRate>() {
        return Some(format!("every {}", length(rate.get().period)));
    }
    if let Ok(delay) = rule.cast::<FixedDelay>() {
        return Some(format!("{} after each run", length(delay.get().delay)));
    }
    if rule.is_instance_of::<OneTime>() {
        return None;
    }
    let class = rule.get_type();
    Some(format!("by {}", class.name().map_or_else(|_| "a rule".into(), |name| name.to_string())))
}

fn counted(count: u64, what: &str) -> Option<String> {
    match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        _ => Some(format!("{count} {what}s")),
    }
}

/// A length of time in its two largest units: `3d4h`, `4m12s`, `1.5s`, `20ms`.
fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    let pair = |large: u64, unit: &str, small: u64, part: &str| {
        let rest = seconds % large / small;
        let tail = if rest == 0 { String::new() } else { format!("{rest}{part}") };
        format!("{}{unit}{tail}", seconds / large)
    };
    match seconds {
        86_400.. => pair(86_400, "d", 3600, "h"),
        3600.. => pair(3600, "h", 60, "m"),
        60.. => pair(60, "m", 1, "s"),
        _ => format!("{time:.3?}").replacen(".000", "", 1),
    }
}
