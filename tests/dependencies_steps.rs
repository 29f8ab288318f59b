//! Very many that fall with one task: in parts, each a short hold of the queue's lock. Counted, not
//! timed: a listener that is told of the first part's tasks sees how many have fallen by then.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::{Arc, Mutex};

use common::{World, at, cause};
use duetime::{
    CancelOutcome, Dependency, DependencyFailed, Error, Event, EventKind, JobError, Task,
    TaskHandle, TaskId, TaskState,
};

/// The most that fall in one hold.
const PART: usize = 256;
const MANY: usize = 10 * PART + 7;

/// Which task another fell with.
fn root_of(error: &JobError) -> TaskId {
    cause::<DependencyFailed>(error).id
}

/// What a test does when the first that fell is told of.
type Meanwhile = Box<dyn FnOnce(&World, &[TaskHandle]) + Send>;

/// A task that fails at 1, and `MANY` that fall with it: side by side, or one behind the other.
fn fall(chain: bool, meanwhile: Meanwhile) -> (Arc<World>, Vec<TaskHandle>, Vec<usize>) {
    let world = Arc::new(World::new(1));
    let mut tasks = vec![Task::new(at(1), || false).id("root")];
    let parent = |child: usize| Dependency::Nth(if chain { child - 1 } else { 0 });
    tasks.extend((1..=MANY).map(|child| Task::new(at(0), || ()).depends_on([parent(child)])));
    let handles = world.scheduler.schedule_all(tasks).unwrap();
    let counts = Arc::new(Mutex::new(Vec::new()));
    let (told, all) = (Arc::clone(&counts), handles.clone());
    let (weak, meanwhile) = (Arc::downgrade(&world), Mutex::new(Some(meanwhile)));
    let listener = move |_: &Event| {
        let fallen = all.iter().filter(|task| task.state() == TaskState::Cancelled).count();
        told.lock().unwrap().push(fallen);
        let first = meanwhile.lock().unwrap().take();
        if let Some(meanwhile) = first {
            meanwhile(&weak.upgrade().unwrap(), &all);
        }
    };
    world.scheduler.add_listener(listener, &[EventKind::Cancelled]).unwrap();
    world.advance(1);
    let counts = counts.lock().unwrap().clone();
    (world, handles, counts)
}

#[test]
fn they_fall_in_parts_the_nearest_first() {
    for chain in [false, true] {
        let (world, handles, counts) = fall(chain, Box::new(|_, _| ()));
        assert_eq!(counts.len(), MANY, "each is told of once");
        for (told, fallen) in counts.iter().enumerate() {
            let parts = (told / PART + 1) * PART;
            assert_eq!(*fallen, parts.min(MANY), "as task {told} is told of");
        }
        for task in &handles[1..] {
            assert_eq!((task.state(), task.info().runs), (TaskState::Cancelled, 0));
            assert_eq!(root_of(&task.last_error().unwrap()), TaskId::from("root"));
        }
        let stats = world.scheduler.stats().unwrap();
        assert_eq!((stats.waiting, stats.failed, stats.cancelled), (0, 1, MANY as u64));
    }
}

/// Each is cancelled, once, for itself or with the root; who waits for the root finds all of them
/// ended.
#[test]
fn meanwhile_one_whose_turn_has_not_come_waits_and_can_be_cancelled() {
    for chain in [false, true] {
        let meanwhile = |_: &World, all: &[TaskHandle]| {
            let last = &all[MANY - 1];
            assert_eq!(last.state(), TaskState::Waiting);
            assert_eq!(last.cancel().unwrap(), CancelOutcome::Cancelled);
            assert_eq!(all[1].cancel().unwrap(), CancelOutcome::Finished);
        };
        let (world, handles, counts) = fall(chain, Box::new(meanwhile));
        assert_eq!(counts.len(), MANY, "each is told of once");
        assert!(handles.iter().all(|task| task.state().is_end()));
        assert!(handles[MANY - 1].last_error().is_none(), "nothing failed before it");
        // Behind it in the chain, one falls with what was cancelled.
        let behind = root_of(&handles[MANY].last_error().unwrap());
        let expected = if chain { handles[MANY - 1].id() } else { TaskId::from("root") };
        assert_eq!(behind, expected);
        assert_eq!(world.scheduler.stats().unwrap().waiting, 0);
    }
}

#[test]
fn meanwhile_another_may_come_to_depend_on_one_and_falls_after_it() {
    for chain in [false, true] {
        let meanwhile = |world: &World, all: &[TaskHandle]| {
            let scheduler = &world.scheduler;
            let new = |id: &str, parent: &TaskHandle| {
                Task::new(at(0), || ()).id(id).depends_on([Dependency::from(parent)])
            };
            let late = scheduler.schedule(new("late", &all[MANY - 1])).unwrap();
            assert_eq!(late.state(), TaskState::Waiting);
            let fell = scheduler.schedule(new("fell", &all[1])).unwrap();
            assert_eq!(fell.state(), TaskState::Cancelled);
            assert_eq!(root_of(&fell.last_error().unwrap()), TaskId::from("root"));
        };
        let (world, _, counts) = fall(chain, Box::new(meanwhile));
        assert_eq!(counts.len(), MANY + 2, "each is told of once");
        let info = world.scheduler.info("late").unwrap();
        assert_eq!((info.state, info.runs), (TaskState::Cancelled, 0));
        assert!(info.error.unwrap().contains("root"));
    }
}

#[test]
fn meanwhile_the_scheduler_may_be_paused_and_asked_and_shut_down() {
    for chain in [false, true] {
        let meanwhile = |world: &World, all: &[TaskHandle]| {
            let scheduler = &world.scheduler;
            assert_eq!(scheduler.stats().unwrap().waiting, MANY - PART);
            all[MANY].pause().unwrap();
            assert_eq!(scheduler.stats().unwrap().paused, 1);
            assert_eq!(scheduler.next_due().unwrap(), None, "what waits for others is not due");
            assert!(matches!(scheduler.wait_idle(None), Err(Error::InsideJob(_))));
            scheduler.shutdown().unwrap();
            assert!(all.iter().skip(PART + 1).all(|task| task.state() == TaskState::Cancelled));
        };
        let (world, handles, counts) = fall(chain, Box::new(meanwhile));
        assert_eq!(counts.len(), MANY, "each is told of once");
        assert!(handles.iter().all(|task| task.wait(None)));
        let stats = world.scheduler.stats().unwrap();
        assert_eq!((stats.waiting, stats.paused, stats.cancelled), (0, 0, MANY as u64));
    }
}

/// Who waits for the root finds all that fell with it ended, however many they are.
#[test]
fn who_waited_for_the_root_finds_all_of_them_ended() {
    let world = World::new(1);
    let mut tasks = vec![Task::new(at(1), || false)];
    tasks.extend((0..MANY).map(|_| Task::new(at(0), || ()).depends_on([Dependency::Nth(0)])));
    let handles = world.scheduler.schedule_all(tasks).unwrap();
    let (all, left) = (handles.clone(), Arc::new(Mutex::new(None)));
    let found = Arc::clone(&left);
    handles[0].on_done(move |_: &TaskHandle| {
        let waiting = all.iter().filter(|task| !task.state().is_end()).count();
        *found.lock().unwrap() = Some(waiting);
    });
    world.advance(1);
    assert_eq!(*left.lock().unwrap(), Some(0));
}
