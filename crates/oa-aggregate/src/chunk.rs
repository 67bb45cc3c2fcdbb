use std::borrow::Cow;
use std::iter;

use oa_types::Usage;
use oa_types::wire::ServerError;
use serde_json::{Map, Value};

/// What one payload of a stream says.
#[derive(Debug)]
#[non_exhaustive]
pub enum Payload<'a> {
    /// A piece of the answer.
    Chunk(Chunk<'a>),
    /// `[DONE]`: there is nothing more to come.
    Done,
}

/// One decoded payload, with strings borrowed from it where they have no escapes.
///
/// Every member is optional; null, the empty string, the empty list and a value of another type than
/// expected are absent.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Chunk<'a> {
    /// The server's id of the answer. A chunk told by comparison with the one before leaves it out.
    pub id: Option<Cow<'a, str>>,
    /// The model that answers. A chunk told by comparison with the one before leaves it out.
    pub model: Option<Cow<'a, str>>,
    /// An error that the server reports inside the stream, beside or in place of anything else.
    pub error: Option<Box<ServerError>>,
    /// Usage so far, wherever in the payload it stood.
    pub usage: Option<Usage>,
    /// The first choice; nearly always the only one.
    pub(crate) choice: Option<Choice<'a>>,
    /// Further choices. A list that is not needed costs no allocation.
    pub(crate) more: Vec<Choice<'a>>,
}

impl<'a> Chunk<'a> {
    /// Returns the choices in the order of the payload.
    pub fn choices(&self) -> impl Iterator<Item = &Choice<'a>> {
        self.choice.iter().chain(&self.more)
    }

    pub(crate) fn add_choice(&mut self, choice: Choice<'a>) {
        if self.choice.is_none() {
            self.choice = Some(choice);
        } else {
            self.more.push(choice);
        }
    }
}

/// One choice of a chunk: what its delta (or, in a body that is not streamed, its message) adds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Choice<'a> {
    /// Which choice it is; 0 if the server does not say.
    pub index: i64,
    /// Thinking under any of its names (QUIRKS rows 39 to 42).
    pub thinking: Option<Cow<'a, str>>,
    /// Text.
    pub text: Option<Cow<'a, str>>,
    /// Text and thinking of a content that is a list of parts (QUIRKS row 38).
    pub parts: Vec<Part<'a>>,
    /// A refusal's words.
    pub refusal: Option<Cow<'a, str>>,
    /// The first fragment of a tool call; nearly always the only one.
    pub(crate) call: Option<Fragment<'a>>,
    /// Further fragments.
    pub(crate) more_calls: Vec<Fragment<'a>>,
    /// Items of `reasoning_details`, which go back to the server.
    pub details: Vec<Value>,
    /// Other members of the delta that go back to the server (QUIRKS row 30).
    pub extra: Map<String, Value>,
    /// Why the choice ended, in the server's word.
    pub finish_reason: Option<Cow<'a, str>>,
}

impl<'a> Choice<'a> {
    /// Returns the fragments of tool calls in the order of the payload.
    pub fn calls(&self) -> impl Iterator<Item = &Fragment<'a>> {
        self.call.iter().chain(&self.more_calls)
    }

    pub(crate) fn add_call(&mut self, call: Fragment<'a>) {
        if self.call.is_none() {
            self.call = Some(call);
        } else {
            self.more_calls.push(call);
        }
    }

    /// Whether it says exactly one thing, so that chunks like it can be told by their bytes.
    pub(crate) fn says_one_thing(&self) -> bool {
        let things = iter::empty()
            .chain(self.thinking.iter().map(drop))
            .chain(self.text.iter().map(drop))
            .chain(self.call.iter().map(drop))
            .count();
        things == 1
            && self.parts.is_empty()
            && self.refusal.is_none()
            && self.more_calls.is_empty()
            && self.details.is_empty()
            && self.extra.is_empty()
            && self.finish_reason.is_none()
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
    /// The key under which the server sends this call; no position (QUIRKS row 4).
    pub index: Option<i64>,
    /// The call's id.
    pub id: Option<Cow<'a, str>>,
    /// The tool's name, or a piece of it.
    pub name: Option<Cow<'a, str>>,
    /// A piece of the arguments' JSON text, or all of it.
    pub arguments: Option<Cow<'a, str>>,
    /// It came as `function_call`, which has neither id nor index (QUIRKS row 32).
    pub legacy: bool,
    /// Members that only the server understands, and wants back.
    pub extra: Map<String, Value>,
}
