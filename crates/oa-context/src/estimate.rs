use std::fmt::Write;

use oa_types::{Message, ToolSpec};
use serde_json::Value;

use crate::counter::{Costs, TokenCounter};
use crate::meter::Meter;

/// Estimates the tokens of a conversation as it is sent; 0 if it is empty.
///
/// Calibrated for vocabularies of the size of `o200k_base`. Takes linear time, does not allocate, and never
/// decreases when text or messages are appended. [`Estimator`] allows custom overhead.
#[must_use]
pub fn estimate_tokens(messages: &[Message]) -> usize {
    Estimator::new().count_messages(messages)
}

/// Estimates the tokens of a text.
#[must_use]
pub fn estimate_text(text: &str) -> usize {
    Estimator::new().count_text(text)
}

/// Estimates the tokens of the tools offered in a request; 0 without tools.
#[must_use]
pub fn estimate_tools(tools: &[ToolSpec]) -> usize {
    Estimator::new().count_tools(tools)
}

/// Returns true if a conversation fills at least the fraction `margin` of a model's context of `limit` tokens.
///
/// With a `margin` of 0.9, it returns true once nine tenths are full. Values are clamped to 0..=1; NaN counts
/// as 0, which is always reached. The estimate does not include tools or the next answer: leave room for them,
/// or use a [`ContextPolicy`](crate::ContextPolicy).
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

/// Returns a fraction of a token count.
pub(crate) fn share(tokens: usize, part: f64) -> usize {
    // Token counts are far below 2^53; NaN becomes 0.
    (tokens as f64 * part.clamp(0.0, 1.0)) as usize
}

/// The estimating counter; see [`estimate_tokens`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Estimator {
    costs: Costs,
}

impl Estimator {
    /// Creates an estimator with the default overhead.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the token overhead.
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
