//! Races of run control against the ends that free tasks: of a chain each runs once, after the one
//! before it, and what was counted comes to nothing.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::thread;

use common::{Dice, Log, secs, watchdog};
use duetime::{
    CancelOutcome, Dependency, Event, EventKind, Scheduler, Task, TaskHandle, TaskState,
};

const CHAINS: u64 = 2000;
const LENGTH: usize = 20;
const CALLERS: u64 = 2;

fn disturb(scheduler: &Scheduler, task: &TaskHandle, dice: &mut Dice) {
    match dice.roll(100) {
        0..40 => drop(task.pause().unwrap()),
        40..70 => drop(task.resume().unwrap()),
        70..80 => drop(task.reschedule(scheduler.now()).unwrap()),
        80..85 => drop(task.reschedule(scheduler.now() + secs(1000)).unwrap()),
        85..98 => drop(task.run_now().unwrap()),
        _ => assert!(task.cancel().unwrap() != CancelOutcome::Unknown),
    }
}

fn chain(scheduler: &Scheduler, order: &Log<usize>) -> Vec<TaskHandle> {
    let now = scheduler.now();
    let task = |n: usize| {
        let order = order.clone();
        let before = n.checked_sub(1).map(Dependency::Nth);
        Task::new(now, move || order.push(n)).depends_on(before)
    };
    scheduler.schedule_all((0..LENGTH).map(task).collect()).unwrap()
}

fn race(listens: bool) {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(2).build().unwrap();
    let heard = Log::new();
    if listens {
        let heard = heard.clone();
        let kinds = [EventKind::Due, EventKind::Completed, EventKind::Cancelled];
        scheduler.add_listener(move |event: &Event| heard.push(event.kind), &kinds).unwrap();
    }
    for seed in 0..CHAINS {
        let order = Log::new();
        let tasks = chain(&scheduler, &order);
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (scheduler, tasks) = (&scheduler, &tasks);
                let mut dice = Dice(seed * CALLERS + caller);
                let calls =
                    move || tasks.iter().for_each(|task| disturb(scheduler, task, &mut dice));
                scope.spawn(calls);
            }
        });
        for task in &tasks {
            task.resume().unwrap();
            task.run_now().unwrap();
        }
        assert!(tasks.iter().all(|task| task.wait(None)));
        assert!(scheduler.wait_idle(None).unwrap(), "the listeners included");
        let stats = scheduler.stats().unwrap();
        assert_eq!((stats.waiting, stats.paused, stats.running), (0, 0, 0));
        let done = tasks.iter().take_while(|task| task.state() == TaskState::Done).count();
        assert!(tasks[done..].iter().all(|task| task.state() == TaskState::Cancelled));
        assert_eq!(order.take(), (0..done).collect::<Vec<_>>());
        let ends = heard.take().iter().filter(|&&kind| kind != EventKind::Due).count();
        assert_eq!(ends, if listens { LENGTH } else { 0 });
    }
}

#[test]
fn chains_are_disturbed() {
    race(false);
}

#[test]
fn chains_are_disturbed_and_told_of() {
    race(true);
}
