//! From a chat request to a response: the one service that everything goes through.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame};
use oa_transport::{RequestBody, RequestHead, ResponseBody, ResponseFuture, Transport, Watch};
use tower::Service as _;

use crate::answer::{Piece, Source};
use crate::endpoint::Endpoint;
use crate::envelope::Envelope;
use crate::error::{Error, Result};

/// Error bodies and model lists are read up to this size, in bytes.
const LARGEST_BODY: usize = 1 << 20;

pub(crate) type BoxError = Box<dyn StdError + Send + Sync>;

/// A body of any transport.
pub(crate) enum AnyBody {
    Other(Pin<Box<dyn Frames + Send>>),
    Own(ResponseBody),
}

/// A body whose errors are boxed.
pub(crate) trait Frames {
    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>;
}

/// Any transport, erased once so that no type parameter reaches the user.
#[derive(Clone)]
pub(crate) enum AnyService {
    Other(Arc<dyn Deliver>),
    /// The library's own, which needs no erasing.
    Own(Transport),
}

/// What is left of a service: each request has a clone of its own.
pub(crate) trait Deliver: Send + Sync {
    fn deliver(&self, request: Request<RequestBody>) -> OtherAnswer;
}

type OtherAnswer = Pin<Box<dyn Future<Output = Result<Response<AnyBody>, BoxError>> + Send>>;

/// The head of an answer, in future.
pub(crate) enum Answer {
    Other(OtherAnswer),
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

    /// Looks through a request without its body, if the own transport is to send it. What is wrong
    /// with it is told when it is sent.
    pub(crate) fn head(&self, parts: &Parts) -> Option<RequestHead> {
        match self {
            Self::Other(_) => None,
            Self::Own(_) => RequestHead::new(parts.clone()).ok(),
        }
    }

    fn deliver(&self, request: Request<RequestBody>) -> Answer {
        match self {
            Self::Other(service) => Answer::Other(service.deliver(request)),
            Self::Own(transport) => Answer::Own(transport.clone().call(request)),
        }
    }

    /// Sends a chat request.
    pub(crate) fn deliver_chat(&self, envelope: &Envelope, body: RequestBody) -> Answer {
        match (self, envelope.chat_head()) {
            (Self::Own(transport), Some(head)) => Answer::Own(transport.send(head, body)),
            _ => self.deliver(envelope.chat_with(body)),
        }
    }
}

impl Answer {
    /// Waits for the head, as long as the watch allows.
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
                let kind = ready!(watch.poll_expired(cx));
                Poll::Ready(Err(Error::timed_out(kind, watch, 0)))
            }
        }
    }
}

impl AnyBody {
    pub(crate) fn new(body: impl Frames + Send + 'static) -> Self {
        Self::Other(Box::pin(body))
    }

    #[inline]
    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Other(body) => body.as_mut().poll_frame(cx),
            Self::Own(body) => Frames::poll_frame(Pin::new(body), cx),
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
    fn deliver(&self, request: Request<RequestBody>) -> OtherAnswer {
        let mut service = self.clone();
        Box::pin(async move {
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            let response = service.call(request).await.map_err(Into::into)?;
            Ok(response.map(AnyBody::new))
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
pub(crate) async fn send(
    endpoint: &Endpoint,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> Result<Response<AnyBody>> {
    let response = head(endpoint, request, watch).await?;
    if response.status().is_success() {
        return readable(response);
    }
    Err(refusal(endpoint, response, watch).await)
}

/// Sends a request and waits for the head of its answer, whatever it says.
///
/// # Cancel safety
///
/// As [`send`].
pub(crate) async fn head(
    endpoint: &Endpoint,
    request: Request<RequestBody>,
    watch: &mut Watch,
) -> Result<Response<AnyBody>> {
    let mut answer = endpoint.0.service.deliver(request);
    let head = poll_fn(|cx| answer.poll(watch, cx)).await;
    head.map_err(|error| error.masked(&endpoint.0.secrets))
}

/// What an answer says that is an error.
pub(crate) async fn refusal(
    endpoint: &Endpoint,
    response: Response<AnyBody>,
    watch: &mut Watch,
) -> Error {
    let (head, body) = response.into_parts();
    let body = collect_some(body, watch).await;
    let mut error = Error::response(head.status, &head.headers, &body, &endpoint.0.secrets);
    if matches!(head.status, StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED) {
        error.add(endpoint.0.hint());
    }
    error
}

/// A response whose body is written as it was asked for.
///
/// # Errors
///
/// `Stream` if it is compressed: nobody asked for that, and nothing of it could be read.
pub(crate) fn readable(response: Response<AnyBody>) -> Result<Response<AnyBody>> {
    match Error::compressed(response.headers()) {
        Some(error) => Err(error),
        None => Ok(response),
    }
}

/// Reads a small body, up to its limit. All of it has to come within one idle timeout, so that one that drips
/// ends as well.
pub(crate) async fn collect(body: AnyBody, watch: &mut Watch) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fill(&mut bytes, body, watch).await?;
    Ok(bytes)
}

/// As [`collect`], for bodies of which a part is better than nothing.
pub(crate) async fn collect_some(body: AnyBody, watch: &mut Watch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = fill(&mut bytes, body, watch).await;
    bytes
}

async fn fill(bytes: &mut Vec<u8>, body: AnyBody, watch: &mut Watch) -> Result<()> {
    let mut body = Source::new(body);
    watch.note_content();
    loop {
        match poll_fn(|cx| body.poll_piece(watch, cx)).await {
            Piece::Bytes(piece) => {
                let room = LARGEST_BODY - bytes.len();
                bytes.extend_from_slice(&piece[..piece.len().min(room)]);
                if bytes.len() == LARGEST_BODY {
                    return Ok(());
                }
            }
            Piece::Broken(error) if bytes.is_empty() => {
                return Err(Error::transport(error, 0, true));
            }
            Piece::Broken(_) | Piece::End => return Ok(()),
            Piece::Expired(kind) => {
                return Err(Error::timed_out(kind, watch, bytes.len() as u64));
            }
        }
    }
}
