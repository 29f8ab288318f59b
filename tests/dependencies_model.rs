//! Dependencies and run control against a naive model: any tasks in any order, cancelled, paused, let
//! go, hurried and moved at any time.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::collections::HashMap;

use common::{World, at, cause, ms};
use duetime::{
    CancelOutcome, ControlOutcome, Dependency, DependencyFailed, EventKind, Task, TaskHandle,
    TaskId, TaskState, retry,
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
    Control(usize, Call),
    Advance(i64),
}

/// Run control.
#[derive(Clone, Copy, Debug)]
enum Call {
    Pause,
    Resume,
    RunNow,
    /// To this long from now.
    Reschedule(i64),
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
        4 => (0..1000_usize, any_call()).prop_map(|(raw, call)| Step::Control(raw, call)),
        3 => (0..15_i64).prop_map(Step::Advance),
    ]
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        2 => Just(Call::Pause),
        2 => Just(Call::Resume),
        1 => Just(Call::RunNow),
        1 => (0..15_i64).prop_map(Call::Reschedule),
    ]
}

/// What the model knows of a task.
#[derive(Debug)]
struct Known {
    parents: Vec<usize>,
    due: i64,
    /// How many more attempts fail.
    fails: u8,
    attempts: u8,
    state: TaskState,
    paused: bool,
    /// Whether it is let run once though it is paused.
    passes: bool,
    end: i64,
}

#[derive(Default)]
struct Model {
    now: i64,
    tasks: Vec<Known>,
}

impl Model {
    /// Moves on, a millisecond at a time, and does all that can be done in each.
    fn advance(&mut self, millis: i64) {
        self.settle();
        for _ in 0..millis {
            self.now += 1;
            self.settle();
        }
    }

    fn settle(&mut self) {
        while (0..self.tasks.len()).any(|task| self.step(task)) {}
    }

    fn step(&mut self, task: usize) -> bool {
        if self.tasks[task].state != TaskState::Waiting {
            return false;
        }
        let parents = || self.tasks[task].parents.iter().map(|&parent| self.tasks[parent].state);
        let lost = |state| matches!(state, TaskState::Failed | TaskState::Cancelled);
        let (fall, free) = (parents().any(lost), parents().all(|state| state == TaskState::Done));
        let now = self.now;
        let task = &mut self.tasks[task];
        if fall {
            (task.state, task.end) = (TaskState::Cancelled, now);
        } else if free && task.due <= now && (!task.paused || task.passes) {
            task.run(now);
        } else {
            return false;
        }
        true
    }

    fn control(&mut self, task: usize, call: Call) {
        let now = self.now;
        let blocked = self.tasks[task]
            .parents
            .iter()
            .any(|&parent| self.tasks[parent].state != TaskState::Done);
        let task = &mut self.tasks[task];
        match call {
            Call::Pause => (task.paused, task.passes) = (true, false),
            Call::Resume => (task.paused, task.passes) = (false, false),
            Call::RunNow => {
                task.due = task.due.min(now);
                task.passes = task.paused || blocked;
            }
            Call::Reschedule(millis) => task.due = now + millis,
        }
    }

    /// Whether `task` depends on `other`, however remotely.
    fn is_behind(&self, task: usize, other: usize) -> bool {
        self.tasks[task]
            .parents
            .iter()
            .any(|&parent| parent == other || self.is_behind(parent, other))
    }
}

impl Known {
    /// One attempt; one retry is made.
    fn run(&mut self, now: i64) {
        self.passes = false;
        self.attempts += 1;
        self.end = now;
        if self.fails == 0 {
            self.state = TaskState::Done;
        } else if self.attempts == 2 {
            self.state = TaskState::Failed;
        } else {
            self.fails -= 1;
            self.due = now + RETRY_DELAY;
        }
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
            let (attempts, paused, passes, end) = (0, false, false, 0);
            let known = Known { parents, due, fails, attempts, state, paused, passes, end };
            self.model.tasks.push(known);
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

    fn control(&mut self, raw: usize, call: Call) {
        let Some(task) = raw.checked_rem(self.handles.len()) else { return };
        let waits = self.model.tasks[task].state == TaskState::Waiting;
        let handle = &self.handles[task];
        let answer = match call {
            Call::Pause => handle.pause(),
            Call::Resume => handle.resume(),
            Call::RunNow => handle.run_now(),
            Call::Reschedule(millis) => handle.reschedule(at(self.model.now + millis)),
        };
        let expected = if waits { ControlOutcome::Applied } else { ControlOutcome::Finished };
        assert_eq!(answer.unwrap(), expected, "{task} {call:?}");
        if waits {
            self.model.control(task, call);
        }
    }

    fn check(&self) {
        for (known, handle) in self.model.tasks.iter().zip(&self.handles) {
            assert_eq!(handle.state(), known.state, "{} {known:?}", handle.id());
            let waits = known.state == TaskState::Waiting;
            assert_eq!(handle.info().paused, waits && known.paused, "{}", handle.id());
            if waits {
                assert_eq!(handle.due(), at(known.due), "{}", handle.id());
            }
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
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn all_end_as_in_the_model(steps in prop::collection::vec(any_step(), 1..14)) {
        let mut game =
            Game { world: World::new(1), model: Model::default(), handles: Vec::new() };
        for step in steps.iter().chain([&Step::Advance(200)]) {
            match step {
                Step::Schedule { tasks, forward } => game.schedule(tasks, *forward),
                Step::Cancel(raw) => game.cancel(*raw),
                Step::Control(raw, call) => game.control(*raw, *call),
                Step::Advance(millis) => {
                    game.model.advance(*millis);
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
