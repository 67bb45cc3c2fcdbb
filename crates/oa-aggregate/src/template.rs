//! Telling a chunk by comparing it with one that was read in full.

use std::ops::Range;

use oa_types::Usage;

use crate::chunk::Chunk;
use crate::details::Grown;
use crate::form::{Form, Seen, Target, Told};
use crate::hole::{Hole, Kind};
use crate::json::{MOST_NOTED, Str, number_length, string_at};

/// Larger chunks are not remembered: comparing saves reading, but the copy must stay cheap.
const LARGEST: usize = 4096;

/// A chunk that was read in full, and the places in which another one may differ from it.
///
/// A payload that equals it everywhere else, and has JSON of the same type in those places, is the
/// same JSON but for these values. Some of them are what the chunk brings: its words, numbers of the
/// usage, the string by which a reasoning detail grows. The others decoding passes over, such as a
/// time stamp or padding; those are compared until one is seen to vary.
///
/// A payload that equals it before and behind the delta, and has an object there, is the same JSON
/// with another delta: the [`Frame`] is told by comparison, and the delta alone is read.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// The first `open` of them are in order of position, and the bytes between them are compared. The
    /// others are scalars that are passed over and have not been seen to vary: compared like the rest.
    holes: Vec<Hole>,
    open: usize,
    /// Where the delta lies.
    delta: Range<usize>,
    /// Where the last payload differed that did not match.
    differs: usize,
    form: Form,
    /// Whether there are numbers in it.
    has_usage: bool,
    usage: Usage,
}

/// The strings of a payload that matched.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Match<'a> {
    pub(crate) words: Str<'a>,
    pub(crate) detail: Str<'a>,
}

/// A payload that has something else in place of a template's delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// All up to where the delta must end.
    pub(crate) text: &'a str,
    /// Where it must begin.
    pub(crate) start: usize,
}

/// What lengths values may have that vary.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Lengths {
    Any,
    /// That of the template's own: then all places are known.
    Same,
}

impl Template {
    /// Compares a payload with the template.
    #[inline]
    pub(crate) fn match_payload<'a>(&mut self, payload: &'a [u8]) -> Option<Match<'a>> {
        let found = self.compare(0..self.bytes.len(), payload, Lengths::Any);
        found.map_err(|place| self.differs = place).ok()
    }

    /// Compares a payload with the template but for the delta, which may be another one.
    pub(crate) fn match_frame<'a>(&mut self, payload: &'a [u8]) -> Option<Frame<'a>> {
        let (Range { start, end }, length) = (self.delta.clone(), self.bytes.len());
        // It has just been compared with all of it.
        if !(start..=end).contains(&self.differs) {
            return None;
        }
        let behind = payload.len().checked_sub(length - end).filter(|behind| start <= *behind)?;
        self.compare(0..start, &payload[..start], Lengths::Same).ok()?;
        self.compare(end..length, &payload[behind..], Lengths::Same).ok()?;
        Some(Frame { text: str::from_utf8(&payload[..behind]).ok()?, start })
    }

    /// Compares with a part of the template; if it fails, up to where both are the same. A scalar that
    /// is found to vary is a hole from then on.
    #[inline]
    fn compare<'a>(
        &mut self,
        part: Range<usize>,
        payload: &'a [u8],
        lengths: Lengths,
    ) -> Result<Match<'a>, usize> {
        let mut found = Match::default();
        let mut string = Str::default();
        let (mut rest, mut from) = (payload, part.start);
        let mut number = match part.start {
            0 => 0,
            start => self.holes[..self.open].partition_point(|hole| hole.start < start),
        };
        loop {
            let hole = self.holes[..self.open].get(number).filter(|hole| hole.start < part.end);
            let fixed = &self.bytes[from..hole.map_or(part.end, |hole| hole.start)];
            let Some(behind) = rest.strip_prefix(fixed) else {
                let place = from + common(rest, fixed);
                self.open(place).ok_or(place)?;
                continue;
            };
            rest = behind;
            let Some(hole) = hole else {
                return if rest.is_empty() { Ok(found) } else { Err(part.end) };
            };
            let length = match hole.kind {
                Kind::Number => number_length(rest).ok_or(hole.start)?,
                Kind::Count(_) | Kind::Index => {
                    let length = number_length(rest).ok_or(hole.start)?;
                    let number = str::from_utf8(&rest[..length]).map_err(|_| hole.start)?;
                    match hole.kind {
                        Kind::Count(count) => *count.of(&mut self.usage) = number.parse().ok(),
                        _ => self.form.index = number.parse().unwrap_or(0),
                    }
                    length
                }
                Kind::Detail | Kind::String | Kind::Words => {
                    // Some servers say the same twice.
                    let is_again = !string.raw.is_empty() && string.is_at(rest);
                    if !is_again {
                        string = string_at(rest).ok_or(hole.start)?;
                    }
                    match hole.kind {
                        Kind::Detail if string.has_surrogates() => return Err(hole.start),
                        Kind::Detail => found.detail = string,
                        Kind::Words => found.words = string,
                        _ => {}
                    }
                    string.raw.len()
                }
            };
            if lengths == Lengths::Same && length != hole.end - hole.start {
                return Err(hole.start);
            }
            rest = &rest[length..];
            from = hole.end;
            number += 1;
        }
    }

    /// Makes a hole of the scalar at this place, if there is one.
    #[cold]
    fn open(&mut self, place: usize) -> Option<()> {
        // Behind its last byte too: there it goes on in the payload.
        let is_there = |hole: &Hole| hole.start <= place && place <= hole.end;
        let number = self.holes[self.open..].iter().position(is_there)?;
        self.holes.swap(self.open, self.open + number);
        self.open += 1;
        self.holes[..self.open].sort_unstable_by_key(|hole| hole.start);
        Some(())
    }

    /// What a payload says that has just matched.
    #[inline]
    pub(crate) fn told<'a>(
        &'a self,
        words: &'a str,
        detail: &'a str,
        found: Match<'_>,
    ) -> Told<'a> {
        let form = &self.form;
        let grown = |form| Grown { form, words: detail, raw: found.detail.raw.len() };
        Told { form, words, detail: form.detail.as_deref().map(grown), usage: self.usage() }
    }

    fn usage(&self) -> Option<&Usage> {
        Some(&self.usage).filter(|usage| self.has_usage && **usage != Usage::default())
    }

    /// Adds what the frame says to a chunk and to the notes of a reader that has read the delta.
    pub(crate) fn complete<'a>(
        &self,
        frame: Frame<'_>,
        chunk: &mut Chunk<'a>,
        target: &mut Target<'a>,
        skipped: &mut Vec<Hole>,
    ) {
        if let Some(choice) = &mut chunk.choice {
            choice.index = self.form.index;
        }
        chunk.usage = self.usage().copied();
        let Range { start, end } = self.delta;
        for hole in &self.holes {
            if hole.end <= start {
                skipped.push(*hole);
            } else if end <= hole.start {
                skipped.push(hole.moved(end, frame.text.len()));
            }
        }
        target.delta = Some(start..frame.text.len());
        target.seen = Seen { deltas: 1, indices: 1, usages: 1 };
    }

    /// Learns from a payload that was read, if chunks like it can be told by comparison.
    ///
    /// The number tells it from all other templates of the stream.
    pub(crate) fn learn(
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        target: &Target<'_>,
        skipped: &[Hole],
        number: u64,
    ) -> Option<Self> {
        let Seen { deltas, indices, usages } = target.seen;
        if payload.len() > LARGEST
            || skipped.len() >= MOST_NOTED
            || deltas.max(indices).max(usages) > 1
        {
            return None;
        }
        let (mut form, words) = Form::of(chunk, target)?;
        let words = words.map(|words| Hole::new(words.start, words.end(), Kind::Words));
        let mut holes = Vec::with_capacity(skipped.len() + 2);
        holes.extend(words);
        if let (Some(detail), Some(item)) = (&mut form.detail, target.detail) {
            detail.number = number;
            holes.push(detail.hole(item.start));
            chunk.detail_form = number;
        }
        let is_count = |hole: &&Hole| matches!(hole.kind, Kind::Count(_));
        // What counts is read each time.
        holes.extend(skipped.iter().filter(is_count));
        let open = holes.len();
        holes.sort_unstable_by_key(|hole| hole.start);
        holes.extend(skipped.iter().filter(|hole| !is_count(hole)));
        let delta = target.delta.clone()?;
        let has_usage = holes.iter().any(|hole| is_count(&hole));
        let bytes = payload.to_vec();
        let usage = Usage::default();
        Some(Self { bytes, holes, open, delta, differs: 0, form, has_usage, usage })
    }
}

/// How many bytes both begin with; sixteen at a time.
fn common(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.as_chunks::<16>().0.iter().zip(other.as_chunks::<16>().0);
    let from = 16 * pairs.take_while(|(one, other)| one == other).count();
    let rest = one[from..].iter().zip(&other[from..]);
    from + rest.take_while(|(one, other)| one == other).count()
}
