//! Run control of tasks that wait for others to end.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::mpsc::channel;
use std::time::Duration;

use common::{Log, World, at, millis, ms};
use duetime::ControlOutcome::Applied;
use duetime::{
    CancelOutcome, Completion, Event, EventKind, FixedRate, Later, Shutdown, Task, TaskHandle,
    TaskState, Value,
};

/// One task due at 100 ms, which may fail, and one that waits for it and is due at `due`.
fn pair(due: i64, ok: bool) -> (World, TaskHandle) {
    let world = World::new(1);
    let parent = Task::new(at(100), move || if ok { Ok(()) } else { Err("broke") }).id("parent");
    let child = Task::new(at(due), || ()).id("child").depends_on(["parent"]);
    let child = world.scheduler.schedule_all(vec![child, parent]).unwrap().remove(0);
    world.story();
    (world, child)
}

/// How many wait, and how many of them are paused.
fn counts(world: &World) -> (usize, usize) {
    let stats = world.scheduler.stats().unwrap();
    (stats.waiting, stats.paused)
}

/// When the child was started since the last call, and how late.
fn starts(world: &World) -> Vec<(i64, Duration)> {
    let of_child =
        |event: &Event| event.kind == EventKind::Started && event.task_id == "child".into();
    let child = world.events.take().into_iter().filter(of_child);
    child.map(|event| (millis(event.time), event.lateness.unwrap())).collect()
}

#[test]
fn it_is_rescheduled_in_both_directions() {
    let (world, child) = pair(10, true);
    assert_eq!(child.reschedule(at(150)).unwrap(), Applied);
    assert_eq!(child.due(), at(150));
    world.advance(100);
    assert_eq!((starts(&world), world.scheduler.next_due().unwrap()), (vec![], Some(at(150))));
    world.advance(50);
    assert_eq!(starts(&world), [(150, ms(0))]);

    let (world, child) = pair(200, true);
    assert_eq!(child.reschedule(at(40)).unwrap(), Applied);
    assert_eq!(world.scheduler.next_due().unwrap(), Some(at(100)), "the other's");
    world.advance(100);
    assert_eq!(starts(&world), [(100, ms(60))]);
}

#[test]
fn run_now_makes_it_due_and_it_still_waits() {
    let (world, child) = pair(200, true);
    world.advance(30);
    assert_eq!(child.run_now().unwrap(), Applied);
    assert_eq!((child.due(), child.state()), (at(30), TaskState::Waiting));
    world.advance(69);
    assert_eq!(starts(&world), []);
    world.advance(1);
    assert_eq!(starts(&world), [(100, ms(70))]);
}

#[test]
fn run_now_of_a_series_is_one_more_run_of_it() {
    let world = World::new(1);
    world.scheduler.schedule(Task::new(at(100), || ()).id("parent")).unwrap();
    let child = Task::new(at(200), || ()).recurrence(FixedRate::new(ms(10))).max_runs(2);
    let child = world.scheduler.schedule(child.id("child").depends_on(["parent"])).unwrap();
    assert_eq!(child.run_now().unwrap(), Applied);
    world.advance(300);
    assert_eq!(starts(&world), [(100, ms(100)), (200, ms(0)), (210, ms(0))]);
    assert_eq!(child.state(), TaskState::Done);
}

#[test]
fn one_that_is_paused_is_held_when_it_is_freed() {
    let (world, child) = pair(10, true);
    assert_eq!(counts(&world), (2, 0));
    for _ in 0..2 {
        assert_eq!(child.pause().unwrap(), Applied);
        assert_eq!((counts(&world), child.is_paused()), ((2, 1), true));
    }
    world.advance(100);
    assert_eq!((counts(&world), child.state()), ((1, 1), TaskState::Waiting));
    assert_eq!(world.scheduler.next_due().unwrap(), None);
    assert!(world.scheduler.wait_idle(None).unwrap());
    assert!(world.story().iter().all(|line| !line.contains("child")), "neither due nor started");
    world.advance(20);
    assert_eq!(child.resume().unwrap(), Applied);
    world.advance(0);
    assert_eq!((starts(&world), counts(&world)), (vec![(120, ms(110))], (0, 0)));
}

#[test]
fn one_that_is_resumed_waits_for_the_others_again() {
    let (world, child) = pair(10, true);
    child.pause().unwrap();
    assert_eq!(child.resume().unwrap(), Applied);
    assert_eq!(counts(&world), (2, 0));
    world.advance(99);
    assert_eq!((starts(&world), child.state()), (vec![], TaskState::Waiting));
    world.advance(1);
    assert_eq!(starts(&world), [(100, ms(90))]);
}

#[test]
fn one_that_is_paused_is_run_once_and_stays_paused() {
    let world = World::new(1);
    world.scheduler.schedule(Task::new(at(100), || ()).id("parent")).unwrap();
    let child = Task::new(at(200), || ()).recurrence(FixedRate::new(ms(10))).id("child");
    let child = world.scheduler.schedule(child.depends_on(["parent"])).unwrap();
    child.pause().unwrap();
    child.run_now().unwrap();
    world.advance(300);
    assert_eq!(starts(&world), [(100, ms(100))]);
    assert_eq!((counts(&world), child.is_paused()), ((1, 1), true));
}

#[test]
fn it_is_cancelled_wherever_it_is() {
    for (pause, free) in [(false, false), (true, false), (true, true)] {
        let (world, child) = pair(10, true);
        if pause {
            child.pause().unwrap();
        }
        if free {
            world.advance(100);
        }
        assert_eq!(child.cancel().unwrap(), CancelOutcome::Cancelled);
        assert_eq!(counts(&world), (usize::from(!free), 0));
        world.advance(200);
        assert_eq!((counts(&world), starts(&world)), ((0, 0), vec![]));
    }
}

#[test]
fn a_paused_one_is_cancelled_with_what_it_depends_on_or_the_scheduler() {
    let (world, child) = pair(10, false);
    child.pause().unwrap();
    world.advance(100);
    assert_eq!((child.state(), counts(&world)), (TaskState::Cancelled, (0, 0)));
    assert!(!child.info().paused && child.last_error().is_some());

    let (world, child) = pair(10, true);
    child.pause().unwrap();
    world.clock.jump(ms(100)).unwrap();
    assert!(world.scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    assert_eq!((child.state(), counts(&world)), (TaskState::Cancelled, (0, 0)));
}

#[test]
fn a_listener_that_hears_of_the_last_end_controls_it() {
    for controls in [TaskHandle::pause, TaskHandle::resume, TaskHandle::run_now] {
        let (world, child) = pair(110, true);
        let other = child.clone();
        let answers = Log::new();
        let heard = answers.clone();
        let control = move |event: &Event| {
            if event.task_id == "parent".into() {
                heard.push(controls(&other).unwrap());
            }
        };
        world.scheduler.add_listener(control, &[EventKind::Completed]).unwrap();
        world.advance(100);
        assert_eq!(answers.take(), [Applied]);
        let (started, paused) = (child.info().runs == 1, child.is_paused());
        assert!(!(started && paused));
        assert_eq!(counts(&world), (usize::from(!started), usize::from(paused)));
    }
}

#[test]
fn while_the_scheduler_is_paused_a_run_elsewhere_ends_and_frees_it() {
    let world = World::new(1);
    let (send, runs) = channel::<Completion>();
    let job = move || {
        let send = send.clone();
        Later::new(move |completion| send.send(completion).unwrap())
    };
    world.scheduler.schedule(Task::new(at(0), job).id("parent")).unwrap();
    let child = Task::new(at(0), || ()).id("child").depends_on(["parent"]);
    let child = world.scheduler.schedule(child).unwrap();
    let completion = runs.recv().unwrap();
    world.scheduler.pause().unwrap();
    assert!(!world.scheduler.wait_idle(Some(Duration::ZERO)).unwrap(), "it runs");
    assert_eq!(world.scheduler.stats().unwrap().running, 1);
    completion.finish(Value::new(()));
    assert!(world.scheduler.wait_idle(None).unwrap());
    assert_eq!((child.state(), counts(&world)), (TaskState::Waiting, (1, 0)));
    world.scheduler.resume().unwrap();
    assert!(child.wait(None));
    assert_eq!(child.state(), TaskState::Done);
}
