//! Counts of durations by their length. Invariant: every duration is counted in the bin whose bounds it
//! lies in, those above an hour in the last; the bins are as many at the end as at the start.
//!
//! A bin is as wide as it takes to tell durations of its size apart by 2 %: one nanosecond up to 127,
//! then each doubling has 64 bins. To find one takes no search, so that to count costs next to nothing.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    bins: Box<[u64; BINS]>,
    longest: u64,
}

/// The bins of one doubling, as a power of two. One more doubles the memory, which is 18 kB.
const BITS: u32 = 6;
const HOUR: u64 = 3_600_000_000_000;
const BINS: usize = bin(HOUR) + 1;
const _: () = assert!(BINS * size_of::<u64>() < 20_000, "every scheduler has two");

/// Where so many nanoseconds are counted: the first seven digits of the number in base two, behind the
/// bins of all that have fewer digits.
const fn bin(nanos: u64) -> usize {
    let cut = u64::BITS - (nanos | 1 << BITS).leading_zeros() - (BITS + 1);
    ((cut as usize) << BITS) + low_bits(nanos >> cut)
}

#[expect(clippy::cast_possible_truncation, reason = "the caller has cut it to seven digits")]
const fn low_bits(digits: u64) -> usize {
    digits as usize
}

/// The longest that is counted there.
const fn top(bin: usize) -> u64 {
    let cut = (bin >> BITS).saturating_sub(1);
    (((bin - (cut << BITS)) as u64 + 1) << cut) - 1
}

impl Histogram {
    pub(crate) fn new() -> Self {
        let bins = vec![0; BINS].try_into().unwrap_or_else(|_| unreachable!("as many as that"));
        Self { bins, longest: 0 }
    }

    pub(crate) fn add(&mut self, nanos: u64) {
        self.bins[bin(nanos).min(BINS - 1)] += 1;
        self.longest = self.longest.max(nanos);
    }

    /// Adds `count` durations of zero.
    pub(crate) fn add_zeros(&mut self, count: u64) {
        self.bins[0] += count;
    }

    pub(crate) fn count(&self) -> u64 {
        self.bins.iter().sum()
    }

    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.longest)
    }

    /// What so many percent of all are no longer than.
    pub(crate) fn percentile(&self, percent: u64) -> Duration {
        let wanted = (u128::from(self.count()) * u128::from(percent)).div_ceil(100);
        let mut seen = 0;
        let reached = self.bins.iter().position(|&count| {
            seen += u128::from(count);
            seen >= wanted
        });
        Duration::from_nanos(reached.map_or(0, top).min(self.longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(durations: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::new();
        durations.into_iter().for_each(|nanos| histogram.add(nanos));
        histogram
    }

    #[test]
    fn the_bins_join_and_none_is_wider_than_a_fiftieth() {
        for before in 0..BINS - 1 {
            let (first, last) = (top(before) + 1, top(before + 1));
            assert_eq!((bin(first), bin(last)), (before + 1, before + 1));
            assert!((last - first) * 50 <= first);
        }
        assert_eq!((bin(0), top(0)), (0, 0));
    }

    #[test]
    fn percentiles_are_at_most_a_fiftieth_above_the_truth() {
        let histogram = of((1..=100_000).map(|nanos| nanos * 1000));
        for percent in 1..=100 {
            let truth = Duration::from_millis(percent);
            assert!((truth..=truth * 51 / 50).contains(&histogram.percentile(percent)));
        }
        assert_eq!((histogram.count(), histogram.longest()), (100_000, Duration::from_millis(100)));
    }

    #[test]
    fn of_nothing_all_is_zero() {
        let histogram = of([]);
        assert_eq!(
            (histogram.percentile(99), histogram.longest()),
            (Duration::ZERO, Duration::ZERO)
        );
    }

    #[test]
    fn what_is_alike_is_exact_and_zeros_count() {
        let mut histogram = of([123_456_789; 10]);
        assert_eq!(histogram.percentile(50), Duration::from_nanos(123_456_789));
        histogram.add_zeros(10);
        assert_eq!((histogram.count(), histogram.percentile(50)), (20, Duration::ZERO));
        assert_eq!(histogram.percentile(51), Duration::from_nanos(123_456_789));
    }

    #[test]
    fn what_is_too_long_counts_as_an_hour_and_the_longest_is_exact() {
        let histogram = of([u64::MAX, HOUR + 1]);
        let hour = Duration::from_nanos(HOUR);
        assert!((hour..=hour * 51 / 50).contains(&histogram.percentile(99)));
        assert_eq!(histogram.longest(), Duration::from_nanos(u64::MAX));
    }
}
