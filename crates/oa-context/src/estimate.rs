use std::fmt::Write;

use oa_types::{Message, ToolSpec};
use serde_json::Value;

use crate::counter::{Costs, TokenCounter};
use crate::meter::Meter;

/// Guesses the tokens of a conversation as it is sent; 0 for none.
///
/// The guess is made for vocabularies of the size of `o200k_base`. It takes linear time and allocates
/// nothing, and it never falls when a text, a message or the conversation is continued.
/// [`Estimator`] is the same with costs of one's own.
#[must_use]
pub fn estimate_tokens(messages: &[Message]) -> usize {
    Estimator::new().count_messages(messages)
}

/// Guesses the tokens of a text alone.
#[must_use]
pub fn estimate_text(text: &str) -> usize {
    Estimator::new().count_text(text)
}

/// Guesses the tokens of the tools that a request offers; 0 for none.
#[must_use]
pub fn estimate_tools(tools: &[ToolSpec]) -> usize {
    Estimator::new().count_tools(tools)
}

/// Says whether a conversation fills a model's context of `limit` tokens up to `margin` or more.
///
/// `margin` is a fraction of the limit: 0.9 warns once nine tenths are full. What is not between 0 and 1
/// counts as the nearer end, and what is no number as 0, which always warns. The estimate knows
/// nothing of tools and of the answer to come: leave room for them, or ask a
/// [`ContextPolicy`](crate::ContextPolicy).
///
/// # Examples
///
/// ```
/// use oa_context::is_approaching_limit;
/// use oa_types::Message;
///
/// let messages = [Message::user("word ".repeat(900))];
/// assert!(is_approaching_limit(&messages, 1_000, 0.8));
/// assert!(!is_approaching_limit(&messages, 2_000, 0.8));
/// ```
#[must_use]
pub fn is_approaching_limit(messages: &[Message], limit: usize, margin: f64) -> bool {
    estimate_tokens(messages) >= share(limit, margin)
}

/// Returns a part of a number of tokens.
pub(crate) fn share(tokens: usize, part: f64) -> usize {
    // Tokens are far from 2^53; what is no number becomes 0.
    (tokens as f64 * part.clamp(0.0, 1.0)) as usize
}

/// The counter that guesses; see [`estimate_tokens`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimator {
    costs: Costs,
}

impl Estimator {
    /// Creates the estimator with the default costs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds other costs to the texts.
    #[must_use]
    pub fn with_costs(mut self, costs: Costs) -> Self {
        self.costs = costs;
        self
    }
}

impl TokenCounter for Estimator {
    fn count_text(&self, text: &str) -> usize {
        let mut meter = Meter::new();
        meter.push(text);
        meter.tokens()
    }

    fn count_json(&self, value: &Value) -> usize {
        let mut meter = Meter::new();
        write!(meter, "{value}").expect("the meter takes any text");
        meter.tokens()
    }

    fn costs(&self) -> Costs {
        self.costs
    }
}
