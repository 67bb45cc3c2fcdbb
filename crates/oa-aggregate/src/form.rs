//! What chunks of one form bring, but for the values in which they differ.

use std::borrow::Cow;
use std::ops::Range;

use oa_json::held;
use oa_types::Usage;
use oa_types::wire::ServerError;
use serde_json::Value;

use crate::chunk::{Choice, Chunk, Fragment};
use crate::details::{Growing, Grown};
use crate::json::Str;
use crate::template::Template;

/// What a chunk says beside its words and the numbers of the usage.
#[derive(Debug)]
pub(crate) struct Form {
    pub(crate) index: i64,
    pub(crate) says: Says,
    pub(crate) detail: Option<Box<Growing>>,
    /// Why the choice ended, if it did.
    pub(crate) finish_reason: Option<Box<str>>,
}

#[derive(Debug)]
pub(crate) enum Says {
    Arguments(Box<Fragment<'static>>),
    /// There is no choice.
    Nothing,
    Text,
    Thinking,
}

/// For how long forms are remembered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Memory {
    /// For many answers of a server, so that also those forms are worth it that each answer has once.
    Long,
    /// For one answer.
    #[default]
    Short,
}

/// Where the full reading found what a template could follow.
#[derive(Debug, Default)]
pub(crate) struct Target<'a> {
    pub(crate) text: Option<Str<'a>>,
    pub(crate) thinking: Option<Str<'a>>,
    pub(crate) arguments: Option<Str<'a>>,
    /// The last item of the reasoning details.
    pub(crate) detail: Option<Str<'a>>,
    /// Thinking stands in two places.
    pub(crate) is_ambiguous: bool,
    /// Where the last delta lies.
    pub(crate) delta: Option<Range<usize>>,
    pub(crate) seen: Seen,
    /// The number of bytes that may still be held of a payload.
    pub(crate) room: usize,
    /// The payload is so short that nothing in it can take all of that, and need not be counted.
    is_ample: bool,
    /// There was more than that.
    pub(crate) is_cut: bool,
}

/// How many members there were of which a template follows at most one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) deltas: usize,
    pub(crate) ids: usize,
    pub(crate) indices: usize,
    pub(crate) models: usize,
    pub(crate) usages: usize,
}

/// What a payload says that was told by comparison.
#[derive(Debug)]
pub(crate) struct Told<'a> {
    pub(crate) form: &'a Form,
    /// Text, thinking or a piece of arguments; empty if there is none.
    pub(crate) words: &'a str,
    pub(crate) detail: Option<Grown<'a>>,
    pub(crate) usage: Option<&'a Usage>,
    /// What knows id and model, if nothing that was read in this answer has told them.
    pub(crate) met: Option<&'a Template>,
}

impl Form {
    /// The form of a chunk that says one thing at most, and the string by which it says it.
    pub(crate) fn of<'a>(
        chunk: &Chunk<'_>,
        target: &Target<'a>,
        memory: Memory,
    ) -> Option<(Self, Option<Str<'a>>)> {
        if chunk.error.is_some() || !chunk.more.is_empty() || target.is_ambiguous {
            return None;
        }
        let Some(choice) = &chunk.choice else {
            let is_bare = target.seen.deltas == 0 && target.seen.indices == 0;
            let nothing = Self { index: 0, says: Says::Nothing, detail: None, finish_reason: None };
            return (memory == Memory::Long && is_bare).then_some((nothing, None));
        };
        if memory == Memory::Short && (choice.finish_reason.is_some() || target.delta.is_none()) {
            return None;
        }
        let detail = match &choice.rare {
            None => None,
            Some(rare) if rare.has_one_detail() => {
                Some(Box::new(Growing::new(target.detail?.raw)?))
            }
            Some(_) => return None,
        };
        let has_detail = detail.is_some();
        let finish_reason = choice.finish_reason.as_deref().map(Box::from);
        let form = |says| Self { index: choice.index, says, detail, finish_reason };
        Some(match (&choice.text, &choice.thinking, &choice.call) {
            // Thinking that the detail alone has stands in no other place.
            (None, Some(_), None) if has_detail => {
                (form(Says::Thinking), target.thinking.filter(|string| !string.raw.is_empty()))
            }
            _ if has_detail => return None,
            (Some(_), None, None) => (form(Says::Text), Some(target.text?)),
            (None, Some(_), None) => (form(Says::Thinking), Some(target.thinking?)),
            (None, None, Some(call)) => {
                let words = target.arguments?;
                (form(Says::Arguments(Box::new(own(call, words)?))), Some(words))
            }
            // An empty string is where words will stand.
            (None, None, None) => match (target.text, target.thinking) {
                (None, Some(thinking)) => (form(Says::Thinking), Some(thinking)),
                (text, _) => (form(Says::Text), text),
            },
            _ => return None,
        })
    }
}

/// The fragment without its arguments, if each fragment like it is one.
fn own(call: &Fragment<'_>, arguments: Str<'_>) -> Option<Fragment<'static>> {
    if call.extra.is_some() || call.arguments.is_none() != arguments.raw.is_empty() {
        return None;
    }
    // A name alone begins a call, and no other will be like it. The other, without a word, would be
    // no fragment at all.
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
        extra: None,
    })
}

/// More than anything that is made of a payload takes for each byte of it: of JSON no byte makes more than
/// [`MAX_PER_BYTE`](held::MAX_PER_BYTE), of which errors are held four times, and choices and fragments take less.
const MOST_FOR_A_BYTE: usize = 8 * held::MAX_PER_BYTE;

const _: () = assert!(3 * size_of::<Choice<'_>>() + 3 * size_of::<ServerError>() < MOST_FOR_A_BYTE);

impl Target<'_> {
    /// For a payload of that length, of which so many bytes may be held.
    pub(crate) fn within(room: usize, payload: usize) -> Self {
        let is_ample = payload <= room / MOST_FOR_A_BYTE;
        Self { room, is_ample, ..Self::default() }
    }

    /// For a part of the payload.
    pub(crate) fn inside(&self) -> Self {
        Self { room: self.room, is_ample: self.is_ample, ..Self::default() }
    }

    /// Counts a value that is to be held; false if it does not fit.
    pub(crate) fn hold_value(&mut self, value: &Value) -> bool {
        self.is_ample || self.hold(held::by_value(value))
    }

    /// Counts bytes that are to be held; false if they do not fit.
    pub(crate) fn hold(&mut self, bytes: usize) -> bool {
        if self.is_ample {
            return true;
        }
        let left = self.room.checked_sub(bytes);
        self.room = left.unwrap_or(self.room);
        self.is_cut |= left.is_none();
        left.is_some()
    }

    /// Counts one more of a list that grows.
    pub(crate) fn hold_one<T>(&mut self) -> bool {
        // While it grows, its old places are there beside the new ones.
        self.hold(3 * size_of::<T>())
    }

    /// Forgets all but what it counts: another choice or delta is to be read.
    pub(crate) fn forget_words(&mut self) {
        let Self { seen, room, is_ample, is_cut, .. } = *self;
        *self = Self { seen, room, is_ample, is_cut, ..Self::default() };
    }
}

impl<'a> Told<'a> {
    /// Thinking: where it has fallen silent that of the detail counts.
    #[inline]
    pub(crate) fn thinking(&self) -> &'a str {
        match &self.detail {
            Some(detail) if self.words.is_empty() => detail.thinking(),
            _ => self.words,
        }
    }

    /// The chunk that the full reading would have made, but for its id and model if they are known.
    pub(crate) fn chunk(self) -> Chunk<'a> {
        let is_choice = !matches!(self.form.says, Says::Nothing);
        Chunk {
            id: self.met.and_then(Template::id),
            model: self.met.and_then(Template::model),
            usage: self.usage.copied(),
            choice: is_choice.then(|| self.choice()),
            ..Chunk::default()
        }
    }

    fn choice(&self) -> Choice<'a> {
        let some = |words: &'a str| (!words.is_empty()).then_some(Cow::Borrowed(words));
        let mut choice = Choice { index: self.form.index, ..Choice::default() };
        choice.finish_reason = self.form.finish_reason.as_deref().map(Cow::Borrowed);
        match &self.form.says {
            Says::Nothing => {}
            Says::Text => choice.text = some(self.words),
            Says::Thinking => choice.thinking = some(self.thinking()),
            Says::Arguments(fragment) => {
                let lend = |text: &'a Option<Cow<'static, str>>| text.as_deref().map(Cow::Borrowed);
                choice.call = Some(Fragment {
                    index: fragment.index,
                    id: lend(&fragment.id),
                    name: lend(&fragment.name),
                    arguments: some(self.words),
                    legacy: fragment.legacy,
                    extra: None,
                });
            }
        }
        if let Some(detail) = &self.detail {
            let rare = choice.rare();
            rare.details.push(detail.value());
            rare.detail_bytes = detail.json_length();
        }
        choice
    }
}
