//! Races of a cancel against the start and the end of a run: exactly one wins, and all agree which.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use common::{secs, watchdog};
use duetime::CancelOutcome::{Cancelled, Finished, Stopping};
use duetime::{
    CancelOutcome, Event, EventKind, FixedRate, Scheduler, Task, TaskHandle, TaskId, TaskState,
};

/// Waits a little longer or shorter than last time, so that a race stays one.
#[derive(Default)]
struct Balance(u32);

impl Balance {
    fn spin(&self) {
        for _ in 0..self.0 {
            std::hint::spin_loop();
        }
    }

    fn learn(&mut self, was_early: bool) {
        let step = self.0 / 8 + 1;
        self.0 = if was_early { self.0 + step } else { self.0.saturating_sub(step) };
    }
}

/// What one task heard of itself.
#[derive(Default)]
struct Heard {
    runs: AtomicU64,
    /// COMPLETED without a next run, and CANCELLED.
    completed: AtomicU64,
    cancelled: AtomicU64,
}

const ROUNDS: usize = 100_000;
const BATCH: usize = 50;

/// Cancels tasks while two workers go through them, close to the moment where a cancel is not
/// `early` any more, by its answer and by the runs so far. Gives how often each was seen.
fn race(
    series: bool,
    early: fn(CancelOutcome, u64) -> bool,
) -> HashMap<(CancelOutcome, u64), usize> {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(2).history(100).build().unwrap();
    let heard: Arc<Vec<Heard>> = Arc::new((0..ROUNDS).map(|_| Heard::default()).collect());
    let listener = {
        let heard = Arc::clone(&heard);
        move |event: &Event| {
            let TaskId::Int(task) = event.task_id else { unreachable!() };
            let heard = &heard[usize::try_from(task).unwrap()];
            match event.kind {
                EventKind::Cancelled => heard.cancelled.fetch_add(1, Ordering::SeqCst),
                _ => {
                    heard.completed.fetch_add(u64::from(event.next_due.is_none()), Ordering::SeqCst)
                }
            };
        }
    };
    scheduler.add_listener(listener, &[EventKind::Completed, EventKind::Cancelled]).unwrap();
    let mut balance = Balance::default();
    let mut answers = HashMap::new();
    for first in (0..ROUNDS).step_by(BATCH) {
        let now = scheduler.now();
        let task = |n: usize| {
            let heard = Arc::clone(&heard);
            let job = move || {
                heard[n].runs.fetch_add(1, Ordering::SeqCst);
                Balance(300).spin();
            };
            let task = Task::new(now, job).id(i64::try_from(n).unwrap());
            if series { task.recurrence(FixedRate::new(secs(3600))) } else { task }
        };
        let tasks: Vec<Task> = (first..first + BATCH).map(task).collect();
        let handles = scheduler.schedule_all(tasks).unwrap();
        let cancel = |(n, task): (usize, &TaskHandle)| {
            balance.spin();
            let answer = task.cancel().unwrap();
            let runs = heard[n].runs.load(Ordering::SeqCst);
            balance.learn(early(answer, runs));
            answer
        };
        let told: Vec<CancelOutcome> = (first..).zip(&handles).map(cancel).collect();
        assert!(handles.iter().all(|task| task.wait(None)));
        assert!(scheduler.wait_idle(None).unwrap(), "the listeners included");
        for (n, (task, answer)) in (first..).zip(handles.iter().zip(told)) {
            let heard = &heard[n];
            let [runs, completed, cancelled] =
                [&heard.runs, &heard.completed, &heard.cancelled].map(|n| n.load(Ordering::SeqCst));
            *answers.entry((answer, runs)).or_insert(0) += 1;
            assert_eq!((task.state(), runs, completed, cancelled), expected(series, answer, runs));
        }
    }
    scheduler.shutdown().unwrap();
    let stats = scheduler.stats().unwrap();
    assert_eq!(stats.done + stats.cancelled, ROUNDS as u64);
    answers
}

/// State, runs, COMPLETED without a next run, and CANCELLED, after the end.
fn expected(series: bool, answer: CancelOutcome, runs: u64) -> (TaskState, u64, u64, u64) {
    match (series, answer) {
        (false, Cancelled) => (TaskState::Cancelled, 0, 0, 1),
        (false, Stopping | Finished) => (TaskState::Done, 1, 1, 0),
        // Before its first run or before its second, in an hour.
        (true, Cancelled) => (TaskState::Cancelled, runs.min(1), 0, 1),
        (true, Stopping) => (TaskState::Cancelled, 1, 1, 1),
        _ => panic!("{answer:?} for a series: {series}"),
    }
}

/// python/asyncio#123, pebble#75: of a start and a cancel one wins, and all agree which.
#[test]
fn a_cancel_that_races_the_start() {
    let seen = race(false, |answer, _| answer == Cancelled);
    assert!(seen.len() >= 2 && seen.contains_key(&(Cancelled, 0)), "no race: {seen:?}");
}

#[test]
fn a_cancel_that_races_the_end() {
    let seen = race(false, |answer, _| answer != Finished);
    assert!(seen.len() >= 2 && seen.contains_key(&(Finished, 1)), "no race: {seen:?}");
}

#[test]
fn a_cancel_that_races_the_way_back_into_the_queue() {
    let seen = race(true, |answer, runs| runs == 0 || answer == Stopping);
    assert!(seen.len() >= 2 && seen.contains_key(&(Cancelled, 1)), "no race: {seen:?}");
}
