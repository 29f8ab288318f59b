//! How a scheduler is set up. Invariant: nothing out of bounds gets past `build`.

use std::sync::{Arc, Weak};

use crate::clock::{Clock, MonotonicClock};
use crate::crew::Crew;
use crate::error::Error;
use crate::event::Listeners;
use crate::limits::groups;
use crate::queue::TaskQueue;
use crate::reading::Reading;
use crate::registry::Registry;
use crate::room::Room;
use crate::scheduler::Scheduler;
use crate::shared::Shared;
use crate::stops::Stops;
use crate::surroundings::{Plain, Surroundings};
use crate::sync::{Generation, watch_forks};
use crate::threads::Threads;

/// Settings for a [`Scheduler`].
#[must_use = "a builder does nothing until build() is called"]
pub struct Builder {
    workers: usize,
    history: usize,
    name: String,
    limits: Vec<(String, usize)>,
    clock: Reading,
    surroundings: Box<dyn Surroundings>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            workers: 4,
            history: 10_000,
            name: "duetime".into(),
            limits: Vec::new(),
            clock: Reading::Monotonic(MonotonicClock::new()),
            surroundings: Box::new(Plain),
        }
    }
}

/// The most workers a pool may have.
pub const MAX_WORKERS: usize = 1024;

impl Builder {
    /// How many worker threads: 1 to 1024; 4 otherwise.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// How many finished tasks are remembered; 10,000 otherwise.
    pub fn history(mut self, history: usize) -> Self {
        self.history = history;
        self
    }

    /// What the threads are called, before a dash and their number; `duetime` otherwise.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// At most `limit` tasks of this group run at once; see [`Task::group`](crate::Task::group).
    ///
    /// A due task that finds its group full waits, and holds no worker; those behind it go first. When
    /// a run of the group ends, the first of those that wait starts: in the order due, priority, first
    /// come. A retry that waits holds no place.
    ///
    /// ```
    /// use duetime::{Scheduler, Task};
    /// let scheduler = Scheduler::builder().limit("db", 2).build()?;
    /// scheduler.schedule(Task::new(scheduler.now(), || ()).group("db"))?;
    /// assert!(scheduler.schedule(Task::new(scheduler.now(), || ()).group("net")).is_err());
    /// # Ok::<_, duetime::Error>(())
    /// ```
    pub fn limit(mut self, group: impl Into<String>, limit: usize) -> Self {
        let group = group.into();
        self.limits.retain(|(known, _)| *known != group);
        self.limits.push((group, limit));
        self
    }

    /// Where time comes from; the system's monotonic clock otherwise.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Reading::custom(clock);
        self
    }

    /// What worker threads live in; nothing otherwise.
    pub fn surroundings(mut self, surroundings: impl Surroundings) -> Self {
        self.surroundings = Box::new(surroundings);
        self
    }

    /// The scheduler. Its threads start with the first task.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for a number of workers or a limit out of bounds, or a name with a NUL.
    pub fn build(self) -> Result<Scheduler, Error> {
        let Self { workers, history, name, limits, clock, surroundings } = self;
        if !(1..=MAX_WORKERS).contains(&workers) {
            return Err(Error::invalid("workers", workers, "between 1 and 1024"));
        }
        if name.contains('\0') {
            return Err(Error::invalid("name", name, "free of NUL characters"));
        }
        let (names, groups) = groups(limits)?;
        watch_forks();
        let shared = Arc::new_cyclic(|me: &Weak<Shared>| Shared {
            me: me.clone(),
            name,
            workers,
            queue: TaskQueue::new(clock.pace(), Room::new(workers, Registry::new(history), groups)),
            groups: names,
            clock,
            listeners: Listeners::default(),
            stops: Stops::default(),
            made_in: Generation::current(),
        });
        if let Some(clock) = shared.clock.clock() {
            clock.drive(shared.as_driven())?;
        }
        Ok(Scheduler::own(Crew { shared, threads: Arc::new(Threads::new(surroundings)) }))
    }
}
