use std::borrow::Cow;

use oa_json::Halves;
use oa_types::wire::ServerError;
use oa_types::{PromptProgress, Usage};
use serde_json::{Map, Value};

/// One payload of a stream: a chunk, or its end.
#[derive(Debug)]
#[non_exhaustive]
#[expect(clippy::large_enum_variant, reason = "nearly all are chunks, and none is ever kept")]
pub enum Payload<'a> {
    /// A piece of the answer.
    Chunk(Chunk<'a>),
    /// `[DONE]`: the stream is complete.
    Done,
}

/// One decoded payload. Strings without escapes are borrowed from it.
///
/// Every member is optional. Null, the empty string, the empty list and values of an unexpected type count as absent,
/// except that an integer may be in quotes.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// The server's id of the answer. Absent from a chunk that matched a template, unless the first of its answer.
    pub id: Option<Cow<'a, str>>,
    /// The model that answers. Absent from a chunk that matched a template, unless it is the first of its answer.
    pub model: Option<Cow<'a, str>>,
    /// An error that the server reports inside the stream, with or without other content.
    pub error: Option<Box<ServerError>>,
    /// The usage so far, wherever it is in the payload.
    pub usage: Option<Usage>,
    /// The progress of reading the prompt (QUIRKS row 122).
    pub prompt_progress: Option<Box<PromptProgress>>,
    /// The first choice; nearly always the only one.
    pub(crate) choice: Option<Choice<'a>>,
    /// Further choices. An empty list does not allocate.
    pub(crate) more: Vec<Choice<'a>>,
    /// The number of the shape of its only reasoning detail; 0 if a template does not follow it.
    pub(crate) detail_shape: u64,
    /// A part of the payload was left out because it exceeds the memory limit.
    pub(crate) is_cut: bool,
}

impl<'a> Chunk<'a> {
    /// Returns the choices in the order of the payload.
    pub fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        self.choice.iter().chain(&self.more)
    }

    /// Returns true if it has no content at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.choice.is_none() && self.error.is_none() && self.usage.is_none()
    }

    pub(crate) fn add_choice(&mut self) -> &mut Choice<'a> {
        if self.choice.is_none() {
            return self.choice.insert(Choice::default());
        }
        self.more.push(Choice::default());
        let last = self.more.len() - 1;
        &mut self.more[last]
    }
}

/// One choice of a chunk: the content of its delta or, in a body that is not streamed, of its message.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Choice<'a> {
    /// The index of the choice; 0 if the server does not send one.
    pub index: i64,
    /// Thinking, under any of its names (QUIRKS rows 39 to 42).
    pub thinking: Option<Cow<'a, str>>,
    /// Text.
    pub text: Option<Cow<'a, str>>,
    /// The reason why the choice ended, as the server wrote it.
    pub finish_reason: Option<Cow<'a, str>>,
    /// True if it is a `message`, which has the whole answer, rather than a delta (QUIRKS rows 36 and 117).
    pub is_message: bool,
    /// The halves of characters at the ends of the text and of the thinking.
    pub(crate) halves: [Halves; 2],
    /// The first fragment of a tool call; nearly always the only one.
    pub(crate) call: Option<Fragment<'a>>,
    /// Members that few chunks have, boxed to keep the others small.
    pub(crate) rare: Option<Box<Rare<'a>>>,
}

#[derive(Debug, Default)]
pub(crate) struct Rare<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) refusal: Option<Cow<'a, str>>,
    pub(crate) calls: Vec<Fragment<'a>>,
    pub(crate) details: Vec<Value>,
    /// The length of the details in the payload.
    pub(crate) detail_bytes: usize,
    pub(crate) thinking_blocks: Vec<Value>,
    /// The length of the blocks in the payload.
    pub(crate) block_bytes: usize,
    /// The chunk's thinking is only in these blocks.
    pub(crate) thinks_in_blocks: bool,
    /// The text is marked as thinking.
    pub(crate) is_thought: bool,
    pub(crate) error: Option<Box<ServerError>>,
    pub(crate) extra: Map<String, Value>,
}

impl Rare<'_> {
    /// Returns true if its only content is one item of `reasoning_details`, an object.
    pub(crate) fn has_one_detail(&self) -> bool {
        // Destructured in full, so that a new member cannot be overlooked.
        let Self {
            parts,
            refusal,
            calls,
            details,
            detail_bytes: _,
            thinking_blocks,
            block_bytes: _,
            thinks_in_blocks: _,
            is_thought,
            error,
            extra,
        } = self;
        let lists = parts.is_empty() && calls.is_empty() && thinking_blocks.is_empty();
        let nothing = lists && refusal.is_none() && error.is_none() && extra.is_empty();
        nothing && !is_thought && matches!(&details[..], [Value::Object(_)])
    }
}

impl<'a> Choice<'a> {
    /// Returns the text and thinking of a content that is a list of parts (QUIRKS row 38).
    #[must_use]
    pub fn parts(&self) -> &[Part<'a>] {
        self.rare.as_ref().map_or(&[], |rare| &rare.parts)
    }

    /// Returns the text of a refusal.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        self.rare.as_ref()?.refusal.as_deref()
    }

    /// Returns the fragments of tool calls in the order of the payload.
    pub fn calls(&self) -> impl Iterator<Item = &Fragment<'a>> {
        self.call.iter().chain(self.rare.iter().flat_map(|rare| &rare.calls))
    }

    /// Returns the items of `reasoning_details`, which go back to the server.
    #[must_use]
    pub fn details(&self) -> &[Value] {
        self.rare.as_ref().map_or(&[], |rare| &rare.details)
    }

    /// Returns the items of `thinking_blocks`, which go back to the server (QUIRKS row 108).
    #[must_use]
    pub fn thinking_blocks(&self) -> &[Value] {
        self.rare.as_ref().map_or(&[], |rare| &rare.thinking_blocks)
    }

    /// Returns the error that ended the choice (QUIRKS row 106).
    #[must_use]
    pub fn error(&self) -> Option<&ServerError> {
        self.rare.as_ref()?.error.as_deref()
    }

    /// Returns true if the server marks the text as thinking (QUIRKS row 109).
    #[must_use]
    pub fn is_thought(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.is_thought)
    }

    /// Returns other members of the delta that go back to the server (QUIRKS rows 30 and 105).
    #[must_use]
    pub fn extra(&self) -> Option<&Map<String, Value>> {
        Some(&self.rare.as_ref()?.extra)
    }

    pub(crate) fn rare(&mut self) -> &mut Rare<'a> {
        self.rare.get_or_insert_default()
    }

    pub(crate) fn add_call(&mut self, call: Fragment<'a>) {
        if self.call.is_none() {
            self.call = Some(call);
        } else {
            self.rare().calls.push(call);
        }
    }
}

/// One part of a content that is a list.
#[derive(Debug)]
#[non_exhaustive]
pub enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// Thinking.
    Thinking(Cow<'a, str>),
}

/// A fragment of a tool call.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Fragment<'a> {
    /// The key under which the server sends this call; not a position (QUIRKS row 4).
    pub index: Option<i64>,
    /// The call's id.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name, or a piece of it.
    pub name: Option<Cow<'a, str>>,
    /// A piece of the arguments' JSON text, or all of it.
    pub arguments: Option<Cow<'a, str>>,
    /// True if it is a `function_call`, which has neither id nor index (QUIRKS row 32).
    pub legacy: bool,
    /// The halves of characters at the ends of the arguments.
    pub(crate) halves: Halves,
    /// Members that only the server understands, and expects back.
    pub extra: Option<Box<Map<String, Value>>>,
}
