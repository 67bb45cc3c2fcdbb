use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_contain::contain;
use oa_tools::ToolError;

/// A retry policy for failed tools: the number of attempts, the delays, and the errors that are retried.
///
/// By default all errors are retried unless the tool [opts out](ToolError::retryable). Panics and invalid
/// arguments are never retried.
///
/// ```
/// use std::time::Duration;
///
/// use oa_executor::RetryPolicy;
///
/// let policy = RetryPolicy::new(5).initial_delay(Duration::from_secs(1)).max_delay(Duration::from_secs(3));
/// assert!(policy.delay(1, 7) <= Duration::from_secs(1));
/// assert!(policy.delay(4, 7) <= Duration::from_secs(3));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The largest number of attempts, including the first.
    pub attempts: u32,
    /// The upper bound of the delay before the second attempt; doubles with each attempt.
    pub initial_delay: Duration,
    /// The upper bound of all delays.
    pub max_delay: Duration,
    /// True if timeouts are retried.
    pub timeouts: bool,
    when: When,
}

#[derive(Clone)]
enum When {
    Asked(Arc<dyn Fn(&ToolError) -> bool + Send + Sync>),
    Marked,
    NotExcluded,
}

impl RetryPolicy {
    /// Creates a policy with this many attempts in total and delays of up to 100 ms, 200 ms, and so on up to 5
    /// s.
    #[must_use]
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts,
            initial_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(5),
            timeouts: false,
            when: When::NotExcluded,
        }
    }

    /// Sets the upper bound of the delay before the second attempt.
    #[must_use]
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = delay;
        self
    }

    /// Sets the upper bound of all delays.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Retries timeouts too.
    #[must_use]
    pub fn with_timeouts(mut self) -> Self {
        self.timeouts = true;
        self
    }

    /// Retries only errors that the tool marks as retryable.
    #[must_use]
    pub fn only_marked(mut self) -> Self {
        self.when = When::Marked;
        self
    }

    /// Retries only errors for which `when` returns true. If it panics, the error is not retried.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&ToolError) -> bool + Send + Sync + 'static) -> Self {
        self.when = When::Asked(Arc::new(when));
        self
    }

    /// Returns true if the error should be retried.
    #[must_use]
    pub fn retries(&self, error: &ToolError) -> bool {
        match &self.when {
            When::Asked(when) => contain(|| when(error)).unwrap_or(false),
            When::Marked => error.retry_hint() == Some(true),
            When::NotExcluded => error.retry_hint() != Some(false),
        }
    }

    /// Returns the delay after attempt number `attempt`, starting at 1: between half of its upper bound and all
    /// of it, depending on the seed.
    #[must_use]
    pub fn delay(&self, attempt: u32, seed: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let longest = self.initial_delay.saturating_mul(doubled).min(self.max_delay);
        let spread = mix(seed ^ u64::from(attempt)) >> 40;
        let half = longest / 2;
        half + half.mul_f64(spread as f64 / (1_u64 << 24) as f64)
    }
}

/// Spreads a number over all 64 bits (the finalizer of SplitMix64).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("attempts", &self.attempts)
            .field("initial_delay", &self.initial_delay)
            .field("max_delay", &self.max_delay)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
