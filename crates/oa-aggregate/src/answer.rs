use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};
use serde_json::{Map, Value};

use crate::error::Problem;

/// The complete answer of one stream.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AggregatedAnswer {
    /// Text, thinking and calls in the order in which they began; a refusal is text.
    pub blocks: Vec<ContentBlock>,
    /// The words of a refusal, if the model refused.
    pub refusal: Option<String>,
    /// The last finish reason from the server, or [`Unspecified`](FinishReason::Unspecified) if there was none.
    pub finish_reason: FinishReason,
    /// The token usage, merged from all reports.
    pub usage: Option<Usage>,
    /// The first problems in the stream.
    pub problems: Vec<Problem>,
    /// True if `[DONE]` was received.
    pub done: bool,
    /// The server's id of the answer.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Members of the message that only the server understands, and expects back.
    pub extra: Map<String, Value>,
}

impl AggregatedAnswer {
    /// Returns true if the server reported the end, by `[DONE]` or a finish reason.
    ///
    /// Otherwise the stream broke off, and the answer may be incomplete (QUIRKS row 69).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.done || self.is_finished()
    }

    /// Returns true if the server gave a finish reason.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finish_reason != FinishReason::Unspecified
    }

    /// Returns true if there is no text, no thinking and no call.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl From<AggregatedAnswer> for AssistantMessage {
    fn from(answer: AggregatedAnswer) -> Self {
        let mut message = Self::new(answer.blocks);
        message.finish_reason = match answer.refusal {
            Some(_) => FinishReason::Refusal,
            None => answer.finish_reason,
        };
        message.usage = answer.usage;
        message.model = answer.model;
        message.id = answer.id;
        message.extra = answer.extra.into();
        message
    }
}
