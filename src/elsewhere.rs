//! Runs that go on elsewhere than on a worker. Invariant: such a run ends as any other does, by the same
//! code, on whatever thread ends it.

use std::sync::Arc;

use crate::attempt::Attempt;
use crate::body::Work;
use crate::inside::{Place, enter};
use crate::job::{Outcome, contain};
use crate::later::{Completion, Later, StopHook, Unfinished};
use crate::shared::Shared;
use crate::story::Story;

/// A run whose job has returned: its story, up to its end, by itself.
struct Elsewhere {
    shared: Arc<Shared>,
    work: Work,
    attempt: Attempt,
}

/// Hands a run on to whoever ends it.
#[cold]
pub(crate) fn hand_on(story: Story<'_>, work: Work, later: Later) {
    let Story { shared, attempt } = story;
    let Some(shared) = shared.me.upgrade() else { unreachable!("its worker holds it") };
    let completion = Completion::new(Elsewhere { shared, work, attempt });
    drop(contain(|| later.launch(completion)));
}

impl Unfinished for Elsewhere {
    fn end(self: Box<Self>, outcome: Outcome, gave_way: bool) {
        let Self { shared, work, attempt } = *self;
        if shared.check_process().is_err() {
            return shared.drop_contained(work); // it goes on where it began, in the parent
        }
        shared.stops.forget(&attempt.task);
        let group = work.plan.as_ref().map(|plan| plan.group).filter(|&group| group != 0);
        let over = enter(Place::of(shared.identity()), || {
            let story = Story { shared: &shared, attempt };
            let Some(outcome) = story.judge(work.plan.as_deref(), outcome) else {
                shared.drop_contained(work);
                return false;
            };
            let ran = story.ran(&outcome, story.finished());
            story.follow(work, outcome, ran, gave_way);
            true
        });
        if over {
            shared.queue.end_elsewhere(group, shared.clock.now());
        } else {
            shared.queue.lock().reserve.note_return();
        }
    }

    fn on_stop(&self, hook: StopHook) -> Option<StopHook> {
        self.shared.check_process().ok()?;
        self.shared.stops.add(&self.attempt, hook)
    }

    fn is_stuck(&self) -> bool {
        let Attempt { task, .. } = &self.attempt;
        self.shared.check_process().is_ok() && task.state.get().is_end()
    }
}
