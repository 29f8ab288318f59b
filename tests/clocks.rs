//! Clocks: the manual one's steps and leaps, and custom ones that do what no clock should.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use common::{Gate, Held, Log, ON_PURPOSE, World, at, hush, listen, millis, ms, secs, watchdog};
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

/// A clock that is set, and that panics when it is told to.
#[derive(Clone, Default)]
struct Strange {
    nanos: Arc<AtomicI64>,
    broken: Arc<AtomicBool>,
}

impl Clock for Strange {
    fn now(&self) -> Timestamp {
        assert!(!self.broken.load(Ordering::SeqCst), "{ON_PURPOSE}, by a clock");
        Timestamp::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}

impl Strange {
    fn set(&self, scheduler: &Scheduler, time: Timestamp) {
        self.nanos.store(time.as_nanos(), Ordering::SeqCst);
        scheduler.wake().unwrap();
        assert!(scheduler.wait_idle(None).unwrap());
    }
}

/// mobc#25: a clock that goes back.
#[test]
fn a_clock_that_goes_back_does_no_harm() {
    let _watchdog = watchdog();
    let clock = Strange::default();
    let scheduler = Scheduler::builder().workers(1).clock(clock.clone()).build().unwrap();
    let events = Log::new();
    listen(&scheduler, &events);
    let goes_back = clock.clone();
    let rate = FixedRate::new(ms(10));
    let task = scheduler.every(rate, move |run: &Run| {
        if run.number() == 2 {
            goes_back.nanos.store(at(3).as_nanos(), Ordering::SeqCst);
        }
    });
    let task = task.unwrap();
    clock.set(&scheduler, at(10));
    clock.set(&scheduler, at(20));
    assert_eq!((task.info().runs, task.due()), (2, at(30)));
    clock.set(&scheduler, at(29));
    assert_eq!(task.info().runs, 2, "nothing runs twice, or early");
    clock.set(&scheduler, at(30));
    assert_eq!((task.info().runs, task.info().missed), (3, 0));
    let durations = events.take().into_iter().filter_map(|event| event.duration);
    assert_eq!(durations.collect::<Vec<_>>(), [ms(0); 3]);
    scheduler.shutdown().unwrap();
}

#[test]
fn a_clock_that_panics_shows_its_last_time() {
    hush();
    let _watchdog = watchdog();
    let clock = Strange::default();
    let scheduler = Scheduler::builder().clock(clock.clone()).build().unwrap();
    clock.set(&scheduler, at(10));
    let now = scheduler.schedule(Task::new(at(10), || ())).unwrap();
    let later = scheduler.schedule(Task::new(at(20), || ())).unwrap();
    assert!(now.result(None).is_ok());
    clock.broken.store(true, Ordering::SeqCst);
    clock.set(&scheduler, at(20));
    assert_eq!(scheduler.now(), at(10));
    let past = scheduler.schedule(Task::new(at(9), || ())).unwrap();
    assert!(past.result(None).is_ok(), "the scheduler lives");
    assert_eq!(later.state(), TaskState::Waiting);
    clock.broken.store(false, Ordering::SeqCst);
    scheduler.wake().unwrap();
    assert!(later.result(None).is_ok());
    scheduler.shutdown().unwrap();
}

/// A clock that shows one time for ever, and counts how often it is asked.
struct Stopped(Arc<AtomicI64>);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0.fetch_add(1, Ordering::SeqCst);
        Timestamp::ZERO
    }
}

#[test]
fn a_clock_that_stands_still_is_not_asked_over_and_over() {
    let _watchdog = watchdog();
    let asked = Arc::new(AtomicI64::new(0));
    let scheduler = Scheduler::builder().workers(2).clock(Stopped(Arc::clone(&asked)));
    let scheduler = scheduler.build().unwrap();
    let never = scheduler.schedule(Task::new(Timestamp::from_nanos(1), || ())).unwrap();
    assert!(!never.wait(Some(ms(300))));
    let readings = asked.load(Ordering::SeqCst);
    assert!(readings < 200, "{readings} readings: the clock is polled");
    let now = scheduler.schedule(Task::new(at(0), || true)).unwrap();
    assert!(now.result(None).is_ok());
    assert_eq!(never.state(), TaskState::Waiting);
    assert!(scheduler.shutdown().unwrap());
}

/// A clock that holds a worker up between its look at the time and what it does next.
#[derive(Clone, Default)]
struct Holding {
    nanos: Arc<AtomicI64>,
    /// Which of a worker's readings from now on is held up; 0 for none.
    which: Arc<AtomicI64>,
    held: Held,
}

impl Clock for Holding {
    fn now(&self) -> Timestamp {
        let time = Timestamp::from_nanos(self.nanos.load(Ordering::SeqCst));
        let of_worker = std::thread::current().name() == Some("held-0");
        if of_worker && self.which.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.held.hold();
        }
        time
    }
}

impl Holding {
    fn scheduler(&self) -> Scheduler {
        let scheduler = Scheduler::builder().workers(1).name("held").clock(self.clone());
        scheduler.build().unwrap()
    }

    /// Moves the clock while the worker is held up with the time from before.
    fn move_behind_the_workers_back(&self, scheduler: &Scheduler) {
        self.held.runs.pass();
        self.nanos.store(at(3_600_000).as_nanos(), Ordering::SeqCst);
        scheduler.wake().unwrap();
        self.held.go_on.open();
    }
}

/// ngit#76: the due time comes between a worker's look at the time and its sleep.
#[test]
fn a_clock_that_moves_while_a_worker_looks_at_it_is_looked_at_again() {
    let _watchdog = watchdog();
    let clock = Holding::default();
    let scheduler = clock.scheduler();
    let task = scheduler.after(secs(3600), || ()).unwrap();
    clock.which.store(1, Ordering::SeqCst);
    scheduler.wake().unwrap();
    clock.move_behind_the_workers_back(&scheduler);
    assert!(task.result(None).is_ok());
}

#[test]
fn a_clock_that_moves_while_a_waiting_run_looks_at_it_is_looked_at_again() {
    let _watchdog = watchdog();
    let clock = Holding::default();
    let scheduler = clock.scheduler();
    let which = Arc::clone(&clock.which);
    let task = scheduler.after(ms(0), move |run: &Run| {
        which.store(2, Ordering::SeqCst); // the first is for the end of the wait
        run.wait(secs(3600))
    });
    clock.move_behind_the_workers_back(&scheduler);
    let end = task.unwrap();
    assert!(end.wait(None));
    assert_eq!(end.info().finished, Some(at(3_600_000)));
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
