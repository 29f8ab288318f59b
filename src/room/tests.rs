//! Who goes on with a rebuild, and how far.

use super::*;
use crate::body::Work;
use crate::into_job::IntoJob;
use crate::limits::groups;
use crate::record::{Record, UniqueRef};

/// A room of which just half are left, and a rebuild that has begun: many a worker's share.
fn half_cancelled() -> Room {
    let (_, groups) = groups(Vec::new()).unwrap();
    let mut room = Room::new(2, Registry::new(0), groups);
    let tasks: Vec<TaskRef> = (0..10_240).map(task).collect();
    tasks.iter().for_each(|task| room.push(task.clone(), None).unwrap());
    for task in tasks {
        let cancelled = task.state.try_cancel();
        room.note_cancel(&task, cancelled, false);
        if room.is_rebuilding() {
            break;
        }
    }
    assert!(room.left_to_rebuild() > 10 * SHARE);
    room
}

fn task(n: i64) -> TaskRef {
    let due = Timestamp::from_nanos(n * 7_919 % 100_003);
    let work = Work { job: (|| ()).into_job(), plan: None };
    UniqueRef::new(Record::new(None, due, 0, work, None)).shareable()
}

#[test]
fn a_worker_moves_a_few_entries_in_one_hold_of_the_lock() {
    let mut room = half_cancelled();
    let mut left = room.left_to_rebuild();
    while room.is_rebuilding() {
        room.rebuild();
        assert!(left - room.left_to_rebuild() <= PIECE);
        left = room.left_to_rebuild();
    }
}

#[test]
fn one_worker_tends_a_rebuild_and_rests_while_calls_get_on_with_it() {
    let mut room = half_cancelled();
    let (mut first, mut second) = (None, None);
    assert!(room.wants_hand(&mut first));
    assert!(!room.wants_hand(&mut second), "the first does");
    room.waiting.step(SHARE);
    assert!(!room.wants_hand(&mut first), "calls do as much as it would");
    assert!(!room.wants_hand(&mut second), "the first looks after it");
    room.waiting.step(SHARE - 1);
    assert!(room.wants_hand(&mut first), "calls do less");
    room.stop_tending(&mut first);
    assert!(room.wants_hand(&mut second), "the first has something else to do");
    room.waiting.step(usize::MAX);
    assert!(!room.wants_hand(&mut second) && second.is_none() && !room.tended);
}

/// A call in a rebuild is one of very many: none of them is to ring a bell, once somebody came.
#[test]
fn a_rebuild_summons_one_worker() {
    let mut room = half_cancelled();
    let (now, pace) = (Timestamp::MIN, Pace::Manual);
    room.idle.enter(0, None, None);
    room.idle.enter(1, None, None);
    assert_eq!(room.restore(pace, now), Some(1));
    assert_eq!(room.restore(pace, now), None, "it is on its way");
    room.idle.arrive();
    let mut share = None;
    assert!(room.wants_hand(&mut share));
    assert_eq!(room.restore(pace, now), None, "it is here");
    room.stop_tending(&mut share);
    assert_eq!(room.restore(pace, now), Some(0));
}
