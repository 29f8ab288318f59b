//! The pool: its size and names, that an idle one sleeps, and that whoever is needed wakes up.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use common::{Gate, Held, Log, World, at, ms, secs, watchdog};
use duetime::{Error, MAX_WORKERS, Run, Scheduler, Task, WeakScheduler};

#[test]
fn a_pool_has_between_one_and_1024_workers() {
    for workers in [0, MAX_WORKERS + 1, usize::MAX] {
        let refused = Scheduler::builder().workers(workers).build();
        assert!(matches!(refused, Err(Error::InvalidValue { parameter: "workers", .. })));
    }
    let refused = Scheduler::builder().name("a\0b").build();
    assert!(matches!(refused, Err(Error::InvalidValue { parameter: "name", .. })));
    for workers in [1, MAX_WORKERS] {
        let scheduler = Scheduler::builder().workers(workers).build().unwrap();
        assert_eq!(scheduler.workers(), workers);
        assert_eq!(scheduler.stats().unwrap().workers, workers);
    }
    assert_eq!(Scheduler::new().workers(), 4);
    assert_eq!(Scheduler::default().name(), "duetime");
}

/// The names of the threads that run `jobs` jobs at once.
fn names(scheduler: &Scheduler, jobs: usize) -> HashSet<String> {
    let (barrier, names) = (Arc::new(Barrier::new(jobs)), Log::new());
    let tasks: Vec<_> = (0..jobs)
        .map(|_| {
            let (barrier, names) = (Arc::clone(&barrier), names.clone());
            let job = move || {
                names.push(std::thread::current().name().unwrap_or_default().to_owned());
                barrier.wait();
            };
            scheduler.after(ms(0), job).expect("open")
        })
        .collect();
    assert!(tasks.iter().all(|task| task.wait(None)));
    names.take().into_iter().collect()
}

#[test]
fn a_pool_of_n_runs_n_jobs_at_once_on_threads_with_names() {
    let _watchdog = watchdog();
    for workers in [1, 3, 16] {
        let scheduler = Scheduler::builder().workers(workers).build().unwrap();
        let expected = (0..workers).map(|n| format!("duetime-{n}")).collect();
        assert_eq!(names(&scheduler, workers), expected);
    }
    let scheduler = Scheduler::builder().workers(1).name("other").build().unwrap();
    assert_eq!(names(&scheduler, 1), HashSet::from(["other-0".to_owned()]));
}

#[test]
fn never_more_jobs_at_once_than_workers() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(3).build().unwrap();
    let (running, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    for _ in 0..300 {
        let (running, most) = (Arc::clone(&running), Arc::clone(&most));
        let job = move |run: &Run| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let _ = run.wait(ms(1));
            running.fetch_sub(1, Ordering::SeqCst);
        };
        scheduler.after(ms(0), job).unwrap();
    }
    assert!(scheduler.wait_idle(None).unwrap());
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// illospace#566: a job that never returns holds one worker, and nobody else.
#[test]
fn a_stuck_job_leaves_the_other_workers_alone() {
    let world = World::quiet(2);
    let held = Held::new();
    world.scheduler.schedule(Task::new(at(0), held.clone())).unwrap();
    held.runs.pass();
    for _ in 0..100 {
        let next = world.scheduler.schedule(Task::new(at(0), || ())).unwrap();
        assert!(next.result(None).is_ok());
    }
    held.go_on.open();
}

/// tokio#1700 and cpython#64325: each new earliest task is seen by workers that sleep for another.
#[test]
fn a_new_earliest_task_wakes_a_sleeper() {
    let _watchdog = watchdog();
    for workers in [1, 2, 5] {
        let scheduler = Scheduler::builder().workers(workers).build().unwrap();
        let _never = scheduler.after(secs(3600), || ()).unwrap();
        let ran = Log::new();
        for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [2, 1, 3], [3, 1, 2], [1, 3, 2]] {
            let now = scheduler.now();
            let mut tasks = order.map(|n| {
                let ran = ran.clone();
                let due = now + ms(1) * n;
                scheduler.schedule(Task::new(due, move || ran.push(n))).unwrap()
            });
            tasks.sort_by_key(duetime::TaskHandle::due);
            assert!(tasks.iter().all(|task| task.wait(None)));
            let mut ran = ran.take();
            ran.sort_unstable(); // who is late, or added late, may pass another
            assert_eq!(ran, [1, 2, 3]);
        }
    }
}

/// ClickHouse#100177: bursts in the instant in which the last burst ends.
#[test]
fn bursts_are_never_left_lying() {
    let _watchdog = watchdog();
    let scheduler = Scheduler::builder().workers(4).history(10).build().unwrap();
    for round in 0..20_000 {
        let left = Arc::new(AtomicUsize::new(1 + round % 8));
        let done = Gate::default();
        let now = scheduler.now();
        let tasks = (0..=round % 8).map(|_| {
            let (left, done) = (Arc::clone(&left), done.clone());
            Task::new(now, move || {
                if left.fetch_sub(1, Ordering::SeqCst) == 1 {
                    done.open();
                }
            })
        });
        if round % 2 == 0 {
            scheduler.schedule_all(tasks.collect()).unwrap();
        } else {
            tasks.for_each(|task| drop(scheduler.schedule(task).unwrap()));
        }
        done.pass();
    }
}

/// PyO3#1683: each job schedules the next.
#[test]
fn a_long_chain_of_jobs_does_not_grow_the_stack() {
    fn link(scheduler: &WeakScheduler, left: u32, end: &Gate) {
        let Some(next) = left.checked_sub(1) else { return end.open() };
        let (weak, end) = (scheduler.clone(), end.clone());
        let job = move || link(&weak, next, &end);
        scheduler.upgrade().unwrap().after(ms(0), job).unwrap();
    }
    let world = World::quiet(1);
    let end = Gate::default();
    link(&world.scheduler.downgrade(), 100_000, &end);
    end.pass();
}

/// What the system knows of the threads of this process.
#[cfg(target_os = "linux")]
mod threads {
    use std::fs;

    /// How often the threads called `name-N` went to sleep, and how many there are.
    pub(super) fn sleeps(name: &str) -> (u64, usize) {
        let tasks = fs::read_dir("/proc/self/task").expect("Linux has it");
        let counts = tasks.filter_map(|task| {
            let status = fs::read_to_string(task.ok()?.path().join("status")).ok()?;
            let field = |key: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(key))?;
                line.strip_prefix(':').map(str::trim).map(ToOwned::to_owned)
            };
            let (owner, _) =
                field("Name")?.rsplit_once('-').map(|(a, b)| (a.to_owned(), b.len()))?;
            (owner == name).then(|| field("voluntary_ctxt_switches")?.parse::<u64>().ok())?
        });
        counts.fold((0, 0), |(sum, threads), count| (sum + count, threads + 1))
    }

    /// Waits until none of them does anything any more. `None`: they never rest.
    pub(super) fn rest(name: &str) -> Option<u64> {
        let mut before = sleeps(name).0;
        for _ in 0..100 {
            super::pause(20);
            let now = sleeps(name).0;
            if now == before {
                return Some(now);
            }
            before = now;
        }
        None
    }
}

/// Lets time pass. No test is right or wrong because of how long it is.
#[cfg(target_os = "linux")]
fn pause(millis: u64) {
    let (_open, never) = std::sync::mpsc::channel::<()>();
    assert!(never.recv_timeout(ms(millis)).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_pool_never_wakes_up() {
    let _watchdog = watchdog();
    for (name, waiting, listens) in
        [("none", 0, false), ("many", 100_000, false), ("due", 1_000, true)]
    {
        let scheduler = Scheduler::builder().workers(8).name(name).build().unwrap();
        if listens {
            scheduler.add_listener(|_: &duetime::Event| (), &duetime::EventKind::ALL).unwrap();
        }
        let due = scheduler.now() + secs(3600);
        let tasks = (0..waiting).map(|n| Task::new(due + ms(n), || ())).collect();
        scheduler.schedule_all(tasks).unwrap();
        scheduler.after(ms(0), || ()).unwrap().result(None).unwrap();
        let before = threads::rest(name).expect("an idle pool comes to rest");
        pause(300);
        let threads = 8 + usize::from(listens);
        assert_eq!(threads::sleeps(name), (before, threads), "{name}");
        let now = scheduler.after(ms(0), || true).unwrap();
        assert!(now.result(None).is_ok(), "and it wakes up when it is needed");
    }
}

/// rayon#394, threadly#184: one task wakes one worker, not all.
#[cfg(target_os = "linux")]
#[test]
fn one_task_wakes_few_of_64_idle_workers() {
    const TASKS: u64 = 1_000;
    let _watchdog = watchdog();
    for (name, delay) in [("now", 0), ("soon", 1)] {
        let scheduler = Scheduler::builder().workers(64).name(name).build().unwrap();
        let _never = scheduler.after(secs(3600), || ()).unwrap();
        let before = threads::rest(name).expect("an idle pool comes to rest");
        for _ in 0..TASKS {
            assert!(scheduler.after(ms(delay), || ()).unwrap().wait(None));
        }
        let after = threads::rest(name).expect("an idle pool comes to rest");
        let each = (after - before).div_ceil(TASKS);
        assert!(each <= 5, "{name}: {each} sleeps a task");
    }
}
