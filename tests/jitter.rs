//! Jitter: each run is moved by chance, and no slot is.

mod common;

use std::time::Duration;

use common::{Log, World, at, ms, secs};
use duetime::{
    Error, FixedDelay, FixedRate, JobError, Missed, Next, Recurrence, Run, Task, Timestamp, retry,
};

/// Due time and start of each run, in nanoseconds.
type Dues = Log<(i64, i64)>;

fn noted(dues: &Dues, first: i64) -> Task {
    let dues = dues.clone();
    Task::new(at(first), move |run: &Run| {
        dues.push((run.due().as_nanos(), run.now().as_nanos()));
    })
}

/// How far behind its slot each run of a grid of seconds is due.
fn offsets(dues: &[(i64, i64)]) -> Vec<i64> {
    let slots = (0..).map(|n| at(n * 1_000).as_nanos());
    dues.iter().zip(slots).map(|((due, _), slot)| due - slot).collect()
}

#[test]
fn each_run_is_due_a_little_after_its_slot_and_nothing_adds_up() {
    let world = World::quiet(1);
    let dues = Log::new();
    let task = noted(&dues, 0).recurrence(FixedRate::new(secs(1))).jitter(ms(900)).max_runs(5_000);
    let task = world.scheduler.schedule(task).unwrap();
    world.advance(5_000_000);
    let dues = dues.take();
    assert_eq!((dues.len(), task.info().missed), (5_000, 0));
    let offsets = offsets(&dues);
    let width = at(900).as_nanos();
    assert!(offsets.iter().all(|offset| (0..=width).contains(offset)));
    for tenth in 0..10 {
        let part = tenth * width / 10..(tenth + 1) * width / 10;
        let share = offsets.iter().filter(|offset| part.contains(offset)).count();
        assert!((300..700).contains(&share), "{share} of 5,000 in the tenth {tenth}");
    }
    assert!(dues.iter().all(|(due, start)| due == start));
    assert!(dues.is_sorted());
}

#[test]
fn a_one_off_is_moved_too() {
    let world = World::quiet(1);
    let all: Vec<i64> = (0..100)
        .map(|_| world.scheduler.schedule(Task::new(at(0), || ()).jitter(secs(1))).unwrap())
        .map(|task| task.due().as_nanos())
        .collect();
    assert!(all.iter().all(|due| (0..=at(1_000).as_nanos()).contains(due)));
    assert!(all.iter().any(|due| *due != all[0]));
    let exact = Task::new(at(5), || ()).jitter(Duration::ZERO);
    assert_eq!(world.scheduler.schedule(exact).unwrap().due(), at(5));
}

#[test]
fn missed_slots_are_counted_on_the_grid() {
    let run = |missed| {
        let world = World::quiet(1);
        let dues = Log::new();
        let log = dues.clone();
        let job = move |run: &Run| {
            log.push((run.due().as_nanos(), run.now().as_nanos()));
            if run.number() == 2 {
                let _ = run.wait(secs(2)); // from within slot 1 to within slot 3
            }
        };
        let rule = FixedRate::new(secs(1)).missed(missed);
        let task = Task::new(at(0), job).recurrence(rule).jitter(ms(500)).max_runs(5);
        let task = world.scheduler.schedule(task).unwrap();
        world.advance(10_000);
        let slots: Vec<i64> =
            dues.take().into_iter().map(|(due, _)| due.div_euclid(at(1_000).as_nanos())).collect();
        (slots, task.info().missed)
    };
    // The run that starts in slot 1 ends behind slot 3, or on it if chance moved it by nothing.
    assert_eq!(run(Missed::Skip), (vec![0, 1, 4, 5, 6], 2));
    assert_eq!(run(Missed::CatchUp), (vec![0, 1, 2, 3, 4], 0));
}

#[test]
fn a_fixed_delay_and_a_rule_of_ones_own_are_moved_likewise() {
    /// Asked with its own slots, whatever the runs were due at.
    struct Doubling;
    impl Recurrence for Doubling {
        fn next_due(&self, due: Timestamp, finished: Timestamp) -> Result<Option<Next>, JobError> {
            assert!(finished >= due);
            Ok(Some(Timestamp::from_nanos(due.as_nanos() * 2).into()))
        }
    }
    let world = World::quiet(1);
    let dues = Log::new();
    let task = noted(&dues, 1_000).recurrence(Doubling).jitter(ms(900)).max_runs(6);
    world.scheduler.schedule(task).unwrap();
    world.advance(100_000);
    let slots: Vec<i64> = dues.take().iter().map(|(due, _)| due / at(1_000).as_nanos()).collect();
    assert_eq!(slots, [1, 2, 4, 8, 16, 32]);
    let now = 100_000;
    let task = noted(&dues, now).recurrence(FixedDelay::new(secs(1))).jitter(secs(5)).max_runs(50);
    world.scheduler.schedule(task).unwrap();
    world.advance(1_000_000);
    let dues = dues.take();
    assert_eq!(dues.len(), 50);
    for pair in dues.windows(2) {
        let gap = pair[1].0 - pair[0].1;
        assert!((at(1_000).as_nanos()..=at(6_000).as_nanos()).contains(&gap), "{gap}");
    }
}

#[test]
fn a_retry_keeps_its_own_delay_and_its_slot() {
    let world = World::quiet(1);
    let dues = Log::new();
    let log = dues.clone();
    let job = move |run: &Run| {
        log.push((run.due().as_nanos(), run.now().as_nanos()));
        false
    };
    let task = Task::new(at(0), job).recurrence(FixedRate::new(secs(1))).jitter(ms(100));
    world.scheduler.schedule(task.retry(retry::FixedDelay::new(1, ms(300))).max_runs(2)).unwrap();
    world.advance(10_000);
    let dues: Vec<i64> = dues.take().into_iter().map(|(due, _)| due).collect();
    assert_eq!(dues.len(), 4);
    assert_eq!(dues[1] - dues[0], at(300).as_nanos());
    assert_eq!(dues[3] - dues[2], at(300).as_nanos());
    assert!((at(1_000).as_nanos()..=at(1_100).as_nanos()).contains(&dues[2]));
}

#[test]
fn nothing_is_due_after_until() {
    for _ in 0..20 {
        let world = World::quiet(1);
        let dues = Log::new();
        let task = noted(&dues, 0).recurrence(FixedRate::new(secs(1))).jitter(ms(999));
        world.scheduler.schedule(task.until(at(2_001))).unwrap();
        world.advance(10_000);
        let dues = dues.take();
        assert_eq!(dues.len(), 3);
        assert!(dues[2].0 <= at(2_001).as_nanos());
    }
}

#[test]
fn a_jitter_must_not_reach_the_next_slot() {
    let world = World::quiet(1);
    let schedule = |jitter| {
        let task = Task::new(at(0), || ()).jitter(jitter).recurrence(FixedRate::new(secs(10)));
        world.scheduler.schedule(task)
    };
    for jitter in [secs(10), secs(20), Duration::from_secs(3_155_760_000)] {
        let refused = schedule(jitter).unwrap_err().to_string();
        assert!(refused.contains("jitter") && refused.contains("period of 10s"), "{refused}");
    }
    assert!(schedule(Duration::from_nanos(9_999_999_999)).is_ok());
    let refused = Task::new(at(0), || ()).jitter(Duration::MAX);
    let refused = world.scheduler.schedule(refused);
    assert!(matches!(refused, Err(Error::InvalidValue { parameter: "jitter", .. })));
    assert_eq!(world.scheduler.tasks(None).unwrap().len(), 1);
}

#[test]
fn at_the_end_of_time_there_is_no_later() {
    let world = World::quiet(1);
    let task = Task::new(Timestamp::MAX, || ()).jitter(secs(3_000_000_000));
    assert_eq!(world.scheduler.schedule(task).unwrap().due(), Timestamp::MAX);
}
