//! AG-UI requests: converts a run input to a history.

use std::collections::HashSet;

use oa_tools::FnTool;
use oa_types::{
    ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ToolResultBlock, ToolUseBlock,
    flattened,
};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body::{self, Arguments};
use crate::error::Refusal;
use crate::front::{
    Answers, Approval, ClientResult, FrontTurn, LONGEST_ID, attachment, check_parts, client_tool,
    result_text,
};
use crate::limits::ServeLimits;

/// A run input. Members of later versions are ignored, and null counts as absent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    thread_id: String,
    run_id: String,
    protocol_version: Option<Value>,
    messages: Vec<FrontMessage>,
    #[serde(default)]
    state: Value,
    tools: Option<Vec<Value>>,
    context: Option<Vec<Value>>,
    resume: Option<Vec<Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrontMessage {
    role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<Value>>,
    tool_call_id: Option<String>,
    #[serde(default)]
    error: Value,
}

/// A request for a run of a thread.
#[derive(Debug)]
pub(crate) struct RunInput {
    pub(crate) thread: String,
    pub(crate) run: String,
    /// Earlier clients name no version.
    pub(crate) is_version_1: bool,
    pub(crate) state: Value,
    pub(crate) tools: Vec<FnTool>,
    pub(crate) turn: FrontTurn,
}

/// Reads a request.
pub(crate) fn read(body: &[u8], limits: &ServeLimits) -> Result<RunInput, Refusal> {
    let body: Body = body::read(body).map_err(|error| {
        Refusal::bad_request(format!("the body is not a valid run input: {error}"))
    })?;
    for id in [&body.thread_id, &body.run_id] {
        if id.is_empty() || id.len() > LONGEST_ID {
            let message = format!("threadId and runId must have 1 to {LONGEST_ID} bytes");
            return Err(Refusal::bad_request(message));
        }
    }
    let (tools, context, resume) = (
        body.tools.unwrap_or_default(),
        body.context.unwrap_or_default(),
        body.resume.unwrap_or_default(),
    );
    for (what, count, most) in [
        ("messages", body.messages.len(), limits.messages),
        ("`resume` entries", resume.len(), limits.messages),
        ("tools", tools.len(), limits.tools),
        ("context items", context.len(), limits.parts),
    ] {
        if count > most {
            let message = format!("a run can have at most {most} {what}, not {count}");
            return Err(Refusal::too_large(message));
        }
    }
    let tool = |tool: &Value| {
        client_tool(tool).ok_or_else(|| Refusal::bad_request("a tool must have a name"))
    };
    let tools = tools.iter().map(tool).collect::<Result<_, _>>()?;
    let mut turn = FrontTurn::default();
    if let Some(context) = message_of(&context) {
        turn.history.push(context);
    }
    let answered = body.messages.iter().filter_map(|message| message.tool_call_id.as_deref());
    let answered: HashSet<_> = answered.collect();
    let mut arguments = Arguments::default();
    for message in &body.messages {
        push(message, &answered, limits, &mut arguments, &mut turn)?;
    }
    // The prompt is the last message of the history, if that is the user's. Instructions may follow it.
    let is_said = |message: &Message| message.role != MessageRole::System;
    if let Some(last) = turn.history.iter().rposition(is_said)
        && turn.history[last].role == MessageRole::User
    {
        turn.prompt = Some(turn.history.remove(last));
        turn.answers.results.clear();
    }
    // Some clients answer interrupts without the history: what waits is known here.
    let is_said = |message: &FrontMessage| message.role != "system";
    if turn.prompt.is_none() && resume.is_empty() && !body.messages.iter().any(is_said) {
        return Err(Refusal::bad_request("the run has no messages"));
    }
    turn.answers.approvals = resume.iter().map(approval).collect::<Result<_, _>>()?;
    let Body { thread_id: thread, run_id: run, protocol_version, state, .. } = body;
    let is_version_1 = protocol_version.is_some();
    Ok(RunInput { thread, run, is_version_1, state, tools, turn })
}

/// Reads the answer to an interrupt. Only an explicit approval approves the call.
fn approval(resume: &Value) -> Result<Approval, Refusal> {
    let id = resume["interruptId"].as_str();
    let id =
        id.ok_or_else(|| Refusal::bad_request("a `resume` entry must have an `interruptId`"))?;
    let payload = &resume["payload"];
    let is_approved = resume["status"] == "resolved" && payload["approved"] == true;
    let reason = payload["reason"].as_str().map(str::to_owned);
    Ok(Approval { id: id.to_owned(), is_approved, reason })
}

/// Returns the front end's context items as a message for the model.
fn message_of(context: &[Value]) -> Option<Message> {
    let lines = context.iter().map(|item| {
        let value = &item["value"];
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}: {value}", item["description"].as_str().unwrap_or_default())
    });
    let lines: Vec<_> = lines.collect();
    (!lines.is_empty()).then(|| Message::system(lines.join("\n")))
}

/// Appends a message to the history. `answered` are the calls that have a result.
fn push(
    message: &FrontMessage,
    answered: &HashSet<&str>,
    limits: &ServeLimits,
    arguments: &mut Arguments,
    turn: &mut FrontTurn,
) -> Result<(), Refusal> {
    let calls = message.tool_calls.as_deref().unwrap_or_default();
    check_parts(&message.content, calls, limits.parts)?;
    match &*message.role {
        "user" => {
            let content = content(&message.content);
            if content.is_empty() {
                return Ok(());
            }
            // Only results after the last user or assistant message answer calls that may still wait.
            turn.answers = Answers::default();
            turn.history.push(Message::user_with_blocks(content));
        }
        "system" | "developer" => {
            if let Some(text) = message.content.as_str().filter(|text| !text.is_empty()) {
                turn.history.push(Message::system(text));
            }
        }
        "assistant" => {
            let mut blocks = content(&message.content);
            for call in calls {
                let function = &call["function"];
                let (Some(id), Some(name)) = (call["id"].as_str(), function["name"].as_str())
                else {
                    continue;
                };
                let input = arguments.read(function["arguments"].as_str().unwrap_or_default())?;
                // Truncated arguments without a result: the answer was stopped in the middle of the call, which is
                // nowhere else.
                let is_over = answered.contains(id);
                if let Some(input) = input.or_else(|| is_over.then(|| json!({}))) {
                    blocks.push(ToolUseBlock::new(id, name, input).into());
                }
            }
            if !blocks.is_empty() {
                turn.answers = Answers::default();
                turn.history.push(Message::assistant(blocks));
            }
        }
        "tool" => {
            let Some(call_id) = message.tool_call_id.clone() else {
                return Err(Refusal::bad_request("a tool message has no toolCallId"));
            };
            let content = match &message.content {
                Value::Array(parts) => Value::String(result_text(parts)),
                content => content.clone(),
            };
            let is_error = !message.error.is_null();
            let mut block = ToolResultBlock::new(&*call_id, flattened(content.clone()));
            block.is_error = is_error;
            turn.history.push(Message::tool(block));
            turn.answers.results.push(ClientResult { call_id, content, is_error });
        }
        // Reasoning and activities are for display; later versions may add more roles.
        _ => {}
    }
    Ok(())
}

/// Returns the text, images and audio of a message's content.
fn content(content: &Value) -> Vec<ContentBlock> {
    let text = |text: &str| (!text.is_empty()).then(|| TextBlock::new(text).into());
    match content {
        Value::String(content) => text(content).into_iter().collect(),
        Value::Array(parts) => {
            let block = |part: &Value| match part["text"].as_str() {
                Some(part) => text(part),
                None if part.is_object() => {
                    Some(image(part).map_or_else(|| attachment(part), ContentBlock::from))
                }
                None => None,
            };
            parts.iter().filter_map(block).collect()
        }
        _ => Vec::new(),
    }
}

/// Reads an image: `{"source": {"type", "value", "mimeType"}}`, or the older `{"mimeType", "data" or "url"}`.
fn image(part: &Value) -> Option<ImageBlock> {
    let source = if part["source"].is_object() { &part["source"] } else { part };
    let word = |name: &str| source[name].as_str();
    // A URL may also be that of a document or a recording.
    let is_image = word("mimeType").map(|kind| kind.starts_with("image/"));
    if !is_image.unwrap_or_else(|| part["type"] == "image") {
        return None;
    }
    let url = word("url").or_else(|| word("value").filter(|_| source["type"] == "url"));
    let data = word("data").or_else(|| word("value").filter(|_| source["type"] == "data"));
    match (url, data) {
        (Some(url), _) => ImageBlock::from_url(url).ok(),
        (None, Some(data)) => ImageBlock::from_base64(data, word("mimeType")?).ok(),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests;
