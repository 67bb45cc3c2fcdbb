//! Any transport, type-erased.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use oa_transport::{RequestBody, RequestHead, ResponseFuture, Transport, Watch};
use tower::Service as _;

use crate::body::{AnyBody, BoxError};
use crate::error::{Error, Result};

/// A boxed future that can be sent to another thread.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Any transport, type-erased so that no type parameter reaches the user.
#[derive(Clone)]
pub(crate) enum AnyService {
    Other(Arc<dyn Deliver>),
    /// The library's own, which needs no erasure.
    Own(Transport),
}

/// A type-erased service: each request has its own clone.
pub(crate) trait Deliver: Send + Sync {
    fn deliver(&self, request: Request<RequestBody>) -> OtherHead;
}

type OtherHead = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, BoxError>> + Send>>;

/// The head of a response, pending.
pub(crate) enum ResponseHead {
    Other(OtherHead),
    Own(ResponseFuture),
}

impl AnyService {
    pub(crate) fn new<S, B>(service: S) -> Self
    where
        S: tower::Service<Request<RequestBody>, Response = Response<B>>
            + Clone
            + Send
            + Sync
            + 'static,
        S::Error: Into<BoxError> + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::Other(Arc::new(service))
    }

    /// Prepares the head of a request if the own transport is to send it. Errors are reported when it is sent.
    pub(crate) fn head(&self, parts: &Parts) -> Option<RequestHead> {
        match self {
            Self::Other(_) => None,
            Self::Own(_) => RequestHead::new(parts.clone()).ok(),
        }
    }

    pub(crate) fn deliver(&self, request: Request<RequestBody>) -> ResponseHead {
        match self {
            Self::Other(service) => ResponseHead::Other(service.deliver(request)),
            Self::Own(transport) => ResponseHead::Own(transport.clone().call(request)),
        }
    }
}

impl ResponseHead {
    /// Waits for the head, within the watch's timeouts.
    pub(crate) fn poll(
        &mut self,
        watch: &mut Watch,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response<AnyBody>>> {
        let answer = match self {
            Self::Other(answer) => answer.as_mut().poll(cx),
            Self::Own(answer) => Pin::new(answer)
                .poll(cx)
                .map_ok(|response| response.map(AnyBody::Own))
                .map_err(Into::into),
        };
        match answer {
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(response)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(Error::transport(error, 0, false))),
            Poll::Pending => {
                // After the answer, so that a head that arrives at the deadline counts.
                let kind = ready!(watch.poll_expired(cx));
                Poll::Ready(Err(Error::timed_out(kind, watch, 0)))
            }
        }
    }
}

impl<S, B> Deliver for S
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn deliver(&self, request: Request<RequestBody>) -> OtherHead {
        let mut service = self.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(AnyBody::new))
        })
    }
}
