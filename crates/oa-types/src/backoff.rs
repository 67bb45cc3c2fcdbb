use std::time::Duration;

/// Delays between retries: random, up to a bound that doubles with each retry (exponential backoff with full
/// jitter).
///
/// The clock and the random number stay with the caller: a delay is a pure function of the retry's number, counted
/// from 0, and a seed. Equal seeds give equal delays; different seeds spread the retries of callers that failed
/// together.
///
/// Used for requests (`oa-chat`) and tools (`oa-executor`), two crates that do not depend on each other.
///
/// ```
/// use std::time::Duration;
///
/// use oa_types::Backoff;
///
/// let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(8));
/// assert_eq!(backoff.bound(0), Duration::from_millis(500));
/// assert_eq!(backoff.bound(1), Duration::from_secs(1));
/// assert_eq!(backoff.bound(20), Duration::from_secs(8));
/// assert!(backoff.delay(1, 7) <= backoff.bound(1));
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Backoff {
    /// The upper bound of the delay before the first retry; it doubles with each.
    pub initial_delay: Duration,
    /// The upper bound of every delay, including the first.
    pub max_delay: Duration,
}

impl Backoff {
    /// Creates a backoff from the upper bounds of the first delay and of any delay.
    #[must_use]
    pub const fn new(initial_delay: Duration, max_delay: Duration) -> Self {
        Self { initial_delay, max_delay }
    }

    /// Returns the upper bound of the delay before a retry, counted from 0.
    #[must_use]
    pub fn bound(&self, retry: u32) -> Duration {
        let doubled = (0..retry.min(DOUBLINGS)).fold(self.initial_delay, |bound, _| {
            // Stops at `Duration::MAX`.
            bound.saturating_mul(2)
        });
        doubled.min(self.max_delay)
    }

    /// Returns the delay before a retry, counted from 0: between zero and its [`bound`](Self::bound), depending
    /// on the seed.
    #[must_use]
    pub fn delay(&self, retry: u32, seed: u64) -> Duration {
        let bound = self.bound(retry);
        // Multiples of the golden ratio keep the retries of one seed apart; the rest is the finish of SplitMix64,
        // which spreads neighboring seeds.
        let mut bits = seed ^ u64::from(retry).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // A float holds 53 bits. The share is therefore less than 1 even of `Duration::MAX`, so that the product
        // does not overflow; but rounding may lift it above a bound that no float is equal to.
        let share = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        bound.mul_f64(share).min(bound)
    }
}

/// The number of doublings after which one nanosecond is longer than `Duration::MAX`.
const DOUBLINGS: u32 = 94;
