//! Custom clocks: ones that go back, panic, stand still, or move at the worst moment.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use common::{Held, Log, ON_PURPOSE, at, hush, listen, ms, secs, watchdog};
use duetime::{Clock, FixedRate, Run, Scheduler, Task, TaskState, Timestamp};

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
