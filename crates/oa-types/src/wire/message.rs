use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::block::{ContentBlock, ToolResultBlock, ToolUseBlock};
use crate::image::ImageDetail;
use crate::message::{Message, MessageRole};

/// How a server wants messages written; the defaults are what every local server takes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Form {
    /// The content of an assistant's message that has calls but no text.
    pub empty_content: EmptyContent,
    /// Whether and how the model's thinking goes back to it.
    pub thinking: ThinkingReplay,
}

/// The content of a message without text (QUIRKS rows 83 and 84).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum EmptyContent {
    /// The member is left out.
    Absent,
    /// `""`.
    #[default]
    Empty,
    /// `null`.
    Null,
}

/// How thinking goes back to the server (QUIRKS row 94).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum ThinkingReplay {
    /// Not at all.
    #[default]
    Drop,
    /// As `reasoning`.
    Reasoning,
    /// As `reasoning_content`.
    ReasoningContent,
}

/// Appends a message to a list of messages: one JSON object, or one for each tool result, with commas
/// between them and before them unless `out` ends with `[`.
///
/// Messages that say nothing are left out, since servers refuse them (QUIRKS rows 85 and 86).
pub fn write_message(message: &Message, form: &Form, out: &mut Vec<u8>) {
    match message.role {
        MessageRole::Assistant => write_assistant(message, form, out),
        MessageRole::System | MessageRole::User => {
            let content = content(&message.content);
            if content != Value::String(String::new()) {
                let role = message.role.as_str();
                write(&json!({ "role": role, "content": content }), out);
            }
        }
        MessageRole::Tool => {}
    }
    for block in &message.content {
        if let ContentBlock::ToolResult(result) = block {
            write_result(result, out);
        }
    }
}

fn write_assistant(message: &Message, form: &Form, out: &mut Vec<u8>) {
    let text = message.text();
    let calls: Vec<Value> = message.content.iter().filter_map(tool_call).collect();
    if text.is_empty() && calls.is_empty() {
        return;
    }
    let mut object = Map::new();
    object.insert("role".into(), "assistant".into());
    match form.empty_content {
        EmptyContent::Absent if text.is_empty() => {}
        EmptyContent::Null if text.is_empty() => drop(object.insert("content".into(), Value::Null)),
        _ => drop(object.insert("content".into(), text.into())),
    }
    let thinking = match form.thinking {
        ThinkingReplay::Drop => None,
        ThinkingReplay::Reasoning => Some("reasoning"),
        ThinkingReplay::ReasoningContent => Some("reasoning_content"),
    };
    if let Some(member) = thinking {
        let thoughts: String = message
            .content
            .iter()
            .filter_map(|block| match block {
                ContentBlock::Thinking(block) => Some(&*block.thinking),
                _ => None,
            })
            .collect();
        if !thoughts.is_empty() {
            object.insert(member.into(), thoughts.into());
        }
    }
    if !calls.is_empty() {
        object.insert("tool_calls".into(), calls.into());
    }
    for (member, value) in &message.extra {
        object.entry(member).or_insert_with(|| value.clone());
    }
    write(&object, out);
}

fn tool_call(block: &ContentBlock) -> Option<Value> {
    let ContentBlock::ToolUse(ToolUseBlock { id, name, input, extra }) = block else {
        return None;
    };
    // Arguments are a string of valid JSON (QUIRKS row 93).
    let arguments = if input.is_object() { input.to_string() } else { "{}".to_owned() };
    let mut call = json!({
        "id": id,
        "type": "function",
        "function": { "name": name, "arguments": arguments },
    });
    if let Value::Object(members) = &mut call {
        for (member, value) in extra {
            members.entry(member).or_insert_with(|| value.clone());
        }
    }
    Some(call)
}

fn write_result(result: &ToolResultBlock, out: &mut Vec<u8>) {
    let content = match &result.content {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    };
    let mut object = json!({
        "role": "tool",
        "tool_call_id": result.tool_use_id,
        "content": content,
    });
    if let Some(name) = &result.name {
        object["name"] = name.as_str().into();
    }
    write(&object, out);
}

/// A plain string unless there are images (QUIRKS row 97).
fn content(blocks: &[ContentBlock]) -> Value {
    if !blocks.iter().any(|block| matches!(block, ContentBlock::Image(_))) {
        let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
        return texts.join("\n").into();
    }
    blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Image(image) if image.detail == ImageDetail::Auto => {
                Some(json!({ "type": "image_url", "image_url": { "url": image.url } }))
            }
            ContentBlock::Image(image) => Some(json!({
                "type": "image_url",
                "image_url": { "url": image.url, "detail": image.detail },
            })),
            ContentBlock::Text(text) if !text.text.is_empty() => {
                Some(json!({ "type": "text", "text": text.text }))
            }
            _ => None,
        })
        .collect()
}

fn write(value: &impl Serialize, out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'[')) {
        out.push(b',');
    }
    serde_json::to_writer(out, value).expect("values with text keys always serialise");
}
