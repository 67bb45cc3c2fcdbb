//! Compares a payload with one that was read earlier.

use std::ops::Range;

use oa_json::{JsonStr, number_length, string_length};
use oa_types::Usage;

use crate::json::integer;
use crate::template::slot::{Slot, SlotKind, SlotSet};

/// The bytes of a payload that was read in full, and its slots.
///
/// Every byte outside the *open* slots is fixed: a payload matches if it has the same fixed bytes and, in each open
/// slot, a scalar of the same JSON type. The fixed bytes are valid JSON around the slots, and a scalar may replace any
/// other of its type, so a payload that matches is valid JSON with the same structure.
///
/// Slots for the content of a chunk are open from the start. The others (time stamps, padding) are *closed*, that is,
/// compared like the bytes around them, until a payload differs there: then they are opened.
#[derive(Debug)]
pub(crate) struct Pattern {
    bytes: Vec<u8>,
    /// The slots in order of position; a [`SlotSet`] refers to them by index.
    slots: Vec<Slot>,
    /// The slots whose values vary within an answer.
    open: SlotSet,
    /// The slots whose values vary between answers.
    varied: SlotSet,
}

/// The strings in the open slots of a payload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Captures<'a> {
    pub(crate) words: JsonStr<'a>,
    pub(crate) detail: JsonStr<'a>,
    /// True if the payload is the first of its answer that matched a template of an earlier answer.
    pub(crate) is_first: bool,
}

/// The numbers of the payload that matched last.
///
/// A comparison that fails half-way may leave numbers of its payload here. The next one reads them all again:
/// slots of counts are always open, and an index that was read is in a slot that stays open.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// The index of the choice.
    pub(crate) index: i64,
    pub(crate) usage: Usage,
}

/// The purpose of a comparison.
#[derive(Debug)]
enum Purpose<'l> {
    /// To recognize a payload of the same answer.
    Match,
    /// To recognize the bytes around the delta. Values must have the lengths of the template, so that positions agree.
    Frame,
    /// To recognize the first payload of another answer, whose bytes the pattern then adopts.
    Adopt(&'l mut Lengths),
}

/// The lengths of the values in the open slots.
#[derive(Debug)]
struct Lengths {
    of_slots: [u16; SlotSet::CAPACITY],
    /// True if one of them is not that of the template.
    differ: bool,
}

impl Pattern {
    pub(crate) fn new(payload: &[u8], slots: Vec<Slot>, open: SlotSet) -> Self {
        Self { bytes: payload.to_vec(), slots, open, varied: SlotSet::default() }
    }

    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the string in the first slot of a kind.
    pub(crate) fn string(&self, kind: SlotKind) -> Option<JsonStr<'_>> {
        let slot = self.slots.iter().find(|slot| slot.kind == kind)?;
        // Half a character at an end stays, as when it was read in full: nothing continues an id.
        let (length, escapes) = string_length(&self.bytes[slot.start()..])?;
        let raw = &self.bytes[slot.start()..][..length];
        Some(JsonStr::new(str::from_utf8(raw).ok()?, 0, escapes))
    }

    /// Compares a payload of the same answer.
    ///
    /// # Errors
    ///
    /// The payload does not match; returns the position of the first difference.
    #[inline]
    pub(crate) fn compare<'a>(
        &mut self,
        payload: &'a [u8],
        numbers: &mut Numbers,
    ) -> Result<Captures<'a>, usize> {
        self.compare_part(0..self.bytes.len(), payload, numbers, Purpose::Match)
    }

    /// Compares bytes with a part of the pattern before or behind its delta.
    #[inline(never)]
    pub(crate) fn matches_frame(
        &mut self,
        part: Range<usize>,
        bytes: &[u8],
        numbers: &mut Numbers,
    ) -> bool {
        self.compare_part(part, bytes, numbers, Purpose::Frame).is_ok()
    }

    /// Compares the first payload of another answer and, if it matches, adopts its bytes: id, model and time stamp are
    /// then those of the new answer, and fixed again.
    ///
    /// # Errors
    ///
    /// As [`compare`](Self::compare).
    #[inline]
    pub(crate) fn adopt<'a>(
        &mut self,
        payload: &'a [u8],
        numbers: &mut Numbers,
        delta: &mut Option<Range<usize>>,
    ) -> Result<Captures<'a>, usize> {
        let mut lengths = Lengths { of_slots: [0; SlotSet::CAPACITY], differ: false };
        let whole = 0..self.bytes.len();
        let captures = self.compare_part(whole, payload, numbers, Purpose::Adopt(&mut lengths))?;
        // Ids and times of a server mostly have one length: this saves 190 instructions for each chunk of a short answer.
        if lengths.differ {
            self.shift_slots(&lengths.of_slots, delta);
        }
        self.bytes.clear();
        self.bytes.reserve_exact(payload.len());
        self.bytes.extend_from_slice(payload);
        Ok(Captures { is_first: true, ..captures })
    }

    /// Moves the slots and the delta to where they are in a payload with values of these lengths.
    #[inline(never)]
    fn shift_slots(
        &mut self,
        lengths: &[u16; SlotSet::CAPACITY],
        delta: &mut Option<Range<usize>>,
    ) {
        let Range { start, end } = delta.clone().unwrap_or_default();
        // The offset by which everything after the slots so far moves.
        let mut by = 0;
        let mut open = self.open;
        open.insert(self.varied);
        for (number, slot) in self.slots.iter_mut().enumerate() {
            let old = *slot;
            let length = if open.contains(number) { lengths[number] } else { old.length() };
            slot.shift(by, length);
            by += length.wrapping_sub(old.length()).cast_signed();
            // Each bound of the delta moves with the last slot before it.
            if let Some(delta) = delta {
                if old.start() < start {
                    delta.start = start.wrapping_add_signed(by.into());
                }
                if old.start() < end {
                    delta.end = end.wrapping_add_signed(by.into());
                }
            }
        }
    }

    /// Compares `payload` with a part of the pattern: fixed bytes, slot, fixed bytes, slot, and so on.
    // Compiled for each purpose separately, so that none pays for the others.
    #[inline(always)]
    fn compare_part<'a>(
        &mut self,
        part: Range<usize>,
        payload: &'a [u8],
        numbers: &mut Numbers,
        mut purpose: Purpose<'_>,
    ) -> Result<Captures<'a>, usize> {
        let mut captures = Captures::default();
        // The string that was read last.
        let mut string = JsonStr::default();
        let mut open = self.open;
        if let Purpose::Adopt(_) = purpose {
            open.insert(self.varied);
        }
        // The open slots that have not been reached.
        let mut ahead = match part.start {
            0 => open,
            start => open.from(self.slots.partition_point(|slot| slot.start() < start)),
        };
        // The remaining comparison: `rest` of the payload with the pattern from `from` on.
        let (mut rest, mut from) = (payload, part.start);
        loop {
            let number = ahead.first();
            let slot = self.slots.get(number).filter(|slot| slot.start() < part.end).copied();

            // 1. The fixed bytes up to the slot, or to the end of the part.
            let fixed = &self.bytes[from..slot.map_or(part.end, Slot::start)];
            let Some(behind) = rest.strip_prefix(fixed) else {
                // They differ. If that is in a closed slot, the slot is opened, and these bytes are compared again up
                // to that slot. Each iteration opens a slot or fails, so the loop ends.
                let position = from + common_length(rest, fixed);
                let closed = self.closed_slot(position, open).ok_or(position)?;
                open.insert(closed);
                ahead.insert(closed);
                match purpose {
                    Purpose::Match | Purpose::Frame => self.open.insert(closed),
                    Purpose::Adopt(_) => self.varied.insert(closed),
                }
                continue;
            };
            rest = behind;
            let Some(slot) = slot else {
                return if rest.is_empty() { Ok(captures) } else { Err(part.end) };
            };

            // 2. The value in the slot.
            let start = slot.start();
            let length = read_value(slot.kind, rest, &mut string, &mut captures, numbers);
            let length = length.ok_or(start)?;
            match &mut purpose {
                Purpose::Match => {}
                Purpose::Frame if length != usize::from(slot.length()) => return Err(start),
                Purpose::Frame => {}
                Purpose::Adopt(lengths) => {
                    let length = u16::try_from(length).map_err(|_| start)?;
                    lengths.of_slots[number] = length;
                    lengths.differ |= length != slot.length();
                }
            }

            // 3. Continue after it.
            rest = &rest[length..];
            from = slot.end();
            ahead.remove_first();
        }
    }

    /// Returns the closed slot at this position, if there is one.
    #[cold]
    fn closed_slot(&self, position: usize, open: SlotSet) -> Option<SlotSet> {
        // Includes the position after its last byte, where the payload's value may be longer: `12` instead of `1`.
        let mut slots =
            self.slots.iter().enumerate().take_while(|(_, slot)| slot.start() <= position);
        let closed = slots.find(|(number, slot)| position <= slot.end() && !open.contains(*number));
        closed.map(|(number, _)| SlotSet::of(number))
    }
}

/// Reads the value at the start of `rest` and returns its length; `None` if it is of another kind.
#[inline(always)]
fn read_value<'a>(
    kind: SlotKind,
    rest: &'a [u8],
    string: &mut JsonStr<'a>,
    captures: &mut Captures<'a>,
    numbers: &mut Numbers,
) -> Option<usize> {
    match kind {
        SlotKind::Number => number_length(rest),
        SlotKind::Count(_) | SlotKind::Index => {
            let length = number_length(rest)?;
            let number = str::from_utf8(&rest[..length]).ok()?;
            match kind {
                SlotKind::Count(count) => *count.field(&mut numbers.usage) = integer(number),
                _ => numbers.index = integer(number).unwrap_or(0),
            }
            Some(length)
        }
        SlotKind::Detail | SlotKind::Id | SlotKind::Model | SlotKind::String | SlotKind::Words => {
            // Some servers send the same string twice; it need not be checked twice.
            let is_again = !string.raw.is_empty() && string.is_at(rest);
            if !is_again {
                *string = JsonStr::at(rest)?;
            }
            match kind {
                // An empty one counts as absent, and the answer takes the next one.
                SlotKind::Id | SlotKind::Model if string.raw.is_empty() => return None,
                SlotKind::Detail => captures.detail = *string,
                SlotKind::Words => captures.words = *string,
                _ => {}
            }
            Some(string.raw.len())
        }
    }
}

/// Returns the length of the common prefix, comparing eight bytes at a time.
fn common_length(one: &[u8], other: &[u8]) -> usize {
    let mut length = 0;
    for (one, other) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        let difference = u64::from_le_bytes(*one) ^ u64::from_le_bytes(*other);
        if difference != 0 {
            return length + difference.trailing_zeros() as usize / 8;
        }
        length += 8;
    }
    let rest = one[length..].iter().zip(&other[length..]);
    length + rest.take_while(|(one, other)| one == other).count()
}
