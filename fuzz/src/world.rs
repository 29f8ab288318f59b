//! The calls. Invariant: each answer is the one that was known beforehand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use duetime::{
    CancelOutcome, ControlOutcome, Dependency, Error, Event, EventKind, ManualClock, Scheduler,
    Shutdown, Task, TaskHandle, TaskInfo, TaskState, Timestamp,
};

use crate::bytes::{Bytes, IDS};
use crate::draft::{Draft, YEAR};
use crate::notes::{GROUPS, Known, Shared};

/// Far above what any shutdown here takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct World {
    pub(crate) scheduler: Scheduler,
    pub(crate) clock: ManualClock,
    pub(crate) shared: Arc<Shared>,
    pub(crate) listens: bool,
    pub(crate) remembers_all: bool,
    /// A series that makes up for every slot was scheduled: no leap of years any more.
    pub(crate) catches_up: bool,
}

impl World {
    pub(crate) fn decode(bytes: &mut Bytes) -> Self {
        let clock = ManualClock::new();
        let history = [10_000, 10_000, 2, 0][usize::from(bytes.below(4))];
        let mut builder = Scheduler::builder().workers(1).clock(clock.clone()).history(history);
        for (place, group) in GROUPS.into_iter().enumerate() {
            builder = builder.limit(group, place + 1);
        }
        let scheduler = builder.build().expect("settings in bounds");
        let shared = Arc::new(Shared::default());
        let listens = bytes.below(3) > 0;
        if listens {
            let shared = Arc::clone(&shared);
            let hear = move |event: &Event| {
                shared.note(|notes| notes.hear(event));
            };
            scheduler.add_listener(hear, &EventKind::ALL).expect("open");
        }
        let remembers_all = history == 10_000;
        Self { scheduler, clock, shared, listens, remembers_all, catches_up: false }
    }

    pub(crate) fn call(&mut self, bytes: &mut Bytes) {
        match bytes.below(20) {
            0..=3 => self.schedule(bytes, false),
            4 => self.schedule(bytes, true),
            5 => self.cancel(bytes.id()),
            6 => self.forget(bytes.id()),
            7 => {
                let leap = YEAR * u32::from(bytes.below(12));
                // A leap over a series that catches up would make it run for years.
                let leap = if self.catches_up { Duration::ZERO } else { leap };
                self.jump(leap);
            }
            8 => self.jump(bytes.millis(100)),
            9 | 10 => self.batch(bytes),
            11 | 12 => self.control(bytes),
            13 => self.pause_or_resume(bytes.below(3) == 0),
            14 | 15 => self.let_go(bytes),
            16 | 17 => self.jump_to_deadline(bytes),
            _ => self.go_on(bytes.millis(60)),
        }
    }

    fn schedule(&mut self, bytes: &mut Bytes, replace: bool) {
        let id = bytes.id();
        let Draft { task, group, endless } = self.draft(bytes, id);
        let before = self.info(id).map(|info| info.state);
        let shared = Arc::clone(&self.shared);
        let mut known = shared.known();
        let parent = (id + i64::from(bytes.below(IDS))) % i64::from(IDS);
        let parent = known.get(&parent).filter(|_| parent != id && bytes.below(3) == 0);
        let refused = parent.is_some_and(|parent| parent.is_endless_series());
        let parents: Vec<TaskHandle> = parent.iter().map(|parent| parent.handle.clone()).collect();
        let task = task.depends_on(parents.iter().map(Dependency::from));
        let answer =
            if replace { self.scheduler.replace(task) } else { self.scheduler.schedule(task) };
        let expected = match before {
            Some(TaskState::Running) if replace => matches!(answer, Err(Error::TaskRunning(_))),
            Some(_) if !replace => matches!(answer, Err(Error::DuplicateTask(_))),
            _ if refused => matches!(answer, Err(Error::InvalidValue { .. })),
            _ => answer.is_ok(),
        };
        assert!(expected || refused && answer.is_err(), "{id} after {before:?}: {answer:?}");
        if let Ok(handle) = answer {
            known.insert(id, Known::new(handle, parents, group, endless));
        }
    }

    /// All or none. Each may depend on one other of the call.
    fn batch(&mut self, bytes: &mut Bytes) {
        let ids: Vec<i64> = (0..bytes.below(5)).map(|_| bytes.id()).collect();
        let drafts: Vec<Draft> = ids.iter().map(|&id| self.draft(bytes, id)).collect();
        let parent = |_| Some(usize::from(bytes.below(12))).filter(|&parent| parent < ids.len());
        let parents: Vec<Option<usize>> = ids.iter().map(parent).collect();
        let taken = ids.iter().any(|&id| self.info(id).is_some());
        let twice = ids.iter().collect::<BTreeSet<_>>().len() < ids.len();
        let refused = parents.iter().flatten().any(|&parent| drafts[parent].endless);
        let circle = (0..ids.len()).any(|place| is_in_circle(&parents, place));
        let traits: Vec<_> = drafts.iter().map(|draft| (draft.group, draft.endless)).collect();
        let place = |draft: Draft, parent: Option<usize>| match parent {
            Some(parent) => draft.task.depends_on([Dependency::Nth(parent)]),
            None => draft.task,
        };
        let tasks: Vec<Task> =
            drafts.into_iter().zip(&parents).map(|(d, p)| place(d, *p)).collect();
        let mut known = self.shared.known();
        let answer = self.scheduler.schedule_all(tasks);
        let expected = !taken && !twice && !refused && !circle;
        assert_eq!(answer.is_ok(), expected, "{ids:?}, {parents:?}: {answer:?}");
        let Ok(handles) = answer else { return };
        for (place, (&id, handle)) in ids.iter().zip(&handles).enumerate() {
            let parents = parents[place].iter().map(|&parent| handles[parent].clone()).collect();
            let (group, endless) = traits[place];
            known.insert(id, Known::new(handle.clone(), parents, group, endless));
        }
    }

    fn cancel(&self, id: i64) {
        let expected = match self.info(id).map(|info| info.state) {
            None => CancelOutcome::Unknown,
            Some(TaskState::Waiting) => CancelOutcome::Cancelled,
            Some(TaskState::Running) => CancelOutcome::Stopping,
            Some(_) => CancelOutcome::Finished,
        };
        assert_eq!(self.scheduler.cancel(id).expect("no fork here"), expected);
    }

    /// Run control over one task.
    fn control(&self, bytes: &mut Bytes) {
        let (id, which) = (bytes.id(), bytes.below(4));
        let before = self.info(id);
        let state = before.as_ref().map(|info| info.state);
        let runs = before.filter(|info| info.state == TaskState::Waiting).map(|info| info.runs);
        if which != 1 {
            // Whatever lets it run, or keeps it from that.
            self.shared.known().entry(id).and_modify(|task| {
                task.held_at = runs.filter(|_| which == 0);
                task.let_pass_at = runs.filter(|_| which == 2);
            });
        }
        let answer = match which {
            0 => self.scheduler.pause_task(id),
            1 => self.scheduler.reschedule(id, self.clock.now() + bytes.millis(60)),
            2 => self.scheduler.run_now(id),
            _ => self.scheduler.resume_task(id),
        };
        let expected = match state {
            None => ControlOutcome::Unknown,
            Some(TaskState::Waiting) => ControlOutcome::Applied,
            Some(TaskState::Running) => ControlOutcome::Running,
            Some(_) => ControlOutcome::Finished,
        };
        assert_eq!(answer.expect("open"), expected, "{which} of {id}, {state:?}");
    }

    fn pause_or_resume(&self, pause: bool) {
        if pause { self.scheduler.pause() } else { self.scheduler.resume() }.expect("open");
        assert_eq!(self.scheduler.is_paused(), pause);
    }

    fn forget(&self, id: i64) {
        let before = self.info(id).map(|info| info.state);
        let answer = self.scheduler.forget(id);
        match before {
            None => assert!(matches!(answer, Err(Error::UnknownTask(_)))),
            Some(TaskState::Waiting) => assert!(matches!(answer, Err(Error::TaskWaiting(_)))),
            Some(TaskState::Running) => assert!(matches!(answer, Err(Error::TaskRunning(_)))),
            Some(_) => assert!(answer.is_ok() && self.info(id).is_none()),
        }
    }

    pub(crate) fn info(&self, id: i64) -> Option<TaskInfo> {
        self.scheduler.info(id).ok()
    }

    /// Shuts down: every task ends, and nobody waits for those that are stuck.
    pub(crate) fn end(self, bytes: &mut Bytes) {
        let how = bytes.below(6);
        if how > 3 {
            return self.leave(how == 4);
        }
        let shutdown = if how & 1 == 0 { Shutdown::now() } else { Shutdown::now().drain() };
        assert!(self.scheduler.shutdown_with(shutdown).is_ok());
        self.rest();
        self.outlast(how & 2 == 0);
        let answer = self.scheduler.shutdown_with(Shutdown::wait().timeout(PATIENCE));
        assert!(answer.expect("no fork here"), "the shutdown takes for ever");
        self.rest();
        let stats = self.scheduler.stats().expect("no fork here");
        assert_eq!((stats.waiting, stats.running), (0, 0));
        let answer = self.scheduler.schedule(Task::new(Timestamp::ZERO, || ()));
        assert!(matches!(answer, Err(Error::SchedulerClosed)));
        self.shared.let_all_go();
        self.rest();
    }

    /// Lets time pass until nothing is held, but by who is stuck. In a drain what is due runs first, and
    /// may wait for the clock, or be held.
    fn outlast(&self, patiently: bool) {
        for _ in 0..2 * IDS {
            self.go_on(Duration::from_millis(40));
            if patiently {
                self.jump(Duration::from_secs(10));
            } else {
                self.shared.let_all_go();
            }
            self.rest();
        }
    }

    /// Nobody owns the scheduler any more: it ends by itself.
    fn leave(self, first: bool) {
        let Self { scheduler, shared, .. } = self;
        let crew = scheduler.crew().clone();
        if !first {
            shared.let_all_go();
        }
        drop(scheduler);
        while !crew.has_ended() {
            shared.let_all_go(); // those that slept are held only now
            std::thread::yield_now();
        }
        assert_eq!(shared.take_fault(), None);
    }
}

/// Whether, from parent to parent, one comes back to `place`.
fn is_in_circle(parents: &[Option<usize>], place: usize) -> bool {
    let mut at = place;
    parents.iter().any(|_| match parents[at] {
        Some(parent) => {
            at = parent;
            at == place
        }
        None => false,
    })
}
