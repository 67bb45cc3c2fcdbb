//! Deserialization of messages: blocks, as this crate writes them, and the formats of chat APIs.

use std::fmt;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::{Message, MessageRole};
use crate::block::{ContentBlock, TextBlock, ToolResultBlock, ToolUseBlock, ToolUseError};
use crate::nesting::check_nesting;

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = AnyMessage::deserialize(deserializer)?;
        let content = match (read.content, &read.tool_calls) {
            (Some(content), _) => content,
            // Many programs write `null` or nothing beside tool calls.
            (None, Some(_)) => Content::Blocks(Vec::new()),
            (None, None) => return Err(D::Error::missing_field("content")),
        };
        let mut message = Self::new(read.role, Vec::new());
        (message.interrupted, message.extra) = (read.interrupted, read.extra.into());
        message.content = match (content, read.tool_call_id) {
            (content, Some(id)) if read.role == MessageRole::Tool => {
                vec![content.into_result(id, read.name).into()]
            }
            (Content::Text(_), None) if read.role == MessageRole::Tool => {
                // Without the id, the result cannot be matched to a call.
                return Err(D::Error::missing_field("tool_call_id"));
            }
            (content, _) => content.into_blocks(),
        };
        let calls = read.tool_calls.unwrap_or_default();
        message.content.extend(calls.into_iter().map(Call::into_block));
        Ok(message)
    }
}

/// The members of all supported formats.
#[derive(serde::Deserialize)]
struct AnyMessage {
    role: MessageRole,
    content: Option<Content>,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    extra: Map<String, Value>,
    tool_calls: Option<Vec<Call>>,
    tool_call_id: Option<String>,
    name: Option<String>,
}

enum Content {
    Blocks(Vec<ContentBlock>),
    Text(String),
}

impl Content {
    fn into_blocks(self) -> Vec<ContentBlock> {
        match self {
            Self::Blocks(blocks) => blocks,
            Self::Text(text) => vec![TextBlock::new(text).into()],
        }
    }

    fn into_result(self, id: String, name: Option<String>) -> ToolResultBlock {
        let (text, images) = match self {
            Self::Text(text) => (text, Vec::new()),
            Self::Blocks(blocks) => {
                let texts: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
                let text = texts.join("\n");
                let images = blocks.into_iter().filter_map(|block| match block {
                    ContentBlock::Image(image) => Some(image),
                    _ => None,
                });
                (text, images.collect())
            }
        };
        let mut result = ToolResultBlock::new(id, Value::String(text));
        (result.name, result.images) = (name.map(String::into), images);
        result
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

/// Reads a string or a list of blocks. Written by hand because an untagged enum loses the error of a bad block.
struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, blocks: A) -> Result<Content, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(blocks)).map(Content::Blocks)
    }
}

/// The largest part that is kept of arguments that are not a JSON object.
const RAW_BYTES: usize = 16 << 10;

/// A tool call in the format of chat APIs.
#[derive(serde::Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
    function: Function,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(serde::Deserialize)]
struct Function {
    name: String,
    /// A string of JSON; some tools write the object itself.
    #[serde(default)]
    arguments: Value,
}

impl Call {
    fn into_block(mut self) -> ContentBlock {
        self.extra.remove("type");
        let Function { name, arguments } = self.function;
        let input = match arguments {
            Value::String(text) if text.trim().is_empty() => Ok(Value::Object(Map::new())),
            // A call that cannot be read becomes an error block, so that the rest of the conversation loads.
            Value::String(text) => match text.parse::<Value>() {
                Ok(input @ Value::Object(_)) => Ok(input),
                // As servers write it for a call without arguments (QUIRKS row 18).
                Ok(Value::Null) => Ok(Value::Object(Map::new())),
                Ok(_) => Err(("the arguments are not a JSON object".to_owned(), text)),
                Err(error) => Err((format!("the arguments are not valid JSON: {error}"), text)),
            },
            Value::Null => Ok(Value::Object(Map::new())),
            input @ Value::Object(_) => Ok(input),
            other => Err(("the arguments are not a JSON object".to_owned(), other.to_string())),
        };
        let input = input.and_then(|input: Value| {
            let checked = input.as_object().map_or(Ok(()), check_nesting);
            checked.map_err(|error| (error, input.to_string())).map(|()| input)
        });
        match input {
            Ok(input) => {
                let mut call = ToolUseBlock::new(self.id, name, input);
                call.extra = self.extra.into();
                call.into()
            }
            Err((error, mut raw_data)) => {
                let mut ends = (0..=RAW_BYTES.min(raw_data.len())).rev();
                let end = ends.find(|&end| raw_data.is_char_boundary(end));
                raw_data.truncate(end.unwrap_or_default());
                let mut error = ToolUseError::new(error, raw_data);
                (error.id, error.name) = (Some(self.id), Some(name));
                error.into()
            }
        }
    }
}
