//! The last finished tasks. Invariants: they are the last `limit` that ended, but for those that were
//! forgotten; what is known of them holds nothing of a user.

use std::collections::VecDeque;
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
    /// `None` where one was forgotten.
    memories: VecDeque<Option<Memory>>,
    /// How many left at the front.
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
        let full = self.memories.len() == self.limit;
        self.left += u64::from(full);
        let oldest = if full { self.memories.pop_front().flatten() } else { None };
        self.memories.push_back(Some(memory));
        oldest
    }

    pub(crate) fn get(&self, spot: Spot) -> Option<TaskInfo> {
        Some(self.memories.get(self.index(spot)?)?.as_ref()?.info())
    }

    /// Its place stays, as a hole.
    pub(crate) fn forget(&mut self, spot: Spot) {
        if let Some(memory) = self.index(spot).and_then(|index| self.memories.get_mut(index)) {
            *memory = None;
        }
    }

    fn index(&self, spot: Spot) -> Option<usize> {
        usize::try_from((spot.get() - 1).checked_sub(self.left)?).ok()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = TaskInfo> {
        self.memories.iter().flatten().map(Memory::info)
    }
}
