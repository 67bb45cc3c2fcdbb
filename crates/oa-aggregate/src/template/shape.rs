//! The shape of a chunk: its meaning except for the values in which chunks of one template differ.

use std::borrow::Cow;

use oa_json::JsonStr;

use crate::chunk::{Chunk, Fragment};
use crate::details::DetailShape;
use crate::template::notes::Notes;
use crate::template::slot::Slot;

/// The meaning of a chunk except for its text and numbers.
#[derive(Debug)]
pub(crate) struct ChunkShape {
    pub(crate) content: Content,
    /// The only item of its reasoning details.
    pub(crate) detail: Option<Box<DetailShape>>,
    /// The reason why the choice ended, if it did.
    pub(crate) finish_reason: Option<Box<str>>,
}

/// The meaning of a chunk's text.
#[derive(Debug)]
pub(crate) enum Content {
    /// A piece of a call's arguments; holds the fragment without them.
    Arguments(Box<Fragment<'static>>),
    /// There is no choice.
    NoChoice,
    Text,
    Thinking,
}

/// The chunks for which templates are learned.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Scope {
    /// Chunks of one answer. A chunk that occurs once in an answer, such as the last, does not become a template.
    #[default]
    Answer,
    /// Chunks of many answers of a server, in which such chunks occur again.
    Server,
}

impl ChunkShape {
    /// Returns the shape of a chunk with at most one string of content, and that string. Leaves `skipped` as it is.
    pub(crate) fn of<'a>(
        chunk: &Chunk<'_>,
        notes: &Notes<'a>,
        skipped: &mut Vec<Slot>,
        scope: Scope,
    ) -> Option<(Self, Option<JsonStr<'a>>)> {
        if chunk.error.is_some() || !chunk.more.is_empty() || notes.is_ambiguous {
            return None;
        }
        let Some(choice) = &chunk.choice else {
            let is_bare = notes.members.deltas == 0 && notes.members.indices == 0;
            let shape = Self { content: Content::NoChoice, detail: None, finish_reason: None };
            return (scope == Scope::Server && is_bare).then_some((shape, None));
        };
        if scope == Scope::Answer && (choice.finish_reason.is_some() || notes.delta.is_none()) {
            return None;
        }
        let detail = match &choice.rare {
            None => None,
            Some(rare) if rare.has_one_detail() => {
                Some(Box::new(DetailShape::new(notes.detail?.raw, skipped)?))
            }
            Some(_) => return None,
        };
        let has_detail = detail.is_some();
        let finish_reason = choice.finish_reason.as_deref().map(Box::from);
        let shape = |content| Self { content, detail, finish_reason };
        Some(match (&choice.text, &choice.thinking, &choice.call) {
            // Thinking that is only in the detail has no other place.
            (None, Some(_), None) if has_detail => {
                (shape(Content::Thinking), notes.thinking.filter(|string| !string.raw.is_empty()))
            }
            _ if has_detail => return None,
            (Some(_), None, None) => (shape(Content::Text), Some(notes.text?)),
            (None, Some(_), None) => (shape(Content::Thinking), Some(notes.thinking?)),
            (None, None, Some(call)) => {
                let words = notes.arguments?;
                (shape(Content::Arguments(Box::new(without_arguments(call, words)?))), Some(words))
            }
            // An empty string marks the place where the next chunk has its text.
            (None, None, None) => match (notes.text, notes.thinking) {
                (None, Some(thinking)) => (shape(Content::Thinking), Some(thinking)),
                (text, _) => (shape(Content::Text), text),
            },
            _ => return None,
        })
    }
}

/// Returns the fragment without its arguments, if other arguments are likely to follow.
fn without_arguments(call: &Fragment<'_>, arguments: JsonStr<'_>) -> Option<Fragment<'static>> {
    if call.extra.is_some() || call.arguments.is_none() != arguments.raw.is_empty() {
        return None;
    }
    // A name without arguments begins a call, and no other chunk will be like it. A legacy fragment needs either.
    if (call.arguments.is_none() && call.name.is_some()) || (call.legacy && call.name.is_none()) {
        return None;
    }
    let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
    Some(Fragment {
        index: call.index,
        id: own(&call.id),
        name: own(&call.name),
        arguments: None,
        legacy: call.legacy,
        ..Fragment::default()
    })
}
