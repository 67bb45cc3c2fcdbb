//! Calls of which too little is known to answer them.

use oa_types::{ContentBlock, FinishReason, Message};

use super::{Phase, Turn};

impl Turn {
    /// Tells the model that its call was lost, and asks again: a call without a name cannot have a result.
    /// It counts as a round of calls, so that the limits hold.
    pub(super) fn tell_lost_call(&mut self, error: &str) {
        // The answer was asked for without tools: there is no other.
        if self.progress.last.is_some() {
            return;
        }
        if self.progress.budget.rounds >= self.options.max_rounds {
            self.phase = Phase::ending(FinishReason::MaxToolIterations);
            return;
        }
        if self.options.max_tokens.is_some_and(|limit| self.progress.budget.tokens >= limit) {
            self.phase = Phase::ending(FinishReason::MaxRunTokens);
            return;
        }
        let words =
            format!("Your tool call could not be used ({error}). Please call the tool again.");
        if self.correct(Message::user(words)) {
            let rounds = &mut self.progress.budget.rounds;
            *rounds = rounds.saturating_add(1);
        }
    }
}

/// Why the model was not understood, where it asked for calls and none of them is known by its name.
pub(super) fn lost_call(blocks: &[ContentBlock], reason: &FinishReason) -> Option<String> {
    if !matches!(reason.as_str(), "tool_calls" | "function_call") {
        return None;
    }
    blocks.iter().find_map(|block| match block {
        ContentBlock::ToolUseError(error) if error.name.is_none() => Some(error.error.clone()),
        _ => None,
    })
}
