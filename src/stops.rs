//! Who is told that a run which goes on elsewhere is to stop. Invariant: a hook is called at most
//! once, after its run was told to stop, and with no lock held.

use std::collections::HashMap;

use crate::job::{contain, discard};
use crate::later::StopHook;
use crate::record::TaskRef;
use crate::sync::SmallMutex;

/// The hooks of one scheduler, by the number of their task. The lock is taken alone.
#[derive(Default)]
pub(crate) struct Stops(SmallMutex<HashMap<u64, StopHook>>);

impl Stops {
    /// Has `hook` called once `task` is told to stop; gives it back if it was.
    pub(crate) fn add(&self, task: &TaskRef, hook: StopHook) -> Option<StopHook> {
        let old = self.0.lock().insert(task.number, hook);
        discard(old); // user code
        // Who tells the task to stop moves its state first and looks here second. So either that
        // look finds the hook, or this one finds the state moved.
        if task.state.is_stopping() { self.take(task) } else { None }
    }

    /// Calls the hook of a task that was told to stop.
    pub(crate) fn call(&self, task: &TaskRef) {
        if let Some(hook) = self.take(task) {
            drop(contain(hook));
        }
    }

    /// Lets go of the hook of a task whose run ended.
    pub(crate) fn forget(&self, task: &TaskRef) {
        discard(self.take(task));
    }

    fn take(&self, task: &TaskRef) -> Option<StopHook> {
        self.0.lock().remove(&task.number)
    }
}
