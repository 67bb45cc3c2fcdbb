use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use oa_chat::{AnswerStream, ChatRequest, Error, Result};
use tower::Service;

use crate::routed_request::RoutedRequest;
use crate::shared::Shared;
use crate::status::ServerStatus;

/// Several servers behind one chat service, for `chat_service`.
///
/// Clones share the router: agents with clones share its servers, caps and health. It is always ready; waiting
/// for a server is part of the call.
///
/// # Errors
///
/// If no server answers, returns the most relevant error, whose message lists the servers and their errors. The
/// kind is `Unavailable` if no server could be used. The error is retryable if that of any server is, and its
/// `retry_after` is the time until a server becomes available. An error caused by the request is returned unchanged.
///
/// # Cancel safety
///
/// Dropping a call or its answer immediately leaves the queue, closes the connection and releases the server.
#[derive(Clone)]
pub struct Router(pub(crate) Arc<Shared>);

impl Router {
    /// Returns the status of each server, in the order in which they were added.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0.dispatcher.with(|scheduler, now| {
            let servers = scheduler.servers().iter().zip(&self.0.names);
            let status = servers.map(|(slots, name)| ServerStatus {
                name: name.clone(),
                health: slots.breaker.health(now),
                cap: slots.cap,
                in_use: slots.in_use,
                asked: slots.counts.asked,
                answered: slots.counts.answered,
                failed: slots.counts.failed,
                refused: slots.counts.refused,
                given_up: slots.counts.given_up,
                last_failure: slots.last_failure.clone(),
            });
            status.collect()
        })
    }

    /// Returns the number of requests waiting for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.dispatcher.with(|scheduler, _| scheduler.queued())
    }

    /// Returns the number of remembered conversations.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.dispatcher.with(|scheduler, _| scheduler.remembered())
    }
}

impl Service<ChatRequest> for Router {
    type Response = AnswerStream;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<AnswerStream>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        RoutedRequest::new(Arc::clone(&self.0), request).run()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("servers", &self.status()).finish_non_exhaustive()
    }
}
