use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_contain::contain;
use oa_tools::ToolError;
use oa_types::Backoff;

/// A retry policy for failed tools: the number of retries, the delays, and the errors that are retried.
///
/// A tool that always fails runs once, and then [`max_retries`](Self::max_retries) times more. The delay before a retry
/// is random, up to a bound that doubles with each ([`Backoff`]).
///
/// By default all errors are retried unless the tool [opts out](ToolError::retryable). Panics and invalid
/// arguments are never retried.
///
/// ```
/// use std::time::Duration;
///
/// use oa_executor::RetryPolicy;
///
/// let policy = RetryPolicy::new(4).initial_delay(Duration::from_secs(1)).max_delay(Duration::from_secs(3));
/// assert!(policy.delay(0, 7) <= Duration::from_secs(1));
/// assert!(policy.delay(3, 7) <= Duration::from_secs(3));
/// ```
#[derive(Clone)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The maximum number of retries.
    pub max_retries: u32,
    /// The delays: up to 100 ms before the first retry, and up to 5 seconds before any, by default.
    pub backoff: Backoff,
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
    /// Creates a policy with this many retries and the default delays.
    #[must_use]
    pub fn new(max_retries: u32) -> Self {
        Self {
            max_retries,
            backoff: Backoff::new(Duration::from_millis(100), Duration::from_secs(5)),
            timeouts: false,
            when: When::NotExcluded,
        }
    }

    /// Sets the upper bound of the delay before the first retry.
    #[must_use]
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.backoff.initial_delay = delay;
        self
    }

    /// Sets the upper bound of any delay.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.backoff.max_delay = delay;
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

    /// Returns the delay before a retry, counted from 0; equal seeds give equal delays.
    #[must_use]
    pub fn delay(&self, retry: u32, seed: u64) -> Duration {
        self.backoff.delay(retry, seed)
    }
}

impl fmt::Debug for RetryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("max_retries", &self.max_retries)
            .field("backoff", &self.backoff)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}
