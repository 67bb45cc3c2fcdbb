//! Trying again: when, after which pause, and how often altogether.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use oa_transport::{TimeoutKind, Watch};
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::AnswerStream;
use crate::chat::ChatRequest;
use crate::error::{Error, Result};
use crate::work::BoxFuture;

/// How failed requests are tried again, as long as nothing of an answer was delivered.
///
/// What is tried again: connections that do not come about or break before the first delta, and the
/// statuses 408, 409, 425, 429, 500, 502, 503, 504 and 529, unless the server's words say that it
/// will be the same next time. The pause before a try is a random part of a time that doubles with
/// each (full jitter), or what the server asked for by `Retry-After`.
///
/// ```
/// use std::time::Duration;
///
/// use oa_client::RetryConfig;
///
/// let patient = RetryConfig::new(5).max_delay(Duration::from_secs(30));
/// assert!(patient.delay(0, 7) <= Duration::from_millis(500));
/// assert!(patient.delay(20, 7) <= Duration::from_secs(30));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct RetryConfig {
    /// How often a request is sent again at most. 2 by default.
    pub max_retries: u32,
    /// The longest pause before the first retry; it doubles with each. 500 ms by default.
    pub initial_delay: Duration,
    /// The longest pause of all. 8 seconds by default.
    pub max_delay: Duration,
    /// The longest `Retry-After` that is waited for; a longer one ends the tries. 60 seconds by default.
    pub max_retry_after: Duration,
    /// How many retries all requests of one agent's options, and of their clones, may have beyond their
    /// successes, so that a server in trouble is not buried. An answer that begins gives one back, and a
    /// head alone none. 50 by default.
    pub budget: u32,
}

impl RetryConfig {
    /// Retries this often; the rest is as by default.
    #[must_use]
    pub fn new(max_retries: u32) -> Self {
        Self {
            max_retries,
            initial_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(8),
            max_retry_after: Duration::from_secs(60),
            budget: 50,
        }
    }

    /// Never retries.
    #[must_use]
    pub fn none() -> Self {
        Self::new(0)
    }

    /// Sets the longest pause before the first retry.
    #[must_use]
    pub fn initial_delay(mut self, delay: Duration) -> Self {
        self.initial_delay = delay;
        self
    }

    /// Sets the longest pause of all.
    #[must_use]
    pub fn max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets the longest `Retry-After` that is waited for.
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

    /// Returns the pause before a retry, counted from 0: the same for the same seed.
    #[must_use]
    pub fn delay(&self, retry: u32, seed: u64) -> Duration {
        let doubled = self.initial_delay.saturating_mul(2_u32.saturating_pow(retry));
        let longest = doubled.min(self.max_delay);
        // The golden ratio spreads neighbouring numbers; the rest is SplitMix64's finish.
        let mut bits = seed ^ u64::from(retry).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^= bits >> 31;
        // 53 bits are what a float holds.
        longest.mul_f64((bits >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Returns the pause before a retry after this error; `None` if it is not to be retried.
    #[must_use]
    pub fn pause(&self, error: &Error, retry: u32, seed: u64) -> Option<Duration> {
        if retry >= self.max_retries || !error.is_retryable() {
            return None;
        }
        let delay = self.delay(retry, seed);
        match error.retry_after() {
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

/// Performs an operation until it succeeds, fails by an error for which trying again makes no sense,
/// or was tried often enough. A client does this for its requests itself: do not wrap those.
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
/// Dropping the future drops the operation, or ends the pause.
///
/// ```
/// use oa_client::{AgentOptions, RetryConfig, list_models, retry_with_backoff};
/// # use oa_testkit::{MemoryServer, Script};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> oa_client::Result<()> {
/// # let server = MemoryServer::new(Script::new().models(["tiny"]));
/// let options = AgentOptions::builder().model("any")
/// #   .transport(server)
///     .build()?;
/// let models = retry_with_backoff(&RetryConfig::new(5), || list_models(&options)).await?;
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

/// What the retries of one agent have left.
pub(crate) struct Budget {
    most: u32,
    left: AtomicU32,
}

impl Budget {
    pub(crate) fn new(most: u32) -> Self {
        Self { most, left: AtomicU32::new(most) }
    }

    fn spend(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    pub(crate) fn give_back(&self) {
        let more = |left: u32| (left < self.most).then_some(left + 1);
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }
}

/// Has a request answered by whomever its settings name: asks again if that fails, or if the answer
/// breaks before its first delta.
pub(crate) fn ask(request: ChatRequest) -> BoxFuture<Result<AnswerStream>> {
    ask_after(None, request, 0)
}

/// Asks after a pause, if there is to be one. `retry` is the number of the next retry, from 0.
fn ask_after(
    wait: Option<Duration>,
    request: ChatRequest,
    retry: u32,
) -> BoxFuture<Result<AnswerStream>> {
    let (deadline, timeouts) = (request.deadline(), request.settings.timeouts);
    let Some(deadline) = deadline else { return Box::pin(tries(wait, request, retry)) };
    let late = move |_| Err(Error::timed_out(TimeoutKind::Total, &Watch::new(timeouts), 0));
    Box::pin(
        async move { timeout_at(deadline, tries(wait, request, retry)).await.unwrap_or_else(late) },
    )
}

#[expect(clippy::manual_async_fn, reason = "such a function keeps what it is given twice")]
fn tries(
    mut wait: Option<Duration>,
    request: ChatRequest,
    mut retry: u32,
) -> impl Future<Output = Result<AnswerStream>> {
    async move {
        loop {
            if let Some(wait) = wait {
                // In a box: most requests never wait.
                Box::pin(sleep(wait)).await;
            }
            let error = match request.settings.asked.answer(&request).await {
                Ok(answer) => return Ok(watched(answer, request, retry)),
                Err(error) => error,
            };
            wait = pause(&request, &error, retry);
            if wait.is_none() {
                return Err(error);
            }
            retry += 1;
        }
    }
}

/// An answer that is asked for again if it breaks before it has begun.
fn watched(mut answer: AnswerStream, request: ChatRequest, retry: u32) -> AnswerStream {
    answer.credit(Arc::clone(&request.settings.retry_budget));
    if retry < request.settings.retry.max_retries {
        answer.on_early_end(move |error| match pause(&request, &error, retry) {
            Some(pause) => Ok(ask_after(Some(pause), request, retry + 1)),
            None => Err(error),
        });
    }
    answer
}

/// The pause before a retry after this error, if there is to be one and it ends in time.
fn pause(request: &ChatRequest, error: &Error, retry: u32) -> Option<Duration> {
    let settings = &request.settings;
    let is_in_time = |pause: &Duration| {
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        request.deadline().is_none_or(|deadline| *pause < left(deadline))
    };
    let pause = settings.retry.pause(error, retry, random()).filter(is_in_time);
    pause.filter(|_| settings.retry_budget.spend())
}

/// A number that nobody can foresee.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}
