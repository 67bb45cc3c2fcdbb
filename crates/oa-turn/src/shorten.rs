//! The step before a request that may shorten the conversation, as data.

use oa_types::{ErrorRecord, History, Message};
use serde::{Deserialize, Serialize};

use crate::budget::{BudgetLeft, Spent};
use crate::cut_by::CutBy;

/// A conversation that may be shortened before it is sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ShortenStep {
    /// The conversation.
    pub history: History,
    /// The index of the prompt that began the turn, if history contains one. It and all later user messages must be
    /// kept.
    pub prompt: Option<usize>,
    /// The index from which all messages must be kept: the last answer with its results, or the prompt if there is no
    /// answer yet.
    pub keep_from: usize,
    /// The reported size of the last request and its answer, if history has only grown since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedTokens>,
    /// True if the turn's budgets allow more requests, for example for a summary.
    pub can_ask: bool,
    /// The rest of those budgets. A summary in several parts stops when it is used up.
    #[serde(default, skip_serializing_if = "BudgetLeft::is_unlimited")]
    pub left: BudgetLeft,
    /// True if the server has rejected the conversation as too long. It is then sent once more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_overflow: bool,
    /// The sizes that the server stated when it rejected the conversation.
    #[serde(default, skip_serializing_if = "OverflowSizes::is_unknown")]
    pub sizes: OverflowSizes,
}

/// The sizes in tokens that a server stated when it rejected a request as too long.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
#[non_exhaustive]
pub struct OverflowSizes {
    /// The size of the prompt, including tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<u64>,
    /// The size of the model's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u64>,
}

/// The size of a request and its answer, as the server reported it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ReportedTokens {
    /// The tokens of the request, including tools, and of the answer without thinking.
    pub tokens: u64,
    /// The number of messages covered, from the first.
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
        /// The amount spent on a summary until then. It counts toward the budgets, here and below.
        #[serde(default, skip_serializing_if = "Spent::is_zero")]
        spent: Spent,
    },
    /// The conversation could not be shortened, and the turn fails.
    Failed {
        /// The failure.
        error: Box<ErrorRecord>,
        /// The amount spent on a summary.
        #[serde(default, skip_serializing_if = "Spent::is_zero")]
        spent: Spent,
    },
    /// The conversation is sent as it is.
    Keep,
    /// These messages become the history and are sent.
    Replace {
        /// The messages. They include all that must be kept, in order.
        history: Vec<Message>,
        /// The amount spent on a summary.
        #[serde(default, skip_serializing_if = "Spent::is_zero")]
        spent: Spent,
    },
}

impl OverflowSizes {
    /// Returns true if the server stated neither size.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

impl From<&ErrorRecord> for OverflowSizes {
    fn from(error: &ErrorRecord) -> Self {
        Self { prompt: error.prompt_tokens, context: error.context_tokens }
    }
}

impl ShortenOutcome {
    /// Creates the outcome of a conversation that was shortened without a model.
    #[must_use]
    pub fn replace(history: Vec<Message>) -> Self {
        Self::Replace { history, spent: Spent::default() }
    }
}
