//! What holds between two calls, when nothing moves. Invariant: all that can be asked fits together.

use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

use duetime::{Stats, TaskInfo, TaskState};

use crate::notes::{Known, Notes, Story};
use crate::panics;
use crate::world::World;

impl Known {
    /// Whether a task that depends on it is refused.
    pub(crate) fn is_endless_series(&self) -> bool {
        self.endless && !self.handle.state().is_end()
    }

    /// Whether it waits for another task.
    pub(crate) fn is_blocked(&self) -> bool {
        self.parents.iter().any(|parent| !parent.state().is_end())
    }

    /// It runs only after those that it depends on, and not at all if one is not DONE; and not while
    /// it is paused.
    fn check(&self) {
        let info = self.handle.info();
        if self.parents.iter().any(|parent| parent.state() != TaskState::Done) {
            assert_eq!(info.runs, 0, "{info:?} ran before those that it depends on");
        }
        let failed = |state| matches!(state, TaskState::Failed | TaskState::Cancelled);
        if self.parents.iter().any(|parent| failed(parent.state())) {
            assert_eq!(info.state, TaskState::Cancelled, "{info:?} outlives what it depends on");
        }
        let held_at = self.held_at.filter(|_| info.state == TaskState::Waiting);
        assert!(held_at.is_none_or(|runs| runs == info.runs), "{info:?} ran while it was paused");
    }
}

impl World {
    /// Comes to rest, and looks whether all fits together.
    pub(crate) fn rest(&self) {
        // Those that return from where they were stuck do so with nobody waiting for them.
        while self.stats().stuck != self.stuck() {
            thread::yield_now();
        }
        self.advance(Duration::ZERO);
        assert_eq!(self.shared.take_fault(), None);
        assert!(!panics::were_there(), "a panic on a worker");
        let infos = self.scheduler.tasks(None).expect("no fork here");
        let stats = self.stats();
        self.check_counts(&infos, &stats);
        self.check_next(&infos);
        self.check_quiet(&stats);
        infos.iter().for_each(check);
        self.shared.known().values().for_each(Known::check);
        if self.listens {
            self.check_stories(&infos, &stats, &self.shared.notes());
        }
    }

    /// How many runs were given up and have not returned, nor will by themselves.
    fn stuck(&self) -> usize {
        let now = self.clock.now();
        self.shared.notes().attempts.stuck(now).filter(|attempt| attempt.stands(now)).count()
    }

    fn stats(&self) -> Stats {
        self.scheduler.stats().expect("no fork here")
    }

    fn check_counts(&self, infos: &[TaskInfo], stats: &Stats) {
        let count = |state| infos.iter().filter(|info| info.state == state).count();
        assert_eq!(stats.waiting, count(TaskState::Waiting));
        assert_eq!(stats.running, count(TaskState::Running));
        assert_eq!(
            stats.paused,
            infos.iter().filter(|info| is_held(&self.shared.known(), info)).count()
        );
        let now = self.clock.now();
        let notes = self.shared.notes();
        let at_work = notes.attempts.go_on(now).filter(|attempt| attempt.holds_worker()).count();
        assert!(at_work <= 1, "there is one worker");
        assert_eq!(stats.running, notes.attempts.go_on(now).count(), "who is stuck does not count");
        let under_way = u64::try_from(notes.attempts.iter().count()).expect("few");
        assert!(stats.runs + under_way >= notes.runs, "a run of ours was not counted");
        drop(notes);
        if !self.remembers_all {
            assert!(infos.len() <= 2 + stats.waiting + stats.running);
        }
    }

    /// When something is due next; if that were now, it would run.
    fn check_next(&self, infos: &[TaskInfo]) {
        let known = self.shared.known();
        let blocked = |info: &TaskInfo| of(&known, info).is_some_and(Known::is_blocked);
        let waits = infos.iter().filter(|info| info.state == TaskState::Waiting);
        let ready = waits.filter(|info| !is_held(&known, info) && !blocked(info));
        let next = ready.map(|info| info.due).min();
        assert_eq!(self.scheduler.next_due().expect("no fork here"), next);
        let runs = infos.iter().any(|info| info.state == TaskState::Running);
        let now = self.clock.now();
        let rests = next.is_none_or(|due| due > now) || self.scheduler.is_paused();
        let served = self.is_served();
        assert!(runs || rests || !served, "due {next:?} at {now}, and nothing runs");
    }

    /// Who waits for quiet does so for what runs and what is due, and for nobody who is stuck.
    fn check_quiet(&self, stats: &Stats) {
        let now = self.clock.now();
        let due = self.scheduler.next_due().expect("no fork here").is_some_and(|due| due <= now);
        let idle = stats.running == 0 && (!due || self.scheduler.is_paused());
        let answer = self.scheduler.wait_idle(Some(Duration::ZERO));
        assert_eq!(answer.expect("not in a job"), idle);
    }

    fn check_stories(&self, infos: &[TaskInfo], stats: &Stats, notes: &Notes) {
        let ended = stats.done + stats.failed + stats.cancelled;
        assert_eq!(ended, notes.ended, "each task ends once");
        let live = notes.scheduled - notes.ended;
        assert_eq!(stats.waiting + stats.running, usize::try_from(live).expect("few"));
        assert_eq!(stats.missed, notes.missed);
        assert!(stats.failures >= notes.failures);
        for info in infos {
            let story = notes.stories[&info.id];
            let fits = match info.state {
                TaskState::Waiting => matches!(story, Story::Waiting | Story::Due),
                TaskState::Running => story == Story::Runs,
                TaskState::Done | TaskState::Failed => story == Story::EndedByRun,
                TaskState::Cancelled => story == Story::Ended,
            };
            assert!(fits, "{info:?}, but {story:?}");
        }
    }
}

pub(crate) fn of<'a>(known: &'a BTreeMap<i64, Known>, info: &TaskInfo) -> Option<&'a Known> {
    known.values().find(|task| task.handle.id() == info.id)
}

/// Whether it is paused, and not let run once all the same. While it waits for others it counts as
/// paused even then.
pub(crate) fn is_held(known: &BTreeMap<i64, Known>, info: &TaskInfo) -> bool {
    let passes = |task: &Known| task.let_pass_at == Some(info.runs) && !task.is_blocked();
    let waits_paused = info.paused && info.state == TaskState::Waiting;
    waits_paused && !of(known, info).is_some_and(passes)
}

fn check(info: &TaskInfo) {
    let ran = info.runs.saturating_sub(info.failures);
    assert!(info.failures <= info.runs, "{info:?}");
    // One that never ran has an error if it fell with another.
    let fell = info.state == TaskState::Cancelled && info.runs == 0 && info.error.is_some();
    assert_eq!(info.error.is_some(), info.failures > 0 || fell, "{info:?}");
    assert!(info.state != TaskState::Done || ran > 0, "{info:?}");
}
