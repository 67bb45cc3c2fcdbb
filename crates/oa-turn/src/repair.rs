//! Repair of message lists into valid conversations.

use std::collections::{HashMap, HashSet};

use oa_types::{ContentBlock, Message, MessageRole, ToolResultBlock, ToolUseBlock};
use serde_json::{Value, json};

/// The result of a call for which none was recorded. The call may have run.
const NO_RESULT: &str = "unknown: no result was recorded, so the call may or may not have run";

/// The result of a call that had started when its process ended.
pub(crate) const LOST: &str =
    "unknown: the call was started, and its result was lost; it may have taken effect";

/// Returns the result of a call that its tool did not answer, for the model to read.
pub(crate) fn unanswered(tool: &str, error: &str) -> Value {
    json!({ "error": error, "tool": tool })
}

pub(crate) fn result_message(call: &ToolUseBlock, content: Value, is_error: bool) -> Message {
    let mut result = ToolResultBlock::new(&call.id, content);
    result.is_error = is_error;
    result.name = Some((*call.name).into());
    Message::tool(result)
}

/// Turns any list of messages into a valid conversation.
///
/// - System messages are merged, in order, into one at the start.
/// - Each call of an assistant message is answered directly after that message, in call order, by one message with
///   the call's id and name. A result further behind is moved there, unless several calls have its id. Calls without a
///   result are answered with "unknown", because they may have run. Results without a call before them, and further
///   results of the same call, are dropped. Results in user messages are moved out of them.
/// - Call ids are made unique: if several calls share an id, the last one keeps it.
/// - Malformed calls, blocks that the role cannot send, and empty messages are dropped.
///
/// Everything else keeps its order. A valid conversation is returned unchanged.
#[must_use]
pub fn repair(messages: Vec<Message>) -> Vec<Message> {
    paired(sorted(messages))
}

/// Returns true if repair would change nothing but ids.
pub(crate) fn is_valid(messages: &[Message]) -> bool {
    // The model may use an id again in a later answer, and history keeps it, so ids are not compared.
    answered(sorted(messages.to_vec())) == messages
}

/// Returns true if these are an answer with calls, and as many results as there are messages before `end`.
pub(crate) fn is_open(messages: &[Message], end: usize) -> bool {
    let mut results = messages.iter().skip(1);
    end == messages.len()
        && results.all(|result| result.role == MessageRole::Tool && result.content.len() == 1)
        && sorted(messages.to_vec()) == messages
}

/// Merges system messages at the start, and drops blocks that the role of a message cannot send.
pub(crate) fn sorted(messages: Vec<Message>) -> Vec<Message> {
    let mut system: Option<Message> = None;
    let mut sorted = Vec::with_capacity(messages.len());
    for mut message in messages {
        match message.role {
            MessageRole::System => {
                message.content.retain(is_text_or_media);
                if says_something(&message) {
                    match &mut system {
                        Some(system) => system.content.append(&mut message.content),
                        None => system = Some(message),
                    }
                }
            }
            MessageRole::Tool => {
                let is_result = |block: &ContentBlock| matches!(block, ContentBlock::ToolResult(_));
                message.content.retain(is_result);
                if !message.content.is_empty() {
                    sorted.push(message);
                }
            }
            MessageRole::User => {
                // Some APIs put tool results into user messages.
                let results = message
                    .content
                    .extract_if(.., |block| matches!(block, ContentBlock::ToolResult(_)));
                let results: Vec<ContentBlock> = results.collect();
                if !results.is_empty() {
                    sorted.push(Message::new(MessageRole::Tool, results));
                }
                message.content.retain(is_text_or_media);
                if says_something(&message) {
                    sorted.push(message);
                }
            }
            _ => {
                let mut ids = HashSet::new();
                message.content.retain(|block| match block {
                    ContentBlock::ToolUse(call) => {
                        !call.name.is_empty() && !call.id.is_empty() && ids.insert(call.id.clone())
                    }
                    ContentBlock::ToolUseError(_) | ContentBlock::ToolResult(_) => false,
                    _ => true,
                });
                if calls_of(&message).next().is_some() || has_text(&message) {
                    sorted.push(message);
                }
            }
        }
    }
    if let Some(system) = system {
        sorted.insert(0, system);
    }
    sorted
}

/// Puts one result after each call, and drops all other results.
pub(crate) fn paired(sorted: Vec<Message>) -> Vec<Message> {
    let mut paired = answered(sorted);
    make_ids_unique(&mut paired);
    paired
}

fn answered(sorted: Vec<Message>) -> Vec<Message> {
    let mut strays = strays(&sorted);
    let mut paired = Vec::with_capacity(sorted.len());
    let mut rest = sorted.into_iter().peekable();
    while let Some(message) = rest.next() {
        if message.role == MessageRole::Tool {
            // Results that do not follow their call: `strays` has those that belong to one.
            continue;
        }
        let calls: Vec<ToolUseBlock> = match message.role {
            MessageRole::Assistant => calls_of(&message).cloned().collect(),
            _ => Vec::new(),
        };
        paired.push(message);
        if calls.is_empty() {
            continue;
        }
        let mut results = Vec::new();
        while let Some(next) = rest.next_if(|next| next.role == MessageRole::Tool) {
            results.extend(next.content.into_iter().filter_map(|block| match block {
                ContentBlock::ToolResult(result) => Some(result),
                _ => None,
            }));
        }
        for call in calls {
            let found = results.iter().position(|result| result.tool_use_id == call.id);
            let found = found.map(|place| results.remove(place));
            paired.push(match found.or_else(|| strays.remove(&call.id)) {
                Some(mut result) => {
                    // Servers compare both names, and the model wrote the one of the call.
                    result.name = Some(call.name.into());
                    Message::tool(result)
                }
                None => result_message(&call, unanswered(&call.name, NO_RESULT), true),
            });
        }
    }
    paired
}

/// Returns the results that are further behind their call than directly after its message, by the call's id. Front ends
/// that keep a history may write several calls before their results, or text between a call and its result.
///
/// A result before its call is that of an earlier one, which is gone.
fn strays(messages: &[Message]) -> HashMap<String, ToolResultBlock> {
    let mut strays = HashMap::new();
    // How often each id was called so far.
    let mut called: HashMap<&str, usize> = HashMap::new();
    // The calls of the answer before, from the one whose result is expected next.
    let mut calls: Vec<&ToolUseBlock> = Vec::new();
    let mut next = 0;
    for message in messages {
        if message.role != MessageRole::Tool {
            (calls, next) = (calls_of(message).collect(), 0);
            for call in &calls {
                *called.entry(&call.id).or_default() += 1;
            }
            continue;
        }
        for result in message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolResult(result) => Some(result),
            _ => None,
        }) {
            let is_of = |call: &&ToolUseBlock| call.id == result.tool_use_id;
            if calls.get(next).is_some_and(is_of) {
                next += 1;
            } else if !calls.iter().any(is_of) && called.contains_key(&*result.tool_use_id) {
                strays.entry(result.tool_use_id.clone()).or_insert_with(|| result.clone());
            }
        }
    }
    // It may be that of either.
    strays.retain(|id, _| called.get(&**id) == Some(&1));
    strays
}

/// Replaces call ids that a later call shares. The last call keeps the id: it may still be open, or its result
/// unread, so others may refer to it by this id.
fn make_ids_unique(paired: &mut [Message]) {
    let mut taken: HashSet<String> = HashSet::new();
    let mut calls = 0;
    for call in paired.iter().flat_map(calls_of) {
        calls += 1;
        taken.insert(call.id.clone());
    }
    if taken.len() == calls {
        return;
    }
    let mut seen: HashSet<String> = HashSet::new();
    let mut numbers: HashMap<String, usize> = HashMap::new();
    // Backwards, so that the last one keeps its id: the calls a, b, a become a_2, b, a.
    for place in (0..paired.len()).rev() {
        let (message, results) = match paired[place..].split_first_mut() {
            Some((message, results)) if message.role == MessageRole::Assistant => {
                (message, results)
            }
            _ => continue,
        };
        let calls = message.content.iter_mut().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(call),
            _ => None,
        });
        // `answered` has put the results after their calls in the same order, so they pair by position.
        for (call, result) in calls.zip(results) {
            if seen.insert(call.id.clone()) {
                continue;
            }
            let number = numbers.entry(call.id.clone()).or_insert(1);
            let start: String = call.id.chars().take(LONGEST_START).collect();
            let id = loop {
                *number += 1;
                let id = format!("{start}_{number}");
                if taken.insert(id.clone()) {
                    break id;
                }
            };
            for block in &mut result.content {
                if let ContentBlock::ToolResult(result) = block {
                    result.tool_use_id.clone_from(&id);
                }
            }
            seen.insert(id.clone());
            call.id = id;
        }
    }
}

/// The maximum length of an id before a number is appended. Servers accept 64 characters in all.
const LONGEST_START: usize = 48;

fn is_text_or_media(block: &ContentBlock) -> bool {
    block.as_text().is_some() || block.is_media()
}

fn says_something(message: &Message) -> bool {
    message.content.iter().any(ContentBlock::is_media) || has_text(message)
}

pub(crate) fn calls_of(message: &Message) -> impl Iterator<Item = &ToolUseBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call),
        _ => None,
    })
}

pub(crate) fn result_of(message: &Message) -> Option<&ToolResultBlock> {
    message.content.iter().find_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Returns true if a message has text other than white space. Some servers reject white space alone.
pub(crate) fn has_text(message: &Message) -> bool {
    let mut texts = message.content.iter().filter_map(ContentBlock::as_text);
    texts.any(|text| !text.chars().all(char::is_whitespace))
}
