//! Payload bytes to [`Chunk`]: the full reading, which takes any server's JSON.

use std::borrow::Cow;
use std::mem;

use oa_json::held;
use oa_types::Usage;
use serde_json::{Map, Value};

use crate::chunk::{Choice, Chunk, Fragment, Part, Payload};
use crate::error::Unreadable;
use crate::failure;
use crate::form::{Target, Told};
use crate::forms::Forms;
use crate::hole::{Count, Hole, Kind};
use crate::json::{Invalid, Read, Reader, Str};
use crate::reasoning::{Name, Reasoning, words_of_detail};

/// How much is held of one payload by who reads it alone, in bytes.
const ROOM: usize = 64 << 20;

/// Decodes the payloads of one stream.
///
/// The chunks of a stream differ in few places: the decoder remembers a few forms of them and where the
/// text lay in each, and a chunk that differs only there is not read but compared. Whatever else
/// differs is read in full, so that the answer is the same either way. What it has learned may be
/// carried on to the next answer of the server, as [`Forms`].
#[derive(Debug, Default)]
pub struct Decoder {
    forms: Forms,
    skipped: Vec<Hole>,
    text: String,
    /// Strings without their escapes.
    words: String,
    detail: String,
    predicted: u64,
    framed: u64,
    decoded: u64,
}

impl Decoder {
    /// Creates a decoder for one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder for one stream that knows what was learned from others of the same server.
    #[must_use]
    pub fn with_forms(mut forms: Forms) -> Self {
        forms.begin_answer();
        Self { forms, ..Self::default() }
    }

    /// Gives back what it knows and has learned, and forgets it.
    #[must_use = "the forms are for the next decoder"]
    pub fn take_forms(&mut self) -> Forms {
        self.forms.take()
    }

    /// Decodes one payload: the data of an event, or a whole body that is not an event stream.
    ///
    /// Bytes that are not UTF-8 are read as U+FFFD. Of a payload that would take more than 64 MiB of
    /// memory what is beyond that is left out.
    ///
    /// # Errors
    ///
    /// The payload is neither `[DONE]` nor JSON.
    #[inline]
    pub fn decode<'a>(&'a mut self, payload: &'a [u8]) -> Result<Payload<'a>, Unreadable> {
        if let Some(found) = self.forms.find(payload) {
            self.predicted += 1;
            let told = self.forms.told(found, &mut self.words, &mut self.detail);
            return Ok(Payload::Chunk(told.chunk()));
        }
        self.read_within(payload, ROOM)
    }

    /// Returns how many payloads were told by comparison, and how many were read in full.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.predicted, self.decoded)
    }

    /// Returns how many payloads were told by comparison but for their delta, which was read.
    #[must_use]
    pub fn deltas_read(&self) -> u64 {
        self.framed
    }

    /// Tells a payload by comparison, if it can be.
    #[inline]
    pub(crate) fn tell<'a>(&'a mut self, payload: &'a [u8]) -> Option<Told<'a>> {
        let found = self.forms.find(payload)?;
        self.predicted += 1;
        Some(self.forms.told(found, &mut self.words, &mut self.detail))
    }

    /// Reads a payload, as much of it as differs or all, and learns from it. Of what it makes of it no
    /// more than `room` bytes are held: the rest is left out, and the chunk is cut.
    pub(crate) fn read_within<'a>(
        &'a mut self,
        payload: &'a [u8],
        room: usize,
    ) -> Result<Payload<'a>, Unreadable> {
        if payload.trim_ascii() == b"[DONE]" {
            return Ok(Payload::Done);
        }
        if let Some(chunk) = self.read_in_frame(payload, room) {
            self.framed += 1;
            return Ok(Payload::Chunk(chunk));
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
        let mut target = Target::within(room, text.len());
        let mut reader = Reader::new(text, &mut self.skipped);
        let mut chunk = Chunk::default();
        let is_error = read_chunk(&mut reader, &mut chunk, &mut target)
            .and_then(|is_error| reader.end().map(|()| is_error))
            .map_err(|Invalid { position }| Unreadable::new(text, position))?;
        if is_error {
            chunk.error = Some(Box::new(failure::in_body(text.as_bytes(), target.room)));
        }
        chunk.is_cut = target.is_cut;
        if !chunk.is_cut {
            self.forms.learn(text.as_bytes(), &mut chunk, &target, &self.skipped);
        }
        Ok(Payload::Chunk(chunk))
    }

    /// Reads the delta of a payload whose frame is told by comparison.
    fn read_in_frame<'a>(&mut self, payload: &'a [u8], room: usize) -> Option<Chunk<'a>> {
        let frame = self.forms.find_frame(payload)?;
        let mut target = Target::within(room, payload.len());
        let mut chunk = Chunk::default();
        let mut reader = Reader::at_delta(frame.text, frame.start, &mut self.skipped);
        let is_object = read_delta(&mut reader, chunk.add_choice(), &mut target).ok()?;
        if !is_object || reader.end().is_err() || target.is_cut {
            return None;
        }
        let skipped = &mut self.skipped;
        self.forms.learn_in_frame(payload, frame, &mut chunk, &mut target, skipped);
        Some(chunk)
    }
}

/// Reads a chunk; true if the payload as a whole is an error that has no member `error` (QUIRKS row 114).
fn read_chunk<'a>(
    reader: &mut Reader<'a, '_>,
    chunk: &mut Chunk<'a>,
    target: &mut Target<'a>,
) -> Read<bool> {
    // In the order in which they count.
    let (mut top, mut in_choice, mut in_groq) = (None, None, None);
    let mut failure = None;
    let (mut says_error, mut has_code) = (false, false);
    let Some(mut members) = reader.object()? else { return Ok(false) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "choices" => {
                chunk.choice = None;
                chunk.more.clear();
                let Some(mut choices) = reader.array()? else { continue };
                while reader.item(&mut choices)? {
                    if !target.hold_one::<Choice<'_>>() {
                        reader.skip()?;
                        continue;
                    }
                    let inside = read_choice(reader, chunk.add_choice(), target)?;
                    in_choice = in_choice.or(inside);
                }
            }
            "usage" => top = read_usage(reader, target)?,
            "x_groq" => {
                let Some(mut members) = reader.object()? else { continue };
                while let Some(name) = reader.member(&mut members)? {
                    match &*name {
                        "usage" => in_groq = read_usage(reader, target)?,
                        _ => reader.skip()?,
                    }
                }
            }
            "error" => failure = failure::in_member(reader.raw()?.raw, target),
            // Compared in each chunk: a payload that says something else here may be an error.
            "error_code" => has_code = failure::is_in_member(reader.raw()?.raw, target),
            "object" | "type" => {
                says_error |= reader.string_or_absent()?.is_some_and(|word| word.raw == "error");
            }
            // Wanted once and no more: some servers send another id with each chunk.
            "id" => {
                target.seen.ids += 1;
                chunk.id = reader.text_once(Kind::Id)?.map(Str::text);
            }
            "model" => {
                target.seen.models += 1;
                chunk.model = reader.text_once(Kind::Model)?.map(Str::text);
            }
            _ => reader.skip()?,
        }
    }
    chunk.usage = top.or(in_choice).or(in_groq);
    let is_error = failure.is_none() && chunk.choice.is_none() && (says_error || has_code);
    chunk.error = failure.map(Box::new);
    Ok(is_error)
}

fn read_choice<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    target: &mut Target<'a>,
) -> Read<Option<Usage>> {
    let mut index = 0;
    let mut finish_reason = None;
    let mut usage = None;
    let mut has_delta = false;
    let (mut message, mut text) = (None, None);
    let mut failure = None;
    target.forget_words();
    let Some(mut members) = reader.object()? else { return Ok(None) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "index" => {
                target.seen.indices += 1;
                index = reader.noted(Kind::Index)?.unwrap_or(0);
            }
            "delta" => {
                if has_delta {
                    *choice = Choice::default();
                }
                target.forget_words();
                target.seen.deltas += 1;
                let start = reader.position();
                has_delta = read_delta(reader, choice, target)?;
                target.delta = Some(start..reader.position());
            }
            "message" => message = Some(reader.pass()?.raw),
            "text" => text = reader.string_passed()?,
            "finish_reason" => finish_reason = reader.text()?.map(Str::text),
            "error" => failure = failure::in_choice(reader.raw()?.raw, target),
            "usage" => usage = read_usage(reader, target)?,
            _ => reader.skip()?,
        }
    }
    // What a body that is not streamed has in place of a delta; beside one it repeats things.
    if let Some(message) = message.filter(|_| !has_delta) {
        *choice = Choice::default();
        target.forget_words();
        // No template passes it over.
        target.seen.deltas += 2;
        let mut skipped = Vec::new();
        let mut reader = Reader::new(message, &mut skipped);
        let mut inside = target.inside();
        choice.is_message = read_delta(&mut reader, choice, &mut inside)?;
        (target.room, target.is_cut) = (inside.room, target.is_cut | inside.is_cut);
    }
    // What completions without a chat have in place of either (QUIRKS row 116).
    if let Some(text) = text.filter(|_| !has_delta && !choice.is_message) {
        target.seen.deltas += 2;
        choice.text = Some(text.text()).filter(|text| !text.is_empty());
    }
    if let Some(failure) = failure {
        choice.rare().error = Some(Box::new(failure));
    }
    choice.index = index;
    choice.finish_reason = finish_reason;
    Ok(usage)
}

/// Reads a delta or a message; false if it is neither.
fn read_delta<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    target: &mut Target<'a>,
) -> Read<bool> {
    let mut reasoning = Reasoning::default();
    let mut content = None;
    let Some(mut members) = reader.object()? else { return Ok(false) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "content" => match reader.peek() {
                Some(b'[') => {
                    let mut parts = Vec::new();
                    let Some(mut items) = reader.array()? else { continue };
                    while reader.item(&mut items)? {
                        part(reader, &mut parts, target)?;
                    }
                    if !parts.is_empty() {
                        choice.rare().parts = parts;
                    }
                }
                _ => content = reader.string_or_absent()?,
            },
            "reasoning_content" => reasoning.read(Name::Content, reader)?,
            "reasoning" => reasoning.read(Name::Plain, reader)?,
            "reasoning_text" => reasoning.read(Name::Text, reader)?,
            "reasoning_details" => {
                let Some(mut items) = reader.array()? else { continue };
                while reader.item(&mut items)? {
                    let item = reader.raw()?;
                    if let Some(value) = present(item.raw, target)
                        && target.hold_one::<Value>()
                    {
                        reasoning.details.push_str(words_of_detail(&value));
                        let rare = choice.rare();
                        rare.details.push(value);
                        rare.detail_bytes += item.raw.len();
                        target.detail = Some(item);
                    }
                }
            }
            "thinking_blocks" => {
                let Some(mut items) = reader.array()? else { continue };
                while reader.item(&mut items)? {
                    let item = reader.raw()?.raw;
                    if let Some(value) = present(item, target).filter(Value::is_object)
                        && target.hold_one::<Value>()
                    {
                        let words = value.get("thinking").and_then(Value::as_str);
                        reasoning.blocks.push_str(words.unwrap_or_default());
                        let rare = choice.rare();
                        rare.thinking_blocks.push(value);
                        rare.block_bytes += item.len();
                    }
                }
            }
            "refusal" => {
                if let Some(refusal) = reader.text()? {
                    choice.rare().refusal = Some(refusal.text());
                }
            }
            "tool_calls" => match reader.peek() {
                Some(b'[') => {
                    let Some(mut items) = reader.array()? else { continue };
                    while reader.item(&mut items)? {
                        tool_call(reader, choice, target)?;
                    }
                }
                _ => tool_call(reader, choice, target)?,
            },
            "function_call" => {
                let mut fragment = Fragment { legacy: true, ..Fragment::default() };
                let mut arguments = None;
                function(reader, &mut fragment, &mut arguments)?;
                if (fragment.name.is_some() || fragment.arguments.is_some())
                    && target.hold_one::<Fragment<'_>>()
                {
                    target.arguments = arguments;
                    choice.add_call(fragment);
                }
            }
            "extra_content" => {
                if let Some(mut value) = present_member(&name, reader.raw()?.raw, target) {
                    let rare = choice.rare();
                    rare.is_thought = take_thought_mark(&mut value);
                    if !rare.is_thought || value != Value::Object(Map::new()) {
                        rare.extra.insert(name.into_owned(), value);
                    }
                }
            }
            // A signature of the thinking, in one piece (QUIRKS row 105).
            "reasoning_opaque" => {
                if let Some(signature) = reader.text()?
                    && target.hold(held::member(&name) + signature.raw.len())
                {
                    choice.rare().extra.insert(name.into_owned(), signature.text().into());
                }
            }
            _ => reader.skip()?,
        }
    }
    if reasoning.is_present() {
        reasoning.tell(choice, target);
    }
    target.text = content;
    choice.text = content.map(Str::text).filter(|text| !text.is_empty());
    Ok(true)
}

fn part<'a>(
    reader: &mut Reader<'a, '_>,
    parts: &mut Vec<Part<'a>>,
    target: &mut Target<'a>,
) -> Read<()> {
    if !target.hold_one::<Part<'_>>() {
        return reader.skip();
    }
    if reader.peek() == Some(b'"') {
        parts.extend(reader.text()?.map(|text| Part::Text(text.text())));
        return Ok(());
    }
    let (mut text, mut thinking) = (None, Vec::new());
    let Some(mut members) = reader.object()? else { return Ok(()) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "text" => text = reader.text()?.map(Str::text),
            "thinking" => match reader.peek() {
                Some(b'[') => {
                    let Some(mut items) = reader.array()? else { continue };
                    while reader.item(&mut items)? {
                        let Some(mut members) = reader.object()? else { continue };
                        while let Some(name) = reader.member(&mut members)? {
                            match &*name {
                                // Once here, and once among the parts.
                                "text" if !target.hold(6 * size_of::<Part<'_>>()) => {
                                    reader.skip()?;
                                }
                                "text" => thinking.extend(reader.text()?.map(Str::text)),
                                _ => reader.skip()?,
                            }
                        }
                    }
                }
                _ => thinking.extend(reader.text()?.map(Str::text)),
            },
            // The type says nothing that the members do not: other parts have neither of them.
            _ => reader.skip()?,
        }
    }
    parts.extend(thinking.into_iter().map(Part::Thinking));
    parts.extend(text.map(Part::Text));
    Ok(())
}

fn tool_call<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    target: &mut Target<'a>,
) -> Read<()> {
    let mut fragment = Fragment::default();
    let mut empty = true;
    let Some(mut members) = reader.object()? else { return Ok(()) };
    while let Some(name) = reader.member(&mut members)? {
        empty = false;
        match &*name {
            "index" => fragment.index = reader.integer()?,
            "id" => fragment.id = reader.text()?.map(Str::text),
            "function" => function(reader, &mut fragment, &mut target.arguments)?,
            "type" => reader.skip()?,
            _ => {
                if let Some(value) = present_member(&name, reader.raw()?.raw, target) {
                    fragment.extra.get_or_insert_default().insert(name.into_owned(), value);
                }
            }
        }
    }
    if !empty && target.hold_one::<Fragment<'_>>() {
        choice.add_call(fragment);
    }
    Ok(())
}

/// Reads what a call's function has; `target` is the string of its arguments, if they are one.
fn function<'a>(
    reader: &mut Reader<'a, '_>,
    fragment: &mut Fragment<'a>,
    target: &mut Option<Str<'a>>,
) -> Read<()> {
    let Some(mut members) = reader.object()? else { return Ok(()) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "name" => fragment.name = reader.text()?.map(Str::text),
            "arguments" => match reader.peek() {
                Some(b'"') => {
                    *target = reader.string_or_absent()?;
                    fragment.arguments = target.map(Str::text).filter(|text| !text.is_empty());
                }
                // Any JSON value in place of its text (QUIRKS row 19).
                _ => {
                    let raw = reader.raw()?.raw;
                    *target = None;
                    fragment.arguments = (raw != "null").then_some(Cow::Borrowed(raw));
                }
            },
            _ => reader.skip()?,
        }
    }
    Ok(())
}

fn read_usage(reader: &mut Reader<'_, '_>, target: &mut Target<'_>) -> Read<Option<Usage>> {
    target.seen.usages += 1;
    let mut usage = Usage::default();
    // What stands beside the counts and not in their details (QUIRKS row 113).
    let mut flat = Usage::default();
    let mut seen = [false; 5];
    let mut take = |reader: &mut Reader<'_, '_>, count: Count, usage: &mut Usage| {
        if mem::replace(&mut seen[count as usize], true) {
            // Of two members of one name the last counts, and details before what stands beside them: no
            // single place decides.
            target.seen.usages += 1;
        }
        *count.of(usage) = reader.noted(Kind::Count(count))?;
        Ok(())
    };
    let Some(mut members) = reader.object()? else { return Ok(None) };
    while let Some(name) = reader.member(&mut members)? {
        let (details, count) = match &*name {
            "prompt_tokens" => (None, Count::Prompt),
            "completion_tokens" => (None, Count::Completion),
            "total_tokens" => (None, Count::Total),
            "prompt_tokens_details" => (Some("cached_tokens"), Count::Cached),
            "completion_tokens_details" => (Some("reasoning_tokens"), Count::Reasoning),
            "cached_tokens" => {
                take(reader, Count::Cached, &mut flat)?;
                continue;
            }
            "reasoning_tokens" => {
                take(reader, Count::Reasoning, &mut flat)?;
                continue;
            }
            _ => {
                reader.skip()?;
                continue;
            }
        };
        let Some(member) = details else {
            take(reader, count, &mut usage)?;
            continue;
        };
        let Some(mut members) = reader.object()? else { continue };
        while let Some(name) = reader.member(&mut members)? {
            if *name == *member { take(reader, count, &mut usage)? } else { reader.skip()? }
        }
    }
    flat.merge(&usage);
    let usage = flat;
    Ok((usage != Usage::default()).then_some(usage))
}

/// Takes `google.thought` out, which says of the text beside it that it is thinking (QUIRKS row 109); what
/// is left goes back to the server.
fn take_thought_mark(value: &mut Value) -> bool {
    let Some(members) = value.as_object_mut() else { return false };
    let Some(google) = members.get_mut("google").and_then(Value::as_object_mut) else {
        return false;
    };
    if google.get("thought") != Some(&Value::Bool(true)) {
        return false;
    }
    google.remove("thought");
    if google.is_empty() {
        members.remove("google");
    }
    true
}

/// The value of a member that is kept, as [`present`] reads it.
fn present_member(name: &str, raw: &str, target: &mut Target<'_>) -> Option<Value> {
    present(raw, target).filter(|_| target.hold(held::member(name)))
}

/// Any value; null, false, `""`, `[]` and `{}` are absent, and so is what there is no room for.
pub(crate) fn present(raw: &str, target: &mut Target<'_>) -> Option<Value> {
    // No tree is built that does not fit.
    if !held::fits(raw, target.room) {
        target.is_cut = true;
        return None;
    }
    // Lone surrogates and numbers of Python pass here and not there.
    let Ok(value) = serde_json::from_str::<Value>(raw) else {
        return Some(Value::String(raw.to_owned()));
    };
    target.hold_value(&value);
    match &value {
        Value::Null | Value::Bool(false) => None,
        Value::String(text) if text.is_empty() => None,
        Value::Array(list) if list.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        _ => Some(value),
    }
}
