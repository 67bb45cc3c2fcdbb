//! OpenAI requests: converts a completion request to a history.

use std::hash::{BuildHasher, RandomState};

use oa_tools::FnTool;
use oa_types::{
    ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ToolResultBlock, ToolUseBlock,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::body::{self, Arguments};
use crate::error::Refusal;
use crate::front::{ClientResult, FrontTurn, attachment, check_parts, client_tool, result_text};
use crate::limits::ServeLimits;
use crate::openai::sampling::Sampling;

/// A request.
#[derive(Deserialize)]
struct Body {
    model: String,
    messages: Vec<WireMessage>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Vec<Value>>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct WireMessage {
    role: String,
    #[serde(default)]
    content: Value,
    tool_calls: Option<Vec<Value>>,
    tool_call_id: Option<String>,
    /// The call, in the older form.
    function_call: Option<Value>,
    /// The words of an answer that refuses, which are not in its content.
    refusal: Option<Value>,
}

/// A request for a completion.
#[derive(Debug)]
pub(crate) struct Completion {
    pub(crate) model: String,
    pub(crate) is_stream: bool,
    pub(crate) includes_usage: bool,
    pub(crate) tools: Vec<FnTool>,
    pub(crate) sampling: Sampling,
    pub(crate) turn: FrontTurn,
    /// The hash of the messages before the answer.
    pub(crate) asked: u64,
    /// The hash of the messages before the calls that the client has just answered, and the ids of these calls.
    pub(crate) answered: Option<(u64, Vec<String>)>,
}

/// Reads a request. `hasher` hashes the messages.
pub(crate) fn read(
    body: &[u8],
    limits: &ServeLimits,
    hasher: &RandomState,
) -> Result<Completion, Refusal> {
    let body: Body = body::read(body).map_err(|error| {
        Refusal::bad_request(format!("the body is not a valid completion request: {error}"))
    })?;
    if body.messages.len() > limits.messages {
        let message = format!("a request can have at most {} messages", limits.messages);
        return Err(Refusal::too_large(message).of("messages"));
    }
    let tools = body.tools.unwrap_or_default();
    if tools.len() > limits.tools {
        let message = format!("a request can have at most {} tools", limits.tools);
        return Err(Refusal::too_large(message).of("tools"));
    }
    let (mut history, mut arguments) = (Vec::new(), Arguments::default());
    let mut functions = 0;
    for mut message in body.messages {
        give_call_id(&mut message, &mut functions);
        history.extend(read_message(message, limits, &mut arguments)?);
    }
    let asked = hasher.hash_one(text_of(&history));
    let mut turn = FrontTurn::default();
    let mut answered = None;
    // Instructions may also follow the prompt.
    let is_said = |message: &Message| message.role != MessageRole::System;
    match history.iter().rposition(is_said).map(|place| (place, history[place].role)) {
        Some((place, MessageRole::User)) => turn.prompt = Some(history.remove(place)),
        Some((place, MessageRole::Tool)) => {
            let results = history[..=place].iter().rev();
            let results = results.take_while(|message| message.role == MessageRole::Tool);
            for block in results.flat_map(|message| &message.content) {
                if let ContentBlock::ToolResult(block) = block {
                    turn.answers.results.push(ClientResult {
                        call_id: block.tool_use_id.clone(),
                        content: block.content.clone(),
                        // Tool messages cannot say that a call has failed.
                        is_error: false,
                    });
                }
            }
            // Results may come in any order. `run_completion` also sorts the ids of the waiting calls.
            let mut ids: Vec<_> =
                turn.answers.results.iter().map(|result| result.call_id.clone()).collect();
            ids.sort();
            // In `[user, assistant with 2 calls, tool, tool]`, `place` is 3, and 3 + 1 - 2 - 1 = 1 message
            // comes before the calls. Its hash is `asked` of the request that the calls answered.
            let calls = (place + 1).checked_sub(ids.len() + 1);
            answered = calls.map(|calls| (hasher.hash_one(text_of(&history[..calls])), ids));
        }
        _ => {
            let message = "the last message must be a user message or a tool result";
            return Err(Refusal::bad_request(message).of("messages"));
        }
    }
    turn.history = history;
    Ok(Completion {
        model: body.model,
        is_stream: body.stream.unwrap_or_default(),
        includes_usage: body.stream_options.and_then(|options| options.include_usage) == Some(true),
        sampling: Sampling::read(&body.others)?,
        tools: tools.iter().map(read_tool).collect::<Result<_, _>>()?,
        turn,
        asked,
        answered,
    })
}

/// Returns messages as text for hashing; equal messages have equal text.
fn text_of(messages: &[Message]) -> String {
    serde_json::to_string(messages).unwrap_or_default()
}

fn read_tool(tool: &Value) -> Result<FnTool, Refusal> {
    let message = "a tool must be {\"type\": \"function\", \"function\": {\"name\", ..}}";
    client_tool(&tool["function"]).ok_or_else(|| Refusal::bad_request(message))
}

/// Gives a call or a result of the older form (`function_call`, the role `function`) the id that it lacks: a result follows
/// its call, and a message has one.
fn give_call_id(message: &mut WireMessage, functions: &mut usize) {
    if let Some(function) = message.function_call.take() {
        *functions += 1;
        let call = json!({"id": format!("function_{functions}"), "function": function});
        message.tool_calls.get_or_insert_default().push(call);
    }
    if message.role == "function" && message.tool_call_id.is_none() {
        message.tool_call_id = Some(format!("function_{functions}"));
    }
}

fn read_message(
    message: WireMessage,
    limits: &ServeLimits,
    arguments: &mut Arguments,
) -> Result<Option<Message>, Refusal> {
    let calls = message.tool_calls.unwrap_or_default();
    check_parts(&message.content, &calls, limits.parts)?;
    Ok(match &*message.role {
        "system" | "developer" => {
            let text = text(&message.content);
            (!text.is_empty()).then(|| Message::system(text))
        }
        "user" => {
            let content = user_content(&message.content);
            (!content.is_empty()).then(|| Message::user_with_blocks(content))
        }
        "assistant" => {
            let refusal = message.refusal.as_ref().and_then(Value::as_str);
            let text = without_thinking(&text(&message.content)) + refusal.unwrap_or_default();
            let mut content: Vec<ContentBlock> = Vec::new();
            if !text.is_empty() {
                content.push(TextBlock::new(text).into());
            }
            for read in &calls {
                content.extend(call(read, arguments)?.map(ContentBlock::from));
            }
            (!content.is_empty()).then(|| Message::assistant(content))
        }
        "tool" | "function" => {
            let Some(id) = message.tool_call_id else {
                return Err(Refusal::bad_request("a tool message has no tool_call_id"));
            };
            let content = match &message.content {
                Value::Array(parts) => result_text(parts),
                content => text(content),
            };
            Some(Message::tool(ToolResultBlock::new(id, content.into())))
        }
        role => return Err(Refusal::bad_request(format!("unknown role {role:?}"))),
    })
}

fn call(call: &Value, arguments: &mut Arguments) -> Result<Option<ToolUseBlock>, Refusal> {
    let function = &call["function"];
    let (Some(id), Some(name)) = (call["id"].as_str(), function["name"].as_str()) else {
        return Ok(None);
    };
    let input = arguments.read(function["arguments"].as_str().unwrap_or_default())?;
    Ok(Some(ToolUseBlock::new(id, name, input.unwrap_or_else(|| json!({})))))
}

fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().flat_map(|part| [&part["text"], &part["refusal"]]);
            texts.filter_map(Value::as_str).collect()
        }
        _ => String::new(),
    }
}

/// Returns the content of a user message. Adjacent texts are joined.
fn user_content(content: &Value) -> Vec<ContentBlock> {
    let mut blocks: Vec<ContentBlock> = Vec::new();
    let parts = match content {
        Value::Array(parts) => &**parts,
        content => std::slice::from_ref(content),
    };
    for part in parts {
        let text = part.as_str().or_else(|| part["text"].as_str());
        match (blocks.last_mut(), text) {
            (Some(ContentBlock::Text(last)), Some(text)) => last.text.push_str(text),
            (_, Some("")) => {}
            (_, Some(text)) => blocks.push(TextBlock::new(text).into()),
            (_, None) if part.is_object() => {
                blocks.push(match image(&part["image_url"]) {
                    Some(image) => image.into(),
                    None => attachment(part),
                });
            }
            (_, None) => {}
        }
    }
    blocks
}

/// Reads an image: `{"url", "detail"}`, or the URL alone, as some clients write it.
fn image(image: &Value) -> Option<ImageBlock> {
    let url = image["url"].as_str().or_else(|| image.as_str())?;
    let detail = serde_json::from_value(image["detail"].clone()).unwrap_or_default();
    Some(ImageBlock::from_url(url).ok()?.with_detail(detail))
}

/// Removes the thinking that a front end has put into the text, before each round of the answer: a model should not see
/// its earlier thinking. Tags within a line or a block of code are text.
fn without_thinking(text: &str) -> String {
    let (mut said, mut rest) = (String::new(), text);
    let mut is_code = false;
    loop {
        let line = rest.trim_start_matches([' ', '\t']);
        if !is_code && let Some(thinking) = line.strip_prefix("<think>") {
            // Not `trim`, which would read all the blanks at the end each time.
            let is_first = said.trim_start().is_empty();
            match thinking.split_once("</think>") {
                Some((_, after)) => {
                    if is_first {
                        said.clear();
                    }
                    rest = after.trim_start();
                    continue;
                }
                // The answer was cut off in its thinking.
                None if is_first => return String::new(),
                None => break,
            }
        }
        // Up to the next line that may begin with a tag.
        let Some(end) = rest.find('\n') else { break };
        let (line, after) = rest.split_at(end + 1);
        is_code ^= line.trim_start().starts_with("```");
        said.push_str(line);
        rest = after;
    }
    said.push_str(rest);
    said
}

#[cfg(test)]
mod tests;
