//! What the garbage collector sees of the core. Invariant: each Python reference that only the core
//! owns is visited once, from the scheduler that owns it, unless a thread is about to use it; and
//! what is visited changes only under the GIL, which the collector holds. So a worker takes a task,
//! with what it refers to, only while it is attached.

use std::any::Any;

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::clock::CallableClock;
use super::errors::Raised;
use super::job::{CallJob, ExecutorJob, LoneJob, Returned, RunJob};
use super::listener::{Callback, PyListener};
use super::rules::{Label, Policy, Rule};
use crate::{JobError, TaskTimeout, Value};

/// Visits the Python references in one user value of the core.
pub(super) fn visit(value: &dyn Any, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
    let all = |objects: &mut dyn Iterator<Item = &Py<PyAny>>| {
        for object in objects {
            visit.call(object)?;
        }
        Ok(())
    };
    if let Some(job) = value.downcast_ref::<LoneJob>() {
        visit.call(job.object())
    } else if let Some(job) = value.downcast_ref::<CallJob>() {
        all(&mut job.objects())
    } else if let Some(job) = value.downcast_ref::<RunJob>() {
        all(&mut job.objects())
    } else if let Some(job) = value.downcast_ref::<ExecutorJob>() {
        all(&mut job.objects())
    } else if let Some(rule) = value.downcast_ref::<Rule>() {
        all(&mut rule.object().into_iter())
    } else if let Some(policy) = value.downcast_ref::<Policy>() {
        all(&mut policy.objects())
    } else if let Some(label) = value.downcast_ref::<Label>() {
        all(&mut label.recurrence.as_deref().into_iter())
    } else if let Some(listener) = value.downcast_ref::<PyListener>() {
        all(&mut std::iter::once(&*listener.function))
    } else if let Some(callback) = value.downcast_ref::<Callback>() {
        all(&mut callback.objects())
    } else if let Some(clock) = value.downcast_ref::<CallableClock>() {
        all(&mut std::iter::once(&*clock.callable))
    } else if let Some(value) = value.downcast_ref::<Value>() {
        // Shared with somebody who is not visited: then it lives, and saying nothing keeps it so.
        let returned = value.downcast_ref::<Returned>().filter(|_| value.is_sole());
        all(&mut returned.map(|returned| &*returned.0).into_iter())
    } else if let Some(error) = value.downcast_ref::<JobError>() {
        // What came too late is under the error that says so.
        let late = error.downcast_ref::<TaskTimeout>().and_then(|late| late.cause.as_ref());
        let raised = late.unwrap_or(error).downcast_ref::<Raised>();
        raised.map_or(Ok(()), |raised| visit.call(&*raised.exception))
    } else {
        Ok(())
    }
}
