//! Answers as data: deltas to record, and to create an answer from.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body, Frame};
use oa_aggregate::Delta;
use oa_types::{AssistantMessage, FinishReason, Usage};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::body::{BoxError, FramePoll};

/// One change to an answer, as data that can be stored and sent: the items of an
/// [`AnswerStream`](crate::AnswerStream), and the input of
/// [`AnswerStream::from_deltas`](crate::AnswerStream::from_deltas).
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum AnswerDelta {
    /// More of a call's arguments: a fragment of JSON text.
    CallArguments {
        /// The call, counted from 0 in the order in which calls began.
        call: usize,
        /// The fragment.
        fragment: String,
    },
    /// A tool call began.
    CallStart {
        /// The call, counted from 0.
        call: usize,
        /// The id of the call. If absent, one is generated.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool's name, if it is known yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// The complete answer. Nothing follows.
    ///
    /// A stream that yields this needs other deltas only to show the answer while it grows; this message counts.
    End {
        /// The answer.
        message: Box<AssistantMessage>,
    },
    /// The finish reason, in the server's term, such as `stop`. If the stream ends without one, it is `stop`, or
    /// `tool_calls` after calls.
    Finish {
        /// The reason.
        reason: FinishReason,
    },
    /// More text of a refusal.
    Refusal {
        /// The text.
        text: String,
    },
    /// More text.
    Text {
        /// The text.
        text: String,
    },
    /// More thinking.
    Thinking {
        /// The thinking.
        text: String,
    },
    /// Token counts so far. A later count replaces an earlier one.
    Usage {
        /// The counts.
        usage: Usage,
    },
}

impl AnswerDelta {
    /// Converts a delta; `None` for a problem, which is not part of the answer.
    pub(crate) fn of(delta: Delta<'_>) -> Option<Self> {
        Some(match delta {
            Delta::CallArguments { call, fragment } => {
                Self::CallArguments { call, fragment: fragment.to_owned() }
            }
            Delta::CallStart { call, id, name } => {
                let (id, name) = (Some(id.to_owned()), Some(name.to_owned()));
                Self::CallStart { call, id, name }
            }
            Delta::Refusal(text) => Self::Refusal { text: text.to_owned() },
            Delta::Text(text) => Self::Text { text: text.to_owned() },
            Delta::Thinking(text) => Self::Thinking { text: text.to_owned() },
            _ => return None,
        })
    }

    /// Creates a delta of text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

/// The final message of an answer made from deltas, for the reader of the body.
pub(crate) type Ending = Arc<Mutex<Option<Box<AssistantMessage>>>>;

/// Deltas as the body of a response: each becomes a chunk such as servers send, so an answer from memory passes
/// the same limits, repairs and rules as any other.
pub(crate) struct DeltaBody<S> {
    deltas: Pin<Box<S>>,
    ending: Ending,
    has_calls: bool,
    state: BodyState,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum BodyState {
    Open,
    /// A finish reason was sent.
    Finished,
    Over,
}

impl<S> DeltaBody<S> {
    pub(crate) fn new(deltas: S) -> (Self, Ending) {
        let ending = Ending::default();
        let body = Self {
            deltas: Box::pin(deltas),
            ending: Arc::clone(&ending),
            has_calls: false,
            state: BodyState::Open,
        };
        (body, ending)
    }

    fn chunk(&mut self, delta: AnswerDelta) -> Bytes {
        let choice = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        let function = |call: usize, id: Option<String>, function: Value| {
            let mut fragment = json!({ "index": call, "type": "function", "function": function });
            if let Some(id) = id {
                fragment["id"] = id.into();
            }
            choice(json!({ "tool_calls": [fragment] }))
        };
        let payload = match delta {
            AnswerDelta::CallArguments { call, fragment } => {
                function(call, None, json!({ "arguments": fragment }))
            }
            AnswerDelta::CallStart { call, id, name } => {
                self.has_calls = true;
                function(call, id, json!({ "name": name.unwrap_or_default() }))
            }
            AnswerDelta::End { message } => {
                let payload = finish(&message.finish_reason);
                *self.ending.lock().unwrap_or_else(PoisonError::into_inner) = Some(message);
                self.state = BodyState::Over;
                payload
            }
            AnswerDelta::Finish { reason: FinishReason::Unspecified } => {
                self.state = BodyState::Finished;
                choice(json!({}))
            }
            AnswerDelta::Finish { reason } => {
                self.state = BodyState::Finished;
                finish(&reason)
            }
            AnswerDelta::Refusal { text } => choice(json!({ "refusal": text })),
            AnswerDelta::Text { text } => choice(json!({ "content": text })),
            AnswerDelta::Thinking { text } => choice(json!({ "reasoning_content": text })),
            AnswerDelta::Usage { usage } => json!({ "choices": [], "usage": usage_of(&usage) }),
        };
        event(&payload)
    }
}

fn event(payload: &Value) -> Bytes {
    format!("data: {payload}\n\n").into()
}

fn finish(reason: &FinishReason) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason.as_str() }] })
}

/// Returns token counts under their names in a response.
fn usage_of(usage: &Usage) -> Value {
    let mut counts = json!({});
    for (name, count) in [
        ("prompt_tokens", usage.prompt_tokens),
        ("completion_tokens", usage.completion_tokens),
        ("total_tokens", usage.total_tokens),
    ] {
        if let Some(count) = count {
            counts[name] = count.into();
        }
    }
    if let Some(count) = usage.cached_tokens {
        counts["prompt_tokens_details"] = json!({ "cached_tokens": count });
    }
    if let Some(count) = usage.reasoning_tokens {
        counts["completion_tokens_details"] = json!({ "reasoning_tokens": count });
    }
    counts
}

impl<S, E> Body for DeltaBody<S>
where
    S: Stream<Item = Result<AnswerDelta, E>>,
    E: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> FramePoll {
        if self.state == BodyState::Over {
            return Poll::Ready(None);
        }
        let bytes = match ready!(self.deltas.as_mut().poll_next(cx)) {
            Some(Ok(delta)) => self.chunk(delta),
            Some(Err(error)) => {
                self.state = BodyState::Over;
                return Poll::Ready(Some(Err(error.into())));
            }
            // Without a finish reason the answer would look cut off.
            None if self.state == BodyState::Open => {
                self.state = BodyState::Over;
                let reason =
                    if self.has_calls { FinishReason::ToolCalls } else { FinishReason::Stop };
                event(&finish(&reason))
            }
            None => {
                self.state = BodyState::Over;
                return Poll::Ready(None);
            }
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
