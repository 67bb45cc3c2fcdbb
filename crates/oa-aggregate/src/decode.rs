//! Payload bytes to [`Chunk`]: the full reading, which takes any server's JSON.

use std::borrow::Cow;

use oa_types::Usage;
use oa_types::wire::ServerError;
use serde_json::Value;

use crate::chunk::{Choice, Chunk, Fragment, Part, Payload};
use crate::error::Unreadable;
use crate::json::{Invalid, Read, Reader, Scalar, Str};
use crate::template::Template;

/// Decodes the payloads of one stream.
///
/// The chunks of a stream differ in few places: the decoder remembers the last one and where the text
/// lay in it, and a chunk that differs only there is not read but compared. Whatever else differs is
/// read in full, so that the answer is the same either way.
#[derive(Debug, Default)]
pub struct Decoder {
    template: Template,
    skipped: Vec<Scalar>,
    text: String,
    predicted: u64,
    decoded: u64,
}

impl Decoder {
    /// Creates a decoder for one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes one payload: the data of an event, or a whole body that is not an event stream.
    ///
    /// Bytes that are not UTF-8 are read as U+FFFD.
    ///
    /// # Errors
    ///
    /// The payload is neither `[DONE]` nor JSON.
    #[inline]
    pub fn decode<'a>(&'a mut self, payload: &'a [u8]) -> Result<Payload<'a>, Unreadable> {
        if let Some(target) = self.template.match_payload(payload) {
            self.predicted += 1;
            return Ok(Payload::Chunk(self.template.chunk(target, &mut self.text)));
        }
        self.decode_in_full(payload)
    }

    /// Returns how many payloads were told by comparison, and how many were read in full.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.predicted, self.decoded)
    }

    fn decode_in_full<'a>(&'a mut self, payload: &'a [u8]) -> Result<Payload<'a>, Unreadable> {
        if payload.trim_ascii() == b"[DONE]" {
            return Ok(Payload::Done);
        }
        self.decoded += 1;
        let text = match str::from_utf8(payload) {
            Ok(text) => text,
            Err(_) => {
                self.text = String::from_utf8_lossy(payload).into_owned();
                &self.text
            }
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut target = None;
        let mut reader = Reader::new(text, &mut self.skipped);
        let chunk = chunk(&mut reader, &mut target)
            .and_then(|chunk| reader.end().map(|()| chunk))
            .map_err(|Invalid { position }| Unreadable::new(text, position))?;
        self.template.learn(text, &chunk, target, &self.skipped);
        Ok(Payload::Chunk(chunk))
    }
}

/// The string whose changes the template is to follow.
type Target = Option<(usize, usize)>;

fn chunk<'a>(reader: &mut Reader<'a, '_>, target: &mut Target) -> Read<Chunk<'a>> {
    let mut chunk = Chunk::default();
    let mut usage = [None; 3];
    let mut failure = None;
    reader.object(|reader, name| {
        match name {
            "choices" => {
                chunk.choice = None;
                chunk.more.clear();
                *target = None;
                reader.array(|reader| {
                    let (choice, inside) = choice(reader, target)?;
                    usage[1] = usage[1].or(inside);
                    chunk.add_choice(choice);
                    Ok(())
                })?;
            }
            "usage" => usage[0] = read_usage(reader)?,
            "x_groq" => {
                reader.object(|reader, name| {
                    match name {
                        "usage" => usage[2] = read_usage(reader)?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
            }
            "error" => failure = present(reader)?.filter(|error| *error != 0),
            // Wanted once and no more: some servers send another id with each chunk.
            "id" => chunk.id = reader.text_once()?.map(Str::text),
            "model" => chunk.model = reader.text_once()?.map(Str::text),
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    chunk.usage = usage.into_iter().flatten().next();
    chunk.error = failure.map(|value| Box::new(ServerError::from_value(value)));
    Ok(chunk)
}

fn choice<'a>(
    reader: &mut Reader<'a, '_>,
    target: &mut Target,
) -> Read<(Choice<'a>, Option<Usage>)> {
    let mut index = 0;
    let mut finish_reason = None;
    let mut usage = None;
    let (mut delta, mut message) = (None, None);
    reader.object(|reader, name| {
        match name {
            "index" => index = reader.integer()?.unwrap_or(0),
            "delta" => {
                let mut choice = Choice::default();
                delta = says(reader, &mut choice, target)?.then_some(choice);
            }
            // What a body that is not streamed has in place of a delta; beside one it repeats things.
            "message" => {
                let mut choice = Choice::default();
                message = says(reader, &mut choice, &mut None)?.then_some(choice);
            }
            "finish_reason" => finish_reason = reader.text()?.map(Str::text),
            "usage" => usage = read_usage(reader)?,
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    let choice = delta.or(message).unwrap_or_default();
    Ok((Choice { index, finish_reason, ..choice }, usage))
}

/// Reads a delta or a message; false if it is neither.
fn says<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    target: &mut Target,
) -> Read<bool> {
    let (mut reasoning_content, mut reasoning, mut detail) = (None, None, String::new());
    let mut content = None;
    let mut arguments = None;
    let is_object = reader.object(|reader, name| {
        match name {
            "content" => match reader.peek() {
                Some(b'[') => {
                    let mut parts = Vec::new();
                    reader.array(|reader| part(reader, &mut parts))?;
                    if !parts.is_empty() {
                        choice.rare().parts = parts;
                    }
                }
                _ => content = reader.text()?,
            },
            "reasoning_content" => reasoning_content = reader.text()?,
            "reasoning" => reasoning = reader.text()?,
            "reasoning_details" => {
                reader.array(|reader| {
                    if let Some(value) = present(reader)? {
                        let words = ["text", "summary"].into_iter().find_map(|member| {
                            value.get(member)?.as_str().filter(|text| !text.is_empty())
                        });
                        detail.push_str(words.unwrap_or_default());
                        choice.rare().details.push(value);
                    }
                    Ok(())
                })?;
            }
            "refusal" => {
                if let Some(refusal) = reader.text()? {
                    choice.rare().refusal = Some(refusal.text());
                }
            }
            "tool_calls" => match reader.peek() {
                Some(b'[') => {
                    reader.array(|reader| tool_call(reader, choice, &mut arguments))?;
                }
                _ => tool_call(reader, choice, &mut arguments)?,
            },
            "function_call" => {
                let mut fragment = Fragment { legacy: true, ..Fragment::default() };
                function(reader, &mut fragment, &mut arguments)?;
                if fragment.name.is_some() || fragment.arguments.is_some() {
                    choice.add_call(fragment);
                }
            }
            "extra_content" => {
                if let Some(value) = present(reader)? {
                    choice.rare().extra.insert(name.to_owned(), value);
                }
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    // One of them, never two: some servers say the same under several names.
    let thinking = reasoning_content.or(reasoning);
    *target = content.or(thinking).or(arguments).map(|string| (string.start, string.end()));
    if reasoning_content.is_some() && reasoning.is_some() {
        // Where one falls silent the other counts: no single place decides.
        *target = None;
    }
    choice.text = content.map(Str::text);
    choice.thinking = thinking.map(Str::text);
    if choice.thinking.is_none() && !detail.is_empty() {
        choice.thinking = Some(Cow::Owned(detail));
    }
    Ok(is_object)
}

fn part<'a>(reader: &mut Reader<'a, '_>, parts: &mut Vec<Part<'a>>) -> Read<()> {
    if reader.peek() == Some(b'"') {
        parts.extend(reader.text()?.map(|text| Part::Text(text.text())));
        return Ok(());
    }
    let (mut text, mut thinking) = (None, Vec::new());
    reader.object(|reader, name| {
        match name {
            "text" => text = reader.text()?.map(Str::text),
            "thinking" => match reader.peek() {
                Some(b'[') => {
                    reader.array(|reader| {
                        reader.object(|reader, name| {
                            match name {
                                "text" => thinking.extend(reader.text()?.map(Str::text)),
                                _ => reader.skip()?,
                            }
                            Ok(())
                        })?;
                        Ok(())
                    })?;
                }
                _ => thinking.extend(reader.text()?.map(Str::text)),
            },
            // The type says nothing that the members do not: other parts have neither of them.
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    parts.extend(thinking.into_iter().map(Part::Thinking));
    parts.extend(text.map(Part::Text));
    Ok(())
}

fn tool_call<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    target: &mut Option<Str<'a>>,
) -> Read<()> {
    let mut fragment = Fragment::default();
    let mut empty = true;
    reader.object(|reader, name| {
        empty = false;
        match name {
            "index" => fragment.index = reader.integer()?,
            "id" => fragment.id = reader.text()?.map(Str::text),
            "function" => function(reader, &mut fragment, target)?,
            "type" => reader.skip()?,
            _ => {
                if let Some(value) = present(reader)? {
                    fragment.extra.get_or_insert_default().insert(name.to_owned(), value);
                }
            }
        }
        Ok(())
    })?;
    if !empty {
        choice.add_call(fragment);
    }
    Ok(())
}

fn function<'a>(
    reader: &mut Reader<'a, '_>,
    fragment: &mut Fragment<'a>,
    target: &mut Option<Str<'a>>,
) -> Read<()> {
    reader.object(|reader, name| {
        match name {
            "name" => fragment.name = reader.text()?.map(Str::text),
            "arguments" => match reader.peek() {
                Some(b'"') => {
                    let text = reader.text()?;
                    *target = text;
                    fragment.arguments = text.map(Str::text);
                }
                // Any JSON value in place of its text (QUIRKS row 19).
                _ => {
                    let raw = reader.raw()?;
                    *target = None;
                    fragment.arguments = (raw != "null").then_some(Cow::Borrowed(raw));
                }
            },
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok(())
}

fn read_usage(reader: &mut Reader<'_, '_>) -> Read<Option<Usage>> {
    let mut usage = Usage::default();
    reader.object(|reader, name| {
        match name {
            "prompt_tokens" => usage.prompt_tokens = reader.integer()?,
            "completion_tokens" => usage.completion_tokens = reader.integer()?,
            "total_tokens" => usage.total_tokens = reader.integer()?,
            "prompt_tokens_details" => {
                reader.object(|reader, name| {
                    match name {
                        "cached_tokens" => usage.cached_tokens = reader.integer()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
            }
            "completion_tokens_details" => {
                reader.object(|reader, name| {
                    match name {
                        "reasoning_tokens" => usage.reasoning_tokens = reader.integer()?,
                        _ => reader.skip()?,
                    }
                    Ok(())
                })?;
            }
            _ => reader.skip()?,
        }
        Ok(())
    })?;
    Ok((usage != Usage::default()).then_some(usage))
}

/// Any value; null, false, `""`, `[]` and `{}` are absent.
fn present(reader: &mut Reader<'_, '_>) -> Read<Option<Value>> {
    let raw = reader.raw()?;
    // A lone surrogate is the one thing that passes here and not there.
    let Ok(value) = serde_json::from_str::<Value>(raw) else {
        return Ok(Some(Value::String(raw.to_owned())));
    };
    Ok(match &value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        _ => Some(value),
    })
}
