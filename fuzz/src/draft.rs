//! Tasks as the input describes them. Invariant: what is known of one beforehand is noted with it.

use std::sync::Arc;
use std::time::Duration;

use duetime::{FixedDelay, FixedRate, Missed, Task, Timestamp, retry};

use crate::bytes::Bytes;
use crate::deed::{Deed, Plan, job};
use crate::notes::GROUPS;
use crate::world::World;

pub(crate) const YEAR: Duration = Duration::from_secs(31_557_600);

pub(crate) struct Draft {
    pub(crate) task: Task,
    pub(crate) group: Option<usize>,
    /// Whether nothing may depend on it.
    pub(crate) endless: bool,
}

impl World {
    pub(crate) fn draft(&mut self, bytes: &mut Bytes, id: i64) -> Draft {
        let due = due(bytes, self.clock.now());
        let deed = Deed::decode(bytes);
        let fails = bytes.next();
        let group = usize::from(bytes.below(6)); // mostly none
        let group = (group < GROUPS.len()).then_some(group);
        let limit = time_limit(bytes);
        let plan = Plan { deed, fails, group, grace: limit.map(|(_, grace)| grace) };
        let (shared, clock) = (Arc::clone(&self.shared), self.clock.clone());
        let job = job(self.scheduler.downgrade(), shared, clock, plan);
        let mut task = Task::new(due, job).id(id).priority(i32::from(bytes.below(3)) - 1);
        if let Some((timeout, grace)) = limit {
            task = task.timeout(timeout).grace(grace).interrupt(deed.is_interrupted());
        }
        if let Some(group) = group {
            task = task.group(GROUPS[group]);
        }
        let (task, series) = self.with_rule(bytes, task, due);
        let (task, bounded) = with_options(bytes, task, due);
        Draft { task, group, endless: series && !bounded }
    }

    fn with_rule(&mut self, bytes: &mut Bytes, task: Task, due: Timestamp) -> (Task, bool) {
        let period = bytes.millis(30) + Duration::from_millis(5);
        match bytes.below(6) {
            1 => (task.recurrence(FixedRate::new(period)), true),
            // At the ends of time it would never catch up.
            2 if due != Timestamp::MIN && due < self.clock.now() + YEAR => {
                self.catches_up = true;
                (task.recurrence(FixedRate::new(period).missed(Missed::CatchUp)), true)
            }
            3 => (task.recurrence(FixedDelay::new(period)), true),
            _ => (task, false),
        }
    }
}

/// Its timeout and grace, if it has any.
fn time_limit(bytes: &mut Bytes) -> Option<(Duration, Duration)> {
    let timeout = bytes.below(64);
    let timeout =
        Duration::from_millis(u64::from(timeout)).checked_sub(Duration::from_millis(31))?;
    let grace = match bytes.below(32) {
        31 => Duration::from_secs(5),
        millis => Duration::from_millis(millis.into()),
    };
    (timeout > Duration::ZERO).then_some((timeout, grace))
}

fn due(bytes: &mut Bytes, now: Timestamp) -> Timestamp {
    match bytes.next() {
        255 => Timestamp::MAX,
        254 => Timestamp::MIN,
        253 => now + YEAR * 100,
        late if late > 240 => Timestamp::from_nanos(now.as_nanos().saturating_sub(5_000_000)),
        delay => now + Duration::from_millis(u64::from(delay % 50)),
    }
}

/// What else a task may have; whether that bounds a series.
fn with_options(bytes: &mut Bytes, mut task: Task, due: Timestamp) -> (Task, bool) {
    let rules = bytes.next();
    if rules & 1 != 0 {
        task = task.retry(retry::FixedDelay::new(2, bytes.millis(20)));
    } else if rules & 2 != 0 {
        let base = bytes.millis(8);
        task = task.retry(retry::ExponentialBackoff::new(3, base).jitter(0.5));
    }
    if rules & 4 != 0 {
        task = task.max_runs(u64::from(bytes.below(4)) + 1);
    }
    if rules & 8 != 0 {
        task = task.until(due + bytes.millis(100));
    }
    if rules & 48 == 48 {
        task = task.jitter(bytes.millis(5)); // below every period
    }
    (task, rules & 12 != 0)
}
