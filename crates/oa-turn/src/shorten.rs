//! The step before a request that may shorten the conversation, as data.

use oa_types::{Cost, ErrorRecord, History, Message};
use serde::{Deserialize, Serialize};

use crate::cut_by::CutBy;

/// A conversation that may be shortened before it is sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ShortenStep {
    /// The conversation.
    pub history: History,
    /// The index of the prompt that began the turn, if history has one. It and all later user messages must stay.
    pub prompt: Option<usize>,
    /// The index from which all messages must stay: the last answer with its results, or the prompt if it has no answer
    /// yet.
    pub keep_from: usize,
    /// The size of the last request and its answer, if the server reported it and history has only grown since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedTokens>,
    /// True if the budgets of the turn allow more requests, such as one for a summary.
    pub can_ask: bool,
    /// True if the server has refused the conversation as too long. It is then sent once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_overflow: bool,
}

/// The size of a request and its answer, as the server reported it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedTokens {
    /// The tokens of the request with its tools, and of the answer without thinking.
    pub tokens: u64,
    /// The number of messages that they are of, from the first.
    pub messages: usize,
}

/// The outcome of shortening a conversation.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ShortenOutcome {
    /// The turn ended early.
    Cut {
        /// The reason.
        by: CutBy,
    },
    /// The conversation could not be shortened, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
    },
    /// The conversation is sent as it is.
    Keep,
    /// These messages are sent, and become the history.
    Replace {
        /// The messages. All that must stay is among them, in order.
        history: Vec<Message>,
        /// The tokens used for it, such as for a summary; 0 if unknown. They count towards the budget.
        #[serde(default)]
        tokens: u64,
        /// The cost of it; zero if unknown.
        #[serde(default)]
        cost: Cost,
    },
}

impl ShortenOutcome {
    /// Creates the outcome of a conversation that was shortened without a model.
    #[must_use]
    pub fn replace(history: Vec<Message>) -> Self {
        Self::Replace { history, tokens: 0, cost: Cost::ZERO }
    }
}
