use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tower::Service;

use super::body::TapedBody;
use super::reel::{Playing, Recording, Reel};
use crate::http1::MAX_BODY;

type BoxError = Box<dyn StdError + Send + Sync>;

/// A transport wrapped by a [`Cassette`](super::Cassette).
///
/// When recording, requests go to the transport and its errors are passed on unchanged. On replay the transport
/// is never called, and errors are [`CassetteError`](super::CassetteError)s. Clones share the cassette.
#[derive(Clone, Debug)]
pub struct Taped<S> {
    inner: S,
    reel: Reel,
}

impl<S> Taped<S> {
    pub(super) fn new(inner: S, reel: Reel) -> Self {
        Self { inner, reel }
    }
}

impl<S, B, R> Service<Request<B>> for Taped<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Error: Into<BoxError> + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Clone + Send + 'static,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<BoxError>,
{
    type Response = Response<TapedBody<R>>;
    type Error = BoxError;
    type Future = TapedFuture<R>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.reel {
            Reel::Play(_) => Poll::Ready(Ok(())),
            Reel::Record(_) => self.inner.poll_ready(cx).map_err(Into::into),
        }
    }

    fn call(&mut self, request: Request<B>) -> TapedFuture<R> {
        let (head, body) = request.into_parts();
        match &self.reel {
            Reel::Play(playing) => {
                TapedFuture { answer: Box::pin(replay(Arc::clone(playing), head, body)) }
            }
            Reel::Record(recording) => {
                // Numbered in call order. A copy of the body is recorded; the original is sent unchanged.
                let (recording, copy) = (Arc::clone(recording), body.clone());
                let recorder = &recording.recorder;
                let take = recorder.begin(head.method.clone(), head.uri.clone(), &head.headers);
                let answer = self.inner.call(Request::from_parts(head, body));
                TapedFuture { answer: Box::pin(record(recording, take, copy, answer)) }
            }
        }
    }
}

async fn record<B, R, F, E>(
    recording: Arc<Recording>,
    take: usize,
    copy: B,
    answer: F,
) -> Answered<R>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes>,
    F: Future<Output = Result<Response<R>, E>>,
    E: Into<BoxError>,
{
    match Limited::new(copy, MAX_BODY).collect().await {
        Ok(body) => recording.recorder.asked(take, body.to_bytes()),
        Err(error) => {
            recording.recorder.spoil(format!("the body of request {}: {error}", take + 1));
        }
    }
    let response = answer.await.map_err(Into::into)?;
    recording.recorder.head(take, response.status(), response.headers());
    Ok(response.map(|body| TapedBody::live(body, recording, take)))
}

async fn replay<B, R>(playing: Arc<Playing>, head: Parts, body: B) -> Answered<R>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
    R: Body<Data = Bytes>,
{
    let body = Limited::new(body, MAX_BODY).collect().await?.to_bytes();
    let answer = playing.player.ask(head.method, &head.uri, &head.headers, &body)?;
    let mut response = Response::new(TapedBody::played(&answer, playing.cut.as_ref()));
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    Ok(response)
}

/// The response future of a [`Taped`] transport.
///
/// # Cancel safety
///
/// Dropping it while recording drops the transport's future, and the request is not recorded. Dropping it on
/// replay before its first poll uses no interaction.
#[must_use = "futures do nothing unless polled"]
pub struct TapedFuture<R> {
    answer: Pin<Box<dyn Future<Output = Answered<R>> + Send>>,
}

type Answered<R> = Result<Response<TapedBody<R>>, BoxError>;

impl<R> Future for TapedFuture<R> {
    type Output = Answered<R>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.as_mut().poll(cx)
    }
}

impl<R> fmt::Debug for TapedFuture<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TapedFuture").finish_non_exhaustive()
    }
}
