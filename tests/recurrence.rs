//! Recurring tasks: grids, delays, slots missed or caught up, and where a series ends.

#![expect(clippy::unwrap_used, reason = "a test may unwrap: its panic is the report")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use common::{Log, ON_PURPOSE, World, at, hush, millis, ms, secs, watchdog};
use duetime::{
    Clock, Error, FixedDelay, FixedRate, JobError, Missed, Next, OneTime, Recurrence, Run,
    Scheduler, Task, TaskHandle, TaskState, Timestamp,
};

fn rate(millis: u64) -> FixedRate {
    FixedRate::new(ms(millis))
}

fn catch_up(millis: u64) -> FixedRate {
    rate(millis).missed(Missed::CatchUp)
}

/// Slot and start of each run, in milliseconds.
type Starts = Log<(i64, i64)>;

/// A task of the second seed's table: the run number `slow` takes `takes`, any other no time.
fn table(starts: &Starts, first: i64, slow: u64, takes: u64) -> Task {
    let starts = starts.clone();
    Task::new(at(first), move |run: &Run| {
        starts.push((millis(run.due()), millis(run.now())));
        if run.number() == slow {
            let _ = run.wait(ms(takes));
        }
    })
}

fn only_starts(starts: &Starts) -> Vec<i64> {
    starts.take().into_iter().map(|(_, start)| start).collect()
}

#[test]
fn a_slow_run_of_a_fixed_rate_skips_slots() {
    let world = World::quiet(1);
    let starts = Log::new();
    let task = table(&starts, 0, 3, 50).recurrence(rate(30));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(150);
    assert_eq!(only_starts(&starts), [0, 30, 60, 120, 150]);
    assert_eq!(task.info().missed, 1);
}

#[test]
fn a_slow_run_of_a_fixed_rate_may_be_caught_up() {
    let world = World::quiet(1);
    let starts = Log::new();
    let task = table(&starts, 0, 3, 50).recurrence(catch_up(30));
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(150);
    let expected = [(0, 0), (30, 30), (60, 60), (90, 110), (120, 120), (150, 150)];
    assert_eq!(starts.take(), expected);
    assert_eq!(task.info().missed, 0);
}

#[test]
fn a_slow_run_of_a_fixed_delay_moves_all_later_ones() {
    let world = World::quiet(1);
    let starts = Log::new();
    let task = table(&starts, 0, 3, 50).recurrence(FixedDelay::new(ms(30)));
    world.scheduler.schedule(task).unwrap();
    world.advance(170);
    assert_eq!(only_starts(&starts), [0, 30, 60, 140, 170]);
}

/// A clock that a job moves while it runs.
#[derive(Clone, Default)]
struct Moved(Arc<AtomicI64>);

impl Clock for Moved {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.load(Ordering::SeqCst))
    }
}

/// Five runs of the table on a clock of no known pace; each run moves it by what it takes.
fn table_on_a_moved_clock(rule: impl Recurrence) -> Vec<i64> {
    let _watchdog = watchdog();
    let clock = Moved::default();
    let scheduler = Scheduler::builder().clock(clock.clone()).build().unwrap();
    let starts = Log::new();
    let (moves, notes) = (clock.clone(), starts.clone());
    let task = Task::new(at(0), move |run: &Run| {
        notes.push(millis(run.now()));
        if run.number() == 3 {
            moves.0.fetch_add(at(50).as_nanos(), Ordering::SeqCst);
        }
    });
    let task = scheduler.schedule(task.recurrence(rule).max_runs(5)).unwrap();
    while task.outcome().is_none() {
        assert!(scheduler.wait_idle(None).unwrap());
        if let Some(due) = scheduler.next_due().unwrap() {
            clock.0.store(due.as_nanos(), Ordering::SeqCst);
            scheduler.wake().unwrap();
        }
    }
    starts.take()
}

#[test]
fn the_table_holds_on_any_clock() {
    assert_eq!(table_on_a_moved_clock(rate(30)), [0, 30, 60, 120, 150]);
    assert_eq!(table_on_a_moved_clock(catch_up(30)), [0, 30, 60, 110, 120]);
    let delay = FixedDelay::new(ms(30));
    assert_eq!(table_on_a_moved_clock(delay), [0, 30, 60, 140, 170]);
}

/// tokio#3721: a first run that takes several periods.
#[test]
fn a_first_run_of_several_periods() {
    let starts_of = |rule: FixedRate, takes| {
        let world = World::quiet(1);
        let starts = Log::new();
        let task = table(&starts, 0, 1, takes).recurrence(rule);
        let task = world.scheduler.schedule(task).unwrap();
        world.advance(250);
        (only_starts(&starts), task.info().missed)
    };
    let caught_up = vec![0, 180, 180, 180, 200, 250];
    assert_eq!(starts_of(catch_up(50), 180), (caught_up, 0));
    assert_eq!(starts_of(rate(50), 180), (vec![0, 200, 250], 3));
    assert_eq!(
        starts_of(rate(50), 200),
        (vec![0, 200, 250], 3),
        "a slot at the end of the run is not missed, and run once"
    );
    assert_eq!(starts_of(rate(50), 201), (vec![0, 250], 4));
}

/// gocron#438 and robfig/cron#26: leaps of the clock.
#[test]
fn after_a_jump_of_any_length_the_old_grid_goes_on() {
    for k in 0..=100_u64 {
        for rule in [rate(10), catch_up(10)] {
            let world = World::quiet(1);
            let starts = Log::new();
            let starts_too = starts.clone();
            let job = move |run: &Run| starts_too.push(run.due());
            let task = world.scheduler.every(rule, job).unwrap();
            let leap = ms(10 * k) + std::time::Duration::from_nanos(1);
            world.clock.jump(leap).unwrap();
            let runs = if rule == rate(10) { k.min(1) } else { k };
            let now = world.clock.now();
            let next = world.scheduler.next_due().unwrap().unwrap();
            assert!(next > now && next <= now + ms(10), "{next} at {now}");
            assert_eq!(next, at(10 * (k.cast_signed() + 1)));
            let slots: Vec<_> = (1..=runs.cast_signed()).map(|n| at(10 * n)).collect();
            assert_eq!(starts.take(), slots);
            assert_eq!((task.info().runs, task.info().missed), (runs, k - runs));
        }
    }
}

/// schedule#285: no drift.
#[test]
fn ten_thousand_hours_without_drift() {
    let hour = secs(3600);
    for (rule, step) in [
        (Box::new(FixedRate::new(hour)) as Box<dyn Recurrence>, 3600),
        (Box::new(FixedDelay::new(hour)), 3613),
    ] {
        struct Boxed(Box<dyn Recurrence>);
        impl Recurrence for Boxed {
            fn next_due(&self, due: Timestamp, end: Timestamp) -> Result<Option<Next>, JobError> {
                self.0.next_due(due, end)
            }
        }
        let world = World::quiet(1);
        let starts = Log::new();
        let notes = starts.clone();
        let task = Task::new(at(0), move |run: &Run| {
            notes.push(millis(run.now()) / 1000);
            run.wait(secs(13))
        });
        world.scheduler.schedule(task.recurrence(Boxed(rule)).max_runs(10_001)).unwrap();
        world.clock.advance(hour * 11_000).unwrap();
        assert!(starts.take().into_iter().eq((0..=10_000).map(|n| n * step)));
    }
}

#[test]
fn a_slot_far_out_is_exact() {
    let first = Timestamp::from_nanos(17);
    let far = first + secs(1_000_000); // slot 10,000,000 of 0.1 s
    let before = Timestamp::from_nanos(far.as_nanos() - 1);
    let next = rate(100).next_due(first, before).unwrap().unwrap();
    assert_eq!((next.due, next.missed), (far, 9_999_999));
    let next = rate(100).next_due(first, far).unwrap().unwrap();
    assert_eq!((next.due, next.missed), (far, 9_999_999));
    let beyond = rate(100).next_due(Timestamp::MAX, Timestamp::MAX);
    assert_eq!(beyond.unwrap(), None, "the end of time ends the series");
}

#[test]
fn max_runs_and_until_bound_a_series() {
    let world = World::quiet(1);
    let task = |due| Task::new(due, || ()).recurrence(rate(10));
    let three = world.scheduler.schedule(task(at(10)).max_runs(3)).unwrap();
    let until = world.scheduler.schedule(task(at(10)).until(at(40))).unwrap();
    let both = task(at(10)).until(at(19)).max_runs(9);
    let both = world.scheduler.schedule(both).unwrap();
    world.advance(200);
    let ended = |task: &TaskHandle| (task.state(), task.info().runs, millis(task.due()));
    assert_eq!(ended(&three), (TaskState::Done, 3, 30));
    assert_eq!(ended(&until), (TaskState::Done, 4, 40), "until is included");
    assert_eq!(ended(&both), (TaskState::Done, 1, 10));
    let refused = |task: Task| match world.scheduler.schedule(task) {
        Err(Error::InvalidValue { parameter, .. }) => parameter,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(task(at(300)).max_runs(0)), "max_runs");
    assert_eq!(refused(task(at(300)).until(at(299))), "until");
}

#[test]
fn after_its_last_run_a_series_is_as_that_run_was() {
    let world = World::quiet(1);
    let runs = |good: u64| {
        let task = Task::new(at(10), move |run: &Run| run.number() == good);
        world.scheduler.schedule(task.recurrence(rate(10)).max_runs(3)).unwrap()
    };
    let (well, badly) = (runs(3), runs(2));
    world.advance(100);
    assert_eq!((well.state(), well.info().failures), (TaskState::Done, 2));
    assert_eq!((badly.state(), badly.info().failures), (TaskState::Failed, 2));
}

/// shenyu#6608: the next run, whatever happened.
#[test]
fn a_failed_run_does_not_end_a_series() {
    hush();
    let world = World::quiet(1);
    let task = world.scheduler.every(rate(10), |run: &Run| {
        assert!(run.number() != 3, "{ON_PURPOSE}");
        run.number() != 5
    });
    world.advance(70);
    let info = task.unwrap().info();
    assert_eq!((info.runs, info.failures), (7, 2));
}

#[test]
fn a_task_never_overlaps_itself() {
    let world = World::quiet(4);
    let inside = Arc::new(AtomicI64::new(0));
    for rule in [rate(1), catch_up(1)] {
        let inside = Arc::clone(&inside);
        let task = Task::new(at(1), move |run: &Run| {
            let others = inside.fetch_add(1, Ordering::SeqCst);
            let _ = run.wait(ms(3));
            inside.fetch_sub(1, Ordering::SeqCst);
            others == 0
        });
        let task = task.recurrence(rule).max_runs(100);
        let task = world.scheduler.schedule(task).unwrap();
        world.advance(1_000);
        assert_eq!((task.info().runs, task.info().failures), (100, 0));
    }
}

#[test]
fn rules_out_of_bounds_are_refused_and_nothing_is_changed() {
    let world = World::new(1);
    let century = secs(3_155_760_000);
    let too_long = century + std::time::Duration::from_nanos(1);
    let every = |rule: FixedRate| world.scheduler.every(rule, || ()).map(drop);
    assert!(every(FixedRate::new(ms(0))).is_err());
    assert!(every(FixedRate::new(too_long)).is_err());
    assert!(world.scheduler.every(FixedDelay::new(ms(0)), || ()).is_err());
    assert!(world.scheduler.every(FixedDelay::new(too_long), || ()).is_err());
    assert_eq!(world.scheduler.stats().unwrap().waiting, 0);
    assert!(world.story().is_empty());
    assert!(every(FixedRate::new(century)).is_ok());
    let once = Task::new(at(0), || ()).recurrence(OneTime);
    let once = world.scheduler.schedule(once).unwrap();
    assert!(once.result(None).is_ok());
}
