use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};
use serde_json::{Map, Value};

use crate::error::Problem;

/// The whole answer of one stream: all that its chunks add up to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AggregatedAnswer {
    /// Text, thinking and calls in the order in which they began; a refusal is text.
    pub blocks: Vec<ContentBlock>,
    /// The words of a refusal, if the model refused.
    pub refusal: Option<String>,
    /// The last finish reason that the server gave, [`Unspecified`](FinishReason::Unspecified) if it
    /// gave none.
    pub finish_reason: FinishReason,
    /// The tokens it cost, merged from all reports.
    pub usage: Option<Usage>,
    /// The first few problems on the way.
    pub problems: Vec<Problem>,
    /// True if `[DONE]` came.
    pub done: bool,
    /// The server's id of the answer.
    pub id: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// Members of the message that only the server understands, and wants back.
    pub extra: Map<String, Value>,
}

impl AggregatedAnswer {
    /// Returns true if the server said that it was through: by `[DONE]` or a finish reason.
    ///
    /// Otherwise the stream was cut off, and what is here may be a part (QUIRKS row 69).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.done || self.is_finished()
    }

    /// Returns true if the server gave a finish reason.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finish_reason != FinishReason::Unspecified
    }

    /// Returns true if nothing of use came: no text, no thinking, no call.
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
