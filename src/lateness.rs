//! How late runs started, told apart. Invariant: of every run that started both parts are counted, and
//! their sum is what its events call its lateness.

use std::time::Duration;

use crate::histogram::Histogram;

/// How late the runs started, retries and every slot included, in two parts that add up for each run.
/// They answer whether it is the pool that is too small, or the GIL that is held too long.
///
/// ```
/// use duetime::{ManualClock, Scheduler};
/// use std::time::Duration;
/// let clock = ManualClock::new();
/// let scheduler = Scheduler::builder().clock(clock.clone()).build()?;
/// scheduler.after(Duration::from_secs(5), || ())?;
/// clock.jump(Duration::from_secs(8))?; // a stall
/// let lateness = scheduler.stats()?.lateness;
/// assert_eq!((lateness.queue.count, lateness.queue.p50), (1, Duration::from_secs(3)));
/// assert_eq!((lateness.gil.count, lateness.gil.max), (1, Duration::ZERO));
/// # Ok::<_, duetime::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lateness {
    /// For a worker: none had woken yet, or all of them ran jobs. Also for whatever else kept a due
    /// task back: a group that was full, a pause, a task that it depends on.
    pub queue: Percentiles,
    /// For the GIL, or whatever else the workers' [`Surroundings`](crate::Surroundings) wait for: a
    /// worker stood ready, and could not begin. Zero where they wait for nothing, as in Rust alone,
    /// and on a clock that is moved by hand.
    pub gil: Percentiles,
}

/// How some durations are spread. The percentiles are at most 2 % above the truth, and above an hour
/// they say an hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Percentiles {
    /// How many there are.
    pub count: u64,
    /// Half of them are no longer than this.
    pub p50: Duration,
    /// 9 of 10 are no longer.
    pub p90: Duration,
    /// 99 of 100 are no longer.
    pub p99: Duration,
    /// The longest, exactly.
    pub max: Duration,
}

/// The runs that started. Guarded by the queue's lock.
#[derive(Clone, Debug)]
pub(crate) struct Starts {
    /// Of every run.
    queue: Histogram,
    /// Of those for which it was not nothing: in Rust alone none.
    gil: Histogram,
}

impl Starts {
    pub(crate) fn new() -> Self {
        Self { queue: Histogram::new(), gil: Histogram::new() }
    }

    /// A run starts, so many nanoseconds late, of which so many were waited for the GIL.
    pub(crate) fn note(&mut self, late: u64, gil: u64) {
        self.queue.add(late - gil);
        if gil > 0 {
            self.gil.add(gil);
        }
    }

    /// Takes some microseconds: to be called on a copy, without the lock.
    pub(crate) fn lateness(mut self) -> Lateness {
        self.gil.add_zeros(self.queue.count() - self.gil.count());
        Lateness { queue: percentiles(&self.queue), gil: percentiles(&self.gil) }
    }
}

fn percentiles(of: &Histogram) -> Percentiles {
    let [p50, p90, p99] = [50, 90, 99].map(|percent| of.percentile(percent));
    Percentiles { count: of.count(), p50, p90, p99, max: of.longest() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_add_up_and_what_is_on_time_counts() {
        let mut starts = Starts::new();
        assert_eq!(starts.clone().lateness(), Lateness::default());
        let on_time = [(0, 0); 98];
        [(10, 10), (10, 3)].iter().chain(&on_time).for_each(|&(late, gil)| starts.note(late, gil));
        let Lateness { queue, gil } = starts.lateness();
        let nanos = Duration::from_nanos;
        assert_eq!((queue.count, queue.p99, queue.max), (100, nanos(0), nanos(7)));
        assert_eq!((gil.count, gil.p90, gil.p99, gil.max), (100, nanos(0), nanos(3), nanos(10)));
    }
}
