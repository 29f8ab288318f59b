//! The last finished tasks. Invariants: they are the last `limit` that ended, but for those that were
//! forgotten; what is known of them holds nothing of a user.

use std::num::NonZeroU64;

use crate::clock::Timestamp;
use crate::id::TaskId;
use crate::info::{Facts, TaskInfo};
use crate::state::TaskState;

/// Where in the history a task is: which one it was to end, from 1.
pub(crate) type Spot = NonZeroU64;

/// What is remembered of a task. Of most there is little to say, so that it takes a third of the
/// memory: a history is larger than the caches are.
pub(crate) enum Memory {
    /// Of one without a name that ran once, and well, or never.
    Brief {
        number: u64,
        state: TaskState,
        due: Timestamp,
        /// From when to when.
        ran: Option<(Timestamp, Timestamp)>,
    },
    Full(Box<TaskInfo>),
}

const _: () = assert!(size_of::<Option<Memory>>() <= 48);

impl Memory {
    pub(crate) fn info(&self) -> TaskInfo {
        match self {
            Self::Brief { number, state, due, ran } => {
                let runs = u64::from(ran.is_some());
                let (started, finished) = ran.unzip();
                let facts = Facts { runs, started, finished, ..Facts::default() };
                facts.into_info(TaskId::made(*number), *state, *due)
            }
            Self::Full(info) => TaskInfo::clone(info),
        }
    }
}

/// The oldest first.
#[derive(Default)]
pub(crate) struct History {
    limit: usize,
    /// `None` where one was forgotten. A ring, once there are as many as that.
    memories: Vec<Option<Memory>>,
    /// Where the oldest is.
    oldest: usize,
    /// How many had to go.
    left: u64,
}

impl History {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Where the next one will be; `None` if none is remembered.
    pub(crate) fn next_spot(&self) -> Option<Spot> {
        if self.limit == 0 { None } else { Spot::new(self.left + self.memories.len() as u64 + 1) }
    }

    /// Remembers one more; gives the oldest if it has to go for that.
    pub(crate) fn push(&mut self, memory: Memory) -> Option<Memory> {
        if self.limit == 0 {
            return None;
        }
        if self.memories.len() < self.limit {
            self.memories.push(Some(memory));
            return None;
        }
        let oldest = self.memories[self.oldest].replace(memory);
        self.left += 1;
        self.oldest += 1;
        if self.oldest == self.limit {
            self.oldest = 0;
        }
        oldest
    }

    pub(crate) fn get(&self, spot: Spot) -> Option<TaskInfo> {
        Some(self.memories[self.index(spot)?].as_ref()?.info())
    }

    /// Whether anything is remembered there.
    pub(crate) fn has(&self, spot: Spot) -> bool {
        self.index(spot).is_some_and(|index| self.memories[index].is_some())
    }

    /// Its place stays, as a hole.
    pub(crate) fn forget(&mut self, spot: Spot) {
        if let Some(index) = self.index(spot) {
            self.memories[index] = None;
        }
    }

    /// Where in the ring a spot is, if its task is still there.
    fn index(&self, spot: Spot) -> Option<usize> {
        let age = usize::try_from((spot.get() - 1).checked_sub(self.left)?).ok()?;
        let size = self.memories.len();
        (age < size).then(|| (self.oldest + age) % size)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskInfo> {
        let (last, first) = self.memories.split_at(self.oldest);
        first.iter().chain(last).flatten().map(Memory::info)
    }
}
