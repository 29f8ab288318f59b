//! The arithmetic of the rules against the plainest way to compute the same.

mod common;

use std::time::Duration;

use duetime::{FixedDelay, FixedRate, Missed, Next, Recurrence, RetryPolicy, Timestamp, retry};
use proptest::prelude::*;

const CENTURY: i64 = 3_155_760_000_000_000_000;

const fn nanos(value: i64) -> Duration {
    Duration::from_nanos(value.unsigned_abs())
}

/// Slots that pass, counted one by one.
fn next_slot(due: i64, end: i64, period: i64, missed: Missed) -> Option<Next> {
    let (mut next, mut passed) = (i128::from(due) + i128::from(period), 0);
    while missed == Missed::Skip && next < i128::from(end) {
        next += i128::from(period);
        passed += 1;
    }
    let due = i64::try_from(next).ok()?;
    Some(Next { due: Timestamp::from_nanos(due), missed: passed })
}

fn any_missed() -> impl Strategy<Value = Missed> {
    prop_oneof![Just(Missed::Skip), Just(Missed::CatchUp)]
}

/// Numbers of all sizes, the ends of the range included.
fn any_time() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        -1000..1000_i64,
        (0..1000_i64).prop_map(|n| i64::MAX - n),
        (0..1000_i64).prop_map(|n| i64::MIN + n),
    ]
}

fn any_period() -> impl Strategy<Value = i64> {
    prop_oneof![1..=CENTURY, 1..1000_i64, Just(1), Just(CENTURY)]
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(config(5_000))]

    #[test]
    fn a_fixed_rate_is_what_counting_slots_gives(
        due in any_time(), period in any_period(), slots in 0..300_i64, rest in any::<u64>(),
        missed in any_missed(),
    ) {
        // So late that at most 300 slots have passed; each slot's very instant is often hit.
        let rest = if rest % 3 == 0 { 0 } else { (rest % period.unsigned_abs()).cast_signed() };
        let late = i128::from(period) * i128::from(slots) + i128::from(rest);
        let end = i64::try_from(i128::from(due) + late).unwrap_or(i64::MAX);
        let rule = FixedRate::new(nanos(period)).missed(missed);
        let next = rule.next_due(Timestamp::from_nanos(due), Timestamp::from_nanos(end)).unwrap();
        prop_assert_eq!(next, next_slot(due, end, period, missed));
    }

    #[test]
    fn the_slots_of_a_fixed_rate_stay_on_their_grid(
        due in any_time(), end in any_time(), period in any_period(), missed in any_missed(),
    ) {
        let rule = FixedRate::new(nanos(period)).missed(missed);
        let next = rule.next_due(Timestamp::from_nanos(due), Timestamp::from_nanos(end)).unwrap();
        let (wide_due, wide_period) = (i128::from(due), i128::from(period));
        let Some(next) = next else {
            // Only beyond the end of time.
            let reached = if missed == Missed::Skip { wide_due.max(end.into()) } else { wide_due };
            prop_assert!(reached + wide_period > i128::from(i64::MAX));
            return Ok(());
        };
        let at = i128::from(next.due.as_nanos());
        prop_assert!(at > wide_due);
        prop_assert_eq!((at - wide_due) % wide_period, 0);
        prop_assert_eq!((at - wide_due) / wide_period, i128::from(next.missed) + 1);
        match missed {
            Missed::CatchUp => prop_assert_eq!(next.missed, 0),
            Missed::Skip => {
                prop_assert!(at >= i128::from(end));
                // The slot before lies before the end, unless it is the one that ran.
                prop_assert!(next.missed == 0 || at - wide_period < i128::from(end));
            }
        }
    }

    #[test]
    fn a_fixed_delay_counts_from_the_end_of_the_run(
        due in any_time(), end in any_time(), delay in any_period(),
    ) {
        let rule = FixedDelay::new(nanos(delay));
        let next = rule.next_due(Timestamp::from_nanos(due), Timestamp::from_nanos(end));
        let naive = i128::from(due.max(end)) + i128::from(delay);
        let naive = i64::try_from(naive).unwrap_or(i64::MAX);
        prop_assert_eq!(next.unwrap().map(|next| next.due.as_nanos()), Some(naive));
    }

    #[test]
    fn a_fixed_retry_gives_up_after_its_last(
        max in prop_oneof![0..20_u64, any::<u64>()], delay in 0..CENTURY, failures in 1..=u64::MAX,
        near in prop::bool::ANY,
    ) {
        let failures = if near { (max.saturating_add(failures % 3)).max(1) } else { failures };
        let delay = nanos(delay);
        let answer = retry::FixedDelay::new(max, delay).delay_after_failure(failures).unwrap();
        prop_assert_eq!(answer, (failures <= max).then_some(delay));
        prop_assert_eq!(retry::Never.delay_after_failure(failures).unwrap(), None);
    }

    #[test]
    fn a_doubling_backoff_is_what_doubling_gives(
        base in 0..=1_000_000_u64, cap in 0..=CENTURY, failures in 1..80_u64,
    ) {
        // Whole microseconds, so that both ways of counting are exact for long.
        let (base, cap) = (Duration::from_micros(base), nanos(cap));
        let mut naive = base.as_nanos();
        for _ in 1..failures {
            naive = (naive * 2).min(1 << 100);
        }
        let naive = naive.min(cap.as_nanos());
        let policy = retry::ExponentialBackoff::new(u64::MAX, base).cap(cap);
        let delay = policy.delay_after_failure(failures).unwrap().unwrap().as_nanos();
        prop_assert!(delay <= cap.as_nanos());
        prop_assert!(delay.abs_diff(naive) <= naive >> 50 | 1, "{} is not {}", delay, naive);
    }

    #[test]
    fn any_backoff_is_capped_grows_and_stays_finite(
        base in 0..=CENTURY, cap in 0..=CENTURY, factor in 1.0..1e300_f64, jitter in 0.0..=1.0_f64,
        failures in prop_oneof![1..100_u64, Just(1_000_000), 1..=u64::MAX],
    ) {
        let (base, cap) = (nanos(base), nanos(cap));
        let policy = retry::ExponentialBackoff::new(u64::MAX, base).cap(cap).factor(factor);
        policy.check().unwrap();
        let of = |policy: retry::ExponentialBackoff, n| policy.delay_after_failure(n).unwrap().unwrap();
        let full = of(policy, failures);
        prop_assert!(full <= cap);
        prop_assert!(of(policy, failures.saturating_add(1)) >= full);
        prop_assert!(full + Duration::from_micros(1) >= base.min(cap), "never below the base");
        // Only for a spread of nothing is it what it was; never is it longer, or cut by more.
        let spread = of(policy.jitter(jitter), failures);
        prop_assert!(spread <= full + Duration::from_nanos(1));
        let least = full.as_secs_f64() * (1.0 - jitter);
        prop_assert!(spread.as_secs_f64() >= least * (1.0 - 1e-12) - 1e-9);
        prop_assert_eq!(of(policy.jitter(0.0), failures), full);
    }
}

#[test]
fn a_jitter_spreads_over_its_whole_width() {
    let policy = retry::ExponentialBackoff::new(1, Duration::from_secs(1)).jitter(0.5);
    let delays: Vec<f64> =
        (0..1_000).map(|_| policy.delay_after_failure(1).unwrap().unwrap().as_secs_f64()).collect();
    assert!(delays.iter().all(|delay| (0.5..=1.0).contains(delay)));
    for tenth in 0..10 {
        let from = 0.5 + f64::from(tenth) * 0.05;
        assert!(delays.iter().any(|delay| (from..from + 0.05).contains(delay)), "none at {from}");
    }
}
