//! From a chat request to a response: the one service that everything goes through.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use oa_transport::{RequestBody, Watch};

use crate::endpoint::Endpoint;
use crate::error::{Error, Result};

/// Error bodies and model lists are read up to this size, in bytes.
const LARGEST_BODY: usize = 1 << 20;

type BoxError = Box<dyn StdError + Send + Sync>;

/// A body of any transport.
pub(crate) type AnyBody = Pin<Box<dyn Frames + Send>>;

/// A body whose errors are boxed.
pub(crate) trait Frames {
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>;
}

/// Any transport, erased once so that no type parameter reaches the user.
#[derive(Clone)]
pub(crate) struct AnyService(Arc<dyn Deliver>);

/// What is left of a service: each request has a clone of its own.
trait Deliver: Send + Sync {
    fn deliver(&self, request: Request<RequestBody>) -> Answer;
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, BoxError>> + Send>>;

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
        Self(Arc::new(service))
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
    fn deliver(&self, request: Request<RequestBody>) -> Answer {
        let mut service = self.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(|body| Box::pin(body) as AnyBody))
        })
    }
}

impl fmt::Debug for AnyService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyService").finish_non_exhaustive()
    }
}

impl<B> Frames for B
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Body::poll_frame(self, cx).map_err(Into::into)
    }
}

/// Sends a request and waits for the head of an answer that is no error.
///
/// # Cancel safety
///
/// Dropping the future closes the connection; the server sees that and stops.
pub(crate) fn send(
    endpoint: &Endpoint,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> impl Future<Output = Result<Response<AnyBody>>> {
    let answer = endpoint.0.service.0.deliver(request);
    async move {
        let response = head_of(answer, watch).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        let (head, body) = response.into_parts();
        // What can be read of it is better than nothing. In a box: most answers are no errors.
        let body = Box::pin(collect(body, watch)).await.unwrap_or_default();
        let mut error = Error::response(head.status, &head.headers, &body);
        error.mask(endpoint.0.secrets());
        Err(error)
    }
}

/// Sends a request and waits for the head of its answer, whatever it says.
///
/// # Cancel safety
///
/// As [`send`].
pub(crate) fn head(
    endpoint: &Endpoint,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> impl Future<Output = Result<Response<AnyBody>>> {
    head_of(endpoint.0.service.0.deliver(request), watch)
}

async fn head_of(mut answer: Answer, watch: &mut Watch) -> Result<Response<AnyBody>> {
    poll_fn(|cx| match answer.as_mut().poll(cx) {
        Poll::Ready(result) => {
            Poll::Ready(result.map_err(|error| Error::transport(error, 0, false)))
        }
        Poll::Pending => {
            let kind = ready!(watch.poll_expired(cx));
            Poll::Ready(Err(Error::timed_out(kind, watch, 0)))
        }
    })
    .await
}

/// Reads a small body, up to its limit.
pub(crate) async fn collect(mut body: AnyBody, watch: &mut Watch) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    watch.note_content();
    loop {
        let frame = poll_fn(|cx| match body.as_mut().poll_frame(cx) {
            Poll::Ready(frame) => Poll::Ready(Ok(frame)),
            Poll::Pending => {
                let kind = ready!(watch.poll_expired(cx));
                Poll::Ready(Err(Error::timed_out(kind, watch, bytes.len() as u64)))
            }
        })
        .await?;
        match frame {
            None => return Ok(bytes),
            Some(Ok(frame)) => {
                watch.note_bytes();
                let data = frame.into_data().unwrap_or_default();
                let room = LARGEST_BODY - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if bytes.len() == LARGEST_BODY {
                    return Ok(bytes);
                }
            }
            Some(Err(_)) if !bytes.is_empty() => return Ok(bytes),
            Some(Err(error)) => return Err(Error::transport(error, 0, true)),
        }
    }
}
