//! The clocks that come with the crate: the manual one's steps and leaps, and the monotonic one.

mod common;

use std::time::Duration;

use common::{Gate, Held, Log, World, at, millis, ms, secs, watchdog};
use duetime::{
    Clock, Error, Event, EventKind, FixedRate, ManualClock, MonotonicClock, Run, Scheduler, Task,
    TaskState, Timestamp,
};

#[test]
fn an_advance_stops_at_every_due_time_on_its_way() {
    let world = World::quiet(1);
    let seen = Log::new();
    for due in [30, 10, 20] {
        let seen = seen.clone();
        let job = move |run: &Run| seen.push((millis(run.due()), millis(run.now())));
        world.scheduler.schedule(Task::new(at(due), job)).unwrap();
    }
    world.advance(25);
    assert_eq!(seen.take(), [(10, 10), (20, 20)]);
    assert_eq!(world.clock.now(), at(25));
    assert_eq!(world.scheduler.now(), at(25));
    world.advance(5);
    assert_eq!(seen.take(), [(30, 30)]);
}

#[test]
fn an_advance_runs_what_its_runs_schedule_up_to_its_end() {
    let world = World::quiet(1);
    let (scheduler, seen) = (world.scheduler.downgrade(), Log::new());
    let log = seen.clone();
    let chain = move |run: &Run| {
        fn link(scheduler: &duetime::WeakScheduler, log: &Log<i64>, run: &Run) {
            log.push(millis(run.now()));
            let (weak, log) = (scheduler.clone(), log.clone());
            let next = move |run: &Run| link(&weak, &log, run);
            scheduler.upgrade().unwrap().after(ms(10), next).unwrap();
        }
        link(&scheduler, &log, run);
    };
    world.scheduler.after(ms(10), chain).unwrap();
    world.advance(45);
    assert_eq!(seen.take(), [10, 20, 30, 40]);
    assert_eq!(world.scheduler.next_due().unwrap(), Some(at(50)));
}

#[test]
fn a_jump_is_one_leap() {
    let world = World::quiet(1);
    let seen = Log::new();
    for due in [30, 10, 20] {
        let seen = seen.clone();
        let job = move |run: &Run| seen.push((millis(run.due()), millis(run.now())));
        world.scheduler.schedule(Task::new(at(due), job)).unwrap();
    }
    world.jump(25);
    assert_eq!(seen.take(), [(10, 25), (20, 25)]);
}

#[test]
fn a_run_that_waits_on_the_clock_waits_for_the_clock() {
    let world = World::quiet(2);
    let seen = Log::new();
    let log = seen.clone();
    let waits = Task::new(at(10), move |run: &Run| log.push(run.wait(ms(20))));
    let task = world.scheduler.schedule(waits).unwrap();
    world.advance(29);
    assert_eq!((task.state(), seen.len()), (TaskState::Running, 0));
    world.advance(1);
    assert_eq!((task.state(), seen.take()), (TaskState::Done, vec![false]));
    assert_eq!(task.info().finished, Some(at(30)));
}

#[test]
fn the_clock_moves_only_outside_of_jobs_and_listeners() {
    let world = World::quiet(1);
    let refused = Log::new();
    let (clock, log) = (world.clock.clone(), refused.clone());
    let tries = move || {
        log.push(matches!(clock.advance(ms(1)), Err(Error::InsideJob("advance"))));
        log.push(matches!(clock.jump(ms(1)), Err(Error::InsideJob("jump"))));
    };
    let listener = tries.clone();
    let told = move |_: &Event| listener();
    world.scheduler.add_listener(told, &[EventKind::Completed]).unwrap();
    let task = world.scheduler.after(ms(1), tries.clone()).unwrap();
    task.on_done(move |_: &duetime::TaskHandle| tries());
    world.advance(1);
    assert_eq!(refused.take(), [true; 6]);
    assert_eq!(world.clock.now(), at(1));
}

#[test]
fn one_clock_may_drive_several_schedulers() {
    let _watchdog = watchdog();
    let clock = ManualClock::starting_at(at(5));
    let schedulers: Vec<Scheduler> = (0..3)
        .map(|_| Scheduler::builder().workers(1).clock(clock.clone()).build().unwrap())
        .collect();
    let seen = Log::new();
    for (n, scheduler) in (0..).zip(&schedulers) {
        let other = schedulers[(n + 1) % 3].downgrade();
        let log = seen.clone();
        let job = move |run: &Run| {
            log.push((n, millis(run.now())));
            let (log, other) = (log.clone(), other.upgrade().unwrap());
            let job = move |run: &Run| log.push((n + 10, millis(run.now())));
            other.after(ms(1), job).unwrap();
        };
        let due = i64::try_from(10 + 2 * n).unwrap();
        scheduler.schedule(Task::new(at(due), job)).unwrap();
    }
    clock.advance(ms(20)).unwrap();
    assert_eq!(clock.now(), at(25));
    let expected = [(0, 10), (10, 11), (1, 12), (11, 13), (2, 14), (12, 15)];
    assert_eq!(seen.take(), expected);
}

#[test]
fn a_move_has_bounds_and_the_end_of_time_is_never_reached() {
    let world = World::quiet(1);
    let century = secs(3_155_760_000);
    let too_far = century + Duration::from_nanos(1);
    assert!(matches!(world.clock.advance(too_far), Err(Error::InvalidValue { .. })));
    assert!(matches!(world.clock.jump(too_far), Err(Error::InvalidValue { .. })));
    assert_eq!(world.clock.now(), Timestamp::ZERO);
    let last = world.scheduler.schedule(Task::new(Timestamp::MAX, || ())).unwrap();
    let first = world.scheduler.schedule(Task::new(Timestamp::MIN, || ())).unwrap();
    for _ in 0..4 {
        world.clock.advance(century).unwrap();
    }
    assert_eq!((first.state(), last.state()), (TaskState::Done, TaskState::Waiting));
    assert!(world.clock.now() < Timestamp::MAX);
}

/// tokio#5536: a clock that is years old.
#[test]
fn an_old_clock_is_as_good_as_a_new_one() {
    for age in [(1_i64 << 36) - 1, 1 << 36, (1 << 36) + 1, 1 << 42] {
        let clock = ManualClock::starting_at(at(age));
        let scheduler = Scheduler::builder().clock(clock.clone()).build().unwrap();
        let seen = Log::new();
        let log = seen.clone();
        scheduler.after(secs(10), move |run: &Run| log.push(run.now())).unwrap();
        clock.advance(secs(11)).unwrap();
        assert_eq!(seen.take(), [at(age + 10_000)]);
    }
}

/// With one worker the order of all events is the same in every run.
#[test]
fn a_year_of_a_ten_minute_task_is_the_same_every_time() {
    let year = || {
        let world = World::new(1);
        let every = FixedRate::new(secs(600));
        let task =
            world.scheduler.every(every, |run: &Run| !run.number().is_multiple_of(10)).unwrap();
        world.clock.advance(secs(365 * 24 * 3600)).unwrap();
        assert_eq!(task.info().runs, 365 * 24 * 6);
        let story: Vec<_> = world
            .events
            .take()
            .iter()
            .map(|event| (event.kind, event.time, event.due, event.run, event.next_due))
            .collect();
        story
    };
    let first = year();
    assert_eq!(first.len(), 1 + 3 * 365 * 24 * 6);
    assert!(first == year());
}

#[test]
fn the_monotonic_clock_starts_at_zero_and_never_goes_back() {
    let clock = MonotonicClock::new();
    let readings: Vec<Timestamp> = (0..1000).map(|_| clock.now()).collect();
    assert!(readings.is_sorted() && readings[0] >= Timestamp::ZERO);
    let scheduler = Scheduler::new();
    assert!(scheduler.now() < at(60_000), "it was made just now");
}

#[test]
fn time_does_not_move_while_a_job_runs() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(5), held.clone())).unwrap();
    let (clock, moved) = (world.clock.clone(), Gate::default());
    let done = moved.clone();
    let mover = std::thread::spawn(move || {
        clock.advance(ms(10)).unwrap();
        done.open();
    });
    held.runs.pass();
    assert_eq!(world.clock.now(), at(5));
    held.go_on.open();
    moved.pass();
    assert_eq!(world.clock.now(), at(10));
    mover.join().unwrap();
}
