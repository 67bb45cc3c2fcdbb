//! The server in memory: a tower service.

use std::collections::VecDeque;
use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Request as HttpRequest, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Limited};
use tokio::time::{self, Sleep};
use tower::Service;

use crate::act::{Act, Opening, Piece, PlannedResponse};
use crate::http1::MAX_BODY;
use crate::reply::{Ending, Framing};
use crate::requests::{Request, RequestParts};
use crate::script::Script;
use crate::stage::{Curtain, Playing, Stage};

/// A server in memory that plays a [`Script`]: a [`tower::Service`] in place of an HTTP client.
///
/// Cheap to clone; clones share the script. Dropping the last one [verifies](Self::verify) it. If that may
/// happen in another task, where a panic goes unnoticed, call `verify` at the end of the test.
///
/// Delays use tokio's timer, so a test with paused time does not wait for them. Replies without delays need no
/// runtime.
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::{BodyExt, Full};
/// use oa_testkit::{MemoryServer, Reply};
/// use tower::Service;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut server = MemoryServer::new(Reply::text("Hello"));
///
/// let body = Full::new(Bytes::from(r#"{"model": "any", "messages": []}"#));
/// let request = http::Request::post("http://model/v1/chat/completions").body(body)?;
/// let response = server.call(request).await?;
/// let answer = response.into_body().collect().await?.to_bytes();
///
/// let answer: serde_json::Value = serde_json::from_slice(&answer)?;
/// assert_eq!(answer["choices"][0]["message"]["content"], "Hello");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct MemoryServer {
    curtain: Arc<Curtain>,
}

impl MemoryServer {
    /// Creates a server that plays `script`.
    #[must_use]
    pub fn new(script: impl Into<Script>) -> Self {
        Self { curtain: Arc::new(Curtain { stage: Stage::new(script.into()) }) }
    }

    /// Returns the requests so far, in order of arrival: the latest 1,024, or fewer if their bodies exceed 64
    /// MiB.
    #[must_use]
    pub fn requests(&self) -> Vec<Request> {
        self.curtain.stage.requests()
    }

    /// Describes the script, the requests, and any problems so far.
    #[must_use]
    pub fn story(&self) -> String {
        self.curtain.stage.story()
    }

    /// Checks that the script was played as written.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if a request did not meet an expectation or came after the end of the
    /// script, or if a reply was not played.
    #[track_caller]
    pub fn verify(&self) {
        self.curtain.stage.verify();
    }

    /// Waits until a client drops a response before its end, and returns the first such request.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_for_abort(&self, limit: Duration) -> Request {
        self.curtain.stage.wait_for_abort(limit).await
    }

    /// Waits until a condition on the requests holds. It is checked whenever a request arrives and whenever a
    /// response ends.
    ///
    /// # Panics
    ///
    /// With the [story](Self::story), if that takes longer than `limit`.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: dropping the future loses nothing.
    pub async fn wait_until<F>(&self, limit: Duration, condition: F)
    where
        F: FnMut(&[Request]) -> bool,
    {
        self.curtain.stage.wait_until(limit, condition).await;
    }
}

impl<B> Service<HttpRequest<B>> for MemoryServer
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Response = Response<MemoryBody>;
    type Error = io::Error;
    type Future = MemoryFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> MemoryFuture {
        let stage = Arc::clone(&self.curtain.stage);
        MemoryFuture { answer: Box::pin(answer(stage, request)) }
    }
}

async fn answer<B>(stage: Arc<Stage>, request: HttpRequest<B>) -> io::Result<Response<MemoryBody>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.map_err(io::Error::other)?.to_bytes();
    let (headers, method, uri) = (head.headers, head.method, head.uri);
    let (act, playing) = stage.ask(RequestParts { body, connection: None, headers, method, uri });

    let Act { delay, opening } = act;
    if !delay.is_zero() {
        time::sleep(delay).await;
    }
    let (kind, message) = match opening {
        Opening::Response(answer) => return Ok(response(answer, playing)),
        Opening::HangUp => (io::ErrorKind::UnexpectedEof, "connection closed before the response"),
        Opening::Raw(_) => (io::ErrorKind::InvalidData, "the response is not HTTP"),
        Opening::Reset => (io::ErrorKind::ConnectionReset, "connection reset before the response"),
        Opening::Silence => std::future::pending().await,
    };
    playing.cut();
    Err(io::Error::new(kind, message))
}

fn response(answer: PlannedResponse, playing: Playing) -> Response<MemoryBody> {
    let mut headers = answer.headers;
    if answer.framing == Framing::Length {
        headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(answer.length));
    }
    let body = MemoryBody {
        ending: answer.ending,
        framing: answer.framing,
        left: answer.length,
        pieces: answer.pieces,
        playing,
        sleep: None,
    };
    // A body without pieces is complete before anyone polls it.
    body.settle();
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = headers;
    response
}

/// The response future of a [`MemoryServer`].
///
/// The request counts as received when its body was read, after the first poll. Dropping this later counts as
/// an abort.
#[must_use = "futures do nothing unless polled"]
pub struct MemoryFuture {
    answer: Pin<Box<dyn Future<Output = io::Result<Response<MemoryBody>>> + Send>>,
}

impl Future for MemoryFuture {
    type Output = io::Result<Response<MemoryBody>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.answer.as_mut().poll(cx)
    }
}

impl fmt::Debug for MemoryFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryFuture").finish_non_exhaustive()
    }
}

/// The response body of a [`MemoryServer`].
///
/// Its frames are the pieces of the reply. Where the script breaks the connection, it fails with
/// `UnexpectedEof` (closed) or `ConnectionReset` (reset). Dropping it before its last frame counts as an abort.
#[derive(Debug)]
#[must_use = "bodies do nothing unless polled"]
pub struct MemoryBody {
    ending: Ending,
    framing: Framing,
    left: usize,
    pieces: VecDeque<Piece>,
    playing: Playing,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl MemoryBody {
    /// Ends the answer as soon as its last piece was sent.
    fn settle(&self) {
        if self.is_end_stream() {
            self.playing.finish();
        }
    }

    fn fail(&mut self, kind: io::ErrorKind, message: &str) -> io::Error {
        self.playing.cut();
        // The error is reported once; afterwards the body has ended.
        self.ending = Ending::Whole;
        io::Error::new(kind, message)
    }
}

impl Body for MemoryBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let this = &mut *self;
        loop {
            if let Some(sleep) = &mut this.sleep {
                ready!(sleep.as_mut().poll(cx));
                this.sleep = None;
            }
            match this.pieces.front_mut() {
                Some(piece) if !piece.delay.is_zero() => {
                    // Taken, so that the delay is slept once, and not again after the sleep.
                    let delay = std::mem::take(&mut piece.delay);
                    this.sleep = Some(Box::pin(time::sleep(delay)));
                }
                _ => break,
            }
        }
        if let Some(piece) = this.pieces.pop_front() {
            this.left = this.left.saturating_sub(piece.bytes.len());
            // Before the frame is returned: a client that has taken the last frame may drop the body without
            // an abort.
            this.settle();
            return Poll::Ready(Some(Ok(Frame::data(piece.bytes))));
        }
        match this.ending {
            Ending::Whole => Poll::Ready(None),
            // Without a length, the end of the connection looks like the end of the body: the client cannot
            // tell.
            Ending::Close if this.framing == Framing::Close => {
                this.playing.cut();
                Poll::Ready(None)
            }
            Ending::Close => {
                let error = this.fail(
                    io::ErrorKind::UnexpectedEof,
                    "connection closed before the end of the body",
                );
                Poll::Ready(Some(Err(error)))
            }
            Ending::Reset => {
                let error =
                    this.fail(io::ErrorKind::ConnectionReset, "connection reset inside the body");
                Poll::Ready(Some(Err(error)))
            }
            // No waker is kept: nothing ever happens to this body again.
            Ending::Stall => Poll::Pending,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.ending == Ending::Whole
    }

    fn size_hint(&self) -> SizeHint {
        match self.framing {
            Framing::Length => SizeHint::with_exact(self.left as u64),
            Framing::Chunked | Framing::Close => SizeHint::default(),
        }
    }
}
