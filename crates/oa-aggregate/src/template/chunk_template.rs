//! A chunk that was read in full, as a template for others.

use std::borrow::Cow;
use std::ops::Range;

use oa_json::JsonStr;
use oa_types::Usage;

use crate::chunk::Chunk;
use crate::json::MOST_NOTED;
use crate::template::notes::{MemberCounts, Notes};
use crate::template::pattern::{Captures, Numbers, Pattern};
use crate::template::shape::{ChunkShape, Scope};
use crate::template::slot::{Slot, SlotKind, SlotSet};

/// The size of the largest payload that is remembered, in bytes: copying it must stay cheap.
const LARGEST: usize = 4096;

// One more slot for the text, and one for a detail.
const _: () = assert!(MOST_NOTED + 2 <= SlotSet::CAPACITY);

/// A chunk that was read in full: the bytes to compare others with, and their meaning.
#[derive(Debug)]
pub(crate) struct ChunkTemplate {
    pattern: Pattern,
    shape: ChunkShape,
    numbers: Numbers,
    /// True if there are slots for usage numbers.
    has_usage: bool,
    /// The answer from which the bytes are.
    answer: u64,
    /// The range of the delta in the bytes.
    delta: Option<Range<usize>>,
    /// The position at which the last payload that did not match differed.
    differs: usize,
}

/// A payload that differs from a template only in its delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// The payload up to the end of the delta.
    pub(crate) text: &'a str,
    /// The position at which the delta must begin.
    pub(crate) start: usize,
}

impl ChunkTemplate {
    /// Makes a template of a payload that was read, if chunks like it can be recognized by comparison.
    ///
    /// The number is unique among the templates of the stream.
    #[inline]
    pub(crate) fn learn(
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        notes: &Notes<'_>,
        skipped: &mut Vec<Slot>,
        (number, answer): (u64, u64),
        scope: Scope,
    ) -> Option<Self> {
        // Of two members with one name the last counts, so comparing one place is not enough.
        let is_plain = skipped.len() < MOST_NOTED && notes.members.are_unique();
        if payload.len() > LARGEST || !is_plain {
            return None;
        }
        let (mut shape, words) = ChunkShape::of(chunk, notes, skipped, scope)?;
        let mut slots = Vec::with_capacity(skipped.len() + 2);
        if let Some(words) = words {
            slots.push(Slot::new(words.start, words.end(), SlotKind::Words)?);
        }
        if let (Some(detail), Some(item)) = (&mut shape.detail, notes.detail) {
            detail.number = number;
            slots.push(detail.slot(item.start)?);
            chunk.detail_shape = number;
        }
        slots.extend_from_slice(skipped);
        slots.sort_unstable_by_key(|slot| slot.start());
        let (mut open, mut has_usage) = (SlotSet::default(), chunk.usage.is_some());
        for (number, slot) in slots.iter().enumerate() {
            match slot.kind {
                // Usage numbers are needed, so they are read each time. In quotes they are fixed bytes.
                SlotKind::Count(_) => {
                    open.insert(SlotSet::of(number));
                    has_usage = true;
                }
                SlotKind::Detail | SlotKind::Words => open.insert(SlotSet::of(number)),
                SlotKind::Id
                | SlotKind::Index
                | SlotKind::Model
                | SlotKind::Number
                | SlotKind::String => {}
            }
        }
        let index = chunk.choice.as_ref().map_or(0, |choice| choice.index);
        Some(Self {
            pattern: Pattern::new(payload, slots, open),
            shape,
            numbers: Numbers { index, usage: chunk.usage.unwrap_or_default() },
            has_usage,
            answer,
            delta: notes.delta.clone(),
            differs: 0,
        })
    }

    /// Compares a payload with the template, and adopts it if the template is of an earlier answer.
    #[inline]
    pub(crate) fn match_payload<'a>(
        &mut self,
        payload: &'a [u8],
        answer: u64,
    ) -> Option<Captures<'a>> {
        if self.answer != answer {
            return self.adopt(payload, answer);
        }
        let compared = self.pattern.compare(payload, &mut self.numbers);
        compared.map_err(|position| self.differs = position).ok()
    }

    #[inline(never)]
    fn adopt<'a>(&mut self, payload: &'a [u8], answer: u64) -> Option<Captures<'a>> {
        if payload.len() > LARGEST {
            return None;
        }
        let compared = self.pattern.adopt(payload, &mut self.numbers, &mut self.delta);
        let captures = compared.map_err(|position| self.differs = position).ok()?;
        self.answer = answer;
        Some(captures)
    }

    /// Compares a payload of this answer with the template except for the delta.
    pub(crate) fn match_frame<'a>(&mut self, payload: &'a [u8], answer: u64) -> Option<Frame<'a>> {
        let (Range { start, end }, length) = (self.delta.clone()?, self.pattern.length());
        // The payload was just compared with the whole template: if it differs elsewhere, the frame cannot match.
        if self.answer != answer || !(start..=end).contains(&self.differs) {
            return None;
        }
        // The bytes after the delta are as many as in the template, so its end is counted from the end of the
        // payload. A delta of negative length is no match.
        let behind = payload.len().checked_sub(length - end).filter(|behind| start <= *behind)?;
        let Self { pattern, numbers, .. } = self;
        let matches = pattern.matches_frame(0..start, &payload[..start], numbers)
            && pattern.matches_frame(end..length, &payload[behind..], numbers);
        if !matches {
            return None;
        }
        Some(Frame { text: str::from_utf8(&payload[..behind]).ok()?, start })
    }

    /// Adds the content of the frame to a chunk whose delta was read, and to the notes of that reading.
    pub(crate) fn complete<'a>(
        &self,
        frame: Frame<'_>,
        chunk: &mut Chunk<'a>,
        notes: &mut Notes<'a>,
        skipped: &mut Vec<Slot>,
    ) {
        if let Some(choice) = &mut chunk.choice {
            choice.index = self.numbers.index;
            let reason = self.shape.finish_reason.as_deref();
            choice.finish_reason = reason.map(|word| word.to_owned().into());
        }
        chunk.usage = self.usage().copied();
        let Range { start, end } = self.delta.clone().unwrap_or_default();
        // Slots in the delta were recorded anew when it was read. Those after it move with its end.
        for slot in self.pattern.slots() {
            if slot.end() <= start {
                skipped.push(*slot);
            } else if end <= slot.start() {
                skipped.extend(slot.moved(end, frame.text.len()));
            }
        }
        notes.delta = Some(start..frame.text.len());
        // The template has none of them twice, so neither has the payload.
        notes.members = MemberCounts::ONE_EACH;
    }

    /// Returns the meaning of chunks like it, except for their values.
    #[inline]
    pub(crate) fn shape(&self) -> &ChunkShape {
        &self.shape
    }

    /// Returns the number of the choice in the payload that matched last.
    #[inline]
    pub(crate) fn index(&self) -> i64 {
        self.numbers.index
    }

    /// Returns the usage in the payload that matched last.
    #[inline]
    pub(crate) fn usage(&self) -> Option<&Usage> {
        self.has_usage.then_some(&self.numbers.usage).filter(|usage| **usage != Usage::default())
    }

    /// Returns the server's id of the answer.
    pub(crate) fn id(&self) -> Option<Cow<'_, str>> {
        self.pattern.string(SlotKind::Id).map(JsonStr::text)
    }

    /// Returns the model of the answer.
    pub(crate) fn model(&self) -> Option<Cow<'_, str>> {
        self.pattern.string(SlotKind::Model).map(JsonStr::text)
    }
}
