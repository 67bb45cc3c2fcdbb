//! AI SDK requests: converts UI messages to a history.

use oa_types::{
    ContentBlock, ImageBlock, Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock,
    flattened,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body;
use crate::error::Refusal;
use crate::front::{Answers, Approval, ClientResult, FrontTurn, LONGEST_ID, attachment};
use crate::limits::ServeLimits;

/// A request from the client's transport. Unknown members are ignored.
#[derive(Deserialize)]
struct Body {
    id: String,
    messages: Vec<UiMessage>,
}

#[derive(Deserialize)]
struct UiMessage {
    id: Option<String>,
    role: Role,
    parts: Vec<Value>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Role {
    Assistant,
    System,
    User,
}

/// A request for a turn of a chat.
#[derive(Debug)]
pub(crate) struct ChatTurn {
    pub(crate) chat: String,
    /// The id of the assistant message that the turn continues.
    pub(crate) continues: Option<String>,
    pub(crate) turn: FrontTurn,
    /// Calls that the user denied, according to the front end.
    pub(crate) denied: Vec<String>,
}

/// Reads a request.
pub(crate) fn read(body: &[u8], limits: &ServeLimits) -> Result<ChatTurn, Refusal> {
    let Body { id, mut messages } = body::read(body).map_err(|error| {
        Refusal::bad_request(format!("The body is not a valid chat request: {error}."))
    })?;
    if id.is_empty() || id.len() > LONGEST_ID {
        return Err(Refusal::bad_request(format!(
            "The chat id must have 1 to {LONGEST_ID} bytes."
        )));
    }
    if messages.len() > limits.messages {
        let message = format!("A chat can have at most {} messages.", limits.messages);
        return Err(Refusal::too_large(message));
    }
    if messages.iter().any(|message| message.parts.len() > limits.parts) {
        let message = format!("A message can have at most {} parts.", limits.parts);
        return Err(Refusal::too_large(message));
    }
    let Some(last) = messages.pop() else {
        return Err(Refusal::bad_request("The chat has no messages."));
    };
    let mut turn = FrontTurn::default();
    for message in &messages {
        push(message, &mut turn.history);
    }
    let (mut continues, mut denied) = (None, Vec::new());
    match last.role {
        Role::User => {
            turn.prompt = Some(Message::user_with_blocks(user_content(&last.parts)));
        }
        Role::Assistant => {
            continues = last.id.clone().filter(|id| !id.is_empty() && id.len() <= LONGEST_ID);
            if continues.is_none() {
                return Err(Refusal::bad_request("The message to continue needs an id."));
            }
            // Read twice: for its answers, if the calls wait here, and as history, in case they do not.
            (turn.answers, denied) = answers(&last.parts);
            push(&last, &mut turn.history);
        }
        Role::System => {
            return Err(Refusal::bad_request(
                "The last message must be a user or assistant message.",
            ));
        }
    }
    Ok(ChatTurn { chat: id, continues, turn, denied })
}

/// Returns the answers in a message to continue, and the calls that were denied.
fn answers(parts: &[Value]) -> (Answers, Vec<String>) {
    let (mut answers, mut denied) = (Answers::default(), Vec::new());
    for part in parts {
        let Some((_, call_id)) = tool_part(part) else { continue };
        let call_id = call_id.to_owned();
        match part["state"].as_str().unwrap_or_default() {
            "approval-responded" => {
                let approval = &part["approval"];
                let is_approved = approval["approved"] == true;
                if !is_approved {
                    denied.push(call_id);
                }
                answers.approvals.push(Approval {
                    id: approval["id"].as_str().unwrap_or_default().to_owned(),
                    is_approved,
                    reason: approval["reason"].as_str().map(str::to_owned),
                });
            }
            "output-available" => {
                let content = part["output"].clone();
                answers.results.push(ClientResult { call_id, content, is_error: false });
            }
            "output-error" => {
                let content = part["errorText"].clone();
                answers.results.push(ClientResult { call_id, content, is_error: true });
            }
            _ => {}
        }
    }
    (answers, denied)
}

/// Appends the messages of a UI message: for each step of an assistant message, its answer and then the results of its
/// calls. Calls without a result stay open.
fn push(message: &UiMessage, history: &mut Vec<Message>) {
    match message.role {
        Role::User => {
            let content = user_content(&message.parts);
            if !content.is_empty() {
                history.push(Message::user_with_blocks(content));
            }
        }
        Role::System => {
            let text: Vec<_> = message.parts.iter().filter_map(text_part).collect();
            if !text.is_empty() {
                history.push(Message::system(text.join("\n")));
            }
        }
        Role::Assistant => {
            // One UI message has all steps of a turn; history has a message for each answer.
            for step in message.parts.split(|part| part["type"] == "step-start") {
                push_step(step, history);
            }
        }
    }
}

fn push_step(parts: &[Value], history: &mut Vec<Message>) {
    let (mut content, mut results) = (Vec::new(), Vec::new());
    for part in parts {
        if let Some(text) = text_part(part) {
            content.push(ContentBlock::Text(TextBlock::new(text)));
        } else if part["type"] == "reasoning"
            && let Some(text) = part["text"].as_str()
            && !text.is_empty()
        {
            content.push(ContentBlock::Thinking(ThinkingBlock::new(text)));
        } else if let Some((name, call_id)) = tool_part(part) {
            let state = part["state"].as_str().unwrap_or_default();
            // The answer was stopped in the middle of the call, which is nowhere else.
            if state == "input-streaming" {
                continue;
            }
            // The arguments of a truncated call are not an object.
            let input =
                if body::is_input(&part["input"]) { part["input"].clone() } else { json!({}) };
            content.push(ToolUseBlock::new(call_id, name, input).into());
            let result = match state {
                // A preliminary output is progress of a call that has no result yet.
                "output-available" if part["preliminary"] != true => {
                    Some((part["output"].clone(), false))
                }
                "output-error" => Some((json!({"error": part["errorText"], "tool": name}), true)),
                "output-denied" => {
                    let reason = part["approval"]["reason"].as_str().unwrap_or("the user said no");
                    Some((json!({"error": "not run", "reason": reason, "tool": name}), true))
                }
                _ => None,
            };
            if let Some((content, is_error)) = result {
                let mut block = ToolResultBlock::new(call_id, flattened(content));
                block.is_error = is_error;
                block.name = Some(name.into());
                results.push(Message::tool(block));
            }
        }
    }
    if !content.is_empty() {
        history.push(Message::assistant(content));
        history.extend(results);
    }
}

/// Returns the name and the id of a call.
fn tool_part(part: &Value) -> Option<(&str, &str)> {
    let name = match part["type"].as_str()? {
        "dynamic-tool" => part["toolName"].as_str()?,
        kind => kind.strip_prefix("tool-")?,
    };
    Some((name, part["toolCallId"].as_str()?))
}

fn text_part(part: &Value) -> Option<&str> {
    (part["type"] == "text").then_some(())?;
    part["text"].as_str().filter(|text| !text.is_empty())
}

fn user_content(parts: &[Value]) -> Vec<ContentBlock> {
    let block = |part: &Value| -> Option<ContentBlock> {
        if part["type"] != "file" {
            return Some(TextBlock::new(text_part(part)?).into());
        }
        let kind = part["mediaType"].as_str().unwrap_or_default();
        if kind.starts_with("image/")
            && let Some(url) = part["url"].as_str()
            && let Ok(image) = ImageBlock::from_url(url)
        {
            return Some(image.into());
        }
        Some(attachment(part))
    };
    parts.iter().filter_map(block).collect()
}

#[cfg(test)]
mod tests;
