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
use crate::relay::Relay;
use crate::request::RequestBody;
use crate::stream::{Stream, Wire};

/// An open connection, driven by whoever holds it: there is no task behind it.
///
/// hyper splits a connection into the half that moves bytes, meant to be spawned, and the halves
/// that send a request and read a body. With a spawned half every chunk of a streamed answer costs
/// a switch of tasks there and one back. Here all are polled in the task that reads, in the order
/// "move bytes, then see what came of it".
pub(crate) struct Connection {
    /// None once it has finished; what it held is released with it, the socket above all.
    driver: Option<http1::Connection<TokioIo<Wire>, RequestBody>>,
    sender: SendRequest<RequestBody>,
    /// Why the driver stopped, when there was nobody hyper could tell.
    failure: Option<hyper::Error>,
    relay: Arc<Relay>,
    waker: Waker,
}

/// What hyper says of a request.
pub(crate) type Answered = Result<Response<Incoming>, hyper::Error>;

/// Why there is no answer.
pub(crate) struct Unanswered {
    pub(crate) error: hyper::Error,
    /// Whether the peer may have seen the request, or a part of it.
    pub(crate) was_sent: bool,
}

impl Connection {
    pub(crate) async fn new(stream: Stream) -> Result<Box<Self>, hyper::Error> {
        let relay = Arc::new(Relay::default());
        let wire = Wire::new(stream, Arc::clone(&relay));
        let (sender, driver) =
            http1::Builder::new().max_buf_size(MAX_BUFFER).handshake(TokioIo::new(wire)).await?;
        Ok(Box::new(Self {
            driver: Some(driver),
            sender,
            failure: None,
            waker: Waker::from(Arc::clone(&relay)),
            relay,
        }))
    }

    /// Begins to send a request, whose answer [`poll_head`](Self::poll_head) waits for.
    ///
    /// Out of line: what it needs of the stack is not needed while the answer is waited for.
    #[inline(never)]
    pub(crate) fn send(
        &mut self,
        head: &RequestHead,
        body: RequestBody,
    ) -> impl Future<Output = Answered> + use<> {
        self.relay.await_answer();
        self.sender.send_request(head.with(body))
    }

    /// Waits for the head of an answer.
    ///
    /// It may come before the request is sent completely; the rest of it is sent while the body is
    /// read.
    pub(crate) fn poll_head(
        &mut self,
        sent: Pin<&mut impl Future<Output = Answered>>,
        cx: &Context<'_>,
    ) -> Poll<Answered> {
        self.poll_with(cx.waker(), |inner| sent.poll(inner))
    }

    /// Looks into why there is no answer.
    pub(crate) fn unanswered(&mut self, error: hyper::Error) -> Unanswered {
        Unanswered {
            // What hyper has begun to write it does not call cancelled, whatever becomes of it.
            was_sent: !error.is_canceled(),
            error: self.failure.take().unwrap_or(error),
        }
    }

    /// Reads on in the answer's body.
    pub(crate) fn poll_frame(
        &mut self,
        incoming: &mut Incoming,
        cx: &Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.poll_with(cx.waker(), |inner| Pin::new(&mut *incoming).poll_frame(inner))
            .map_err(|error| self.failure.take().unwrap_or(error))
    }

    /// Reads what is there already, without waiting, and tells whether it was the body's end.
    pub(crate) fn is_at_end(&mut self, incoming: &mut Incoming) -> bool {
        self.relay.begin();
        self.drive();
        let mut cx = Context::from_waker(&self.waker);
        matches!(Pin::new(incoming).poll_frame(&mut cx), Poll::Ready(None))
    }

    /// Looks at a connection that lay idle: false if the peer has closed it, or said something
    /// that nobody asked for.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.relay.begin();
        self.drive();
        self.is_idle()
    }

    /// Lets go of the task that read last.
    pub(crate) fn rest(&self) {
        self.relay.disarm();
    }

    /// Whether a request and its answer are over and another may follow.
    pub(crate) fn is_idle(&self) -> bool {
        self.driver.is_some() && self.sender.is_ready()
    }

    /// How much of the last request's answer has come, if its head has not.
    pub(crate) fn heard(&self) -> Heard {
        self.relay.heard()
    }

    /// Moves bytes, then polls what waits for them.
    ///
    /// What waits is told of by the relay as well, because it may want another turn for reasons of
    /// its own (tokio's channels do when a task's budget is used up).
    fn poll_with<T>(
        &mut self,
        waker: &Waker,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.relay.begin();
        self.drive();
        let polled = poll(&mut Context::from_waker(&self.waker));
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
        if let Poll::Ready(end) = Pin::new(driver).poll(&mut cx) {
            self.failure = end.err();
            // Whoever still waits for something learns that it will not come.
            self.driver = None;
        }
    }
}

/// A head with more bytes than this is an error. It bounds what is read at once too: reads begin
/// with 8 KiB and grow while they are filled.
const MAX_BUFFER: usize = 64 * 1024;
