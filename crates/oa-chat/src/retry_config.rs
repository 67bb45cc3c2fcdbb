//! Retry settings, and retries of arbitrary operations.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use oa_types::Backoff;
use tokio::time::sleep;

use crate::error::{Error, Result};

/// The policy for retries of failed requests; never after any output was delivered.
///
/// A request is retried if the connection fails or breaks before the first delta, and for the statuses 408, 409,
/// 425, 429, 500, 502, 503, 504 and 529, unless the error message shows that a retry would fail too. An error with
/// status 400 or 403, or inside a response with status 200 before the first delta, is retried if it tells of an
/// overload (QUIRKS rows 144 and 145). A server's silence and an empty answer are not retried.
///
/// The delay is random, up to a bound that doubles with each retry ([`Backoff`]), and no shorter than `Retry-After`.
///
/// ```
/// use std::time::Duration;
///
/// use oa_chat::RetryConfig;
///
/// let patient = RetryConfig::new(5).max_delay(Duration::from_secs(30));
/// assert!(patient.delay(0, 7) <= Duration::from_millis(500));
/// assert!(patient.delay(20, 7) <= Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RetryConfig {
    /// The maximum number of retries; 2 by default.
    pub max_retries: u32,
    /// The delays: up to 500 ms before the first retry, and up to 8 seconds before any, by default.
    pub backoff: Backoff,
    /// The longest `Retry-After` that is honored; a longer one ends the retries. 60 seconds by default.
    pub max_retry_after: Duration,
    /// The number of retries that all clones of one agent's options may make beyond their successes, so that a failing
    /// server is not overloaded. An answer that begins returns one; a head alone does not. 50 by default.
    pub budget: u32,
}

impl RetryConfig {
    /// Creates a configuration with this many retries and the other defaults.
    #[must_use]
    pub fn new(max_retries: u32) -> Self {
        Self {
            max_retries,
            backoff: Backoff::new(Duration::from_millis(500), Duration::from_secs(8)),
            max_retry_after: Duration::from_secs(60),
            budget: 50,
        }
    }

    /// Creates a configuration that never retries.
    #[must_use]
    pub fn none() -> Self {
        Self::new(0)
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

    /// Sets the longest `Retry-After` that is honored.
    #[must_use]
    pub fn max_retry_after(mut self, wait: Duration) -> Self {
        self.max_retry_after = wait;
        self
    }

    /// Sets how many retries there may be beyond successes.
    #[must_use]
    pub fn budget(mut self, retries: u32) -> Self {
        self.budget = retries;
        self
    }

    /// Returns the delay before a retry, counted from 0; equal seeds give equal delays.
    #[must_use]
    pub fn delay(&self, retry: u32, seed: u64) -> Duration {
        self.backoff.delay(retry, seed)
    }

    /// Returns the delay before a retry after this error; `None` if it is not retried.
    #[must_use]
    pub fn pause(&self, error: &Error, retry: u32, seed: u64) -> Option<Duration> {
        if retry >= self.max_retries || !error.is_retryable() {
            return None;
        }
        let delay = self.delay(retry, seed);
        match error.retry_after() {
            // Never earlier than the server asks, and spread by the delay where it asks for little.
            Some(wait) => (wait <= self.max_retry_after).then(|| wait.max(delay)),
            None => Some(delay),
        }
    }
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self::new(2)
    }
}

/// Runs an operation until it succeeds, fails with an error that is not retryable, or runs out of retries. A client
/// already retries its own requests: do not wrap those. An error of your own is retryable only if
/// [`retryable_after`](Error::retryable_after) says so.
///
/// # Errors
///
/// The last error.
///
/// # Panics
///
/// When it waits outside of a tokio runtime, or in one without time.
///
/// # Cancel safety
///
/// Dropping the future drops the operation, or ends the delay.
///
/// ```
/// use oa_chat::{Endpoint, RetryConfig, retry_with_backoff};
/// # use oa_testkit::{MemoryServer, Script};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_chat::Result<()> {
/// # let server = MemoryServer::new(Script::new().models(["tiny"]));
/// let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1")
/// #   .transport(server)
///     .build()?;
/// let models = retry_with_backoff(&RetryConfig::new(5), || {
///     endpoint.list_models(Default::default())
/// })
/// .await?;
/// assert_eq!(models, ["tiny"]);
/// # Ok(())
/// # }
/// ```
pub async fn retry_with_backoff<T, F, Fut>(config: &RetryConfig, mut operation: F) -> Result<T>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T>>,
{
    let seed = random();
    let mut retry = 0;
    loop {
        let error = match operation().await {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        let Some(pause) = config.pause(&error, retry, seed) else { return Err(error) };
        sleep(pause).await;
        retry += 1;
    }
}

/// Returns an unpredictable number.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}
