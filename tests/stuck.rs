//! Stuck jobs: what does not stop when its time is up is told of, written off and replaced.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::{Gate, Held, Log, World, at, cause, listen, ms, secs, watchdog};
use duetime::{
    CancelOutcome, Clock, EventKind, FixedRate, Interrupt, Run, Scheduler, Shutdown, Task,
    TaskError, TaskHandle, TaskState, TaskStuck, Timestamp, retry,
};

fn failed(task: &TaskHandle) -> duetime::JobError {
    match task.outcome() {
        Some(Err(TaskError::Failed(error))) => error,
        other => panic!("{other:?}"),
    }
}

fn is_stuck(task: &TaskHandle) -> bool {
    failed(task).downcast_ref::<TaskStuck>().is_some()
}

/// A task that is due now.
fn task<Kind>(world: &World, job: impl duetime::IntoJob<Kind>) -> Task {
    Task::new(world.clock.now(), job)
}

#[test]
fn a_cancelled_run_is_late_all_the_same() {
    let world = World::new(1);
    let held = Held::new();
    let once = task(&world, held.clone()).timeout(secs(3)).grace(secs(2));
    let once = world.scheduler.schedule(once).unwrap();
    held.runs.pass();
    assert_eq!(once.cancel().unwrap(), CancelOutcome::Stopping);
    world.jump(5000);
    assert!(is_stuck(&once));
    held.go_on.open();
}

#[test]
fn one_that_does_not_stop_is_stuck_and_another_worker_serves() {
    let world = World::new(1);
    let held = Held::new();
    let stuck = task(&world, held.clone()).id("stuck").timeout(secs(1)).grace(secs(5));
    let stuck = stuck.retry(retry::FixedDelay::new(9, secs(1)));
    let stuck = world.scheduler.schedule(stuck).unwrap();
    held.runs.pass();
    let next = world.scheduler.after(secs(6), || ()).unwrap();
    world.jump(6000);
    assert!(is_stuck(&stuck) && next.outcome().is_some_and(|outcome| outcome.is_ok()));
    let error: TaskStuck = cause(&failed(&stuck));
    assert_eq!((error.timeout, error.grace), (secs(1), secs(5)));
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.stuck, stats.running, stats.failed, stats.failures), (1, 0, 1, 1));
    assert!(world.scheduler.wait_idle(None).unwrap());
    let story = world.story();
    let of_stuck: Vec<_> = story.iter().filter(|line| line.contains("stuck")).collect();
    assert_eq!(
        of_stuck,
        ["0 SCHEDULED 'stuck'", "0 DUE 'stuck'", "0 STARTED 'stuck'", "6000 STUCK 'stuck'"]
            .iter()
            .chain(&["6000 FAILED 'stuck'"])
            .collect::<Vec<_>>()
    );
    held.go_on.open();
}

#[test]
fn a_stuck_thread_retires_when_its_job_returns() {
    let world = World::new(2);
    let both = [Held::new(), Held::new()];
    let told = Log::new();
    for held in &both {
        let (held, told) = (held.clone(), told.clone());
        let job = move || {
            held.hold();
            told.push(duetime::current_run().unwrap().stop_requested());
        };
        let job = task(&world, job).timeout(secs(1)).grace(Duration::ZERO);
        world.scheduler.schedule(job).unwrap();
    }
    both.iter().for_each(|held| held.runs.pass());
    world.jump(1000);
    while world.scheduler.stats().unwrap().stuck != 2 {
        std::thread::yield_now();
    }
    both.iter().for_each(|held| held.go_on.open());
    while world.scheduler.stats().unwrap().stuck != 0 {
        std::thread::yield_now();
    }
    assert_eq!(told.take(), [true, true], "a stuck run is still told to stop");
    let gate = Gate::default();
    let both: Vec<_> = (0..2)
        .map(|_| {
            let gate = gate.clone();
            world.scheduler.after(Duration::ZERO, move || gate.pass()).unwrap()
        })
        .collect();
    let third = world.scheduler.after(Duration::ZERO, || ()).unwrap();
    while world.scheduler.stats().unwrap().running < 2 {
        std::thread::yield_now();
    }
    assert_eq!(third.state(), TaskState::Waiting, "two serve, and no more");
    gate.open();
    assert!(both.iter().chain([&third]).all(|task| task.result(None).is_ok()));
}

#[test]
fn at_most_as_many_are_replaced_as_there_are_workers() {
    let world = World::new(1);
    let held: Vec<Held> = (0..3).map(|_| Held::new()).collect();
    for (n, held) in (1..).zip(&held[..2]) {
        let job = task(&world, held.clone()).timeout(secs(1)).grace(Duration::ZERO);
        world.scheduler.schedule(job).unwrap();
        held.runs.pass();
        world.jump(1000);
        assert_eq!(world.scheduler.stats().unwrap().stuck, n);
    }
    // One worker, and its replacement, are stuck: nobody is left.
    let third = world.scheduler.schedule(task(&world, held[2].clone())).unwrap();
    world.jump(1000); // it waits for nobody
    assert_eq!(third.state(), TaskState::Waiting);
    held[1].go_on.open(); // and comes back to work
    held[2].runs.pass();
    held[2].go_on.open();
    assert!(third.result(None).is_ok());
    assert_eq!(world.scheduler.stats().unwrap().stuck, 1);
    held[0].go_on.open();
}

#[test]
fn a_stuck_series_ends_as_failed() {
    let world = World::new(1);
    let held = Held::new();
    let series = task(&world, held.clone()).recurrence(FixedRate::new(secs(10)));
    let series = world.scheduler.schedule(series.timeout(secs(1)).grace(secs(1))).unwrap();
    held.runs.pass();
    assert_eq!(series.cancel().unwrap(), CancelOutcome::Stopping);
    world.jump(60_000);
    assert_eq!(series.state(), TaskState::Failed);
    assert_eq!((series.info().runs, series.info().missed), (1, 0));
    assert_eq!(series.cancel().unwrap(), CancelOutcome::Finished);
    assert_eq!(series.run_now().unwrap(), duetime::ControlOutcome::Finished);
    held.go_on.open();
}

#[test]
fn what_depends_on_a_stuck_task_is_cancelled() {
    let world = World::new(1);
    let held = Held::new();
    let stuck = world.scheduler.schedule(task(&world, held.clone()).timeout(secs(1))).unwrap();
    let child = task(&world, || ()).depends_on([&stuck]);
    let child = world.scheduler.schedule(child).unwrap();
    held.runs.pass();
    world.jump(60_000);
    assert_eq!(child.state(), TaskState::Cancelled);
    assert!(child.info().error.unwrap().contains("and is stuck"));
    held.go_on.open();
}

#[test]
fn a_stuck_run_gives_the_place_in_its_group_back() {
    let clock = duetime::ManualClock::new();
    let scheduler = Scheduler::builder().workers(2).limit("db", 1).clock(clock.clone());
    let scheduler = scheduler.build().unwrap();
    let held = Held::new();
    let first = Task::new(at(0), held.clone()).group("db").timeout(secs(1)).grace(secs(1));
    let first = scheduler.schedule(first).unwrap();
    let second = scheduler.schedule(Task::new(at(0), || ()).group("db")).unwrap();
    held.runs.pass();
    assert_eq!(second.state(), TaskState::Waiting);
    clock.jump(secs(2)).unwrap();
    assert!(is_stuck(&first));
    assert_eq!(second.state(), TaskState::Done);
    held.go_on.open();
}

struct Bell(Gate, Log<&'static str>);

impl Interrupt for Bell {
    fn interrupt(&self) {
        self.1.push("interrupted");
        self.0.open();
    }

    fn stack(&self) -> Option<String> {
        Some("at the gate".into())
    }
}

#[test]
fn a_job_is_interrupted_by_what_it_gave_if_that_is_wanted() {
    let world = World::new(1);
    let log = Log::new();
    for (wanted, stuck) in [(true, 0), (false, 1)] {
        let (gate, log) = (Gate::default(), log.clone());
        let runs = Gate::default();
        let job = {
            let (gate, runs) = (gate.clone(), runs.clone());
            move |run: &Run| {
                run.set_interrupt(Arc::new(Bell(gate.clone(), log.clone())));
                runs.open();
                gate.pass();
            }
        };
        let task = task(&world, job).id("t").timeout(secs(1)).interrupt(wanted);
        let task = world.scheduler.schedule(task).unwrap();
        runs.pass();
        world.jump(if wanted { 1000 } else { 60_000 });
        assert_eq!(is_stuck(&task), !wanted);
        assert_eq!(world.scheduler.stats().unwrap().stuck, stuck);
        gate.open();
        world.scheduler.forget("t").unwrap();
    }
    assert_eq!(log.take(), ["interrupted"]);
    let stacks: Vec<_> = world.events.take().into_iter().filter_map(|event| event.stack).collect();
    assert_eq!(stacks.iter().map(|stack| &**stack).collect::<Vec<_>>(), ["at the gate"]);
}

#[test]
fn shutdown_waits_for_a_job_no_longer_than_its_timeout_and_grace() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let held = Held::new();
    let task = Task::new(scheduler.now(), held.clone()).timeout(ms(10)).grace(ms(10));
    let task = scheduler.schedule(task).unwrap();
    held.runs.pass();
    assert!(scheduler.shutdown().unwrap());
    assert!(is_stuck(&task));
    assert!(scheduler.has_ended());
    held.go_on.open();
}

#[test]
fn a_drain_runs_the_rest_on_a_replacement() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let held = Held::new();
    let stuck = Task::new(scheduler.now(), held.clone()).timeout(ms(10)).grace(ms(10));
    let stuck = scheduler.schedule(stuck).unwrap();
    held.runs.pass();
    let rest = scheduler.after(Duration::ZERO, || ()).unwrap();
    assert!(scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    assert!(is_stuck(&stuck));
    assert_eq!(rest.state(), TaskState::Done);
    held.go_on.open();
}

#[test]
fn shutdown_while_one_is_stuck_does_not_wait_for_it() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let held = Held::new();
    let task = Task::new(scheduler.now(), held.clone()).timeout(ms(1)).grace(ms(1));
    let task = scheduler.schedule(task).unwrap();
    assert!(task.result(None).is_err());
    assert!(is_stuck(&task));
    let crew = scheduler.crew().clone();
    assert!(scheduler.shutdown().unwrap());
    held.go_on.open();
    assert!(crew.has_ended());
}

#[test]
fn a_dropped_scheduler_still_watches_over_its_runs() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let held = Held::new();
    let task = Task::new(scheduler.now(), held.clone()).timeout(ms(10)).grace(ms(10));
    let task = scheduler.schedule(task).unwrap();
    held.runs.pass();
    drop(scheduler);
    assert!(task.result(None).is_err());
    assert!(is_stuck(&task));
    held.go_on.open();
}

/// A clock that the test moves, and that waits for nobody.
#[derive(Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::SeqCst).try_into().expect("small"))
    }
}

#[test]
fn on_a_clock_of_ones_own_the_time_is_up_when_it_is_woken() {
    let _watchdog = watchdog();
    let clock = Hand::default();
    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build().unwrap();
    let events = Log::new();
    listen(&scheduler, &events);
    let (told, held) = (Gate::default(), Gate::default());
    let job = {
        let (told, held) = (told.clone(), held.clone());
        move |run: &Run| {
            while !run.stop_requested() {
                std::thread::yield_now();
            }
            told.open();
            held.pass();
        }
    };
    let task = Task::new(at(0), job).timeout(secs(1)).grace(secs(1));
    let task = scheduler.schedule(task).unwrap();
    while task.state() != TaskState::Running {
        std::thread::yield_now();
    }
    clock.0.store(1_000_000_000, Ordering::SeqCst);
    scheduler.wake().unwrap();
    told.pass();
    assert_eq!(task.state(), TaskState::Running);
    clock.0.store(2_000_000_000, Ordering::SeqCst);
    scheduler.wake().unwrap();
    assert!(task.result(None).is_err());
    assert!(is_stuck(&task));
    held.open();
    let kinds: Vec<_> = events.take().iter().map(|event| event.kind).collect();
    assert_eq!(kinds[3..], [EventKind::Stuck, EventKind::Failed]);
}
