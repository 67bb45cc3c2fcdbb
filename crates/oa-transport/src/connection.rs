use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use http_body::{Body, Frame};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;

use crate::error::Heard;
use crate::head::RequestHead;
use crate::limits::MAX_BUFFER;
use crate::relay::Relay;
use crate::request::RequestBody;
use crate::stream::{Stream, Wire};

/// An open connection, driven by its owner instead of a background task.
///
/// hyper splits a connection into a half that moves bytes, meant to be spawned, and halves that send requests
/// and read bodies. With a spawned driver, every chunk of a streamed response costs two task switches. Here the
/// reading task polls all of them: first the driver, then whatever waits for its bytes.
pub(crate) struct Connection {
    /// `None` once it has finished. Dropping the driver early releases the socket.
    driver: Option<Driver>,
    sender: SendRequest<RequestBody>,
    /// The driver's error, if no pending request could receive it.
    failure: Option<hyper::Error>,
    relay: Arc<Relay>,
    waker: Waker,
}

/// hyper's half that moves bytes.
type Driver = Pin<Box<dyn Future<Output = hyper::Result<()>> + Send + Sync>>;

/// hyper's result of a request.
pub(crate) type Answered = Result<Response<Incoming>, hyper::Error>;

/// The reason why a request got no response.
pub(crate) struct Unanswered {
    pub(crate) error: hyper::Error,
    /// True if the peer may have seen any part of the request.
    pub(crate) was_sent: bool,
}

impl Connection {
    pub(crate) async fn new(stream: Stream) -> Result<Box<Self>, hyper::Error> {
        let relay = Arc::new(Relay::default());
        let wire = Wire::new(stream, Arc::clone(&relay));
        // Ready at once: HTTP/1 has no handshake, and nothing is read or written before a request.
        let (sender, driver) =
            http1::Builder::new().max_buf_size(MAX_BUFFER).handshake(TokioIo::new(wire)).await?;
        Ok(Box::new(Self {
            driver: Some(Box::pin(driver)),
            sender,
            failure: None,
            waker: Waker::from(Arc::clone(&relay)),
            relay,
        }))
    }

    /// Starts sending a request; [`poll_head`](Self::poll_head) waits for the response.
    ///
    /// Not inlined, so that its stack use does not count while the response is awaited.
    #[inline(never)]
    pub(crate) fn send(
        &mut self,
        head: &RequestHead,
        body: RequestBody,
    ) -> impl Future<Output = Answered> + use<> {
        // Before the request is written, so that every byte from now on counts as a part of its response.
        self.relay.await_answer();
        self.sender.send_request(head.with(body))
    }

    /// Waits for the head of the response.
    ///
    /// It may arrive before the request is fully sent; the rest is sent while the body is read.
    pub(crate) fn poll_head(
        &mut self,
        sent: Pin<&mut impl Future<Output = Answered>>,
        cx: &Context<'_>,
    ) -> Poll<Answered> {
        self.poll_with(cx.waker(), |inner| sent.poll(inner))
    }

    /// Returns the reason why there is no response.
    pub(crate) fn unanswered(&mut self, error: hyper::Error) -> Unanswered {
        Unanswered {
            // hyper reports a request as canceled only if it has not started writing it.
            was_sent: !error.is_canceled(),
            error: self.failure.take().unwrap_or(error),
        }
    }

    /// Reads the next frame of the body.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        // If the connection fails, hyper's body says only `connection error`. The driver ends with the cause.
        self.poll_with(cx.waker(), |inner| Pin::new(&mut *incoming).poll_frame(inner))
            .map_err(|error| self.failure.take().unwrap_or(error))
    }

    /// Reads the data already received, without waiting; returns true if that ended the body.
    pub(crate) fn is_at_end(&mut self, incoming: &mut Incoming) -> bool {
        self.relay.begin();
        self.drive();
        let mut cx = Context::from_waker(&self.waker);
        // One poll is enough: a frame of data means that the reader stopped before the end. `begin` has
        // disarmed the relay, so no task is woken for a body that nobody reads.
        matches!(Pin::new(incoming).poll_frame(&mut cx), Poll::Ready(None))
    }

    /// Checks an idle connection: returns false if the peer closed it or sent unsolicited data.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.relay.begin();
        self.drive();
        // On an idle connection, hyper takes the end of the stream or any byte as its end, so the driver has
        // finished if there was either.
        self.is_idle()
    }

    /// Releases the waker of the task that read last.
    pub(crate) fn rest(&self) {
        self.relay.disarm();
    }

    /// Returns true if the last request and response are complete, so another request may follow.
    pub(crate) fn is_idle(&self) -> bool {
        // hyper signals readiness when it looks for the next request, which it does only after the response
        // was read and the request was written. A request cut short by an early response leaves it unready.
        self.driver.is_some() && self.sender.is_ready()
    }

    /// Returns how much of the response had arrived, if its head is incomplete.
    pub(crate) fn heard(&self) -> Heard {
        self.relay.heard()
    }

    /// Moves bytes, then polls the future that waits for them.
    ///
    /// That future is woken through the relay too, because it may need another poll for its own reasons
    /// (tokio's channels do when a task's budget is used up).
    fn poll_with<T>(
        &mut self,
        waker: &Waker,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.relay.begin();
        self.drive();
        // The driver first: it fills the channels that the future reads from, and empties those it writes to.
        let polled = poll(&mut Context::from_waker(&self.waker));
        // Armed last, so that the wakeups between the two halves above wake nobody. One from outside in the
        // meantime is not lost: `arm` sees it and wakes the task itself.
        if polled.is_pending() {
            self.relay.arm(waker);
        }
        polled
    }

    fn drive(&mut self) {
        let Some(driver) = &mut self.driver else {
            return;
        };
        let mut cx = Context::from_waker(&self.waker);
        // hyper gives an error to the pending request, if there is one, and returns it here only if not.
        if let Poll::Ready(end) = driver.as_mut().poll(&mut cx) {
            self.failure = end.err();
            // Dropping the driver notifies pending futures that nothing more will come.
            self.driver = None;
        }
    }
}
