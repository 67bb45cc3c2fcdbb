use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use oa_chat::{AnswerStream, AnyChat, ChatRequest, Error, Result};
use tower::Service;

use crate::builder::RouterBuilder;
use crate::desk::Desk;
use crate::journey::Journey;
use crate::status::ServerStatus;

/// Several servers behind one chat service, for
/// an agent's `chat_service`.
///
/// Clones are the same router: agents that are to share servers, caps and what is known of their health
/// share a router. It is always ready; waiting for a server is part of the call.
///
/// # Errors
///
/// If no server answers, the most telling of their errors, with what each of them said in one line; of
/// kind `Unavailable` if none could be asked. It may be retried if one of them may, and tells how long it
/// is until a server can be asked again. An error that is the request's own is told as it came.
///
/// # Cancel safety
///
/// Dropping a call, or its answer, leaves the queue, closes the connection and gives the place back at
/// once.
#[derive(Clone)]
pub struct Router(pub(crate) Arc<Shared>);

/// What the clones of a router have in common.
pub(crate) struct Shared {
    pub(crate) desk: Arc<Desk>,
    pub(crate) services: Vec<AnyChat>,
    pub(crate) names: Vec<String>,
}

impl Router {
    /// Begins without a server.
    pub fn builder() -> RouterBuilder {
        RouterBuilder::default()
    }

    /// Returns how each server stands, in the order in which they were named.
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

    /// Returns how many requests wait for a server.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.desk.with(|board, _| board.in_line())
    }

    /// Returns the number of conversations whose last server is remembered.
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
