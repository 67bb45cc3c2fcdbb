//! What makes any list of messages a valid conversation.

use std::collections::HashSet;

use oa_types::{ContentBlock, Message, MessageRole, ToolResultBlock, ToolUseBlock};
use serde_json::{Value, json};

use crate::answer::has_text;

/// The answer to a call that was not run, for the model to read.
pub(crate) fn not_run(tool: &str, error: &str) -> Value {
    json!({ "error": error, "tool": tool })
}

pub(crate) fn result_message(call: &ToolUseBlock, content: Value, is_error: bool) -> Message {
    let mut result = ToolResultBlock::new(&call.id, content);
    result.is_error = is_error;
    result.name = Some(call.name.clone());
    Message::tool(result)
}

/// Makes any list of messages a valid conversation.
///
/// Every call of an assistant's message is answered directly behind it, in call order, by one message
/// each: results are moved there, calls without one are answered with "not run", results without a call
/// and second results go. Malformed calls, calls whose id another call of the message has,
/// messages of the assistant without text and calls, and messages that say nothing go. Everything
/// else stays in order.
#[must_use]
pub fn repair(messages: Vec<Message>) -> Vec<Message> {
    let mut repaired = Vec::with_capacity(messages.len());
    let mut rest = messages.into_iter().peekable();
    while let Some(mut message) = rest.next() {
        match message.role {
            MessageRole::Assistant => {
                let mut ids = HashSet::new();
                message.content.retain(|block| match block {
                    ContentBlock::ToolUse(call) => {
                        !call.name.is_empty() && !call.id.is_empty() && ids.insert(call.id.clone())
                    }
                    ContentBlock::ToolUseError(_) | ContentBlock::ToolResult(_) => false,
                    _ => true,
                });
                let mut results = Vec::new();
                while let Some(next) = rest.next_if(|next| next.role == MessageRole::Tool) {
                    results.extend(next.content.into_iter().filter_map(|block| match block {
                        ContentBlock::ToolResult(result) => Some(result),
                        _ => None,
                    }));
                }
                let calls: Vec<ToolUseBlock> = calls_of(&message).cloned().collect();
                if calls.is_empty() && !has_text(&message) {
                    continue;
                }
                repaired.push(message);
                for call in calls {
                    let found = results.iter().position(|result| result.tool_use_id == call.id);
                    repaired.push(match found.map(|place| results.swap_remove(place)) {
                        Some(mut result) => {
                            result.name.get_or_insert_with(|| call.name.clone());
                            Message::tool(result)
                        }
                        None => result_message(&call, not_run(&call.name, "not run"), true),
                    });
                }
            }
            // Results that stand behind no call.
            MessageRole::Tool => {}
            _ => {
                message.content.retain(|block| {
                    matches!(block, ContentBlock::Text(_) | ContentBlock::Image(_))
                });
                // What is left out of requests may leave two answers side by side.
                if message.content.iter().any(|block| block.as_text() != Some("")) {
                    repaired.push(message);
                }
            }
        }
    }
    repaired
}

pub(crate) fn calls_of(message: &Message) -> impl Iterator<Item = &ToolUseBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    })
}
