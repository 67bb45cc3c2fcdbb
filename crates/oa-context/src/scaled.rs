//! Counts in the tokens of the server.

use oa_types::{Message, ToolSpec};
use serde_json::Value;

use crate::counter::{Costs, TokenCounter};

/// A counter whose counts are multiplied by a factor.
pub(crate) struct Scaled<'a, C: ?Sized> {
    pub(crate) counter: &'a C,
    pub(crate) ratio: f64,
}

pub(crate) fn scale(tokens: usize, ratio: f64) -> usize {
    // Token counts are far below 2^53.
    (tokens as f64 * ratio).round() as usize
}

impl<C: TokenCounter + ?Sized> TokenCounter for Scaled<'_, C> {
    fn count_text(&self, text: &str) -> usize {
        scale(self.counter.count_text(text), self.ratio)
    }

    fn count_json(&self, value: &Value) -> usize {
        scale(self.counter.count_json(value), self.ratio)
    }

    fn costs(&self) -> Costs {
        self.counter.costs()
    }

    fn count_message(&self, message: &Message) -> usize {
        scale(self.counter.count_message(message), self.ratio)
    }

    fn count_messages(&self, messages: &[Message]) -> usize {
        scale(self.counter.count_messages(messages), self.ratio)
    }

    fn count_tools(&self, tools: &[ToolSpec]) -> usize {
        scale(self.counter.count_tools(tools), self.ratio)
    }
}
