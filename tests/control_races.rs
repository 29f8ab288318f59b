//! Races of run control against starts, ends and cancels: each task ends once, never overlaps itself,
//! and runs what it should.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use common::{Dice, secs, watchdog};
use duetime::{
    CancelOutcome, ControlOutcome, Event, EventKind, FixedRate, Scheduler, Task, TaskHandle,
    TaskId, TaskState,
};

/// What one task did, and heard of itself.
#[derive(Default)]
struct Seen {
    running: AtomicBool,
    runs: AtomicU64,
    started: AtomicU64,
    ends: AtomicU64,
}

const ROUNDS: usize = 100_000;
const BATCH: usize = 100;
const CALLERS: u64 = 2;

/// A few calls at random. Says whether one of them cancelled the task.
fn disturb(scheduler: &Scheduler, task: &TaskHandle, dice: &mut Dice) -> bool {
    let mut cancelled = false;
    for _ in 0..4 {
        for _ in 0..dice.roll(60) {
            std::hint::spin_loop();
        }
        let now = scheduler.now();
        match dice.roll(9) {
            0 | 1 => drop(task.pause().unwrap()),
            2 | 3 => drop(task.resume().unwrap()),
            4 => drop(task.reschedule(now).unwrap()),
            5 => drop(task.reschedule(now + secs(1000)).unwrap()),
            6 | 7 => drop(task.run_now().unwrap()),
            _ if dice.roll(3) == 0 => {
                cancelled |= task.cancel().unwrap() == CancelOutcome::Cancelled;
            }
            _ => {}
        }
    }
    cancelled
}

/// `listens`: with somebody who is told of all, the ways into the queue are others.
fn race(rounds: usize, series: bool, listens: bool) {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(2).history(100).build().unwrap();
    let seen: Arc<Vec<Seen>> = Arc::new((0..rounds).map(|_| Seen::default()).collect());
    if listens {
        let seen = Arc::clone(&seen);
        let listener = move |event: &Event| {
            let TaskId::Int(task) = event.task_id else { unreachable!() };
            let seen = &seen[usize::try_from(task).unwrap()];
            match event.kind {
                EventKind::Started => seen.started.fetch_add(1, Ordering::SeqCst),
                EventKind::Cancelled => seen.ends.fetch_add(1, Ordering::SeqCst),
                // A series ends by being cancelled.
                EventKind::Completed if !series => seen.ends.fetch_add(1, Ordering::SeqCst),
                _ => 0,
            };
        };
        scheduler.add_listener(listener, &EventKind::ALL).unwrap();
    }
    let mut total = 0;
    for first in (0..rounds).step_by(BATCH) {
        let now = scheduler.now();
        let task = |n: usize| {
            let seen = Arc::clone(&seen);
            let job = move || {
                let seen = &seen[n];
                assert!(!seen.running.swap(true, Ordering::SeqCst), "it overlaps itself");
                seen.runs.fetch_add(1, Ordering::SeqCst);
                seen.running.store(false, Ordering::SeqCst);
            };
            let task = Task::new(now, job).id(i64::try_from(n).unwrap());
            if series { task.recurrence(FixedRate::new(secs(3600))) } else { task }
        };
        let tasks: Vec<Task> = (first..first + BATCH).map(task).collect();
        let handles = scheduler.schedule_all(tasks).unwrap();
        let cancels = thread::scope(|scope| {
            let calls = |caller: u64| {
                let (scheduler, handles) = (&scheduler, &handles);
                let mut dice = Dice(first as u64 * CALLERS + caller);
                move || -> Vec<bool> {
                    handles.iter().map(|task| disturb(scheduler, task, &mut dice)).collect()
                }
            };
            let callers: Vec<_> = (0..CALLERS).map(|n| scope.spawn(calls(n))).collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
        });
        // Whatever was done to it, it can still be run.
        let can_run = |task: &TaskHandle| {
            let before = task.info().runs;
            task.resume().unwrap();
            (task.run_now().unwrap() == ControlOutcome::Applied).then_some(before)
        };
        let runs: Vec<Option<u64>> = handles.iter().map(can_run).collect();
        if series {
            for (task, before) in handles.iter().zip(runs) {
                while before == Some(task.info().runs) && !task.state().is_end() {
                    thread::yield_now();
                }
                task.cancel().unwrap();
            }
        }
        assert!(handles.iter().all(|task| task.wait(None)));
        assert!(scheduler.wait_idle(None).unwrap(), "the listeners included");
        let stats = scheduler.stats().unwrap();
        assert_eq!((stats.waiting, stats.paused, stats.running), (0, 0, 0));
        for (n, task) in handles.iter().enumerate() {
            let cancelled = cancels.iter().any(|answers| answers[n]);
            let seen = &seen[first + n];
            let [runs, started, ends] =
                [&seen.runs, &seen.started, &seen.ends].map(|count| count.load(Ordering::SeqCst));
            total += runs;
            assert_eq!(task.info().runs, runs);
            if series {
                assert_eq!(task.state(), TaskState::Cancelled);
            } else {
                let end = if cancelled { TaskState::Cancelled } else { TaskState::Done };
                assert_eq!((task.state(), runs), (end, u64::from(!cancelled)));
            }
            if listens {
                assert_eq!((started, ends), (runs, 1));
            }
        }
    }
    assert_eq!(scheduler.stats().unwrap().runs, total);
}

#[test]
fn one_offs_are_disturbed() {
    race(ROUNDS / 2, false, false);
}

#[test]
fn one_offs_are_disturbed_and_told_of() {
    race(ROUNDS, false, true);
}

#[test]
fn series_are_disturbed_and_told_of() {
    race(ROUNDS / 2, true, true);
}
