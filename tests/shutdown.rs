//! The end of a scheduler: by whom, how, and what becomes of what it had.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::{Gate, Held, Log, World, at, ms, secs, watchdog};
use duetime::{
    CancelOutcome, Error, Event, EventKind, FixedRate, ManualClock, Run, Scheduler, Shutdown, Task,
    TaskError, TaskState,
};

fn refuses(scheduler: &Scheduler) -> bool {
    let later = scheduler.schedule(Task::new(at(0), || ()));
    matches!(later, Err(Error::SchedulerClosed))
}

#[test]
fn a_shutdown_refuses_what_is_new_and_cancels_what_waits() {
    let world = World::new(2);
    let waiting = world.scheduler.after(ms(10), || ()).unwrap();
    let series = world.scheduler.every(FixedRate::new(ms(10)), || ()).unwrap();
    let done = world.scheduler.schedule(Task::new(at(0), || 7 > 3)).unwrap();
    assert!(done.result(None).is_ok());
    assert!(!world.scheduler.is_closed() && !world.scheduler.has_ended());
    assert!(world.scheduler.shutdown().unwrap());
    assert!(world.scheduler.is_closed() && world.scheduler.has_ended());
    assert!(refuses(&world.scheduler));
    for task in [&waiting, &series] {
        assert!(matches!(task.result(None), Err(TaskError::Cancelled)));
        assert_eq!(task.cancel().unwrap(), CancelOutcome::Finished);
    }
    assert_eq!(done.state(), TaskState::Done);
    assert_eq!(world.scheduler.info(done.id()).unwrap().runs, 1, "what was is still known");
    assert_eq!(world.scheduler.tasks(None).unwrap().len(), 3);
    assert!(world.scheduler.wait_idle(None).unwrap());
    world.advance(100);
    assert_eq!(world.scheduler.stats().unwrap().runs, 1);
    assert!(world.scheduler.shutdown().unwrap(), "again");
    assert!(world.scheduler.shutdown_with(Shutdown::now().drain()).unwrap());
}

#[test]
fn a_scheduler_that_never_did_anything_ends_at_once() {
    let scheduler = Scheduler::new();
    assert!(scheduler.shutdown().unwrap());
    assert!(refuses(&scheduler));
    drop(Scheduler::new());
}

#[test]
fn a_running_job_is_told_to_stop_and_waited_for() {
    let world = World::quiet(1);
    let (runs, stopped) = (Gate::default(), Arc::new(AtomicBool::new(false)));
    let (says, sees) = (runs.clone(), Arc::clone(&stopped));
    let job = move |run: &Run| {
        says.open();
        sees.store(run.wait(secs(3600)), Ordering::SeqCst); // the clock stands still
    };
    let task = Task::new(at(0), job).recurrence(FixedRate::new(ms(1)));
    let task = world.scheduler.schedule(task).unwrap();
    runs.pass();
    assert!(world.scheduler.shutdown().unwrap());
    assert!(stopped.load(Ordering::SeqCst));
    assert_eq!(task.state(), TaskState::Cancelled);
}

#[test]
fn a_shutdown_that_does_not_wait_or_waits_in_vain_says_so() {
    let world = World::quiet(1);
    let held = Held::new();
    let task = world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    assert!(!world.scheduler.shutdown_with(Shutdown::now()).unwrap());
    assert!(!world.scheduler.shutdown_with(Shutdown::wait().timeout(ms(1))).unwrap());
    assert!(world.scheduler.is_closed() && !world.scheduler.has_ended());
    assert_eq!(task.state(), TaskState::Running);
    held.go_on.open();
    assert!(world.scheduler.shutdown_with(Shutdown::wait()).unwrap());
    assert_eq!(task.state(), TaskState::Done, "it finished as it liked");
}

#[test]
fn a_drain_runs_first_what_is_due() {
    for drain in [false, true] {
        let world = World::new(1);
        let ran = Log::new();
        let held = Held::new();
        world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
        held.runs.pass();
        let due: Vec<_> = (0..10)
            .map(|n| {
                let ran = ran.clone();
                let task = Task::new(at(-n), move || ran.push(n)).recurrence(FixedRate::new(ms(5)));
                world.scheduler.schedule(task).unwrap()
            })
            .collect();
        let later = world.scheduler.after(ms(1), || ()).unwrap();
        let how = if drain { Shutdown::wait().drain() } else { Shutdown::wait() };
        let (scheduler, ends) = (world.scheduler.clone(), Log::new());
        let log = ends.clone();
        let ender = std::thread::spawn(move || log.push(scheduler.shutdown_with(how).unwrap()));
        assert!(later.wait(None), "cancelled as the shutdown begins");
        assert_eq!(ends.len(), 0);
        held.go_on.open();
        ender.join().unwrap();
        assert_eq!(ends.take(), [true]);
        let expected: Vec<i64> = if drain { (0..10).rev().collect() } else { Vec::new() };
        assert_eq!(ran.take(), expected);
        assert!(due.iter().all(|task| task.state() == TaskState::Cancelled), "no next slot");
    }
}

/// cilium/hive#80: a job that calls the scheduler while it drains.
#[test]
fn during_a_drain_every_call_has_an_answer() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let (scheduler, answers) = (world.scheduler.clone(), Log::new());
    let log = answers.clone();
    let calls = Task::new(at(0), move |run: &Run| {
        log.push(refuses(&scheduler));
        log.push(scheduler.cancel(run.id()).is_ok());
        log.push(scheduler.tasks(None).is_ok_and(|tasks| tasks.len() == 2));
        log.push(scheduler.stats().is_ok_and(|stats| stats.running == 1));
        log.push(scheduler.shutdown_with(Shutdown::wait().drain()).is_ok_and(|ended| !ended));
    });
    let calls = world.scheduler.schedule(calls).unwrap();
    assert!(!world.scheduler.shutdown_with(Shutdown::now().drain()).unwrap());
    held.go_on.open();
    assert!(world.scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
    assert_eq!(answers.take(), [true; 5]);
    assert_eq!(calls.state(), TaskState::Done);
}

/// apscheduler#338: a shutdown from where it would wait for itself.
#[test]
fn a_shutdown_from_a_job_or_listener_does_not_wait() {
    let _watchdog = watchdog();
    for from in 0..3 {
        let scheduler = Scheduler::builder().workers(1).clock(ManualClock::new()).build().unwrap();
        let weak = scheduler.downgrade();
        let done = Gate::default();
        let gate = done.clone();
        let ends = move || {
            let scheduler = weak.upgrade().unwrap();
            assert!(!scheduler.shutdown_with(Shutdown::wait()).unwrap(), "this job still runs");
            assert!(matches!(scheduler.wait_idle(None), Err(Error::InsideJob(_))));
            gate.open();
        };
        if from == 1 {
            let ends = ends.clone();
            scheduler.add_listener(move |_: &Event| ends(), &[EventKind::Completed]).unwrap();
        }
        let in_job = ends.clone();
        let start = Gate::default();
        let starts = start.clone();
        let task = scheduler.schedule(Task::new(at(0), move || {
            starts.pass();
            if from == 0 {
                in_job();
            }
        }));
        let task = task.unwrap();
        if from == 2 {
            task.on_done(move |_: &duetime::TaskHandle| ends());
        }
        let waiting = scheduler.after(ms(1), || ()).unwrap();
        start.open();
        done.pass();
        assert!(task.wait(None) && waiting.wait(None));
        assert_eq!((task.state(), waiting.state()), (TaskState::Done, TaskState::Cancelled));
        assert!(scheduler.shutdown().unwrap());
    }
}

#[test]
fn a_shutdown_without_a_drain_ends_a_drain() {
    let world = World::quiet(1);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let due = world.scheduler.schedule(Task::new(at(0), || ())).unwrap();
    assert!(!world.scheduler.shutdown_with(Shutdown::now().drain()).unwrap());
    assert_eq!(due.state(), TaskState::Waiting);
    assert!(!world.scheduler.shutdown_with(Shutdown::now()).unwrap());
    assert_eq!(due.state(), TaskState::Cancelled);
    held.go_on.open();
    assert!(world.scheduler.shutdown_with(Shutdown::wait().drain()).unwrap());
}

/// gocron#355, #473: from two threads, and while the first tasks come.
#[test]
fn shutdowns_from_many_threads_all_return() {
    let _watchdog = watchdog();
    for _ in 0..200 {
        let scheduler = Scheduler::builder().workers(3).build().unwrap();
        let accepted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while scheduler.after(ms(0), || ()).is_ok() {
                        accepted.fetch_add(1, Ordering::SeqCst);
                    }
                });
                scope.spawn(|| assert!(scheduler.shutdown().unwrap()));
            }
        });
        let stats = scheduler.stats().unwrap();
        assert_eq!(stats.done + stats.cancelled, accepted.load(Ordering::SeqCst));
        assert_eq!((stats.waiting, stats.running), (0, 0));
    }
}

/// more-executors#114: nobody waits for a scheduler that is gone.
#[test]
fn with_its_last_reference_a_scheduler_ends() {
    let world = World::quiet(1);
    let held = Held::new();
    let running = world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    let waiting = world.scheduler.after(ms(10), || ()).unwrap();
    let clone = world.scheduler.clone();
    let weak = clone.downgrade();
    drop(world);
    assert_eq!(waiting.state(), TaskState::Waiting, "somebody still has it");
    drop(clone);
    assert!(weak.upgrade().is_none());
    assert!(matches!(waiting.result(None), Err(TaskError::Cancelled)));
    assert_eq!(running.state(), TaskState::Running, "it was dropped without waiting");
    held.go_on.open();
    assert!(running.result(None).is_ok());
    assert_eq!(waiting.cancel().unwrap(), CancelOutcome::Finished);
}

#[test]
fn the_last_reference_may_go_inside_of_a_job() {
    let _watchdog = watchdog();
    for _ in 0..100 {
        let scheduler = Scheduler::builder().workers(2).build().unwrap();
        let (own, told) = (scheduler.clone(), Gate::default());
        let mut own = Some(own);
        let may_go = told.clone();
        let task = scheduler.after(ms(0), move || {
            may_go.pass();
            own.take();
        });
        let waiting = scheduler.after(secs(3600), || ()).unwrap();
        drop(scheduler);
        told.open();
        assert!(task.unwrap().wait(None));
        assert!(matches!(waiting.result(None), Err(TaskError::Cancelled)));
    }
}

/// tokio-cron-scheduler#104, dirigiste#11: made and dropped over and over.
#[cfg(target_os = "linux")]
#[test]
fn schedulers_that_are_gone_leave_no_thread_behind() {
    let _watchdog = watchdog();
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        names.filter(|name| name.starts_with("fleeting")).count()
    };
    for n in 0..300 {
        let scheduler = Scheduler::builder().workers(4).name("fleeting").build().unwrap();
        scheduler.add_listener(|_: &Event| (), &EventKind::ALL).unwrap();
        assert!(scheduler.after(ms(0), || ()).unwrap().wait(None));
        if n % 2 == 0 {
            assert!(scheduler.shutdown().unwrap());
        }
    }
    // Those that were dropped end by themselves.
    while threads() > 0 {
        std::thread::yield_now();
    }
}
