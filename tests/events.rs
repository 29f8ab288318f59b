//! Events: which, in what order, with what in them; and listeners that do as they like.

mod common;

use std::sync::{Arc, Mutex};

use common::{Held, Log, ON_PURPOSE, World, at, hush, listen, ms, secs, watchdog};
use duetime::{
    Error, Event, EventKind, FixedRate, ListenerId, Missed, Run, Scheduler, Shutdown, Task,
    TaskState, retry,
};

fn rate(millis: u64) -> FixedRate {
    FixedRate::new(ms(millis))
}

/// A job that takes its time.
fn takes(millis: u64) -> impl FnMut(&Run) + Send + 'static {
    move |run: &Run| {
        let _ = run.wait(ms(millis));
    }
}

#[test]
fn a_run_is_told_from_scheduled_to_completed() {
    let world = World::new(1);
    let task = Task::new(at(10), takes(5)).id("t");
    world.scheduler.schedule(task.recurrence(rate(20)).max_runs(2)).unwrap();
    world.advance(100);
    let expected = [
        "0 SCHEDULED 't'",
        "10 DUE 't'",
        "10 STARTED 't'",
        "15 COMPLETED 't' next 30",
        "30 DUE 't'",
        "30 STARTED 't'",
        "35 COMPLETED 't'",
    ];
    assert_eq!(world.story(), expected);
}

#[test]
fn what_an_event_carries() {
    let world = World::new(1);
    let task = Task::new(at(10), takes(25)).id("t");
    world.scheduler.schedule(task.recurrence(rate(10)).max_runs(2)).unwrap();
    world.jump(12); // starts 2 late, ends at 37, misses 20 and 30
    world.advance(100);
    let events = world.events.take();
    let of = |kind| events.iter().find(|event| event.kind == kind).unwrap();
    for event in &events {
        assert_eq!(event.task_id, "t".into());
        assert_eq!(event.attempt, 1);
        assert!(event.error.is_none());
        let (due, run) = if event.due == at(10) { (at(10), 1) } else { (at(40), 2) };
        assert_eq!((event.due, event.run), (due, run), "{event:?}");
        let over = event.kind == EventKind::Completed;
        assert_eq!(event.lateness.is_some(), over || event.kind == EventKind::Started);
        assert_eq!(event.duration.is_some(), over);
        assert_eq!(event.missed.is_some(), event.kind == EventKind::Missed);
    }
    assert_eq!(of(EventKind::Started).lateness, Some(ms(2)));
    assert_eq!(of(EventKind::Completed).lateness, Some(ms(2)));
    assert_eq!(of(EventKind::Completed).duration, Some(ms(25)));
    assert_eq!(of(EventKind::Completed).next_due, Some(at(40)));
    let missed = of(EventKind::Missed);
    assert_eq!((missed.missed, missed.next_due), (Some(2), Some(at(40))));
    let last = events.last().unwrap();
    assert_eq!((last.lateness, last.next_due), (Some(ms(0)), None));
}

#[test]
fn each_failed_attempt_is_told_and_whether_another_follows() {
    let world = World::new(1);
    let job = |run: &Run| Err::<(), _>(format!("attempt {}", run.attempt()));
    let task = Task::new(at(10), job).retry(retry::FixedDelay::new(2, ms(5)));
    world.scheduler.schedule(task).unwrap();
    world.advance(100);
    let events = world.events.take();
    let failed = events.iter().filter(|event| event.kind == EventKind::Failed);
    let told: Vec<_> = failed
        .map(|event| {
            (event.attempt, event.run, event.next_due, event.will_retry, event.error.clone())
        })
        .map(|(attempt, run, next, retry, error)| {
            (attempt, run, next, retry.unwrap(), error.unwrap().to_string())
        })
        .collect();
    let text = |n| format!("attempt {n}");
    let expected = [
        (1, 1, Some(at(15)), true, text(1)),
        (2, 2, Some(at(20)), true, text(2)),
        (3, 3, None, false, text(3)),
    ];
    assert_eq!(told, expected);
    assert!(events.iter().all(|event| event.kind != EventKind::Completed));
}

#[test]
fn a_listener_hears_the_kinds_that_it_asked_for_while_it_is_there() {
    let world = World::quiet(1);
    let heard = Log::new();
    let add = |kinds: &[EventKind]| {
        let heard = heard.clone();
        let listener = move |event: &Event| heard.push(event.kind);
        world.scheduler.add_listener(listener, kinds).unwrap()
    };
    let run = || {
        world.scheduler.after(ms(1), || ()).unwrap();
        world.advance(1);
    };
    run();
    assert_eq!(heard.len(), 0);
    let two = add(&[EventKind::Started, EventKind::Completed]);
    run();
    assert_eq!(heard.take(), [EventKind::Started, EventKind::Completed]);
    let due = add(&[EventKind::Due]);
    add(&[]);
    run();
    assert_eq!(heard.take(), [EventKind::Due, EventKind::Started, EventKind::Completed]);
    assert!(world.scheduler.remove_listener(two).unwrap());
    assert!(!world.scheduler.remove_listener(two).unwrap());
    run();
    assert_eq!(heard.take(), [EventKind::Due]);
    assert!(world.scheduler.remove_listener(due).unwrap());
    run();
    assert_eq!(heard.len(), 0);
}

#[test]
fn due_comes_on_time_and_once_even_when_every_worker_is_busy() {
    let world = World::new(1);
    let slow = Task::new(at(10), takes(50)).id("slow");
    world.scheduler.schedule(slow).unwrap();
    world.scheduler.schedule(Task::new(at(30), || ()).id("late")).unwrap();
    world.advance(60);
    let expected = [
        "0 SCHEDULED 'slow'",
        "0 SCHEDULED 'late'",
        "10 DUE 'slow'",
        "10 STARTED 'slow'",
        "30 DUE 'late'",
        "60 COMPLETED 'slow'",
        "60 STARTED 'late'",
        "60 COMPLETED 'late'",
    ];
    assert_eq!(world.story(), expected);
}

#[test]
fn due_comes_while_the_only_worker_is_busy_on_the_real_clock() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(1).build().unwrap();
    let held = Held::new();
    let go_on = held.go_on.clone();
    // Only the DUE event of the late task lets the worker go on.
    let on_due = move |event: &Event| {
        if event.task_id == "late".into() {
            go_on.open();
        }
    };
    scheduler.add_listener(on_due, &[EventKind::Due]).unwrap();
    scheduler.after(ms(0), held.clone()).unwrap();
    held.runs.pass();
    let late = Task::new(scheduler.now() + ms(2), || ()).id("late");
    assert!(scheduler.schedule(late).unwrap().result(None).is_ok());
}

/// With one worker the order of all events is the same in every run.
#[test]
fn a_crowd_due_in_one_instant_is_told_in_one_order() {
    let story = || {
        let world = World::new(1);
        for n in 0..8 {
            let task = Task::new(at(10), || ()).id(n);
            world.scheduler.schedule(task.recurrence(rate(10))).unwrap();
        }
        world.advance(50);
        world.story()
    };
    let first = story();
    for _ in 0..50 {
        assert_eq!(story(), first);
    }
    let dues = first.iter().skip(8).take(8);
    let expected: Vec<String> = (0..8).map(|n| format!("10 DUE {n}")).collect();
    assert!(dues.eq(&expected), "{first:?}");
}

#[test]
fn slots_that_pass_are_told_as_one_missed_event() {
    for (rule, missed) in [(rate(10), 98), (rate(10).missed(Missed::CatchUp), 0)] {
        let world = World::new(1);
        world.scheduler.every(rule, || ()).unwrap();
        world.jump(1_000);
        let events = world.events.take();
        let told: Vec<u64> = events.iter().filter_map(|event| event.missed).collect();
        assert_eq!(told, if missed > 0 { vec![missed] } else { vec![] });
        assert_eq!(world.scheduler.stats().unwrap().missed, missed);
    }
}

#[test]
fn a_listener_that_panics_keeps_nothing_from_the_others() {
    hush();
    let world = World::quiet(1);
    let bad = |_: &Event| panic!("{ON_PURPOSE}, in a listener");
    world.scheduler.add_listener(bad, &EventKind::ALL).unwrap();
    listen(&world.scheduler, &world.events);
    let task = world.scheduler.after(ms(1), || ()).unwrap();
    world.advance(1);
    assert_eq!(task.state(), TaskState::Done);
    assert_eq!(world.events.len(), 4);
    let cancelled = world.scheduler.after(ms(1), || ()).unwrap();
    cancelled.cancel().unwrap();
    assert_eq!(world.events.len(), 6);
}

/// apscheduler#1076: whatever a listener calls, from each kind of event.
#[test]
fn a_listener_may_call_any_method() {
    for kind in EventKind::ALL {
        let world = World::quiet(1);
        let me: Arc<Mutex<Option<ListenerId>>> = Arc::default();
        let (scheduler, own) = (world.scheduler.downgrade(), Arc::clone(&me));
        let called = Log::new();
        let log = called.clone();
        let listener = move |event: &Event| {
            let scheduler = scheduler.upgrade().unwrap();
            assert!(scheduler.is_inside());
            let id = own.lock().unwrap().take().unwrap();
            assert!(scheduler.remove_listener(id).unwrap());
            assert!(scheduler.add_listener(|_: &Event| (), &EventKind::ALL).is_ok());
            assert!(scheduler.info(&event.task_id).is_ok());
            let _ = scheduler.cancel(&event.task_id).unwrap();
            let other = scheduler.after(secs(1), || ()).unwrap();
            assert!(scheduler.cancel(other.id()).is_ok());
            assert!(scheduler.stats().is_ok() && scheduler.tasks(None).is_ok());
            assert!(scheduler.next_due().is_ok() && scheduler.wake().is_ok());
            assert!(matches!(scheduler.wait_idle(None), Err(Error::InsideJob(_))));
            assert!(scheduler.shutdown().is_ok(), "it does not wait for itself");
            assert!(scheduler.after(secs(1), || ()).is_err());
            log.push(event.kind);
        };
        let id = world.scheduler.add_listener(listener, &[kind]).unwrap();
        *me.lock().unwrap() = Some(id);
        let held = Held::new();
        if kind == EventKind::Stuck {
            let stuck = Task::new(at(0), held.clone()).timeout(ms(1)).grace(ms(1));
            world.scheduler.schedule(stuck).unwrap();
            held.runs.pass();
        }
        let fails = Task::new(at(10), |run: &Run| run.number() == 1).recurrence(rate(10));
        if let Ok(task) = world.scheduler.schedule(fails) {
            world.jump(25);
            world.advance(20);
            if kind == EventKind::Cancelled {
                task.cancel().unwrap();
            }
        }
        assert!(world.scheduler.shutdown_with(Shutdown::wait()).unwrap());
        assert_eq!(called.take(), [kind]);
        held.go_on.open();
    }
}

#[test]
fn no_event_comes_after_a_shutdown_that_waited() {
    let world = World::new(4);
    for n in 0..100 {
        let task = Task::new(at(n % 10), || ()).recurrence(rate(1));
        world.scheduler.schedule(task).unwrap();
    }
    world.advance(20);
    world.scheduler.shutdown().unwrap();
    let told = world.events.take();
    let cancelled = told.iter().filter(|event| event.kind == EventKind::Cancelled);
    assert_eq!(cancelled.count(), 100);
    world.advance(100);
    assert_eq!(world.events.len(), 0);
}
