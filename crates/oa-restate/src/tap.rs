//! Detects an operator's cancellation while a step is in progress.
//!
//! The SDK reads the engine's messages only while a handler waits for the engine, but a model request waits for the
//! model. So this module reads ahead whenever the handler is polled, and scans the messages for the engine's cancel
//! signal. The SDK then reads the same bytes unchanged, and ends the turn.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use oa_tools::Cancel;
use restate_sdk::endpoint::{Endpoint, ResponseBody};

use scanner::Scanner;

mod scanner;

/// The bytes that are read ahead of the SDK. A cancel signal beyond these is seen only after the SDK has read them.
const AHEAD: usize = 1 << 20;

/// The number of frames that are read ahead; frames may be empty.
const FRAMES: usize = 1 << 12;

tokio::task_local! {
    /// Triggered when the invocation in progress is canceled.
    static HEARD: Cancel;
}

/// Returns the signal of the invocation in progress; `None` outside of one.
pub(crate) fn heard() -> Option<Cancel> {
    HEARD.try_with(Clone::clone).ok()
}

/// Passes a request to the SDK and reads ahead in its body.
pub(crate) fn handle<B>(
    endpoint: &Endpoint,
    request: Request<B>,
) -> Response<Tapped<B, ResponseBody>>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    // Both sides share the intake: the SDK reads `HandedOn`, and each poll of `Tapped`, which runs the
    // handler, reads ahead.
    let (parts, body) = request.into_parts();
    let intake = Arc::new(Mutex::new(Intake::new(body)));
    let request = Request::from_parts(parts, HandedOn(Arc::clone(&intake)));
    endpoint.handle(request).map(|body| Tapped { intake, body: Box::pin(body) })
}

/// Input of an invocation that was read ahead of the SDK.
struct Intake<B: Body> {
    body: Option<Pin<Box<B>>>,
    frames: VecDeque<Result<Frame<Bytes>, B::Error>>,
    bytes: usize,
    scanner: Scanner,
    heard: Cancel,
    /// Wakes the SDK if it waits for more input.
    reader: Option<Waker>,
}

impl<B: Body<Data = Bytes>> Intake<B> {
    fn new(body: B) -> Self {
        Self {
            body: Some(Box::pin(body)),
            frames: VecDeque::new(),
            bytes: 0,
            scanner: Scanner::default(),
            heard: Cancel::new(),
            reader: None,
        }
    }

    /// Reads until no more input is ready, or a limit is reached.
    fn read(&mut self, cx: &mut Context<'_>) {
        while self.bytes < AHEAD
            && self.frames.len() < FRAMES
            && let Some(body) = &mut self.body
            && let Poll::Ready(frame) = body.as_mut().poll_frame(cx)
        {
            match frame {
                Some(frame) => {
                    if let Ok(frame) = &frame
                        && let Some(data) = frame.data_ref()
                    {
                        self.bytes += data.len();
                        if self.scanner.finds_cancel(data) {
                            self.heard.cancel();
                        }
                    }
                    self.frames.push_back(frame);
                }
                None => self.body = None,
            }
            // The SDK may wait under another waker than that of `cx`.
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
        }
    }

    fn take(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        if self.frames.is_empty() {
            self.read(cx);
        }
        match self.frames.pop_front() {
            Some(frame) => {
                let data = frame.as_ref().ok().and_then(Frame::data_ref);
                self.bytes -= data.map_or(0, Bytes::len);
                Poll::Ready(Some(frame))
            }
            None if self.body.is_none() => Poll::Ready(None),
            None => {
                self.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

/// The body that the SDK reads.
struct HandedOn<B: Body>(Arc<Mutex<Intake<B>>>);

impl<B: Body<Data = Bytes>> Body for HandedOn<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        lock(&self.0).take(cx)
    }
}

/// The response, whose handler runs while it is read.
pub(crate) struct Tapped<B: Body, R> {
    intake: Arc<Mutex<Intake<B>>>,
    body: Pin<Box<R>>,
}

impl<B: Body<Data = Bytes>, R: Body> Body for Tapped<B, R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        let this = &mut *self;
        let heard = {
            // First, so that the handler already sees a cancellation in this poll.
            let mut intake = lock(&this.intake);
            intake.read(cx);
            intake.heard.clone()
        };
        // The lock is free again: the SDK reads `HandedOn`, which takes it, within this poll.
        let polled = HEARD.sync_scope(heard, || this.body.as_mut().poll_frame(cx));
        if polled.is_pending() {
            // There may be room again. Also, a body wakes the task that polled it last, which must be this one.
            lock(&this.intake).read(cx);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock<B: Body>(intake: &Mutex<Intake<B>>) -> MutexGuard<'_, Intake<B>> {
    intake.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::task::{Wake, ready};

    use tokio::sync::mpsc;

    use super::*;

    struct Sent(mpsc::UnboundedReceiver<Bytes>);

    impl Body for Sent {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(ready!(self.0.poll_recv(cx)).map(|data| Ok(Frame::data(data))))
        }
    }

    /// A handler that reads nothing until it is canceled, and then everything.
    struct Deaf(HandedOn<Sent>, Vec<Bytes>);

    impl Body for Deaf {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            let heard = heard().expect("it is handled");
            if !heard.is_cancelled() {
                return Poll::Pending;
            }
            while let Some(Ok(frame)) = ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                let data = frame.into_data().expect("data");
                self.1.push(data);
            }
            let all = std::mem::take(&mut self.1).concat();
            Poll::Ready(Some(Ok(Frame::data(all.into()))))
        }
    }

    #[derive(Default)]
    struct Woken(std::sync::atomic::AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The handler then reads all messages unchanged.
    #[test]
    fn cancel_is_heard_without_reading() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let intake = Arc::new(Mutex::new(Intake::new(Sent(receiver))));
        let body = Box::pin(Deaf(HandedOn(Arc::clone(&intake)), Vec::new()));
        let mut tapped = Tapped { intake, body };
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let mut poll = || Pin::new(&mut tapped).poll_frame(&mut cx);
        let count = || woken.0.load(std::sync::atomic::Ordering::Relaxed);
        assert!(heard().is_none() && poll().is_pending());
        let message = |kind: [u8; 2], payload: &[u8]| {
            let mut message = vec![kind[0], kind[1], 0, 0, 0, 0, 0, payload.len() as u8];
            message.extend_from_slice(payload);
            Bytes::from(message)
        };
        sender.send(message([0, 7], b"ack")).unwrap();
        assert_eq!(count(), 1, "what comes wakes the handler, though it does not read");
        assert!(poll().is_pending());
        sender.send(message([0xfb, 0xff], &[0x10, 1, 0x22, 0])).unwrap();
        assert_eq!(count(), 2);
        assert!(poll().is_pending(), "it has read all there is");
        drop(sender);
        assert!(count() > 2);
        let Poll::Ready(Some(Ok(frame))) = poll() else { panic!("it reads on") };
        let all = [message([0, 7], b"ack"), message([0xfb, 0xff], &[0x10, 1, 0x22, 0])].concat();
        assert_eq!(frame.into_data().unwrap(), all);
    }

    #[test]
    fn read_ahead_is_bounded() {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut intake = Intake::new(Sent(receiver));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..3 {
            sender.send(Bytes::from(vec![0; AHEAD])).unwrap();
        }
        intake.read(&mut cx);
        assert_eq!((intake.frames.len(), intake.bytes), (1, AHEAD));
        assert!(matches!(intake.take(&mut cx), Poll::Ready(Some(Ok(_)))));
        intake.read(&mut cx);
        assert_eq!((intake.frames.len(), intake.bytes), (1, AHEAD));

        let (sender, receiver) = mpsc::unbounded_channel();
        let mut intake = Intake::new(Sent(receiver));
        for _ in 0..2 * FRAMES {
            sender.send(Bytes::new()).unwrap();
        }
        // Tokio lets other tasks run in between, so one pass does not read all.
        (0..100).for_each(|_| intake.read(&mut cx));
        assert_eq!((intake.frames.len(), intake.bytes), (FRAMES, 0));
    }
}
