//! The registry against plain lists.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::body::Work;
use crate::clock::Timestamp;
use crate::ending::Ended;
use crate::info::Facts;
use crate::into_job::IntoJob;
use crate::job::{JobError, Value};
use crate::record::{Record, UniqueRef};
use crate::state::CancelMove;

#[derive(Clone, Debug)]
enum Step {
    /// A task with this id, or one that the registry makes; in place of who has it, if it may.
    Schedule(Option<i64>, bool),
    /// Which of the live tasks, how, and whether anybody has a handle of it.
    Finish(usize, TaskState, bool),
    Forget(i64),
}

/// The scheduler's own ids are negative, and a caller may give such ones too.
fn any_id() -> std::ops::Range<i64> {
    -40..10
}

fn any_step() -> impl Strategy<Value = Step> {
    let id = prop_oneof![2 => Just(None), 1 => any_id().prop_map(Some)];
    let state = prop_oneof![
        2 => Just(TaskState::Done),
        1 => Just(TaskState::Failed),
        1 => Just(TaskState::Cancelled)
    ];
    prop_oneof![
        4 => (id, any::<bool>()).prop_map(|(id, replace)| Step::Schedule(id, replace)),
        4 => (any::<usize>(), state, any::<bool>()).prop_map(|(n, state, kept)| Step::Finish(n, state, kept)),
        1 => any_id().prop_map(Step::Forget),
    ]
}

/// The registry, and beside it the live tasks and what is remembered, a hole where one was forgotten.
struct Pair {
    registry: Registry,
    live: Vec<(TaskId, TaskRef)>,
    /// Those whose ids others took: they still end.
    homeless: Vec<TaskRef>,
    finished: Vec<Option<TaskInfo>>,
    limit: usize,
}

impl Pair {
    fn new(limit: usize) -> Self {
        let registry = Registry::new(limit);
        Self { registry, live: vec![], homeless: vec![], finished: vec![], limit }
    }

    fn known(&self, id: &TaskId) -> Option<&TaskInfo> {
        self.finished.iter().flatten().find(|info| info.id == *id)
    }

    fn lives(&self, id: &TaskId) -> bool {
        self.live.iter().any(|(live, _)| live == id)
    }

    fn schedule(&mut self, name: Option<i64>, replace: bool) {
        let name = name.map(TaskId::Int);
        if let Some(id) = &name {
            let free = self.registry.check_free(id).is_ok();
            assert_eq!(free, !self.lives(id) && self.known(id).is_none());
            if !free && !replace {
                return;
            }
            self.registry.vacate(id);
            self.forget_finished(id);
            let taken = self.live.extract_if(.., |(live, _)| live == id);
            self.homeless.extend(taken.map(|(_, task)| task));
        }
        let work = Work { job: (|| ()).into_job(), plan: None };
        let mut record = UniqueRef::new(Record::new(name.clone(), DUE, 0, work, None));
        record.number = self.registry.next_number();
        record.state.enter_unseen();
        let task = record.shareable();
        self.registry.insert(name, &task);
        assert!(!self.lives(&task.id()) && self.known(&task.id()).is_none());
        self.live.push((task.id(), task));
    }

    fn finish(&mut self, which: usize, state: TaskState, kept: bool) {
        let all = self.live.len() + self.homeless.len();
        if all == 0 {
            return;
        }
        let at = which % all;
        let lives = at < self.live.len();
        let task =
            if lives { self.live.remove(at).1 } else { self.homeless.remove(at - self.live.len()) };
        let error = JobError::new("it failed");
        let ended = match state {
            TaskState::Done => Ended::Done(Value::default()),
            TaskState::Failed => Ended::Failed(error.clone()),
            _ => Ended::Cancelled,
        };
        let error = (state == TaskState::Failed).then(|| (error, Arc::from("it failed")));
        let ran = Ran { started: at_nanos(1), finished: at_nanos(2), error };
        let ran = (state != TaskState::Cancelled).then_some(ran);
        if state == TaskState::Cancelled {
            assert_eq!(task.state.try_cancel(), CancelMove::Cancelled);
        } else {
            assert!(task.state.try_start());
        }
        let facts = ran.as_ref().map(Facts::of).unwrap_or_default();
        let info = facts.into_info(task.id(), state, DUE);
        let end = End { ran: ran.as_ref(), as_it_ran: &ended, if_stopped: &ended };
        let handle = kept.then(|| task.clone());
        let over = self.registry.finish(&task, end);
        assert!(handle.is_none_or(|handle| handle.info() == info));
        assert_eq!(over.state, state);
        if lives {
            self.finished.push(Some(info));
            self.finished.drain(..self.finished.len().saturating_sub(self.limit));
        }
    }

    fn forget(&mut self, id: &TaskId) {
        if !self.lives(id) {
            self.registry.forget(id);
            self.forget_finished(id);
        }
    }

    fn forget_finished(&mut self, id: &TaskId) {
        for info in &mut self.finished {
            info.take_if(|info| info.id == *id);
        }
    }

    fn check(&self) {
        assert!(self.registry.finished().eq(self.finished.iter().flatten().cloned()));
        let mut live: Vec<u64> = self.registry.live().map(|task| task.number).collect();
        live.sort_unstable();
        assert!(live.into_iter().eq(self.live.iter().map(|(_, task)| task.number)));
        for id in any_id().map(TaskId::Int) {
            match self.registry.find(&id) {
                Some(Holder::Live(task)) => assert!(task.id() == id && self.lives(&id)),
                Some(Holder::Finished(info)) => assert_eq!(Some(&info), self.known(&id)),
                None => assert!(!self.lives(&id) && self.known(&id).is_none()),
            }
        }
        // Nothing is kept of those that are not known any more.
        let known = self.live.len() + self.finished.iter().flatten().count();
        assert_eq!(self.registry.named.len() + self.registry.numbered.held(), known);
    }
}

const DUE: Timestamp = at_nanos(0);

const fn at_nanos(nanos: i64) -> Timestamp {
    Timestamp::from_nanos(nanos)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// A forgotten record keeps its place until the places after it have filled up: so the plain
    /// list holds a hole there too.
    #[test]
    fn live_tasks_and_the_last_finished_ones_are_known(
        limit in 0..12_usize, steps in prop::collection::vec(any_step(), 0..200),
    ) {
        let mut pair = Pair::new(limit);
        for step in steps {
            match step {
                Step::Schedule(name, replace) => pair.schedule(name, replace),
                Step::Finish(which, state, kept) => pair.finish(which, state, kept),
                Step::Forget(id) => pair.forget(&TaskId::Int(id)),
            }
            pair.check();
        }
    }
}

/// More tasks than a page of the roll has.
#[test]
fn an_empty_page_goes() {
    let mut pair = Pair::new(40);
    (0..200).for_each(|_| pair.schedule(None, false));
    assert_eq!(pair.registry.numbered.page_count(), 6);
    while !pair.live.is_empty() {
        pair.finish(0, TaskState::Done, false);
    }
    pair.check();
    assert!(pair.registry.numbered.page_count() <= 2);
    pair.finished.clone().iter().flatten().for_each(|info| pair.forget(&info.id));
    pair.check();
    assert_eq!(pair.registry.numbered.page_count(), 0);
}
