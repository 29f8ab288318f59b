//! Run control: tasks are rescheduled, run now, paused and resumed, and so is the scheduler.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::mpsc;

use common::{Held, Log, World, at, millis, ms};
use duetime::ControlOutcome::{self, Applied, Finished, Running, Unknown};
use duetime::{
    CancelOutcome, Error, Event, EventKind, FixedDelay, FixedRate, Missed, Run, Scheduler,
    Shutdown, Task, TaskHandle, TaskState, retry,
};

/// A job that notes when it was due and when it started.
fn noting(log: &Log<(i64, i64)>) -> impl Fn(&Run) + Send + 'static {
    let log = log.clone();
    move |run: &Run| log.push((millis(run.due()), millis(run.now())))
}

fn starts(log: &Log<(i64, i64)>) -> Vec<i64> {
    log.take().into_iter().map(|(_, started)| started).collect()
}

fn every(millis: u64) -> FixedRate {
    FixedRate::new(ms(millis))
}

/// A scheduler of one worker, and a series every 10 ms from 10 ms on with the log of its starts.
fn series(rule: FixedRate) -> (World, TaskHandle, Log<(i64, i64)>) {
    let (world, log) = (World::new(1), Log::new());
    let task = Task::new(at(10), noting(&log)).id("t").recurrence(rule);
    let task = world.scheduler.schedule(task).unwrap();
    (world, task, log)
}

#[test]
fn ten_slots_pass_while_a_series_is_paused() {
    let (world, task, log) = series(every(10));
    assert_eq!(task.pause().unwrap(), Applied);
    world.advance(105);
    assert_eq!(log.len(), 0);
    world.story();
    assert_eq!(task.resume().unwrap(), Applied);
    assert_eq!(world.story(), ["105 MISSED 't' 10"]);
    world.advance(25);
    assert_eq!(starts(&log), [110, 120, 130]);
    assert_eq!(task.info().missed, 10);
    assert_eq!(world.scheduler.stats().unwrap().missed, 10);
}

#[test]
fn the_same_ten_are_caught_up_with() {
    let (world, task, log) = series(every(10).missed(Missed::CatchUp));
    task.pause().unwrap();
    world.advance(105);
    task.resume().unwrap();
    world.advance(5);
    let slots: Vec<(i64, i64)> = (1..=10).map(|n| (10 * n, 105)).chain([(110, 110)]).collect();
    assert_eq!(log.take(), slots);
    assert_eq!(task.info().missed, 0);
}

#[test]
fn a_slot_in_the_instant_of_the_resume_is_not_missed() {
    let (world, task, log) = series(every(10));
    task.pause().unwrap();
    world.advance(40);
    task.resume().unwrap();
    world.advance(0);
    assert_eq!((starts(&log), task.info().missed), (vec![40], 3));
}

#[test]
fn a_pause_that_no_slot_falls_in_changes_nothing() {
    let (world, task, log) = series(every(10));
    world.advance(15);
    task.pause().unwrap();
    world.advance(4);
    task.resume().unwrap();
    world.advance(11);
    assert_eq!((starts(&log), task.info().missed), (vec![10, 20, 30], 0));
}

#[test]
fn what_has_no_grid_runs_at_the_resume() {
    let (world, log) = (World::new(1), Log::new());
    let once = world.scheduler.schedule(Task::new(at(10), noting(&log))).unwrap();
    let delay = Task::new(at(20), noting(&log)).recurrence(FixedDelay::new(ms(30))).max_runs(2);
    let delay = world.scheduler.schedule(delay).unwrap();
    for task in [&once, &delay] {
        task.pause().unwrap();
    }
    world.advance(100);
    for task in [&once, &delay] {
        task.resume().unwrap();
    }
    world.advance(100);
    assert_eq!(log.take(), [(10, 100), (20, 100), (130, 130)]);
}

#[test]
fn a_series_without_a_slot_left_runs_the_one_it_waited_for() {
    let (world, log) = (World::new(1), Log::new());
    let task = Task::new(at(10), noting(&log)).recurrence(every(10)).until(at(45));
    let task = world.scheduler.schedule(task).unwrap();
    task.pause().unwrap();
    world.advance(100);
    task.resume().unwrap();
    world.advance(100);
    assert_eq!(log.take(), [(10, 100)]);
    assert_eq!(task.state(), TaskState::Done);
}

#[test]
fn a_pause_in_a_run_holds_what_follows() {
    let (world, held, log) = (World::new(1), Held::new(), Log::new());
    let (gate, note) = (held.clone(), noting(&log));
    let job = move |run: &Run| {
        note(run);
        gate.hold();
    };
    let task = world.scheduler.schedule(Task::new(at(0), job).recurrence(every(10))).unwrap();
    held.runs.pass();
    assert_eq!(task.pause().unwrap(), Running);
    held.go_on.open();
    world.advance(95);
    assert_eq!(
        (starts(&log), task.state(), task.info().paused),
        (vec![0], TaskState::Waiting, true)
    );
    assert_eq!(task.resume().unwrap(), Applied);
    world.advance(5);
    assert_eq!((starts(&log), task.info().missed), (vec![100], 9));
}

#[test]
fn a_one_off_is_rescheduled_in_both_directions() {
    let (world, log) = (World::new(1), Log::new());
    let task = world.scheduler.schedule(Task::new(at(50), noting(&log))).unwrap();
    assert_eq!(task.reschedule(at(90)).unwrap(), Applied);
    world.advance(60);
    assert_eq!((log.len(), task.due()), (0, at(90)));
    assert_eq!(task.reschedule(at(70)).unwrap(), Applied);
    assert_eq!(world.scheduler.next_due().unwrap(), Some(at(70)));
    world.advance(100);
    assert_eq!(log.take(), [(70, 70)]);
    assert_eq!(task.reschedule(at(200)).unwrap(), Finished);
}

#[test]
fn a_due_in_the_past_runs_at_once_and_is_late() {
    let (world, log) = (World::new(1), Log::new());
    let task = world.scheduler.schedule(Task::new(at(500), noting(&log)).id("t")).unwrap();
    world.advance(100);
    world.story();
    task.reschedule(at(40)).unwrap();
    assert!(world.scheduler.wait_idle(None).unwrap());
    assert_eq!(log.take(), [(40, 100)]);
    assert_eq!(world.story(), ["100 DUE 't'", "100 STARTED 't'", "100 COMPLETED 't'"]);
}

#[test]
fn the_grid_of_a_series_moves_with_it() {
    let (world, task, log) = series(every(10));
    world.advance(25);
    task.reschedule(at(27)).unwrap();
    world.advance(25);
    assert_eq!(starts(&log), [10, 20, 27, 37, 47]);
    assert_eq!(task.info().missed, 0);
}

#[test]
fn a_retry_is_made_at_another_time_and_the_grid_stays() {
    let (world, log) = (World::new(1), Log::new());
    let note = noting(&log);
    let job = move |run: &Run| {
        note(run);
        run.attempt() > 1
    };
    let task = Task::new(at(0), job).recurrence(every(100));
    let task = task.retry(retry::FixedDelay::new(1, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(0);
    assert_eq!(task.due(), at(10));
    task.reschedule(at(50)).unwrap();
    world.advance(99);
    assert_eq!(starts(&log), [0, 50]);
    world.advance(1);
    task.run_now().unwrap();
    world.advance(10);
    assert_eq!(starts(&log), [100, 100], "the retry, sooner");
    assert_eq!(task.due(), at(200));
}

#[test]
fn who_is_rescheduled_goes_behind_its_equals() {
    let (world, order) = (World::new(1), Log::new());
    let task = |name: &'static str| {
        let order = order.clone();
        world.scheduler.schedule(Task::new(at(10), move || order.push(name)).id(name)).unwrap()
    };
    let (a, _b, c) = (task("a"), task("b"), task("c"));
    a.reschedule(at(10)).unwrap();
    c.pause().unwrap();
    c.resume().unwrap();
    world.advance(10);
    assert_eq!(order.take(), ["b", "a", "c"]);
}

#[test]
fn one_more_run_does_not_disturb_the_grid() {
    let (world, log) = (World::new(1), Log::new());
    let task = Task::new(at(10), noting(&log)).recurrence(every(10)).max_runs(3);
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(14);
    world.scheduler.pause().unwrap(); // or the first may be over when the second is asked for
    assert_eq!(task.run_now().unwrap(), Applied);
    assert_eq!(task.run_now().unwrap(), Applied, "and still one more run");
    world.scheduler.resume().unwrap();
    world.advance(100);
    assert_eq!((starts(&log), task.state()), (vec![10, 14, 20, 30], TaskState::Done));
}

#[test]
fn slots_that_pass_in_one_more_run_are_missed_by_the_rule() {
    for (missed, expected, count) in
        [(Missed::Skip, [2, 40, 50], 3), (Missed::CatchUp, [2, 35, 35], 0)]
    {
        let (world, log) = (World::new(1), Log::new());
        let note = noting(&log);
        let job = move |run: &Run| {
            note(run);
            if run.number() == 1 {
                let _: bool = run.wait(ms(33));
            }
        };
        let rule = every(10).missed(missed);
        let task = world.scheduler.schedule(Task::new(at(10), job).recurrence(rule)).unwrap();
        world.advance(2);
        task.run_now().unwrap();
        world.advance(48);
        assert_eq!(starts(&log)[..3], expected);
        assert_eq!(task.info().missed, count);
    }
}

#[test]
fn a_failed_extra_run_is_retried_before_the_slot() {
    let (world, log) = (World::new(1), Log::new());
    let note = noting(&log);
    let job = move |run: &Run| {
        note(run);
        run.number() > 1
    };
    let task = Task::new(at(100), job).recurrence(every(100));
    let task = task.retry(retry::FixedDelay::new(3, ms(10)));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(20);
    task.run_now().unwrap();
    world.advance(180);
    assert_eq!(starts(&log), [20, 30, 100, 200]);
}

#[test]
fn a_paused_task_is_run_once_and_stays_paused() {
    let (world, task, log) = series(every(10));
    task.pause().unwrap();
    world.advance(5);
    assert_eq!(task.run_now().unwrap(), Applied);
    world.advance(50);
    assert_eq!((starts(&log), task.info().paused), (vec![5], true));
    task.resume().unwrap();
    world.advance(5);
    assert_eq!((starts(&log), task.info().missed), (vec![60], 5));
    let once = world.scheduler.after(ms(100), || ()).unwrap();
    once.pause().unwrap();
    once.run_now().unwrap();
    assert!(once.wait(None));
}

#[test]
fn a_paused_task_is_rescheduled_and_stays_paused() {
    let (world, task, log) = series(every(10));
    task.pause().unwrap();
    assert_eq!(task.reschedule(at(35)).unwrap(), Applied);
    world.advance(30);
    task.resume().unwrap();
    world.advance(20);
    assert_eq!((starts(&log), task.info().missed), (vec![35, 45], 0));
}

type Call = fn(&Scheduler, &str) -> Result<ControlOutcome, Error>;

const CALLS: [Call; 4] = [
    |scheduler, id| scheduler.reschedule(id, at(1000)),
    |scheduler, id| scheduler.pause_task(id),
    |scheduler, id| scheduler.resume_task(id),
    |scheduler, id| scheduler.run_now(id),
];

fn answers(scheduler: &Scheduler, id: &str) -> [ControlOutcome; 4] {
    CALLS.map(|call| call(scheduler, id).unwrap())
}

#[test]
fn each_call_says_what_it_found() {
    let (world, held) = (World::new(1), Held::new());
    let scheduler = &world.scheduler;
    let task = scheduler.schedule(Task::new(at(100), held.clone()).id("t")).unwrap();
    assert_eq!(answers(scheduler, "nobody"), [Unknown; 4]);
    assert_eq!(answers(scheduler, "t"), [Applied; 4]);
    held.runs.pass();
    assert_eq!(answers(scheduler, "t"), [Running; 4]);
    assert_eq!((task.due(), task.info().paused), (at(0), false));
    task.cancel().unwrap();
    assert_eq!(answers(scheduler, "t"), [Running; 4], "this run still goes on");
    held.go_on.open();
    assert!(task.wait(None) && scheduler.wait_idle(None).unwrap());
    assert_eq!(answers(scheduler, "t"), [Finished; 4]);
    assert_eq!((task.due(), task.info().runs, task.info().paused), (at(0), 1, false));
}

#[test]
fn once_the_scheduler_closes_what_waits_is_left_to_it() {
    let (world, held) = (World::new(1), Held::new());
    let scheduler = &world.scheduler;
    scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let drained = scheduler.schedule(Task::new(at(0), || ()).id("t")).unwrap();
    scheduler.shutdown_with(Shutdown::now().drain()).unwrap();
    for call in CALLS {
        assert!(matches!(call(scheduler, "t"), Err(Error::SchedulerClosed)));
    }
    assert!(matches!(scheduler.pause(), Err(Error::SchedulerClosed)));
    assert!(matches!(scheduler.resume(), Err(Error::SchedulerClosed)));
    held.go_on.open();
    assert!(drained.wait(None));
    assert_eq!(drained.state(), TaskState::Done);
    assert!(scheduler.shutdown().unwrap());
    assert_eq!(answers(scheduler, "t"), [Finished; 4]);
}

#[test]
fn what_is_paused_is_not_due() {
    let (world, log) = (World::new(1), Log::new());
    let task = world.scheduler.schedule(Task::new(at(10), noting(&log)).id("t")).unwrap();
    task.pause().unwrap();
    task.pause().unwrap(); // again is no error
    world.advance(50);
    assert!(world.scheduler.wait_idle(None).unwrap());
    assert_eq!(world.scheduler.next_due().unwrap(), None);
    assert_eq!(world.story(), ["0 SCHEDULED 't'"], "DUE comes with the resume");
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.waiting, stats.paused), (1, 1));
    assert_eq!((task.state(), task.is_paused()), (TaskState::Waiting, true));
    task.resume().unwrap();
    task.resume().unwrap();
    assert!(task.wait(None) && world.scheduler.wait_idle(None).unwrap());
    assert_eq!(world.story(), ["50 DUE 't'", "50 STARTED 't'", "50 COMPLETED 't'"]);
    let stats = world.scheduler.stats().unwrap();
    assert_eq!((stats.waiting, stats.paused), (0, 0));
}

#[test]
fn a_paused_task_is_cancelled_replaced_and_not_drained() {
    let world = World::new(1);
    let scheduler = &world.scheduler;
    let paused = |id: &str| {
        let task =
            scheduler.schedule(Task::new(at(0), || -> bool { panic!("it is paused") }).id(id));
        let task = task.unwrap();
        task.pause().unwrap();
        task
    };
    scheduler.pause().unwrap(); // or they start before they are paused
    let tasks = ["cancelled", "replaced", "drained"].map(paused);
    scheduler.resume().unwrap();
    assert_eq!(tasks[0].cancel().unwrap(), CancelOutcome::Cancelled);
    assert!(matches!(scheduler.forget("replaced"), Err(Error::TaskWaiting(_))));
    let new = scheduler.replace(Task::new(at(0), || ()).id("replaced")).unwrap();
    assert!(new.wait(None));
    assert_eq!(scheduler.stats().unwrap().paused, 1);
    assert!(scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    assert!(tasks.iter().all(|task| task.state() == TaskState::Cancelled));
    assert!(tasks.iter().all(|task| !task.info().paused));
    assert_eq!(scheduler.stats().unwrap().paused, 0);
}

#[test]
fn while_the_scheduler_is_paused_nothing_starts() {
    let world = World::new(2);
    let scheduler = &world.scheduler;
    scheduler.pause().unwrap();
    scheduler.pause().unwrap();
    assert!(scheduler.is_paused());
    let log = Log::new();
    let series = Task::new(at(10), noting(&log)).id("series").recurrence(every(10));
    let series = scheduler.schedule(series).unwrap();
    let once = scheduler.schedule(Task::new(at(20), || ()).id("once")).unwrap();
    world.advance(45);
    assert!(scheduler.wait_idle(None).unwrap());
    assert_eq!((log.len(), once.state()), (0, TaskState::Waiting));
    let due = ["0 SCHEDULED 'series'", "0 SCHEDULED 'once'", "10 DUE 'series'", "20 DUE 'once'"];
    assert_eq!(world.story(), due, "DUE is on time");
    scheduler.resume().unwrap();
    scheduler.resume().unwrap();
    assert!(!scheduler.is_paused());
    world.advance(5);
    assert_eq!(once.state(), TaskState::Done);
    assert_eq!(log.take(), [(10, 45), (50, 50)], "as after a stall");
    assert_eq!(series.info().missed, 3);
}

#[test]
fn a_drain_of_a_paused_scheduler_cancels_all() {
    let world = World::new(1);
    world.scheduler.pause().unwrap();
    let task = world.scheduler.schedule(Task::new(at(0), || ())).unwrap();
    assert!(world.scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    assert_eq!(task.state(), TaskState::Cancelled);
    assert!(!world.scheduler.is_paused());
}

#[test]
fn who_waits_for_quiet_is_told_when_a_pause_brings_it() {
    let (world, held) = (World::new(1), Held::new());
    let scheduler = &world.scheduler;
    let run = scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let due = scheduler.schedule(Task::new(at(0), || ())).unwrap();
    let (tell, told) = mpsc::channel();
    assert!(scheduler.when_idle(move || tell.send(()).unwrap()).unwrap().is_some());
    assert_eq!(due.pause().unwrap(), Applied);
    assert_eq!(told.try_recv(), Err(mpsc::TryRecvError::Empty), "a run goes on");
    held.go_on.open();
    assert!(run.wait(None) && scheduler.wait_idle(None).unwrap());
    // Who comes after may find it idle before those who waited are told.
    assert_eq!(told.recv(), Ok(()));
    assert_eq!(due.state(), TaskState::Waiting);
}

/// While the listeners are told of a run, what follows it is on its way into the queue.
#[test]
fn a_listener_controls_the_next_run() {
    type Control = fn(&TaskHandle, i64, u64) -> ControlOutcome;
    let calls: [(Control, &[i64]); 4] = [
        (|task, time, _| task.reschedule(at(time + 3)).unwrap(), &[10, 13, 16]),
        (|task, _, _| task.pause().unwrap(), &[10]),
        (|task, _, run| if run == 1 { task.run_now().unwrap() } else { Applied }, &[10, 10, 20]),
        (
            |task, _, run| {
                assert_eq!(task.pause().unwrap(), Applied);
                if run == 1 { task.run_now().unwrap() } else { Applied }
            },
            &[10, 10],
        ),
    ];
    for (call, expected) in calls {
        let world = World::new(1);
        let (log, answers) = (Log::new(), Log::new());
        let task = Task::new(at(10), noting(&log)).recurrence(every(10)).max_runs(3);
        let task = world.scheduler.schedule(task).unwrap();
        let (told, handle) = (answers.clone(), task.clone());
        let listener = move |event: &Event| {
            if event.next_due.is_some() {
                told.push(call(&handle, millis(event.time), event.run));
            }
        };
        world.scheduler.add_listener(listener, &[EventKind::Completed]).unwrap();
        world.advance(29);
        assert_eq!(starts(&log), expected);
        assert!(answers.take().iter().all(|&answer| answer == Applied));
    }
}

#[test]
fn a_listener_that_hears_of_a_new_task_controls_it() {
    let (world, log) = (World::new(1), Log::new());
    let scheduler = world.scheduler.clone();
    let pause = move |event: &Event| {
        assert_eq!(scheduler.pause_task(event.task_id.clone()).unwrap(), Applied);
        assert_eq!(scheduler.reschedule(event.task_id.clone(), at(5)).unwrap(), Applied);
    };
    world.scheduler.add_listener(pause, &[EventKind::Scheduled]).unwrap();
    let task = world.scheduler.schedule(Task::new(at(0), noting(&log)).id("t")).unwrap();
    world.advance(10);
    assert_eq!((log.len(), task.due()), (0, at(5)));
    task.resume().unwrap();
    assert!(task.wait(None));
    assert_eq!(log.take(), [(5, 10)]);
}

/// Tickets have 16 bits: they come round while tombstones of the task are still in the heap.
#[test]
fn a_task_is_rescheduled_any_number_of_times() {
    let world = World::quiet(1);
    let crowd: Vec<Task> = (0..200_000).map(|_| Task::new(at(10), || ())).collect();
    drop(world.scheduler.schedule_all(crowd).unwrap());
    let log = Log::new();
    let task = world.scheduler.schedule(Task::new(at(5), noting(&log))).unwrap();
    for n in 0..150_000 {
        task.reschedule(at(5 + n % 2)).unwrap();
    }
    assert_eq!(world.scheduler.stats().unwrap().waiting, 200_001);
    world.advance(9);
    assert_eq!(log.take(), [(6, 6)]);
    assert_eq!(world.scheduler.stats().unwrap().waiting, 200_000);
    world.advance(1);
    assert_eq!(world.scheduler.stats().unwrap().waiting, 0);
}

#[test]
fn a_look_ahead_sees_the_run_and_the_slot_after_it() {
    let (world, task, log) = series(every(10));
    world.scheduler.pause().unwrap();
    world.advance(4);
    task.run_now().unwrap();
    assert_eq!(task.preview(3).unwrap(), [at(4), at(10), at(20)]);
    task.reschedule(at(7)).unwrap();
    assert_eq!(task.preview(3).unwrap(), [at(7), at(17), at(27)]);
    world.scheduler.resume().unwrap();
    world.advance(20);
    assert_eq!(starts(&log), [7, 17]);
}

/// Chance moves each run, and no slot.
#[test]
fn jitter_is_drawn_around_the_slot_of_the_resume() {
    let (world, log) = (World::new(1), Log::new());
    let note = log.clone();
    let job = move |run: &Run| note.push(run.due());
    let task = Task::new(at(10), job).recurrence(every(10)).jitter(ms(5));
    let task = world.scheduler.schedule(task).unwrap();
    task.pause().unwrap();
    world.advance(35);
    assert_eq!(task.resume().unwrap(), Applied);
    assert_eq!(task.info().missed, 3);
    world.advance(20);
    let dues = log.take();
    assert!(at(40) <= dues[0] && dues[0] <= at(45), "{dues:?}");
    assert!(at(50) <= dues[1] && dues[1] <= at(55), "{dues:?}");
}
