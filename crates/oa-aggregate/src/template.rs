//! Telling a chunk by comparing it with the one before.

use std::borrow::Cow;

use crate::chunk::{Choice, Chunk, Fragment};
use crate::json::{MOST_NOTED, Scalar, escapes_are_valid, number_length, string_length, unescape};

/// Larger chunks are not remembered: comparing saves reading, but the copy must stay cheap.
const LARGEST: usize = 4096;

/// The last chunk that was read in full, and the places in which the next one may differ from it.
///
/// A payload that equals it everywhere else, and has JSON of the same type in those places, is the
/// same JSON but for these values. One of the places is the *target*, the text or the piece of
/// arguments that the chunk brings; the others are scalars that decoding passes over, such as a time
/// stamp or padding. Which of those vary is learned from the chunks that did not match.
#[derive(Debug, Default)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// In order of position; the bytes between them are compared.
    holes: Vec<Hole>,
    /// All scalars that were passed over, and whether they have been seen to vary.
    scalars: Vec<(Scalar, bool)>,
    says: Says,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Number,
    String,
    Target,
}

#[derive(Debug)]
struct Hole {
    start: usize,
    end: usize,
    kind: Kind,
}

/// What a chunk of this form brings, but for the words.
#[derive(Debug, Default)]
enum Says {
    /// Nothing has been learned.
    #[default]
    Nothing,
    Arguments {
        index: i64,
        fragment: Fragment<'static>,
    },
    Text(i64),
    Thinking(i64),
}

/// The target of a payload that matched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Match<'a> {
    raw: &'a str,
    escaped: bool,
}

impl Template {
    /// Compares a payload with the template.
    #[inline]
    pub(crate) fn match_payload<'a>(&self, payload: &'a [u8]) -> Option<Match<'a>> {
        if let Says::Nothing = self.says {
            return None;
        }
        let mut target = None;
        let (mut rest, mut from) = (payload, 0);
        for hole in &self.holes {
            rest = rest.strip_prefix(&self.bytes[from..hole.start])?;
            let length = match hole.kind {
                Kind::Number => number_length(rest)?,
                Kind::String => {
                    let plain =
                        |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
                    rest.iter().take_while(|byte| plain(byte)).count()
                }
                Kind::Target => {
                    let (length, escaped) = string_length(rest)?;
                    target = Some((&rest[..length], escaped));
                    length
                }
            };
            rest = &rest[length..];
            from = hole.end;
        }
        if *rest != self.bytes[from..] {
            return None;
        }
        let (raw, escaped) = target?;
        if escaped && !escapes_are_valid(raw) {
            return None;
        }
        Some(Match { raw: str::from_utf8(raw).ok()?, escaped })
    }

    /// The chunk that a payload with this target is.
    #[inline]
    pub(crate) fn chunk<'a>(&'a self, target: Match<'a>, buffer: &'a mut String) -> Chunk<'a> {
        let words = if target.escaped {
            buffer.clear();
            unescape(target.raw, buffer);
            &**buffer
        } else {
            target.raw
        };
        let words = (!words.is_empty()).then_some(Cow::Borrowed(words));
        let choice = match &self.says {
            Says::Nothing => Choice::default(),
            Says::Text(index) => Choice { index: *index, text: words, ..Choice::default() },
            Says::Thinking(index) => Choice { index: *index, thinking: words, ..Choice::default() },
            Says::Arguments { index, fragment } => {
                let lend = |text: &'a Option<Cow<'static, str>>| text.as_deref().map(Cow::Borrowed);
                let call = Fragment {
                    index: fragment.index,
                    id: lend(&fragment.id),
                    name: lend(&fragment.name),
                    arguments: words,
                    legacy: fragment.legacy,
                    extra: None,
                };
                Choice { index: *index, call: Some(call), ..Choice::default() }
            }
        };
        Chunk { choice: Some(choice), ..Chunk::default() }
    }

    /// Learns from a payload that was read in full: where its target and its other scalars lie.
    pub(crate) fn learn(
        &mut self,
        payload: &str,
        chunk: &Chunk<'_>,
        target: Option<(usize, usize)>,
        skipped: &[Scalar],
    ) {
        let Some(says) = what_it_says(chunk) else {
            return;
        };
        let (Some((start, end)), true) =
            (target, payload.len() <= LARGEST && skipped.len() < MOST_NOTED)
        else {
            return;
        };
        let known = self.scalars.len() == skipped.len()
            && self
                .scalars
                .iter()
                .zip(skipped)
                .all(|((old, _), new)| old.is_string == new.is_string);
        let varies = |(number, new): (usize, &Scalar)| {
            let Some((old, varied)) = self.scalars.get(number).filter(|_| known) else {
                return false;
            };
            *varied || self.bytes[old.start..old.end] != payload.as_bytes()[new.start..new.end]
        };
        let varied: Vec<bool> = skipped.iter().enumerate().map(varies).collect();
        self.scalars.clear();
        self.scalars.extend(skipped.iter().copied().zip(varied));

        self.holes.clear();
        self.holes.push(Hole { start, end, kind: Kind::Target });
        self.holes.extend(self.scalars.iter().filter(|(_, varied)| *varied).map(|(scalar, _)| {
            let kind = if scalar.is_string { Kind::String } else { Kind::Number };
            Hole { start: scalar.start, end: scalar.end, kind }
        }));
        self.holes.sort_unstable_by_key(|hole| hole.start);
        self.bytes.clear();
        self.bytes.extend_from_slice(payload.as_bytes());
        self.says = says;
    }
}

/// What the chunk says, if it says one thing and nothing about the answer as a whole.
fn what_it_says(chunk: &Chunk<'_>) -> Option<Says> {
    if chunk.error.is_some() || chunk.usage.is_some() || !chunk.more.is_empty() {
        return None;
    }
    let choice = chunk.choice.as_ref().filter(|choice| choice.says_one_thing())?;
    let index = choice.index;
    if choice.text.is_some() {
        return Some(Says::Text(index));
    }
    if choice.thinking.is_some() {
        return Some(Says::Thinking(index));
    }
    let call = choice.call.as_ref().filter(|call| call.extra.is_none())?;
    if call.legacy && call.name.is_none() {
        // Without a word it would be no fragment at all.
        return None;
    }
    let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| Cow::Owned(text.to_owned()));
    let fragment = Fragment {
        index: call.index,
        id: own(&call.id),
        name: own(&call.name),
        legacy: call.legacy,
        ..Fragment::default()
    };
    Some(Says::Arguments { index, fragment })
}
