use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use oa_chat::{AnswerStream, ChatRequest, Error, Result};
use tower::Service;

use crate::journey::Journey;
use crate::shared::Shared;
use crate::status::ServerStatus;

/// Several servers behind one chat service, for `chat_service`.
///
/// Clones share the router: agents with clones share its servers, caps and health. It is always ready; waiting
/// for a server is part of the call.
///
/// # Errors
///
/// If no server answers, returns the most relevant error, with one line of what each server said; of kind
/// `Unavailable` if no server could be used. It is retryable if one of them is, and says how long until a
/// server is available. An error caused by the request is returned unchanged.
///
/// # Cancel safety
///
/// Dropping a call or its answer immediately leaves the queue, closes the connection and releases the server.
#[derive(Clone)]
pub struct Router(pub(crate) Arc<Shared>);

impl Router {
    /// Returns the status of each server, in the order in which they were named.
    #[must_use]
    pub fn status(&self) -> Vec<ServerStatus> {
        self.0.desk.with(|board, now| {
            let seats = board.seats().iter().zip(&self.0.names);
            let status = seats.map(|(seat, name)| ServerStatus {
                name: name.clone(),
                health: seat.breaker.health(now),
                cap: seat.cap,
                in_use: seat.in_use,
                asked: seat.counts.asked,
                answered: seat.counts.answered,
                failed: seat.counts.failed,
                refused: seat.counts.refused,
                given_up: seat.counts.given_up,
                last_failure: seat.last_failure.clone(),
            });
            status.collect()
        })
    }

    /// Returns the number of requests waiting for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.desk.with(|board, _| board.in_line())
    }

    /// Returns the number of remembered conversations.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.0.desk.with(|board, _| board.remembered())
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
        Journey::new(Arc::clone(&self.0), request).go_on()
    }
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("servers", &self.status()).finish_non_exhaustive()
    }
}
