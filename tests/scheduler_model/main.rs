//! Any sequence of calls against a plain model of the contract: one worker, virtual time, and
//! every event, answer and record must be the same.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

#[path = "../common/mod.rs"]
mod common;
mod model;

use common::{World, at, millis, tell};
use duetime::{Error, TaskState};
use model::{Model, Plan, Rule};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Call {
    Schedule(i64, Plan),
    Replace(i64, Plan),
    Cancel(i64),
    Forget(i64),
    Advance(u64),
    Jump(u64),
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
        let late = info.error.is_some_and(|error| error.contains("its timeout of"));
        assert_eq!(late, task.late);
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
    let times = (prop_oneof![Just(0), 0..40_i64], prop::option::of(1..40_i64));
    let run = (times, prop::collection::vec(any::<bool>(), 1..4));
    (when, (0..3_u64, 0..20_i64), bounds, run).prop_map(
        |((delay, priority, rule), retry, (max_runs, until), ((takes, timeout), fails))| Plan {
            delay,
            priority,
            rule,
            retry,
            max_runs,
            until,
            takes,
            timeout,
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
