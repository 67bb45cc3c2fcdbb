use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use tower::Service;

use crate::answer::AnswerStream;
use crate::endpoint::Endpoint;
use crate::error::{Error, Result};
use crate::exchange;
use crate::request::ChatRequest;
use crate::service::BoxFuture;

/// A type-erased chat service. Errors of other types become [`Error`]s of kind `Connect`.
///
/// It is always ready; the call waits until the inner service is ready.
#[derive(Clone)]
pub struct AnyChat(Inner);

#[derive(Clone)]
enum Inner {
    /// One server, which needs no erasure.
    Endpoint(Endpoint),
    Other(Arc<dyn Ask>),
}

/// A type-erased service: each request has its own clone.
trait Ask: Send + Sync {
    fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>>;
}

impl<S> Ask for S
where
    S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
    S::Error: Into<Box<dyn StdError + Send + Sync>>,
    S::Future: Send,
{
    fn ask(&self, request: ChatRequest) -> BoxFuture<Result<AnswerStream>> {
        let mut service = self.clone();
        Box::pin(async move {
            let ready = poll_fn(|cx| service.poll_ready(cx)).await;
            ready.map_err(|error| Error::chat(error.into(), 0, false))?;
            service.call(request).await.map_err(|error| Error::chat(error.into(), 0, false))
        })
    }
}

impl AnyChat {
    /// Erases a service.
    pub fn new<S>(service: S) -> Self
    where
        S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn StdError + Send + Sync>>,
        S::Future: Send,
    {
        Self(Inner::Other(Arc::new(service)))
    }

    /// Returns the endpoint if this was [created from one](Self::from); `None` for other services.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.0 {
            Inner::Endpoint(endpoint) => Some(endpoint),
            Inner::Other(_) => None,
        }
    }

    /// Answers a request, which the caller keeps for a retry.
    pub(crate) async fn answer(&self, request: &ChatRequest) -> Result<AnswerStream> {
        match &self.0 {
            Inner::Endpoint(endpoint) => exchange::answer(&endpoint.0, request).await,
            Inner::Other(service) => service.ask(request.clone()).await,
        }
    }
}

impl From<Endpoint> for AnyChat {
    fn from(endpoint: Endpoint) -> Self {
        Self(Inner::Endpoint(endpoint))
    }
}

impl Service<ChatRequest> for AnyChat {
    type Response = AnswerStream;
    type Error = Error;
    type Future = BoxFuture<Result<AnswerStream>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: ChatRequest) -> Self::Future {
        match &mut self.0 {
            Inner::Endpoint(endpoint) => endpoint.call(request),
            Inner::Other(service) => service.ask(request),
        }
    }
}

impl fmt::Debug for AnyChat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Inner::Endpoint(endpoint) => endpoint.fmt(f),
            Inner::Other(_) => f.debug_struct("AnyChat").finish_non_exhaustive(),
        }
    }
}
