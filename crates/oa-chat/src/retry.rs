//! Retries, as a layer around any chat service.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use oa_transport::{TimeoutKind, Watch};
use tokio::time::{Instant, sleep, timeout_at};
use tower::Service;

use crate::answer::AnswerStream;
use crate::any_chat::AnyChat;
use crate::error::{Error, Result};
use crate::request::ChatRequest;
use crate::retry_budget::{ReservedRetry, RetryBudget};
use crate::retry_config::{RetryConfig, random};
use crate::service::BoxFuture;

/// A chat service that retries failed requests, and answers that break before their first delta. Clones share one
/// retry budget.
///
/// An agent wraps its own server in such a service. Create one for a service that you use without an agent.
///
/// # Cancel safety
///
/// Dropping a call drops the request, or ends the delay.
#[derive(Clone)]
pub struct Retry {
    service: AnyChat,
    policy: Arc<Policy>,
}

struct Policy {
    config: RetryConfig,
    budget: Arc<RetryBudget>,
}

/// The delay before a retry, and the retry.
type Pause = (Duration, ReservedRetry);

impl Retry {
    /// Creates a service that retries with a full budget.
    #[must_use]
    pub fn new(service: AnyChat, config: RetryConfig) -> Self {
        let budget = Arc::new(RetryBudget::new(config.budget));
        Self { service, policy: Arc::new(Policy { config, budget }) }
    }

    /// Returns the inner service.
    #[must_use]
    pub fn service(&self) -> &AnyChat {
        &self.service
    }

    /// Returns the retry settings.
    #[must_use]
    pub fn config(&self) -> &RetryConfig {
        &self.policy.config
    }

    /// Returns the same retries, with the same budget, around another service.
    #[must_use]
    pub fn around(&self, service: AnyChat) -> Self {
        Self { service, policy: Arc::clone(&self.policy) }
    }

    /// Sends a request, with all its retries.
    ///
    /// # Errors
    ///
    /// The last error; `Timeout` if the request's total timeout ends first.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the request, or ends the delay.
    #[must_use = "futures do nothing unless polled"]
    pub fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>> {
        self.clone().ask_after(None, request, 0)
    }

    /// Retries after a delay, if a retry is due. `retry` is its number, from 0.
    fn ask_after(
        self,
        pause: Option<Pause>,
        request: ChatRequest,
        retry: u32,
    ) -> BoxFuture<Result<AnswerStream>> {
        let (deadline, timeouts) = (request.deadline(), request.options().timeouts);
        let Some(deadline) = deadline else { return Box::pin(self.tries(pause, request, retry)) };
        let late = move |_| Err(Error::timed_out(TimeoutKind::Total, &Watch::new(timeouts), 0));
        Box::pin(async move {
            timeout_at(deadline, self.tries(pause, request, retry)).await.unwrap_or_else(late)
        })
    }

    #[expect(clippy::manual_async_fn, reason = "such a function keeps what it is given twice")]
    fn tries(
        self,
        mut pause: Option<Pause>,
        request: ChatRequest,
        mut retry: u32,
    ) -> impl Future<Output = Result<AnswerStream>> {
        async move {
            loop {
                if let Some((time, reserved)) = pause {
                    // Boxed, because most requests never wait.
                    Box::pin(sleep(time)).await;
                    reserved.use_up();
                }
                let error = match self.service.answer(&request).await {
                    Ok(answer) => return Ok(self.watched(answer, request, retry)),
                    Err(error) => error,
                };
                pause = self.pause(&request, &error, retry);
                if pause.is_none() {
                    return Err(error);
                }
                retry += 1;
            }
        }
    }

    /// Retries an answer if it breaks before it has begun.
    fn watched(self, mut answer: AnswerStream, request: ChatRequest, retry: u32) -> AnswerStream {
        answer.credit(Arc::clone(&self.policy.budget));
        if retry < self.policy.config.max_retries {
            answer.on_early_end(move |error| match self.pause(&request, &error, retry) {
                Some(pause) => Ok(self.ask_after(Some(pause), request, retry + 1)),
                None => Err(error),
            });
        }
        answer
    }

    /// Returns the delay before a retry after this error, if a retry is due and the delay fits into the total timeout.
    fn pause(&self, request: &ChatRequest, error: &Error, retry: u32) -> Option<Pause> {
        let time = self.policy.config.pause(error, retry, random())?;
        // Not `now + time`, which overflows for the longest `Retry-After`.
        let left = |deadline: Instant| deadline.saturating_duration_since(Instant::now());
        if request.deadline().is_some_and(|deadline| left(deadline) <= time) {
            return None;
        }
        // Last, so that a retry that is not made costs nothing.
        Some((time, self.policy.budget.reserve()?))
    }
}

impl Service<ChatRequest> for Retry {
    type Response = AnswerStream;
    type Error = Error;
    type Future = BoxFuture<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        self.ask(request)
    }
}

impl fmt::Debug for Retry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("service", &self.service)
            .field("config", &self.policy.config)
            .finish_non_exhaustive()
    }
}
