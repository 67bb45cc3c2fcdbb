//! What every store checks before it writes, for those who write one.

use std::collections::BTreeSet;

use oa_types::{ContentBlock, Message, MessageRole};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::Error;
use crate::limits::Limits;
use crate::pending::Pending;

/// Values may be nested this deep. JSON is read to 128 levels, and a message adds some of its own.
const DEPTH: usize = 100;

/// How many characters of an id an error shows.
const EXCERPT: usize = 64;

/// Checks messages that are to be written at once, and returns the JSON of each.
///
/// # Errors
///
/// `InvalidInput` unless every call of an assistant's message is answered by exactly one result, in the
/// messages of the role `tool` directly behind it; `Limit` for too many bytes or too deep values.
pub fn check_messages(messages: &[Message], limits: &Limits) -> Result<Vec<String>, Error> {
    let open = open_calls(messages)?;
    if !open.is_empty() {
        return Err(unanswered(&open));
    }
    let mut bytes = 0;
    let json = messages.iter().map(|message| {
        check_depth(message)?;
        let json = to_json(message)?;
        // And what parts it from the next.
        bytes += json.len() + 1;
        check_record(bytes, limits)?;
        Ok(json)
    });
    json.collect()
}

/// Checks a call that waits for permission, and returns its JSON.
///
/// # Errors
///
/// `InvalidInput` if its turn has messages, and the call is not open at their end; `Limit` for too many
/// bytes or too deep values.
pub fn check_pending(pending: &Pending, limits: &Limits) -> Result<String, Error> {
    let id = pending.call.id.as_str();
    if !pending.turn.is_empty() && !open_calls(&pending.turn)?.contains(id) {
        let message = format!("the call {} is not open at the end of its turn", excerpt(id));
        return Err(Error::invalid_input(message));
    }
    pending.turn.iter().try_for_each(check_depth)?;
    let call = &pending.call;
    let members = call.extra.values().chain(pending.extra.values());
    members.chain([&call.input]).try_for_each(check_value)?;
    let json = to_json(pending)?;
    check_record(json.len(), limits)?;
    Ok(json)
}

/// Checks that messages of `bytes` bytes fit into one session.
///
/// # Errors
///
/// `Limit` if there are too many, or too many bytes.
pub fn check_size(messages: usize, bytes: u64, limits: &Limits) -> Result<(), Error> {
    if messages > limits.messages {
        let most = limits.messages;
        let message = format!("a session has {most} messages at the most, not {messages}");
        return Err(Error::limit(message));
    }
    if bytes > limits.session_bytes {
        let most = limits.session_bytes;
        let message =
            format!("the messages of a session have {most} bytes at the most, not {bytes}");
        return Err(Error::limit(message));
    }
    Ok(())
}

/// Checks that the conversation may end after `keep` of its `count` messages. `next` is the role of the
/// message behind that place, if there is one.
///
/// # Errors
///
/// `InvalidInput` if there are fewer messages, or a call would be parted from its result.
pub fn check_place(keep: usize, count: usize, next: Option<MessageRole>) -> Result<(), Error> {
    if keep > count {
        let message = format!("there are {count} messages, of which {keep} cannot stay");
        return Err(Error::invalid_input(message));
    }
    if next == Some(MessageRole::Tool) {
        let message = format!("message {keep} is the result of a call, which would be without it");
        return Err(Error::invalid_input(message));
    }
    Ok(())
}

/// Sets members of a session's metadata; those that are null go.
///
/// # Errors
///
/// `Limit` if it is then too long or too deep.
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
        let message = format!("metadata has {most} bytes at the most, not {bytes}");
        return Err(Error::limit(message));
    }
    Ok(metadata)
}

/// Returns the ids of the calls that have no result when these messages end.
///
/// # Errors
///
/// `InvalidInput` if one has none where others follow, two calls of one message have the same id, or a
/// result answers no call.
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
                let message = format!("message {place} has the role tool, and no result");
                return Err(Error::invalid_input(message));
            }
            if let Some(id) = results.find(|id| !open.remove(id)) {
                let id = excerpt(id);
                let message = format!("the result {id} in message {place} answers no open call");
                return Err(Error::invalid_input(message));
            }
            continue;
        }
        if !open.is_empty() {
            return Err(unanswered(&open));
        }
        if message.role == MessageRole::Assistant {
            let mut calls = message.content.iter().filter_map(|block| match block {
                ContentBlock::ToolUse(call) => Some(call.id.as_str()),
                _ => None,
            });
            if let Some(id) = calls.find(|id| !open.insert(id)) {
                let message = format!("message {place} has two calls {}", excerpt(id));
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
    Error::invalid_input(format!("calls have no result: {}{more}", ids.join(", ")))
}

fn excerpt(id: &str) -> String {
    let start: String = id.chars().take(EXCERPT).collect();
    format!("{start:?}")
}

pub(crate) fn check_record(bytes: usize, limits: &Limits) -> Result<(), Error> {
    if bytes > limits.record_bytes {
        let most = limits.record_bytes;
        let message = format!("{most} bytes are written at once at the most, and this is more");
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
    fn fits(value: &Value, levels: usize) -> bool {
        match value {
            Value::Array(items) => levels > 0 && items.iter().all(|item| fits(item, levels - 1)),
            Value::Object(members) => {
                levels > 0 && members.values().all(|member| fits(member, levels - 1))
            }
            _ => true,
        }
    }

    if fits(value, DEPTH) {
        return Ok(());
    }
    Err(Error::limit(format!("values are nested {DEPTH} levels deep at the most")))
}

fn to_json(value: &impl Serialize) -> Result<String, Error> {
    serde_json::to_string(value)
        .map_err(|error| Error::invalid_input("it has no JSON form").with_source(error))
}
