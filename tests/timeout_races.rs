//! Timeouts in races on the real clock: jobs that end as their time is up, or their grace, and are
//! cancelled meanwhile. Whoever wins, each task ends once, and what is counted is right.

#![expect(clippy::disallowed_methods, reason = "jobs that block, for as long as chance has it")]
#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::thread;
use std::time::Duration;

use common::{Dice, Log, listen, watchdog};
use duetime::{
    Event, EventKind, Later, Run, Scheduler, Shutdown, Task, TaskHandle, TaskState, TaskStuck,
    TaskTimeout, Value, retry,
};

const TASKS: u64 = 600;

/// A job that takes some time: of its own, asleep on the clock, or elsewhere.
fn job(dice: &mut Dice) -> impl FnMut(&Run) -> duetime::Outcome + Send + use<> {
    let (kind, micros) = (dice.roll(3), dice.roll(3000));
    let time = Duration::from_micros(micros);
    move |run: &Run| match kind {
        0 => {
            thread::sleep(time);
            ().into()
        }
        1 => {
            let _told: bool = run.wait(time);
            ().into()
        }
        _ => Later::new(move |completion| {
            thread::spawn(move || {
                thread::sleep(time);
                completion.finish(Value::default());
            });
        })
        .into(),
    }
}

fn ends_once(events: &[Event], task: &TaskHandle) {
    let id = task.id();
    let of = |kind| events.iter().filter(|event| event.task_id == id && event.kind == kind).count();
    let info = task.info();
    let (started, stuck) = (of(EventKind::Started), of(EventKind::Stuck));
    let ended = of(EventKind::Completed) + of(EventKind::Failed);
    assert_eq!((started, ended), (ended, usize::try_from(info.runs).unwrap()), "{task:?}");
    assert_eq!(of(EventKind::Cancelled), usize::from(info.state == TaskState::Cancelled));
    let error = task.last_error();
    let is_stuck = error.as_ref().is_some_and(|error| error.downcast_ref::<TaskStuck>().is_some());
    assert_eq!(stuck, usize::from(is_stuck));
    if let Some(error) = error {
        assert!(is_stuck || error.downcast_ref::<TaskTimeout>().is_some(), "{error}");
    }
    assert!(!is_stuck || info.state == TaskState::Failed);
}

fn round(seed: u64) {
    let mut dice = Dice(seed);
    let scheduler = Scheduler::builder().workers(3).limit("few", 2).build().unwrap();
    let events = Log::new();
    listen(&scheduler, &events);
    let mut tasks = Vec::new();
    for n in 0..TASKS {
        let micros = Duration::from_micros;
        let mut task = Task::new(scheduler.now(), job(&mut dice)).timeout(micros(1000));
        task = task.grace(micros([0, 200, 1000, 1_000_000][usize::try_from(n % 4).unwrap()]));
        if n % 5 == 0 {
            task = task.group("few");
        }
        if n % 3 == 0 {
            task = task.retry(retry::FixedDelay::new(3, micros(dice.roll(300))));
        }
        tasks.push(scheduler.schedule(task).unwrap());
        if n % 7 == 0 {
            let which = usize::try_from(dice.roll(n + 1)).unwrap();
            let _ = tasks[which].cancel().unwrap();
        }
    }
    assert!(tasks.iter().all(|task| task.wait(None)));
    assert!(scheduler.wait_idle(None).unwrap());
    let events = events.take();
    tasks.iter().for_each(|task| ends_once(&events, task));
    while scheduler.stats().unwrap().stuck > 0 {
        thread::yield_now();
    }
    let stats = scheduler.stats().unwrap();
    assert_eq!((stats.running, stats.waiting), (0, 0));
    assert_eq!(stats.done + stats.failed + stats.cancelled, TASKS);
    // The pool is what it was.
    let gate = common::Gate::default();
    let held = [gate.clone(), gate.clone(), gate.clone()]
        .map(|gate| scheduler.after(Duration::ZERO, move || gate.pass()).unwrap());
    while scheduler.stats().unwrap().running < 3 {
        thread::yield_now();
    }
    gate.open();
    assert!(held.iter().all(|task| task.result(None).is_ok()));
    assert!(scheduler.shutdown_with(Shutdown::wait()).unwrap());
}

#[test]
fn whoever_wins_each_task_ends_once() {
    let _watchdog = watchdog();
    (0..5).for_each(round);
}

#[test]
fn a_shutdown_among_late_and_stuck_runs_ends() {
    let _watchdog = watchdog();
    for seed in 0..40 {
        let mut dice = Dice(seed);
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        let micros = Duration::from_micros;
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let task = Task::new(scheduler.now(), job(&mut dice)).timeout(micros(500));
                scheduler.schedule(task.grace(micros(dice.roll(500)))).unwrap()
            })
            .collect();
        thread::sleep(micros(dice.roll(2000)));
        let how = if seed % 2 == 0 { Shutdown::wait() } else { Shutdown::wait().drain() };
        assert!(scheduler.shutdown_with(how).unwrap());
        assert!(tasks.iter().all(|task| task.state().is_end()));
    }
}
