//! The checks that every store makes before a write; for implementors of stores.

use std::collections::BTreeSet;

use oa_types::{ContentBlock, MAX_NESTING, Message, MessageRole, is_nested_within};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::limits::Limits;
use crate::pending::Pending;

/// The longest excerpt of an id in an error, in characters.
const EXCERPT: usize = 64;

/// Checks messages for one write and returns their JSON.
///
/// # Errors
///
/// `InvalidInput` unless every call in an assistant message is answered by exactly one result, in the `tool`
/// messages directly after it; `Limit` for too many bytes or too deeply nested values.
pub fn check_messages(messages: &[Message], limits: &Limits) -> Result<Vec<String>, Error> {
    let open = open_calls(messages)?;
    if !open.is_empty() {
        return Err(unanswered(&open));
    }
    let mut bytes = 0;
    let json = messages.iter().map(|message| {
        check_depth(message)?;
        let json = to_json(message)?;
        // Plus the separator.
        bytes += json.len() + 1;
        check_record(bytes, limits)?;
        Ok(json)
    });
    json.collect()
}

/// Checks a call waiting for permission and returns its JSON.
///
/// # Errors
///
/// `InvalidInput` if its turn has messages but the call is not open at their end; `Limit` for too many bytes or
/// too deeply nested values.
pub fn check_pending(pending: &Pending, limits: &Limits) -> Result<String, Error> {
    let id = pending.call.id.as_str();
    if !pending.turn.is_empty() && !open_calls(&pending.turn)?.contains(id) {
        let message = format!("call {} is not open at the end of its turn", excerpt(id));
        return Err(Error::invalid_input(message));
    }
    pending.turn.iter().try_for_each(check_depth)?;
    let call = &pending.call;
    let members = call.extra.values().chain(pending.extra.values());
    // The call is stored twice, here and in the turn, and each copy is parsed on its own.
    members.chain([&call.input]).try_for_each(check_value)?;
    let json = to_json(pending)?;
    check_record(json.len(), limits)?;
    Ok(json)
}

/// Checks that a session may have this many messages and bytes.
///
/// # Errors
///
/// `Limit` if there are too many messages or bytes.
pub fn check_size(messages: usize, bytes: u64, limits: &Limits) -> Result<(), Error> {
    if messages > limits.messages {
        let most = limits.messages;
        let message = format!("a session may have at most {most} messages, not {messages}");
        return Err(Error::limit(message));
    }
    if bytes > limits.session_bytes {
        let most = limits.session_bytes;
        let message =
            format!("the messages of a session may have at most {most} bytes, not {bytes}");
        return Err(Error::limit(message));
    }
    Ok(())
}

/// Checks that a conversation of `count` messages may end after `keep`. `next` is the role of the first removed
/// message, if any.
///
/// # Errors
///
/// `InvalidInput` if there are fewer messages, or a call would be separated from its result.
pub fn check_keep(keep: usize, count: usize, next: Option<MessageRole>) -> Result<(), Error> {
    if keep > count {
        let message = format!("cannot keep {keep} of {count} messages");
        return Err(Error::invalid_input(message));
    }
    if next == Some(MessageRole::Tool) {
        let message = format!("message {keep} is the result of a call that would be kept");
        return Err(Error::invalid_input(message));
    }
    Ok(())
}

/// Merges members into a session's metadata; null removes a member.
///
/// # Errors
///
/// `Limit` if the result is too long or too deeply nested.
pub fn merge_metadata(
    mut metadata: Map<String, Value>,
    members: Map<String, Value>,
    limits: &Limits,
) -> Result<Map<String, Value>, Error> {
    metadata.extend(members);
    metadata.retain(|_, value| !value.is_null());
    metadata.values().try_for_each(check_value)?;
    let (bytes, most) = (to_json(&metadata)?.len(), limits.metadata_bytes);
    if bytes > most {
        let message = format!("the metadata may have at most {most} bytes, not {bytes}");
        return Err(Error::limit(message));
    }
    Ok(metadata)
}

/// Returns the ids of calls without a result at the end of these messages.
///
/// # Errors
///
/// `InvalidInput` if a call before the end has no result, two calls of one message have the same id, or a
/// result matches no call.
pub fn open_calls(messages: &[Message]) -> Result<BTreeSet<&str>, Error> {
    let mut open = BTreeSet::new();
    for (place, message) in messages.iter().enumerate() {
        if message.role == MessageRole::Tool {
            let results = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolResult(result) => Some(result.tool_use_id.as_str()),
                _ => None,
            });
            let mut results = results.peekable();
            if results.peek().is_none() {
                let message = format!("message {place} has the role tool but no result");
                return Err(Error::invalid_input(message));
            }
            // `remove` also rejects a second result for the same call.
            if let Some(id) = results.find(|id| !open.remove(id)) {
                let id = excerpt(id);
                let message = format!("the result {id} in message {place} matches no open call");
                return Err(Error::invalid_input(message));
            }
            continue;
        }
        // Results follow directly after their calls, so nothing else may come while a call is open. Callers
        // rely on it: open calls are always those of the last assistant message.
        if !open.is_empty() {
            return Err(unanswered(&open));
        }
        if message.role == MessageRole::Assistant {
            let mut calls = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse(call) => Some(call.id.as_str()),
                _ => None,
            });
            if let Some(id) = calls.find(|id| !open.insert(id)) {
                let message = format!("message {place} has two calls with the id {}", excerpt(id));
                return Err(Error::invalid_input(message));
            }
        }
    }
    Ok(open)
}

fn unanswered(open: &BTreeSet<&str>) -> Error {
    const SHOWN: usize = 8;
    let ids: Vec<String> = open.iter().take(SHOWN).map(|id| excerpt(id)).collect();
    let more = if open.len() > SHOWN { ", ..." } else { "" };
    Error::invalid_input(format!("calls without a result: {}{more}", ids.join(", ")))
}

fn excerpt(id: &str) -> String {
    let start: String = id.chars().take(EXCERPT).collect();
    format!("{start:?}")
}

pub(crate) fn check_record(bytes: usize, limits: &Limits) -> Result<(), Error> {
    if bytes > limits.record_bytes {
        let most = limits.record_bytes;
        let message = format!("a write may have at most {most} bytes");
        return Err(Error::limit(message));
    }
    Ok(())
}

fn check_depth(message: &Message) -> Result<(), Error> {
    message.extra.values().try_for_each(check_value)?;
    message.content.iter().try_for_each(|block| match block {
        ContentBlock::ToolUse(call) => {
            check_value(&call.input)?;
            call.extra.values().try_for_each(check_value)
        }
        ContentBlock::ToolResult(result) => check_value(&result.content),
        _ => Ok(()),
    })
}

fn check_value(value: &Value) -> Result<(), Error> {
    if is_nested_within(value, MAX_NESTING) {
        return Ok(());
    }
    Err(Error::limit(format!("values may be nested at most {MAX_NESTING} levels deep")))
}

fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid_input("cannot be represented as JSON").with_source(error))
}
