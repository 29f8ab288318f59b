//! Limits: of a group of tasks only so many run at once, and nobody else waits for that.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use common::{Held, Log, at, listen, ms, tell, watchdog};
use duetime::{
    Completion, Error, FixedRate, Later, ManualClock, Missed, Run, Scheduler, Shutdown, Task,
    TaskHandle, TaskState, Value, retry,
};

fn world(workers: usize, limit: usize) -> (ManualClock, Scheduler) {
    let clock = ManualClock::new();
    let builder = Scheduler::builder().workers(workers).clock(clock.clone()).limit("db", limit);
    (clock, builder.build().unwrap())
}

/// A task of the group that runs, with what ends it.
fn occupy(scheduler: &Scheduler) -> (TaskHandle, Held) {
    let held = Held::new();
    let task = Task::new(scheduler.now(), held.clone()).group("db").priority(1);
    let task = scheduler.schedule(task).unwrap();
    held.runs.pass();
    (task, held)
}

#[test]
fn a_thousand_wait_for_their_group_and_one_behind_them_does_not() {
    let _watchdog = watchdog();
    let (_, scheduler) = world(2, 1);
    let (first, held) = occupy(&scheduler);
    let order = Log::new();
    let task = |n: usize| {
        let order = order.clone();
        Task::new(at(0), move || order.push(n)).group("db")
    };
    drop(scheduler.schedule_all((0..1000).map(task).collect()).unwrap());
    let other = scheduler.schedule(Task::new(at(0), || ())).unwrap();
    assert!(other.wait(None));
    assert_eq!((order.len(), first.state()), (0, TaskState::Running));
    let stats = scheduler.stats().unwrap();
    assert_eq!((stats.waiting, stats.crowded), (1000, 1000));
    assert_eq!(scheduler.next_due().unwrap(), Some(at(0)));
    assert!(!scheduler.wait_idle(Some(Duration::ZERO)).unwrap());
    held.go_on.open();
    assert!(scheduler.wait_idle(None).unwrap());
    assert_eq!(scheduler.stats().unwrap().crowded, 0);
    assert_eq!(order.take(), (0..1000).collect::<Vec<_>>());
}

#[test]
fn no_more_than_the_limit_run_at_once_and_no_fewer() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(6).limit("db", 3).limit("net", 2).build().unwrap();
    let counts: [Arc<AtomicUsize>; 2] = [Arc::default(), Arc::default()];
    let most: [Arc<AtomicUsize>; 2] = [Arc::default(), Arc::default()];
    let task = |n: usize| {
        let (count, most) = (Arc::clone(&counts[n % 2]), Arc::clone(&most[n % 2]));
        let job = move || {
            let now = count.fetch_add(1, Ordering::SeqCst) + 1;
            most.fetch_max(now, Ordering::SeqCst);
            std::thread::yield_now();
            count.fetch_sub(1, Ordering::SeqCst);
        };
        Task::new(scheduler.now(), job).group(["db", "net"][n % 2])
    };
    let tasks = scheduler.schedule_all((0..4000).map(task).collect()).unwrap();
    assert!(scheduler.wait_idle(None).unwrap());
    assert!(tasks.iter().all(|task| task.state() == TaskState::Done));
    let most = most.map(|most| most.load(Ordering::SeqCst));
    assert!(most[0] <= 3 && most[1] <= 2, "{most:?}");
    // As many as may: each waits for the others.
    let meeting = Arc::new(std::sync::Barrier::new(3));
    let meets = |_| {
        let meeting = Arc::clone(&meeting);
        let job = move || {
            meeting.wait();
        };
        Task::new(scheduler.now(), job).group("db")
    };
    drop(scheduler.schedule_all((0..30).map(meets).collect()).unwrap());
    assert!(scheduler.wait_idle(None).unwrap());
}

#[test]
fn the_order_is_that_of_all() {
    let (clock, scheduler) = world(1, 1);
    let order = Log::new();
    let add = |name: &'static str, due: i64, priority: i32| {
        let order = order.clone();
        let task = Task::new(at(due), move || order.push(name)).group("db").priority(priority);
        scheduler.schedule(task).unwrap()
    };
    scheduler.pause().unwrap();
    let _tasks = [add("late", 3, 0), add("b", 1, 0), add("c", 1, 0), add("a", 1, 5)];
    clock.advance(ms(10)).unwrap();
    scheduler.resume().unwrap();
    assert!(scheduler.wait_idle(None).unwrap());
    assert_eq!(order.take(), ["a", "b", "c", "late"]);
}

#[test]
fn a_retry_and_a_slot_that_wait_hold_no_place() {
    let (clock, scheduler) = world(2, 1);
    let retried = Task::new(at(0), |run: &Run| run.attempt() > 1).group("db");
    let retried = scheduler.schedule(retried.retry(retry::FixedDelay::new(1, ms(100)))).unwrap();
    let series = Task::new(at(0), || ()).group("db").recurrence(FixedRate::new(ms(50)));
    let series = scheduler.schedule(series).unwrap();
    let once = scheduler.schedule(Task::new(at(1), || ()).group("db")).unwrap();
    clock.advance(ms(99)).unwrap();
    assert_eq!((once.state(), series.info().runs), (TaskState::Done, 2));
    assert_eq!(retried.info().runs, 1);
    clock.advance(ms(1)).unwrap();
    assert_eq!((retried.state(), series.info().runs), (TaskState::Done, 3));
}

#[test]
fn a_run_that_sleeps_on_the_clock_does_not_stop_it() {
    let (clock, scheduler) = world(2, 1);
    let log = Log::new();
    let task = |_| {
        let log = log.clone();
        let job = move |run: &Run| {
            log.push((run.due(), run.now()));
            let _: bool = run.wait(ms(10));
        };
        Task::new(at(5), job).group("db")
    };
    drop(scheduler.schedule_all((0..3).map(task).collect()).unwrap());
    clock.advance(ms(100)).unwrap();
    assert_eq!(log.take(), [(at(5), at(5)), (at(5), at(15)), (at(5), at(25))]);
}

#[test]
fn due_is_told_on_time_and_lateness_counts() {
    let (clock, scheduler) = world(2, 1);
    let events = Log::new();
    listen(&scheduler, &events);
    let job = |run: &Run| {
        let _: bool = run.wait(ms(10));
    };
    for id in ["a", "b"] {
        scheduler.schedule(Task::new(at(5), job).id(id).group("db")).unwrap();
    }
    clock.advance(ms(5)).unwrap();
    let told: Vec<String> = events.take().iter().map(tell).collect();
    let due = ["0 SCHEDULED 'a'", "0 SCHEDULED 'b'", "5 DUE 'a'", "5 DUE 'b'", "5 STARTED 'a'"];
    assert_eq!(told, due);
    clock.advance(ms(10)).unwrap();
    let events = events.take();
    let late: Vec<_> = events.iter().filter_map(|event| event.lateness).collect();
    let told: Vec<String> = events.iter().map(tell).collect();
    assert_eq!(told, ["15 COMPLETED 'a'", "15 STARTED 'b'"]);
    assert_eq!(late, [ms(0), ms(10)]);
}

/// Whoever stands for those that wait is taken away: another must stand for them.
#[test]
fn what_waits_for_its_group_is_controlled_and_cancelled() {
    let (_, scheduler) = world(2, 1);
    let _watchdog = watchdog();
    for n in 0..200 {
        let (_, held) = occupy(&scheduler);
        let task = |n: i64| Task::new(at(0), || ()).id(n).group("db");
        let tasks = scheduler.schedule_all((0..6).map(task).collect()).unwrap();
        scheduler.schedule(Task::new(at(0), || ())).unwrap().result(None).unwrap();
        tasks[0].cancel().unwrap();
        tasks[1].pause().unwrap();
        tasks[2].reschedule(at(1_000_000)).unwrap();
        tasks[3].run_now().unwrap();
        if n % 2 == 0 {
            held.go_on.open();
        }
        tasks[4].cancel().unwrap();
        held.go_on.open();
        assert!(scheduler.wait_idle(None).unwrap());
        assert_eq!(tasks[3].state(), TaskState::Done);
        assert_eq!(tasks[5].state(), TaskState::Done);
        assert_eq!((tasks[1].state(), tasks[2].state()), (TaskState::Waiting, TaskState::Waiting));
        tasks[1].resume().unwrap();
        tasks[2].run_now().unwrap();
        assert!(tasks.iter().all(|task| task.wait(None)));
        tasks.iter().for_each(|task| scheduler.forget(task.id()).unwrap());
        assert!(scheduler.wait_idle(None).unwrap());
        assert_eq!(scheduler.stats().unwrap().waiting, 0);
    }
}

#[test]
fn a_drain_runs_those_that_wait_and_a_shutdown_cancels_them() {
    for drain in [true, false] {
        let (_, scheduler) = world(3, 1);
        let (_, held) = occupy(&scheduler);
        let task = |_| Task::new(at(0), || ()).group("db");
        let tasks = scheduler.schedule_all((0..100).map(task).collect()).unwrap();
        scheduler.schedule(Task::new(at(0), || ())).unwrap().result(None).unwrap();
        let how = Shutdown::now();
        scheduler.shutdown_with(if drain { how.drain() } else { how }).unwrap();
        held.go_on.open();
        assert!(tasks.iter().all(|task| task.wait(None)));
        let end = if drain { TaskState::Done } else { TaskState::Cancelled };
        assert!(tasks.iter().all(|task| task.state() == end));
        assert!(scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    }
}

#[test]
fn a_series_of_a_group_catches_up_alone() {
    let (clock, scheduler) = world(4, 1);
    let rule = FixedRate::new(ms(1)).missed(Missed::CatchUp);
    let task = |_| Task::new(at(1), || ()).group("db").recurrence(rule).max_runs(200);
    let tasks = scheduler.schedule_all((0..4).map(task).collect()).unwrap();
    clock.jump(ms(500)).unwrap();
    assert!(tasks.iter().all(|task| task.info().runs == 200 && task.state() == TaskState::Done));
}

/// More of them than one look at the queue lets wait.
#[test]
fn ten_thousand_wait_and_one_behind_them_does_not() {
    let _watchdog = watchdog();
    let (_, scheduler) = world(2, 1);
    let (_, held) = occupy(&scheduler);
    let task = |_| Task::new(at(0), || ()).group("db");
    let tasks = scheduler.schedule_all((0..10_000).map(task).collect()).unwrap();
    scheduler.schedule(Task::new(at(0), || ())).unwrap().result(None).unwrap();
    assert_eq!(scheduler.stats().unwrap().waiting, 10_000);
    for task in &tasks[..9_990] {
        task.cancel().unwrap();
    }
    assert_eq!(scheduler.stats().unwrap().waiting, 10);
    held.go_on.open();
    assert!(scheduler.wait_idle(None).unwrap());
    assert!(tasks[9_990..].iter().all(|task| task.state() == TaskState::Done));
}

#[test]
fn a_group_without_a_limit_is_refused() {
    let (_, scheduler) = world(1, 1);
    let task = || Task::new(at(0), || ()).group("net");
    let error = scheduler.schedule(task()).unwrap_err();
    assert!(
        matches!(&error, Error::UnknownGroup { group, known } if group == "net" && known == &["db"])
    );
    assert_eq!(error.to_string(), "group must be one of \"db\", not \"net\"");
    assert!(scheduler.schedule_all(vec![Task::new(at(0), || ()), task()]).is_err());
    assert_eq!(scheduler.tasks(None).unwrap(), [], "nothing was scheduled");
    let plain = Scheduler::new();
    assert!(plain.schedule(task()).unwrap_err().to_string().contains("has none"));
    let error = Scheduler::builder().limit("db", 0).build().err().unwrap();
    assert!(error.to_string().contains("limit must be at least 1"));
    let again = Scheduler::builder().limit("db", 0).limit("db", 1).build();
    assert!(again.is_ok(), "the last word counts");
}

/// A place is free, and the one that stands for those that want it is taken away before it starts.
#[test]
fn another_stands_for_the_group_then() {
    let _watchdog = watchdog();
    let taken: [fn(&TaskHandle); 3] = [
        |task| assert!(task.cancel().is_ok()),
        |task| assert!(task.pause().is_ok()),
        |task| assert!(task.reschedule(at(1_000_000)).is_ok()),
    ];
    for take_away in taken {
        let (_, scheduler) = world(2, 1);
        let (first, held) = occupy(&scheduler);
        let task = |_| Task::new(at(0), || ()).group("db");
        let tasks = scheduler.schedule_all((0..3).map(task).collect()).unwrap();
        scheduler.schedule(Task::new(at(0), || ())).unwrap().result(None).unwrap();
        scheduler.pause().unwrap();
        held.go_on.open();
        assert!(first.wait(None) && scheduler.wait_idle(None).unwrap());
        take_away(&tasks[0]);
        scheduler.resume().unwrap();
        assert!(tasks[1].wait(None) && tasks[2].wait(None));
        assert_eq!(tasks[0].info().runs, 0);
    }
}

#[test]
fn a_run_that_goes_on_elsewhere_keeps_its_place() {
    let _watchdog = watchdog();
    let (_, scheduler) = world(1, 1);
    let (send, runs) = channel::<Completion>();
    let job = move || {
        let send = send.clone();
        Later::new(move |completion| send.send(completion).unwrap())
    };
    let first = scheduler.schedule(Task::new(at(0), job).group("db")).unwrap();
    let completion = runs.recv().unwrap();
    // One of the same group that waits for its end has no need of a second place.
    let child = Task::new(at(0), || ()).group("db").priority(1).depends_on([&first]);
    let child = scheduler.schedule(child).unwrap();
    let second = scheduler.schedule(Task::new(at(0), || ()).group("db")).unwrap();
    assert!(scheduler.schedule(Task::new(at(0), || ())).unwrap().wait(None), "a worker is free");
    assert_eq!((second.state(), child.state()), (TaskState::Waiting, TaskState::Waiting));
    assert_eq!(scheduler.stats().unwrap().waiting, 2);
    completion.finish(Value::new(()));
    assert!(scheduler.wait_idle(None).unwrap());
    assert_eq!((second.state(), child.state()), (TaskState::Done, TaskState::Done));
}

#[test]
fn a_task_tells_its_group_in_each_state() {
    let (clock, scheduler) = world(1, 1);
    let (task, held) = occupy(&scheduler);
    assert_eq!((task.state(), task.group().as_deref()), (TaskState::Running, Some("db")));
    held.go_on.open();
    clock.advance(ms(1)).unwrap();
    assert_eq!((task.state(), task.group().as_deref()), (TaskState::Done, Some("db")));
    assert_eq!(scheduler.schedule(Task::new(at(9), || ())).unwrap().group(), None);
}
