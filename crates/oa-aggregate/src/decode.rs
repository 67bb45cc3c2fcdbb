//! The full reading of a payload into a [`Chunk`], for any server's JSON.

use std::borrow::Cow;
use std::mem;

use oa_json::{Halves, JsonStr, held};
use oa_types::wire::FailureMarks;
use oa_types::{PromptProgress, Usage};
use serde_json::{Map, Value};

use crate::allowance::Allowance;
use crate::chunk::{Choice, Chunk, Fragment, Payload};
use crate::error::UnreadablePayload;
use crate::failure;
use crate::json::{Invalid, Read, Reader};
use crate::parts::Parts;
use crate::reasoning::{Name, Reasoning, words_of_detail};
use crate::stream_status::StreamStatus;
use crate::template::slot::{Count, Slot, SlotKind};
use crate::template::{Matched, MemberCounts, Notes, TemplateCache};
use crate::value::{present, present_member};

/// The memory that one payload may take if the decoder is used alone, in bytes.
const ROOM: usize = 64 << 20;

/// Decodes the payloads of one stream.
///
/// The chunks of a stream differ in few places. The decoder keeps some of them as templates. A chunk that differs from
/// a template only in its values is compared with it instead of being parsed; any other is read in full. The result is
/// the same. Templates can be reused for the server's next answer: see [`TemplateCache`].
#[derive(Debug, Default)]
pub struct Decoder {
    templates: TemplateCache,
    /// The templates, while payloads must be read in full.
    unused: Option<TemplateCache>,
    skipped: Vec<Slot>,
    text: String,
    /// Strings without their escapes.
    words: String,
    detail: String,
    matched: u64,
    framed: u64,
    decoded: u64,
}

impl Decoder {
    /// Creates a decoder for one stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder for one stream with the templates of earlier answers of the same server.
    #[must_use]
    pub fn with_templates(mut templates: TemplateCache) -> Self {
        templates.begin_answer();
        Self { templates, ..Self::default() }
    }

    /// Removes and returns the templates that it was given or has learned.
    #[must_use = "the templates are for the next decoder"]
    pub fn take_templates(&mut self) -> TemplateCache {
        self.read_in_full(false);
        self.templates.take()
    }

    /// Stops using the templates, or uses them again. Without them, finding one costs nothing.
    pub(crate) fn read_in_full(&mut self, in_full: bool) {
        if in_full {
            // Those learned meanwhile are of no use, either.
            let learned = self.templates.take();
            self.unused.get_or_insert(learned);
        } else if let Some(unused) = self.unused.take() {
            self.templates = unused;
        }
    }

    /// Decodes one payload: the data of an event, or a whole body that is not an event stream.
    ///
    /// Bytes that are not UTF-8 are read as U+FFFD. The part of a payload beyond 64 MiB of memory is left out.
    ///
    /// # Errors
    ///
    /// The payload is neither `[DONE]` nor JSON.
    #[inline]
    pub fn decode<'a>(&'a mut self, payload: &'a [u8]) -> Result<Payload<'a>, UnreadablePayload> {
        if let Some(captures) = self.templates.find(payload) {
            self.matched += 1;
            let matched = self.templates.matched(captures, &mut self.words, &mut self.detail);
            return Ok(Payload::Chunk(matched.into_chunk()));
        }
        let mut chunk = Chunk::default();
        Ok(match self.read_within(payload, ROOM, &mut chunk)? {
            StreamStatus::Done => Payload::Done,
            StreamStatus::More => Payload::Chunk(chunk),
        })
    }

    /// Returns the number of payloads that matched a template, and of those that were read in full.
    #[must_use]
    pub fn hits_and_misses(&self) -> (u64, u64) {
        (self.matched, self.decoded)
    }

    /// Returns the number of payloads that matched a template except for their delta, which was read.
    #[must_use]
    pub fn deltas_read(&self) -> u64 {
        self.framed
    }

    /// Recognizes a payload by comparison, if it matches a template.
    #[inline]
    pub(crate) fn recognize<'a>(&'a mut self, payload: &'a [u8]) -> Option<Matched<'a>> {
        let captures = self.templates.find(payload)?;
        self.matched += 1;
        Some(self.templates.matched(captures, &mut self.words, &mut self.detail))
    }

    /// Reads a payload, in full or only the part that differs, and learns from it. The result takes at most `room`
    /// bytes; the rest is left out, and the chunk is marked as cut. An empty payload is a ping.
    /// The chunk, which is empty before, is filled in place: it is some 300 bytes that need not move.
    pub(crate) fn read_within<'a>(
        &'a mut self,
        payload: &'a [u8],
        room: usize,
        chunk: &mut Chunk<'a>,
    ) -> Result<StreamStatus, UnreadablePayload> {
        match payload.trim_ascii() {
            b"[DONE]" => return Ok(StreamStatus::Done),
            b"" => return Ok(StreamStatus::More),
            _ => {}
        }
        if self.read_in_frame(payload, room, chunk).is_some() {
            self.framed += 1;
            return Ok(StreamStatus::More);
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
        let mut notes = Notes::default();
        let mut allowance = Allowance::new(room, text.len());
        let mut reader = Reader::new(text, &mut self.skipped);
        let is_error = read_chunk(&mut reader, chunk, &mut notes, &mut allowance)
            .and_then(|is_error| reader.end().map(|()| is_error))
            .map_err(|Invalid { position }| UnreadablePayload::new(text, position))?;
        if is_error {
            let whole = failure::in_body(text.as_bytes(), allowance.room);
            // The members beside `error` may say no more than it does.
            if chunk.error.as_ref().is_none_or(|known| known.message != whole.message) {
                chunk.error = Some(Box::new(whole));
            }
        }
        chunk.is_cut = allowance.is_cut;
        // A template would treat the numbers of a progress report as values that do not matter.
        if !chunk.is_cut && chunk.prompt_progress.is_none() {
            self.templates.learn(text.as_bytes(), chunk, &notes, &mut self.skipped);
        }
        Ok(StreamStatus::More)
    }

    /// Reads the delta of a payload that matches a template everywhere else. If there is none, the chunk stays empty.
    fn read_in_frame<'a>(
        &mut self,
        payload: &'a [u8],
        room: usize,
        chunk: &mut Chunk<'a>,
    ) -> Option<()> {
        let frame = self.templates.find_frame(payload)?;
        let mut notes = Notes::default();
        let mut allowance = Allowance::new(room, payload.len());
        let mut reader = Reader::at_delta(frame.text, frame.start, &mut self.skipped);
        let choice = chunk.add_choice();
        let is_object = read_delta(&mut reader, choice, &mut notes, &mut allowance);
        // The frame's text must end with the delta. Otherwise other members follow the delta.
        if is_object != Ok(true) || reader.end().is_err() || allowance.is_cut {
            *chunk = Chunk::default();
            return None;
        }
        self.templates.learn_in_frame(payload, frame, chunk, &mut notes, &mut self.skipped);
        Some(())
    }
}

/// Reads a chunk; true if the payload as a whole is an error: it has no member `error` (QUIRKS row 114), or one that
/// may be explained by the members beside it, such as `{"error": true, "message": ".."}`.
fn read_chunk<'a>(
    reader: &mut Reader<'a, '_>,
    chunk: &mut Chunk<'a>,
    notes: &mut Notes<'a>,
    allowance: &mut Allowance,
) -> Read<bool> {
    // In order of precedence.
    let (mut top, mut in_choice, mut in_groq) = (None, None, None);
    let mut failure = None;
    let mut marks = FailureMarks::default();
    if reader.peek() == Some(b'[') {
        return is_list_of_errors(reader, allowance);
    }
    let Some(mut members) = reader.object()? else { return Ok(false) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "choices" => {
                chunk.choice = None;
                chunk.more.clear();
                let Some(mut choices) = reader.array()? else { continue };
                while reader.item(&mut choices)? {
                    if !allowance.hold_one::<Choice<'_>>() {
                        reader.skip()?;
                        continue;
                    }
                    let inside = read_choice(reader, chunk.add_choice(), notes, allowance)?;
                    in_choice = in_choice.or(inside);
                }
            }
            "usage" => top = read_usage(reader, &mut notes.members)?,
            "x_groq" => {
                let Some(mut members) = reader.object()? else { continue };
                while let Some(name) = reader.member(&mut members)? {
                    match &*name {
                        "usage" => in_groq = read_usage(reader, &mut notes.members)?,
                        _ => reader.skip()?,
                    }
                }
            }
            "prompt_progress" => {
                chunk.prompt_progress = PromptProgress::from_wire(reader.raw()?.raw).map(Box::new);
            }
            "error" => failure = failure::in_member(reader.raw()?.raw, allowance),
            // Compared in each chunk, because a payload with a different value may be an error.
            "code" | "detail" | "error_code" | "errors" | "message" | "msg" | "object"
            | "status" | "type" => marks.note(&name, reader.raw()?.raw),
            // Needed only once: some servers send a different id with each chunk.
            "id" => {
                notes.members.ids += 1;
                chunk.id = reader.text_once(SlotKind::Id)?.map(JsonStr::text);
            }
            "model" => {
                notes.members.models += 1;
                chunk.model = reader.text_once(SlotKind::Model)?.map(JsonStr::text);
            }
            _ => reader.skip()?,
        }
    }
    chunk.usage = top.or(in_choice).or(in_groq);
    let is_error = match &failure {
        None => marks.is_failure(),
        Some(error) => error.message.is_empty() || !error.raw.is_object(),
    };
    let is_error = is_error && chunk.choice.is_none();
    chunk.error = failure.map(Box::new);
    Ok(is_error)
}

/// Reads a list; true if its first item reports an error (QUIRKS row 102). A list of anything else is ignored.
fn is_list_of_errors(reader: &mut Reader<'_, '_>, allowance: &Allowance) -> Read<bool> {
    let Some(mut items) = reader.array()? else { return Ok(false) };
    let mut is_error = false;
    if reader.item(&mut items)? {
        if let Some(mut members) = reader.object()? {
            while let Some(name) = reader.member(&mut members)? {
                let raw = reader.raw()?.raw;
                is_error |= &*name == "error" && failure::in_member(raw, allowance).is_some();
            }
        }
        while reader.item(&mut items)? {
            reader.skip()?;
        }
    }
    Ok(is_error)
}

fn read_choice<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    notes: &mut Notes<'a>,
    allowance: &mut Allowance,
) -> Read<Option<Usage>> {
    let mut index = 0;
    let mut finish_reason = None;
    let mut usage = None;
    let mut has_delta = false;
    let (mut message, mut text) = (None, None);
    let mut failure = None;
    notes.forget_words();
    let Some(mut members) = reader.object()? else { return Ok(None) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "index" => {
                notes.members.indices += 1;
                index = reader.noted(SlotKind::Index)?.unwrap_or(0);
            }
            "delta" => {
                if has_delta {
                    // Of two members with one name the last counts.
                    *choice = Choice::default();
                }
                notes.forget_words();
                notes.members.deltas += 1;
                let start = reader.position();
                has_delta = read_delta(reader, choice, notes, allowance)?;
                notes.delta = Some(start..reader.position());
            }
            // Recorded as skipped, which it is beside a delta.
            "message" => message = Some(reader.pass()?.raw),
            "text" => text = reader.text_once(SlotKind::String)?.map(JsonStr::text),
            "finish_reason" => finish_reason = reader.text()?.map(JsonStr::text),
            "error" => failure = failure::in_choice(reader.raw()?.raw, allowance),
            "usage" => usage = read_usage(reader, &mut notes.members)?,
            _ => reader.skip()?,
        }
    }
    // A body that is not streamed has this instead of a delta; beside a delta it repeats content.
    if let Some(message) = message.filter(|_| !has_delta) {
        *choice = Choice::default();
        notes.forget_words();
        // Two deltas are not unique, so no template is made of it.
        notes.members.deltas += 2;
        let mut skipped = Vec::new();
        let mut reader = Reader::new(message, &mut skipped);
        choice.is_message = read_delta(&mut reader, choice, &mut Notes::default(), allowance)?;
    }
    // Legacy completions have this instead of either (QUIRKS row 116).
    if let Some(text) = text.filter(|_| !has_delta && !choice.is_message) {
        notes.members.deltas += 2;
        choice.text = Some(text);
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
    notes: &mut Notes<'a>,
    allowance: &mut Allowance,
) -> Read<bool> {
    let mut reasoning = Reasoning::default();
    let (mut content, mut parts) = (None, Parts::default());
    let mut legacy = None;
    let Some(mut members) = reader.object()? else { return Ok(false) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "content" => {
                // Of two members with one name the last counts.
                (content, parts) = match reader.peek() {
                    Some(b'[') => (None, Parts::read(reader, allowance)?),
                    _ => (reader.string_or_absent()?, Parts::default()),
                }
            }
            "reasoning_content" => reasoning.read(Name::Content, reader)?,
            "reasoning" => reasoning.read(Name::Plain, reader)?,
            "reasoning_text" => reasoning.read(Name::Text, reader)?,
            "reasoning_details" => {
                let Some(mut items) = reader.array()? else { continue };
                while reader.item(&mut items)? {
                    let item = reader.raw()?;
                    if let Some(value) = present(item.raw, allowance)
                        && allowance.hold_one::<Value>()
                    {
                        reasoning.details.push_str(words_of_detail(&value));
                        let rare = choice.rare();
                        rare.details.push(value);
                        rare.detail_bytes += item.raw.len();
                        notes.detail = Some(item);
                    }
                }
            }
            "thinking_blocks" => {
                let Some(mut items) = reader.array()? else { continue };
                while reader.item(&mut items)? {
                    let item = reader.raw()?.raw;
                    if let Some(value) = present(item, allowance).filter(Value::is_object)
                        && allowance.hold_one::<Value>()
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
                let refusal = reader.text()?.map(JsonStr::text);
                if refusal.is_some() || choice.rare.is_some() {
                    choice.rare().refusal = refusal;
                }
            }
            "tool_calls" => match reader.peek() {
                Some(b'[') => {
                    let Some(mut items) = reader.array()? else { continue };
                    while reader.item(&mut items)? {
                        tool_call(reader, choice, notes, allowance)?;
                    }
                }
                _ => tool_call(reader, choice, notes, allowance)?,
            },
            "function_call" => {
                let mut fragment = Fragment { legacy: true, ..Fragment::default() };
                let mut arguments = None;
                function(reader, &mut fragment, &mut arguments)?;
                let has_content = fragment.name.is_some() || fragment.arguments.is_some();
                legacy = has_content.then_some((fragment, arguments));
            }
            "extra_content" => {
                if let Some(mut value) = present_member(&name, reader.raw()?.raw, allowance) {
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
                    && allowance.hold(held::member(&name) + signature.raw.len())
                {
                    choice.rare().extra.insert(name.into_owned(), signature.text().into());
                }
            }
            _ => reader.skip()?,
        }
    }
    if reasoning.is_present() {
        reasoning.tell(choice, notes);
    }
    if let Some((fragment, arguments)) = legacy {
        notes.is_ambiguous |= choice.call.is_some();
        // A repeat of a call in `tool_calls` (QUIRKS row 125), whose name may differ.
        let repeats = |call: &Fragment<'_>| {
            call.arguments == fragment.arguments
                && (call.arguments.is_some() || call.name == fragment.name)
        };
        if !choice.calls().any(repeats) && allowance.hold_one::<Fragment<'_>>() {
            notes.arguments = arguments;
            choice.add_call(fragment);
        }
    }
    parts.tell(choice);
    notes.text = content;
    choice.text = content.map(JsonStr::text).filter(|text| !text.is_empty());
    choice.halves[0] = content.map(JsonStr::halves).unwrap_or_default();
    Ok(true)
}

fn tool_call<'a>(
    reader: &mut Reader<'a, '_>,
    choice: &mut Choice<'a>,
    notes: &mut Notes<'a>,
    allowance: &mut Allowance,
) -> Read<()> {
    let mut fragment = Fragment::default();
    let (mut empty, mut has_function) = (true, false);
    let Some(mut members) = reader.object()? else { return Ok(()) };
    while let Some(name) = reader.member(&mut members)? {
        empty = false;
        match &*name {
            // No slots: a template has one index, id and name, and other calls must not match it.
            "index" => fragment.index = reader.integer()?,
            "id" => fragment.id = reader.text()?.map(JsonStr::text),
            "function" => {
                has_function = reader.peek() == Some(b'{');
                function(reader, &mut fragment, &mut notes.arguments)?;
            }
            "type" => reader.skip()?,
            _ => {
                if let Some(value) = present_member(&name, reader.raw()?.raw, allowance) {
                    fragment.extra.get_or_insert_default().insert(name.into_owned(), value);
                }
            }
        }
    }
    // The members of a function that is not there (QUIRKS row 134).
    if !has_function && let Some(extra) = &mut fragment.extra {
        let mut take = |name| match extra.remove(name)? {
            Value::String(text) => Some(Cow::Owned(text)),
            value => Some(Cow::Owned(value.to_string())),
        };
        (fragment.name, fragment.arguments) = (take("name"), take("arguments"));
    }
    if !empty && allowance.hold_one::<Fragment<'_>>() {
        choice.add_call(fragment);
    }
    Ok(())
}

/// Reads the function of a call; `target` is the string of its arguments, if they are a string.
fn function<'a>(
    reader: &mut Reader<'a, '_>,
    fragment: &mut Fragment<'a>,
    target: &mut Option<JsonStr<'a>>,
) -> Read<()> {
    let Some(mut members) = reader.object()? else { return Ok(()) };
    while let Some(name) = reader.member(&mut members)? {
        match &*name {
            "name" => fragment.name = reader.text()?.map(JsonStr::text),
            "arguments" => match reader.peek() {
                Some(b'"') => {
                    *target = reader.string_or_absent()?;
                    fragment.arguments = target.map(JsonStr::text).filter(|text| !text.is_empty());
                    fragment.halves = target.map(JsonStr::halves).unwrap_or_default();
                }
                // Any JSON value instead of its text (QUIRKS row 19).
                _ => {
                    let raw = reader.raw()?.raw;
                    (*target, fragment.halves) = (None, Halves::default());
                    fragment.arguments =
                        (!matches!(raw, "null" | "[]")).then_some(Cow::Borrowed(raw));
                }
            },
            _ => reader.skip()?,
        }
    }
    Ok(())
}

fn read_usage(reader: &mut Reader<'_, '_>, counts: &mut MemberCounts) -> Read<Option<Usage>> {
    counts.usages += 1;
    let mut usage = Usage::default();
    // Counts beside the details rather than in them (QUIRKS row 113).
    let mut flat = Usage::default();
    let mut seen = [false; 5];
    let mut take = |reader: &mut Reader<'_, '_>, count: Count, usage: &mut Usage| {
        if mem::replace(&mut seen[count as usize], true) {
            // Of two members with one name the last counts, and details take precedence over counts beside them, so no
            // single place decides.
            counts.usages += 1;
        }
        *count.field(usage) = reader.noted(SlotKind::Count(count))?;
        Ok(())
    };
    let Some(mut members) = reader.object()? else { return Ok(None) };
    while let Some(name) = reader.member(&mut members)? {
        let (details, count, usage) = match &*name {
            "prompt_tokens" => (None, Count::Prompt, &mut usage),
            "completion_tokens" => (None, Count::Completion, &mut usage),
            "total_tokens" => (None, Count::Total, &mut usage),
            "prompt_tokens_details" => (Some("cached_tokens"), Count::Cached, &mut usage),
            "completion_tokens_details" => (Some("reasoning_tokens"), Count::Reasoning, &mut usage),
            "cached_tokens" | "prompt_cache_hit_tokens" => (None, Count::Cached, &mut flat),
            "reasoning_tokens" => (None, Count::Reasoning, &mut flat),
            _ => {
                reader.skip()?;
                continue;
            }
        };
        let Some(member) = details else {
            take(reader, count, usage)?;
            continue;
        };
        let Some(mut members) = reader.object()? else { continue };
        while let Some(name) = reader.member(&mut members)? {
            if *name == *member { take(reader, count, usage)? } else { reader.skip()? }
        }
    }
    // Details take precedence, wherever they are in the object.
    flat.merge(&usage);
    let usage = flat;
    Ok((usage != Usage::default()).then_some(usage))
}

/// Removes `google.thought`, which marks the text beside it as thinking (QUIRKS row 109); the rest goes back.
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
