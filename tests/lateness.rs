//! Lateness told apart: what runs waited for a worker, and what a worker waited for at the door of its
//! surroundings.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use common::{Held, Watchdog, World, at, ms, secs, watchdog};
use duetime::{
    Clock, EventKind, FixedRate, Lateness, ManualClock, Missed, Pause, Percentiles, Run, Scheduler,
    Surroundings, Task, TaskHandle, Timestamp, retry,
};

fn lateness(scheduler: &Scheduler) -> Lateness {
    scheduler.stats().unwrap().lateness
}

#[test]
fn on_a_manual_clock_what_is_on_time_is_not_late_and_a_jump_is_the_queues() {
    let world = World::quiet(1);
    assert_eq!(lateness(&world.scheduler), Lateness::default());
    world.scheduler.schedule(Task::new(at(1000), || ())).unwrap();
    world.advance(1000);
    let seen = lateness(&world.scheduler);
    for part in [seen.queue, seen.gil] {
        assert_eq!((part.count, part.p50, part.p99, part.max), (1, secs(0), secs(0), secs(0)));
    }

    let world = World::quiet(4);
    world.scheduler.schedule(Task::new(at(5000), || ())).unwrap();
    world.jump(15_000);
    let seen = lateness(&world.scheduler);
    let Percentiles { count, p50, p90, p99, max, .. } = seen.queue;
    assert_eq!((count, [p50, p90, p99, max]), (1, [secs(10); 4]), "exact where all are alike");
    assert_eq!((seen.gil.count, seen.gil.max), (1, secs(0)));
}

#[test]
fn each_retry_and_each_slot_counts_by_its_own_due() {
    let world = World::quiet(1);
    let task = Task::new(at(1000), || false).retry(retry::FixedDelay::new(1, secs(5)));
    world.scheduler.schedule(task).unwrap();
    world.jump(3000); // 2 s late; the retry is due at 8 s
    world.jump(9000); // 4 s late
    let seen = lateness(&world.scheduler).queue;
    assert_eq!((seen.count, seen.max), (2, secs(4)));
    assert!((secs(2)..=ms(2040)).contains(&seen.p50));

    let world = World::quiet(1);
    world.scheduler.every(FixedRate::new(secs(1)).missed(Missed::CatchUp), || ()).unwrap();
    world.jump(10_000); // 9, 8, … 0 s late
    let seen = lateness(&world.scheduler).queue;
    assert_eq!((seen.count, seen.max), (10, secs(9)));
    assert!((secs(4)..=ms(4080)).contains(&seen.p50) && (secs(8)..=ms(8160)).contains(&seen.p90));
}

#[test]
fn what_never_starts_does_not_count() {
    let world = World::quiet(1);
    let task = world.scheduler.schedule(Task::new(at(1000), || ())).unwrap();
    assert!(task.cancel().is_ok());
    world.jump(5000);
    assert_eq!(lateness(&world.scheduler), Lateness::default());
}

#[test]
fn a_place_in_a_group_is_waited_for_in_the_queue() {
    let (clock, _watchdog) = (ManualClock::new(), watchdog());
    let scheduler = Scheduler::builder().limit("db", 1).clock(clock.clone()).build().unwrap();
    let five_seconds = |run: &Run| assert!(!run.wait(secs(5)));
    let tasks = [(); 2].map(|()| Task::new(at(1000), five_seconds).group("db"));
    scheduler.schedule_all(tasks.into()).unwrap();
    clock.advance(secs(20)).unwrap();
    let seen = lateness(&scheduler);
    assert_eq!((seen.queue.count, seen.queue.p50, seen.queue.max), (2, secs(0), secs(5)));
}

/// Surroundings with a door that a test shuts, on a clock that it moves.
#[derive(Clone, Default)]
struct Building(Arc<(Mutex<Door>, Condvar, AtomicI64)>);

#[derive(Default)]
struct Door {
    shut: bool,
    standing: usize,
}

impl Building {
    fn door(&self) -> MutexGuard<'_, Door> {
        self.0.0.lock().expect("no holder panics")
    }

    fn pass(&self) {
        let mut door = self.door();
        door.standing += 1;
        self.0.1.notify_all();
        let mut door = self.0.1.wait_while(door, |door| door.shut).expect("no holder panics");
        door.standing -= 1;
    }

    fn shut(&self) {
        self.door().shut = true;
    }

    fn open(&self) {
        self.door().shut = false;
        self.0.1.notify_all();
    }

    fn until_somebody_stands_there(&self) {
        drop(self.0.1.wait_while(self.door(), |door| door.standing == 0).unwrap());
    }

    fn set(&self, time: Timestamp) {
        self.0.2.store(time.as_nanos(), Ordering::SeqCst);
    }
}

impl Clock for Building {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.2.load(Ordering::SeqCst))
    }
}

impl Pause for Building {
    fn pause(&self, wait: &mut (dyn FnMut() + Send)) {
        wait();
        self.pass();
    }
}

impl Surroundings for Building {
    fn live(&self, _: &str, life: &mut dyn FnMut(&dyn Pause)) {
        self.pass();
        life(self);
    }

    /// A worker lets others in as often as it can.
    fn turn(&self) -> Duration {
        Duration::ZERO
    }
}

fn in_a_building(workers: usize) -> (Building, Scheduler, Watchdog) {
    let building = Building::default();
    let builder = Scheduler::builder().workers(workers).clock(building.clone());
    let scheduler = builder.surroundings(building.clone()).build().unwrap();
    (building, scheduler, watchdog())
}

fn ended(task: &TaskHandle) {
    task.result(None).unwrap();
}

#[test]
fn a_worker_that_waits_at_its_door_is_not_the_queues_fault() {
    let (building, scheduler, _watchdog) = in_a_building(1);
    let task = scheduler.schedule(Task::new(at(10), || ())).unwrap();
    building.shut();
    building.set(at(13));
    scheduler.wake().unwrap();
    building.until_somebody_stands_there();
    building.set(at(20));
    building.open();
    ended(&task);
    let seen = lateness(&scheduler);
    assert_eq!((seen.queue.max, seen.gil.max), (ms(3), ms(7)));
    assert_eq!((seen.queue.count, seen.gil.count), (1, 1));
    scheduler.shutdown().unwrap();
}

#[test]
fn a_pool_that_is_busy_is_not_the_doors_fault() {
    let (building, scheduler, _watchdog) = in_a_building(1);
    let busy = Held::new();
    scheduler.schedule(Task::new(at(0), busy.clone())).unwrap();
    busy.runs.pass();
    let task = scheduler.schedule(Task::new(at(10), || ())).unwrap();
    building.set(at(17));
    busy.go_on.open();
    ended(&task);
    let seen = lateness(&scheduler);
    assert_eq!((seen.queue.max, seen.gil.max), (ms(7), ms(0)));
    scheduler.shutdown().unwrap();
}

/// Another worker that stood ready could have had it, but for the door.
#[test]
fn what_a_worker_takes_that_was_inside_waited_at_the_door_with_those_outside() {
    let (building, scheduler, _watchdog) = in_a_building(2);
    let inside = Held::new();
    scheduler.schedule(Task::new(at(0), inside.clone())).unwrap();
    inside.runs.pass();
    building.shut();
    let task = scheduler.schedule(Task::new(at(10), || ())).unwrap();
    building.set(at(12));
    scheduler.wake().unwrap();
    building.until_somebody_stands_there();
    building.set(at(17));
    inside.go_on.open();
    ended(&task);
    let seen = lateness(&scheduler);
    assert_eq!((seen.queue.max, seen.gil.max), (ms(2), ms(5)));
    building.open();
    scheduler.shutdown().unwrap();
}

#[test]
fn a_worker_that_lets_others_in_waits_at_the_door_too() {
    let (building, scheduler, _watchdog) = in_a_building(1);
    let busy = Held::new();
    let first = scheduler.schedule(Task::new(at(0), busy.clone())).unwrap();
    busy.runs.pass();
    let tasks: Vec<_> = (0..16).map(|_| Task::new(at(0), || ())).collect();
    let tasks = scheduler.schedule_all(tasks).unwrap();
    building.shut();
    busy.go_on.open();
    building.until_somebody_stands_there(); // after 16 jobs
    building.set(at(5));
    building.open();
    tasks.iter().chain([&first]).for_each(ended);
    let seen = lateness(&scheduler);
    assert_eq!((seen.gil.count, seen.gil.p90, seen.gil.max), (17, ms(0), ms(5)));
    assert_eq!(seen.queue.max, ms(0));
    scheduler.shutdown().unwrap();
}

#[test]
fn both_parts_are_what_the_events_call_lateness() {
    let (building, scheduler, _watchdog) = in_a_building(1);
    let events = common::Log::new();
    common::listen(&scheduler, &events);
    let task = scheduler.schedule(Task::new(at(10), || ())).unwrap();
    building.shut();
    building.set(at(14));
    scheduler.wake().unwrap();
    building.until_somebody_stands_there();
    building.set(at(25));
    building.open();
    ended(&task);
    let started = events.take().into_iter().find(|event| event.kind == EventKind::Started);
    let seen = lateness(&scheduler);
    assert_eq!(started.and_then(|event| event.lateness), Some(seen.queue.max + seen.gil.max));
    scheduler.shutdown().unwrap();
}
