use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_tools::ToolError;
use oa_types::contain::contain;

/// Which failures of a tool are tried again, how often, and after what pause.
///
/// By default every failure is tried again, unless the tool [says](ToolError::retryable) that it would not
/// help. Panics, and arguments that do not fit, are never tried again.
///
/// ```
/// use std::time::Duration;
///
/// use oa_executor::RetryPolicy;
///
/// let policy = RetryPolicy::new(5).first(Duration::from_secs(1)).most(Duration::from_secs(3));
/// assert!(policy.delay(1, 7) <= Duration::from_secs(1));
/// assert!(policy.delay(4, 7) <= Duration::from_secs(3));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a tool is run at most, the first time included.
    pub attempts: u32,
    /// The longest pause before the second attempt; it doubles from attempt to attempt.
    pub first: Duration,
    /// The longest pause at all.
    pub most: Duration,
    /// Whether a timeout is tried again.
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
    /// Creates a policy of this many attempts altogether, with pauses of up to 100 ms, 200 ms, and so on
    /// up to 5 s.
    #[must_use]
    pub fn new(attempts: u32) -> Self {
        Self {
            attempts,
            first: Duration::from_millis(100),
            most: Duration::from_secs(5),
            timeouts: false,
            when: When::NotExcluded,
        }
    }

    /// Sets the longest pause before the second attempt.
    #[must_use]
    pub fn first(mut self, pause: Duration) -> Self {
        self.first = pause;
        self
    }

    /// Sets the longest pause at all.
    #[must_use]
    pub fn most(mut self, pause: Duration) -> Self {
        self.most = pause;
        self
    }

    /// Tries timeouts again as well.
    #[must_use]
    pub fn with_timeouts(mut self) -> Self {
        self.timeouts = true;
        self
    }

    /// Tries again only what the tool itself says is worth it.
    #[must_use]
    pub fn only_marked(mut self) -> Self {
        self.when = When::Marked;
        self
    }

    /// Tries again only what this says is worth it. One that panics has not said so: the tool's error stands.
    #[must_use]
    pub fn when(mut self, when: impl Fn(&ToolError) -> bool + Send + Sync + 'static) -> Self {
        self.when = When::Asked(Arc::new(when));
        self
    }

    /// Returns whether this error is worth another attempt.
    #[must_use]
    pub fn retries(&self, error: &ToolError) -> bool {
        match &self.when {
            When::Asked(when) => contain(|| when(error)).unwrap_or(false),
            When::Marked => error.retry_hint() == Some(true),
            When::NotExcluded => error.retry_hint() != Some(false),
        }
    }

    /// Returns the pause after the attempt of this number, from 1: between half of the longest and all
    /// of it, spread by the seed.
    #[must_use]
    pub fn delay(&self, attempt: u32, seed: u64) -> Duration {
        let doubled = 2_u32.saturating_pow(attempt.saturating_sub(1));
        let longest = self.first.saturating_mul(doubled).min(self.most);
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
            .field("first", &self.first)
            .field("most", &self.most)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
