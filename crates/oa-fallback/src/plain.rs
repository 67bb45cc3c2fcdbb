use std::borrow::Cow;

use oa_types::{ContentBlock, Message, MessageRole, TextBlock, ToolResultBlock};

use crate::dialect::Dialect;

/// Rewrites one message of a conversation for a model without function calling: calls become assistant text, and
/// results become user messages.
///
/// History keeps ordinary calls and results and is rewritten only when it is sent, so the dialect may change in the
/// middle of a conversation. One message becomes one message. `earlier` holds the messages before it; they provide the
/// tool's name if a result does not have it. Messages without calls and results are borrowed.
///
/// ```
/// use oa_fallback::{React, plain_message};
/// use oa_types::{Message, MessageRole, TextBlock, ToolResultBlock, ToolUseBlock};
/// use serde_json::json;
///
/// let history = [
///     Message::user("What is 1 + 2?"),
///     Message::assistant(vec![
///         TextBlock::new("Thought: a sum.").into(),
///         ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2})).into(),
///     ]),
///     Message::tool(ToolResultBlock::new("call_1", json!(3))),
/// ];
/// let plain = |at: usize| plain_message(&React::new(), &history[at], &history[..at]).into_owned();
/// assert_eq!(plain(0), history[0]);
/// assert_eq!(plain(1).text(), "Thought: a sum.\nAction: add(a=1, b=2)");
/// assert_eq!(plain(2), Message::user("Observation: 3"));
/// ```
#[must_use]
pub fn plain_message<'a>(
    dialect: &dyn Dialect,
    message: &'a Message,
    earlier: &[Message],
) -> Cow<'a, Message> {
    let is_special = |block: &ContentBlock| {
        matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ToolResult(_))
    };
    if message.role == MessageRole::Assistant
        && let Some(text) = dialect.write_answer(message)
    {
        let is_other = |block: &&ContentBlock| {
            !matches!(block, ContentBlock::Text(_) | ContentBlock::ToolUse(_))
        };
        let content = message.content.iter().filter(is_other).cloned().collect();
        return Cow::Owned(with_text(message, message.role, content, text));
    }
    if message.role != MessageRole::Tool && !message.content.iter().any(is_special) {
        return Cow::Borrowed(message);
    }
    let role = match message.role {
        MessageRole::Tool => MessageRole::User,
        role => role,
    };
    let in_place = dialect.writes_calls_in_place();
    // Text comes first, as the model wrote it.
    let mut text = match role {
        MessageRole::Assistant if !in_place => message.text(),
        _ => String::new(),
    };
    let mut content = Vec::new();
    for block in &message.content {
        match block {
            ContentBlock::Text(block) if role == MessageRole::Assistant => {
                text.push_str(if in_place { &block.text } else { "" });
            }
            ContentBlock::ToolUse(call) if in_place => text.push_str(&dialect.write_call(call)),
            ContentBlock::ToolUse(call) => append(&mut text, &dialect.write_call(call)),
            ContentBlock::ToolResult(result) => {
                let tool = result.name.as_deref().or_else(|| tool_of(result, earlier));
                append(&mut text, &dialect.write_result(result, tool.unwrap_or("tool")));
            }
            other => content.push(other.clone()),
        }
    }
    Cow::Owned(with_text(message, role, content, text))
}

/// Returns the message with another role, and with this text behind this content.
fn with_text(
    message: &Message,
    role: MessageRole,
    mut content: Vec<ContentBlock>,
    text: String,
) -> Message {
    if !text.is_empty() {
        content.push(TextBlock::new(text).into());
    }
    let mut plain = Message::new(role, content);
    plain.interrupted = message.interrupted;
    plain.extra = message.extra.clone();
    plain
}

/// Returns the name of a result's tool: that of the latest call with its id.
fn tool_of<'a>(result: &ToolResultBlock, earlier: &'a [Message]) -> Option<&'a str> {
    let blocks = earlier.iter().rev().flat_map(|message| message.content.iter().rev());
    let mut calls = blocks.filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    });
    calls.find(|call| call.id == result.tool_use_id).map(|call| &*call.name)
}

/// Appends a piece on a new line.
fn append(text: &mut String, piece: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(piece);
}
