//! Delays of retries: their bounds, and their spread.

use std::time::Duration;

use oa_types::Backoff;
use proptest::prelude::*;

/// Any duration, with the extremes and short ones often.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::from_nanos(1)),
        Just(Duration::MAX),
        (0..100_000_u64).prop_map(Duration::from_millis),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(secs, nanos)| Duration::new(secs, nanos)),
    ]
}

fn retries() -> impl Strategy<Value = u32> {
    prop_oneof![0..100_u32, any::<u32>()]
}

/// Doubles in nanoseconds, one by one; `None` where they are more than 128 bits.
fn doubled(initial: Duration, retry: u32) -> Option<u128> {
    (0..retry.min(200)).try_fold(initial.as_nanos(), |nanos, _| nanos.checked_mul(2))
}

proptest! {
    #[test]
    fn bounds_double_up_to_the_maximum(initial in durations(), max in durations(), retry in retries()) {
        let bound = Backoff::new(initial, max).bound(retry);
        let wanted = doubled(initial, retry).map_or(max.as_nanos(), |nanos| nanos.min(max.as_nanos()));
        prop_assert_eq!(bound.as_nanos(), wanted);
    }

    #[test]
    fn bounds_never_fall(initial in durations(), max in durations(), retry in retries()) {
        let backoff = Backoff::new(initial, max);
        prop_assert!(backoff.bound(retry) <= backoff.bound(retry.saturating_add(1)));
    }

    #[test]
    fn delays_are_within_their_bound(
        initial in durations(),
        max in durations(),
        retry in retries(),
        seed: u64,
    ) {
        let backoff = Backoff::new(initial, max);
        let delay = backoff.delay(retry, seed);
        prop_assert!(delay <= backoff.bound(retry), "{delay:?}");
        prop_assert!(delay <= max, "{delay:?}");
        prop_assert_eq!(delay, backoff.delay(retry, seed), "equal seeds give equal delays");
    }

    #[test]
    fn neighboring_seeds_are_spread_evenly(first: u64, retry in 0..10_u32) {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::MAX);
        let bound = backoff.bound(retry);
        let mut tenths = [0_u32; 10];
        for number in 0..10_000 {
            let delay = backoff.delay(retry, first.wrapping_add(number));
            let tenth = (delay.div_duration_f64(bound) * 10.0) as usize;
            tenths[tenth.min(9)] += 1;
        }
        // Six standard deviations around 1,000.
        prop_assert!(tenths.iter().all(|tenth| (820..=1_180).contains(tenth)), "{tenths:?}");
    }

    #[test]
    fn retries_of_one_seed_are_independent(seed: u64) {
        let backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(1));
        let delays = (0..1_000).map(|retry| backoff.delay(retry, seed).as_secs_f64());
        let shares: Vec<f64> = delays.collect();
        let mean = shares.iter().sum::<f64>() / 1_000.0;
        prop_assert!((0.44..0.56).contains(&mean), "{mean}");
        let rises = shares.windows(2).filter(|pair| pair[0] < pair[1]).count();
        prop_assert!((430..570).contains(&rises), "{rises}");
    }
}

#[test]
fn delays_reach_from_end_to_end() {
    let longest = Duration::MAX;
    for bound in [Duration::from_nanos(1_000), Duration::from_secs(1), longest] {
        let backoff = Backoff::new(bound, longest);
        let delays = (0..10_000).map(|seed| backoff.delay(0, seed));
        let (least, most) = (delays.clone().min().unwrap(), delays.max().unwrap());
        assert!(least < bound / 500 && most > bound - bound / 500, "{least:?} to {most:?}");
    }
}

#[test]
fn extremes_do_not_panic() {
    for initial in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        for max in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            for retry in [0, 1, 31, 32, 63, 64, 93, 94, u32::MAX - 1, u32::MAX] {
                let backoff = Backoff::new(initial, max);
                for seed in [0, 1, u64::MAX, u64::MAX - 1, 1 << 63] {
                    assert!(backoff.delay(retry, seed) <= max);
                }
            }
        }
    }
    let huge = Backoff::new(Duration::from_nanos(1), Duration::MAX);
    assert_eq!((huge.bound(30), huge.bound(94)), (Duration::from_nanos(1 << 30), Duration::MAX));
    assert!(huge.bound(93) < Duration::MAX);
    assert_eq!(Backoff::new(Duration::ZERO, Duration::MAX).delay(u32::MAX, 7), Duration::ZERO);
}
