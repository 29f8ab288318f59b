//! Who is told that a run which goes on elsewhere is to stop. Invariant: a hook is called at most
//! once, after its run was told to stop, and with no lock held.

use std::collections::HashMap;

use crate::attempt::Attempt;
use crate::job::{contain, discard};
use crate::later::StopHook;
use crate::record::TaskRef;
use crate::sync::SmallMutex;

/// The hooks of one scheduler, by the number of their task, each with that of its run. The lock is
/// taken alone.
#[derive(Default)]
pub(crate) struct Stops(SmallMutex<HashMap<u64, (u64, StopHook)>>);

impl Stops {
    /// Has `hook` called once a run is told to stop; gives it back if it was.
    pub(crate) fn add(&self, attempt: &Attempt, hook: StopHook) -> Option<StopHook> {
        let Attempt { task, run, .. } = attempt;
        let old = self.0.lock().insert(task.number, (*run, hook));
        discard(old); // user code
        // Who tells the task to stop moves its state first and looks here second. So either that
        // look finds the hook, or this one finds the state moved.
        if task.state.must_stop() { self.take(task) } else { None }
    }

    /// Calls the hook of a task that was told to stop.
    pub(crate) fn call(&self, task: &TaskRef) {
        if let Some(hook) = self.take(task) {
            drop(contain(hook));
        }
    }

    /// Calls the hook of a run whose time is up, if it is not over yet: the next run of the task may
    /// have begun.
    pub(crate) fn call_for(&self, Attempt { task, run, .. }: &Attempt) {
        let mut hooks = self.0.lock();
        let is_its = hooks.get(&task.number).is_some_and(|(of, _)| of == run);
        let hook = if is_its { hooks.remove(&task.number) } else { None };
        drop(hooks);
        if let Some((_, hook)) = hook {
            drop(contain(hook));
        }
    }

    /// Lets go of the hook of a task whose run ended.
    pub(crate) fn forget(&self, task: &TaskRef) {
        discard(self.take(task));
    }

    fn take(&self, task: &TaskRef) -> Option<StopHook> {
        Some(self.0.lock().remove(&task.number)?.1)
    }
}
