use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use oa_mcp_data::client::{Accepted, is_answer, joined};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, Sleep};

/// The interval of keep-alive comments: shorter than the timeouts of proxies.
const BEAT: Duration = Duration::from_secs(15);

/// The response body of [`HttpService`](crate::HttpService): JSON, or an event stream that runs calls.
///
/// Dropping it, as an HTTP server does when the client disconnects, cancels its calls, because their answers could no
/// longer be delivered.
pub struct HttpBody(Inner);

enum Inner {
    Events(Events),
    Whole(Option<Bytes>),
}

/// An event of a stream.
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    /// The message; empty in an event that has only an id.
    pub(crate) text: String,
}

impl From<String> for Event {
    fn from(text: String) -> Self {
        Self { id: None, text }
    }
}

struct Events {
    messages: mpsc::Receiver<Event>,
    /// Dropped with the body.
    _calls: JoinSet<()>,
    beat: Pin<Box<Sleep>>,
}

impl HttpBody {
    pub(crate) fn whole(text: String) -> Self {
        Self(Inner::Whole(Some(text.into()).filter(|bytes: &Bytes| !bytes.is_empty())))
    }

    /// Converts the answers to the only form that a client accepts. Without events, it gets no notifications of a call.
    /// Returns the new content type, if there is one.
    pub(crate) async fn in_form(self, accepted: Accepted) -> (Self, Option<&'static str>) {
        match self.0 {
            Inner::Events(mut events) if !accepted.events => {
                let mut answers = Vec::new();
                while let Some(Event { text, .. }) = events.messages.recv().await {
                    answers.extend(is_answer(&text).then_some(text));
                }
                (Self::whole(joined(answers)), Some("application/json"))
            }
            Inner::Whole(Some(json)) if !accepted.json => {
                let mut bytes = Vec::new();
                let text = String::from_utf8_lossy(&json);
                let _ = oa_sse::Frame::new(&text).event("message").write_to(&mut bytes);
                (Self(Inner::Whole(Some(bytes.into()))), Some("text/event-stream"))
            }
            inner => (Self(inner), None),
        }
    }

    pub(crate) fn events(messages: mpsc::Receiver<Event>, calls: JoinSet<()>) -> Self {
        let beat = Box::pin(tokio::time::sleep(BEAT));
        Self(Inner::Events(Events { messages, _calls: calls, beat }))
    }
}

impl Body for HttpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let events = match &mut self.0 {
            Inner::Events(events) => events,
            Inner::Whole(bytes) => return Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
        };
        let mut bytes = Vec::new();
        match events.messages.poll_recv(cx) {
            // Compact JSON has no line breaks, so it is valid event data.
            Poll::Ready(Some(Event { id, text })) => {
                let mut frame = oa_sse::Frame::new(&text);
                if !text.is_empty() {
                    frame = frame.event("message");
                }
                if let Some(id) = &id {
                    frame = frame.id(id);
                }
                let _ = frame.write_to(&mut bytes);
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => match events.beat.as_mut().poll(cx) {
                Poll::Ready(()) => bytes.extend_from_slice(b": alive\n\n"),
                Poll::Pending => return Poll::Pending,
            },
        }
        events.beat.as_mut().reset(Instant::now() + BEAT);
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.0, Inner::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Inner::Events(_) => SizeHint::default(),
            Inner::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}

impl fmt::Debug for HttpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpBody").finish_non_exhaustive()
    }
}
