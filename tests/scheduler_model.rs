//! Any sequence of calls against a plain model of the contract: one worker, virtual time, and
//! every event, answer and record must be the same.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::collections::BTreeMap;

use common::{World, at, millis, ms, tell};
use duetime::{CancelOutcome, Error, FixedDelay, FixedRate, Missed, Run, Task, TaskState, retry};
use proptest::prelude::*;

/// What a task is made of. All times are in milliseconds.
#[derive(Clone, Debug)]
struct Plan {
    delay: i64,
    priority: i32,
    rule: Rule,
    /// Number of retries, and the delay before each.
    retry: (u64, i64),
    max_runs: Option<u64>,
    until: Option<i64>,
    takes: i64,
    /// Whether each run fails, over and over.
    fails: Vec<bool>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Rule {
    Once,
    Skip(i64),
    CatchUp(i64),
    Delay(i64),
}

#[derive(Clone, Debug)]
enum Call {
    Schedule(i64, Plan),
    Replace(i64, Plan),
    Cancel(i64),
    Forget(i64),
    Advance(u64),
    Jump(u64),
}

impl Plan {
    fn fails(&self, run: u64) -> bool {
        self.fails[usize::try_from(run).expect("few") % self.fails.len()]
    }

    /// The task of this plan for the scheduler, with a job that does as the plan says.
    fn task(&self, id: i64, now: i64) -> Task {
        let due = now + self.delay;
        let plan = self.clone();
        let job = move |run: &Run| {
            if plan.takes > 0 {
                let _ = run.wait(ms(plan.takes.unsigned_abs()));
            }
            !plan.fails(run.number())
        };
        let time = |millis: i64| ms(millis.unsigned_abs());
        let mut task = Task::new(at(due), job).id(id).priority(self.priority);
        task = match self.rule {
            Rule::Once => task,
            Rule::Skip(period) => task.recurrence(FixedRate::new(time(period))),
            Rule::CatchUp(period) => {
                task.recurrence(FixedRate::new(time(period)).missed(Missed::CatchUp))
            }
            Rule::Delay(delay) => task.recurrence(FixedDelay::new(time(delay))),
        };
        if self.retry.0 > 0 {
            task = task.retry(retry::FixedDelay::new(self.retry.0, time(self.retry.1)));
        }
        if let Some(max_runs) = self.max_runs {
            task = task.max_runs(max_runs);
        }
        if let Some(until) = self.until {
            task = task.until(at(due + until));
        }
        task
    }
}

/// A task of the model.
#[derive(Clone, Debug)]
struct Modelled {
    plan: Plan,
    state: TaskState,
    first: i64,
    due: i64,
    slot: i64,
    /// Slots that were run, the current one included.
    slots: u64,
    slot_failures: u64,
    runs: u64,
    failures: u64,
    missed: u64,
    /// The place in the order of adding, of the entry that waits.
    sequence: u64,
    announced: bool,
    stopping: bool,
}

#[derive(Default)]
struct Model {
    now: i64,
    /// All that are known, by id.
    tasks: BTreeMap<i64, Modelled>,
    sequence: u64,
    /// Who runs, and when that run ends.
    running: Option<(i64, i64)>,
    story: Vec<String>,
}

impl Model {
    fn tell(&mut self, what: &str, id: i64, rest: &str) {
        self.story.push(format!("{} {what} {id}{rest}", self.now));
    }

    fn task(&mut self, id: i64) -> &mut Modelled {
        self.tasks.get_mut(&id).expect("it is known")
    }

    /// The waiting task that comes first of those that `wanted` picks.
    fn first(&self, wanted: impl Fn(&Modelled) -> bool) -> Option<i64> {
        let waiting = self.tasks.iter().filter(|(_, task)| task.state == TaskState::Waiting);
        let wanted = waiting.filter(|(_, task)| wanted(task));
        let first = wanted.min_by_key(|(_, t)| (t.due, -t.plan.priority, t.sequence));
        first.map(|(&id, _)| id)
    }

    /// Sends DUE for those whose time has come.
    fn announce(&mut self) {
        let now = self.now;
        while let Some(id) = self.first(|task| !task.announced && task.due <= now) {
            self.tell("DUE", id, "");
            self.task(id).announced = true;
        }
    }

    fn enqueue(&mut self, id: i64, due: i64) {
        self.sequence += 1;
        let sequence = self.sequence;
        let task = self.task(id);
        (task.due, task.sequence, task.announced) = (due, sequence, false);
        task.state = TaskState::Waiting;
        self.announce();
    }

    /// Lets the worker do all that it can do now.
    fn settle(&mut self) {
        self.announce();
        loop {
            match self.running {
                Some((id, end)) if end <= self.now => self.finish(id),
                Some(_) => return,
                None => {
                    let now = self.now;
                    let Some(id) = self.first(|task| task.due <= now) else { return };
                    self.tell("STARTED", id, "");
                    let task = self.task(id);
                    task.state = TaskState::Running;
                    self.running = Some((id, now + self.tasks[&id].plan.takes));
                }
            }
        }
    }

    fn finish(&mut self, id: i64) {
        self.running = None;
        let now = self.now;
        let task = self.task(id);
        task.runs += 1;
        let failed = task.plan.fails(task.runs);
        task.failures += u64::from(failed);
        let ended = if failed { "FAILED" } else { "COMPLETED" };
        let next = task.next(now, failed);
        if let Some((due, missed)) = next.filter(|_| !task.stopping) {
            task.missed += missed;
            self.tell(ended, id, &format!(" next {due}"));
            if missed > 0 {
                self.tell("MISSED", id, &format!(" {missed}"));
            }
            self.enqueue(id, due);
            return;
        }
        let series = task.plan.rule != Rule::Once;
        task.state = match (task.stopping && series, failed) {
            (true, _) => TaskState::Cancelled,
            (false, true) => TaskState::Failed,
            (false, false) => TaskState::Done,
        };
        let cancelled = task.state == TaskState::Cancelled;
        self.tell(ended, id, "");
        if cancelled {
            self.tell("CANCELLED", id, "");
        }
    }

    fn move_to(&mut self, time: i64) {
        self.now = time;
        self.settle();
    }

    fn advance(&mut self, by: i64) {
        let target = self.now + by;
        loop {
            let now = self.now;
            let end = self.running.map(|(_, end)| end);
            let due = self.first(|task| task.due > now).map(|id| self.tasks[&id].due);
            match end.into_iter().chain(due).min() {
                Some(next) if next <= target => self.move_to(next),
                _ => break,
            }
        }
        self.move_to(target);
    }

    fn schedule(&mut self, id: i64, plan: &Plan) {
        let due = self.now + plan.delay;
        let task = Modelled {
            plan: plan.clone(),
            state: TaskState::Waiting,
            first: due,
            due,
            slot: due,
            slots: 1,
            slot_failures: 0,
            runs: 0,
            failures: 0,
            missed: 0,
            sequence: 0,
            announced: true, // until it is in the queue
            stopping: false,
        };
        self.tasks.insert(id, task);
        self.tell("SCHEDULED", id, "");
        self.enqueue(id, due);
    }

    fn cancel(&mut self, id: i64) -> CancelOutcome {
        let Some(task) = self.tasks.get_mut(&id) else { return CancelOutcome::Unknown };
        match task.state {
            TaskState::Waiting => {
                task.state = TaskState::Cancelled;
                self.tell("CANCELLED", id, "");
                CancelOutcome::Cancelled
            }
            TaskState::Running => {
                task.stopping = true;
                self.running = Some((id, self.now)); // its wait ends
                CancelOutcome::Stopping
            }
            _ => CancelOutcome::Finished,
        }
    }
}

impl Modelled {
    /// When the run that ended now is followed by another, and how many slots passed.
    fn next(&mut self, now: i64, failed: bool) -> Option<(i64, u64)> {
        let until = self.plan.until.map_or(i64::MAX, |until| self.first + until);
        let mut missed = 0;
        let slot = match self.plan.rule {
            Rule::Once => None,
            Rule::CatchUp(period) => Some(self.slot + period),
            Rule::Delay(delay) => Some(now + delay),
            Rule::Skip(period) => {
                let mut slot = self.slot + period;
                while slot < now {
                    slot += period;
                    missed += 1;
                }
                Some(slot)
            }
        };
        let may_go_on = self.plan.max_runs.is_none_or(|max| self.slots < max);
        let slot = slot.filter(|&slot| slot <= until && may_go_on);
        if failed {
            self.slot_failures += 1;
            let (retries, delay) = self.plan.retry;
            let retry = now + delay;
            if self.slot_failures <= retries
                && retry <= until
                && slot.is_none_or(|slot| retry < slot)
            {
                return Some((retry, 0));
            }
        }
        self.slot = slot?;
        self.slots += 1;
        self.slot_failures = 0;
        Some((self.slot, missed))
    }
}

/// Makes the call on both; compares the answers.
fn make(world: &World, model: &mut Model, call: &Call) {
    let scheduler = &world.scheduler;
    match call {
        Call::Schedule(id, plan) => {
            let answer = scheduler.schedule(plan.task(*id, model.now));
            if model.tasks.contains_key(id) {
                assert!(matches!(answer, Err(Error::DuplicateTask(_))));
            } else {
                assert!(answer.is_ok());
                model.schedule(*id, plan);
            }
        }
        Call::Replace(id, plan) => {
            let answer = scheduler.replace(plan.task(*id, model.now));
            if model.tasks.get(id).is_some_and(|task| task.state == TaskState::Running) {
                assert!(matches!(answer, Err(Error::TaskRunning(_))));
            } else {
                assert!(answer.is_ok());
                model.cancel(*id);
                model.schedule(*id, plan);
            }
        }
        Call::Cancel(id) => assert_eq!(scheduler.cancel(*id).unwrap(), model.cancel(*id)),
        Call::Forget(id) => {
            let answer = scheduler.forget(*id);
            match model.tasks.get(id).map(|task| task.state) {
                None => assert!(matches!(answer, Err(Error::UnknownTask(_)))),
                Some(TaskState::Running) => assert!(matches!(answer, Err(Error::TaskRunning(_)))),
                Some(TaskState::Waiting) => assert!(matches!(answer, Err(Error::TaskWaiting(_)))),
                Some(_) => {
                    assert!(answer.is_ok());
                    model.tasks.remove(id);
                }
            }
        }
        Call::Advance(by) => {
            world.advance(*by);
            model.advance(by.cast_signed());
        }
        Call::Jump(by) => {
            world.jump(*by);
            model.move_to(model.now + by.cast_signed());
        }
    }
}

fn compare(world: &World, model: &mut Model) {
    let told: Vec<String> = world.events.take().iter().map(tell).collect();
    assert_eq!(told, std::mem::take(&mut model.story));
    assert_eq!(millis(world.clock.now()), model.now);
    let next = model.first(|_| true).map(|id| at(model.tasks[&id].due));
    assert_eq!(world.scheduler.next_due().unwrap(), next);
    let infos = world.scheduler.tasks(None).unwrap();
    assert_eq!(infos.len(), model.tasks.len());
    for (&id, task) in &model.tasks {
        let info = world.scheduler.info(id).unwrap();
        assert_eq!((info.state, millis(info.due)), (task.state, task.due), "{id}");
        let counts = (info.runs, info.failures, info.missed);
        assert_eq!(counts, (task.runs, task.failures, task.missed), "{id}");
        assert_eq!(info.error.is_some(), task.failures > 0);
    }
    let waiting = infos.iter().filter(|info| info.state == TaskState::Waiting).count();
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.waiting, stats.running), (waiting, usize::from(model.running.is_some())));
}

fn any_rule() -> impl Strategy<Value = Rule> {
    prop_oneof![
        3 => Just(Rule::Once),
        2 => (1..30_i64).prop_map(Rule::Skip),
        1 => (1..30_i64).prop_map(Rule::CatchUp),
        1 => (1..30_i64).prop_map(Rule::Delay),
    ]
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let when = (-10..40_i64, -1..=1_i32, any_rule());
    let bounds = (prop::option::of(1..5_u64), prop::option::of(0..60_i64));
    let run = (prop_oneof![Just(0), 0..40_i64], prop::collection::vec(any::<bool>(), 1..4));
    (when, (0..3_u64, 0..20_i64), bounds, run).prop_map(
        |((delay, priority, rule), retry, (max_runs, until), (takes, fails))| Plan {
            delay,
            priority,
            rule,
            retry,
            max_runs,
            until,
            takes,
            fails,
        },
    )
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        5 => (0..6_i64, any_plan()).prop_map(|(id, plan)| Call::Schedule(id, plan)),
        2 => (0..6_i64, any_plan()).prop_map(|(id, plan)| Call::Replace(id, plan)),
        2 => (0..7_i64).prop_map(Call::Cancel),
        1 => (0..7_i64).prop_map(Call::Forget),
        4 => (0..60_u64).prop_map(Call::Advance),
        2 => (0..100_u64).prop_map(Call::Jump),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn any_calls_do_what_the_model_does(calls in prop::collection::vec(any_call(), 1..40)) {
        let world = World::new(1);
        let mut model = Model::default();
        for call in &calls {
            make(&world, &mut model, call);
            // To the next quiet moment: what is due starts, and what was stopped ends.
            world.advance(0);
            model.settle();
            compare(&world, &mut model);
        }
    }
}
