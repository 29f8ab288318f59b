//! Dependencies against a naive model: any tasks in any order, cancelled at any time.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::collections::HashMap;

use common::{World, at, cause, ms};
use duetime::{
    CancelOutcome, Dependency, DependencyFailed, EventKind, Task, TaskHandle, TaskId, TaskState,
    retry,
};
use proptest::prelude::*;

const RETRY_DELAY: i64 = 3;

/// A task, as a test makes it up.
#[derive(Clone, Debug)]
struct Sketch {
    /// From when it is scheduled.
    due: i64,
    /// How many attempts fail; one retry is made.
    fails: u8,
    /// Any numbers, for any tasks that it may depend on.
    parents: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Step {
    /// One call. `forward`: tasks depend on later ones of it instead of earlier ones.
    Schedule {
        tasks: Vec<Sketch>,
        forward: bool,
    },
    Cancel(usize),
    Advance(i64),
}

fn any_sketch() -> impl Strategy<Value = Sketch> {
    (
        0..20_i64,
        prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(2)],
        prop::collection::vec(0..1000_usize, 0..4),
    )
        .prop_map(|(due, fails, parents)| Sketch { due, fails, parents })
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (prop::collection::vec(any_sketch(), 1..6), any::<bool>())
            .prop_map(|(tasks, forward)| Step::Schedule { tasks, forward }),
        1 => (0..1000_usize).prop_map(Step::Cancel),
        3 => (0..15_i64).prop_map(Step::Advance),
    ]
}

/// What the model knows of a task.
#[derive(Debug)]
struct Known {
    parents: Vec<usize>,
    due: i64,
    fails: u8,
    state: TaskState,
    /// When it ended, or will at the earliest.
    end: i64,
}

#[derive(Default)]
struct Model {
    now: i64,
    tasks: Vec<Known>,
}

impl Model {
    /// Does all that can be done by now, one thing after the other, until nothing is left.
    fn settle(&mut self) {
        while (0..self.tasks.len()).any(|task| self.step(task)) {}
    }

    fn step(&mut self, task: usize) -> bool {
        if self.tasks[task].state != TaskState::Waiting {
            return false;
        }
        let parents = || self.tasks[task].parents.iter().map(|&parent| &self.tasks[parent]);
        let lost = |state| matches!(state, TaskState::Failed | TaskState::Cancelled);
        let (state, end) = if parents().any(|parent| lost(parent.state)) {
            (TaskState::Cancelled, self.now)
        } else if parents().all(|parent| parent.state == TaskState::Done) {
            let Known { due, fails, .. } = self.tasks[task];
            let start = parents().map(|parent| parent.end).chain([due]).max().unwrap();
            let state = if fails < 2 { TaskState::Done } else { TaskState::Failed };
            (state, start + if fails > 0 { RETRY_DELAY } else { 0 })
        } else {
            return false;
        };
        let happens = end <= self.now;
        if happens {
            self.tasks[task].state = state;
            self.tasks[task].end = end;
        }
        happens
    }

    /// Whether `task` depends on `other`, however remotely.
    fn is_behind(&self, task: usize, other: usize) -> bool {
        self.tasks[task]
            .parents
            .iter()
            .any(|&parent| parent == other || self.is_behind(parent, other))
    }
}

fn job(fails: u8) -> impl FnMut() -> bool {
    let mut attempts = 0;
    move || {
        attempts += 1;
        attempts > fails
    }
}

struct Game {
    world: World,
    model: Model,
    handles: Vec<TaskHandle>,
}

impl Game {
    fn schedule(&mut self, sketches: &[Sketch], forward: bool) {
        let first = self.handles.len();
        let mut tasks = Vec::new();
        for (place, sketch) in sketches.iter().enumerate() {
            let own = if forward { place + 1..sketches.len() } else { 0..place };
            let others: Vec<usize> = (0..first).chain(own.map(|place| first + place)).collect();
            let pick = |raw: &usize| others.get(raw % others.len().max(1)).copied();
            let parents: Vec<usize> = sketch.parents.iter().filter_map(pick).collect();
            // By number, by handle or by place: as it happens.
            let named = parents.iter().map(|&parent| match parent.checked_sub(first) {
                Some(place) if place % 2 == 0 => Dependency::Nth(place),
                None if parent % 2 == 0 => Dependency::from(&self.handles[parent]),
                _ => Dependency::from(i64::try_from(parent).unwrap()),
            });
            let due = self.model.now + sketch.due;
            let id = i64::try_from(first + place).unwrap();
            let task = Task::new(at(due), job(sketch.fails)).id(id).depends_on(named);
            let delay = ms(RETRY_DELAY.unsigned_abs());
            tasks.push(task.retry(retry::FixedDelay::new(1, delay)));
            let (fails, state) = (sketch.fails, TaskState::Waiting);
            self.model.tasks.push(Known { parents, due, fails, state, end: 0 });
        }
        self.handles.extend(self.world.scheduler.schedule_all(tasks).unwrap());
    }

    fn cancel(&mut self, raw: usize) {
        let Some(task) = raw.checked_rem(self.handles.len()) else { return };
        let waits = self.model.tasks[task].state == TaskState::Waiting;
        let expected = if waits { CancelOutcome::Cancelled } else { CancelOutcome::Finished };
        assert_eq!(self.handles[task].cancel().unwrap(), expected);
        if waits {
            self.model.tasks[task].state = TaskState::Cancelled;
        }
    }

    fn check(&self) {
        for (known, handle) in self.model.tasks.iter().zip(&self.handles) {
            assert_eq!(handle.state(), known.state, "{} {known:?}", handle.id());
            if matches!(known.state, TaskState::Done | TaskState::Failed) {
                assert_eq!(handle.info().finished, Some(at(known.end)), "{}", handle.id());
            }
        }
        let waiting = self.model.tasks.iter().filter(|task| task.state == TaskState::Waiting);
        assert_eq!(self.world.scheduler.stats().unwrap().waiting, waiting.count());
    }

    /// Who was cancelled for another names one that ended so, and is told after it; who ran did so
    /// after all its parents.
    fn check_causes(&self) {
        let events = self.world.events.take();
        let number = |id: &TaskId| match id {
            TaskId::Int(number) => usize::try_from(*number).unwrap(),
            TaskId::Name(_) => unreachable!("numbers only"),
        };
        // Where in the story the first start and the last event of each task are.
        let (mut starts, mut ends) = (HashMap::new(), HashMap::new());
        for (place, event) in events.iter().enumerate() {
            let task = number(&event.task_id);
            if event.kind == EventKind::Started {
                starts.entry(task).or_insert(place);
            }
            ends.insert(task, place);
        }
        for (task, handle) in self.handles.iter().enumerate() {
            if let Some(start) = starts.get(&task) {
                let parents = &self.model.tasks[task].parents;
                assert!(parents.iter().all(|parent| ends[parent] < *start), "{task} came early");
            }
            let error = handle.last_error().filter(|_| handle.state() == TaskState::Cancelled);
            let Some(error) =
                error.filter(|error| error.downcast_ref::<DependencyFailed>().is_some())
            else {
                continue;
            };
            let failed: DependencyFailed = cause(&error);
            let root = number(&failed.id);
            assert!(self.model.is_behind(task, root) && ends[&root] < ends[&task]);
            let state = self.model.tasks[root].state;
            let ended =
                if failed.error.is_some() { TaskState::Failed } else { TaskState::Cancelled };
            assert_eq!(state, ended);
            let again = self.handles[root].last_error();
            let again = again.filter(|error| error.downcast_ref::<DependencyFailed>().is_some());
            assert!(again.is_none(), "{root} is no root");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn all_end_as_in_the_model(steps in prop::collection::vec(any_step(), 1..14)) {
        let mut game =
            Game { world: World::new(1), model: Model::default(), handles: Vec::new() };
        for step in steps.iter().chain([&Step::Advance(200)]) {
            match step {
                Step::Schedule { tasks, forward } => game.schedule(tasks, *forward),
                Step::Cancel(raw) => game.cancel(*raw),
                Step::Advance(millis) => {
                    game.model.now += millis;
                    game.world.advance(millis.unsigned_abs());
                }
            }
            game.world.advance(0);
            game.model.settle();
            game.check();
        }
        game.check_causes();
    }
}
