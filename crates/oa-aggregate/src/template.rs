//! Telling a chunk by comparing it with one that was read in full.

use std::borrow::Cow;
use std::ops::Range;

use oa_types::Usage;

use crate::chunk::Chunk;
use crate::details::Grown;
use crate::form::{Form, Memory, Seen, Target, Told};
use crate::hole::{Hole, Kind};
use crate::json::{MOST_NOTED, Str, number_length, string_at};

/// Larger chunks are not remembered: comparing saves reading, but the copy must stay cheap.
const LARGEST: usize = 4096;

/// No template has more holes than this: a bit for each is what tells which of them are open.
const MOST_HOLES: usize = u64::BITS as usize;

// One more for the words, and one for a detail.
const _: () = assert!(MOST_NOTED + 2 <= MOST_HOLES);

/// A chunk that was read in full, and the places in which another one may differ from it.
///
/// A payload that equals it everywhere else, and has JSON of the same type in those places, is the
/// same JSON but for these values. Some of them are what the chunk brings: its words, numbers of the
/// usage, the string by which a reasoning detail grows. The others decoding passes over, such as a
/// time stamp or padding; those are compared until one is seen to vary.
///
/// A payload that equals it before and behind the delta, and has an object there, is the same JSON
/// with another delta: the [`Frame`] is told by comparison, and the delta alone is read.
///
/// It may come from an earlier answer of the same server. The first payload of an answer that is like
/// it takes its place: so id, model and time stamp are those of the answer at hand, and are compared
/// again.
#[derive(Debug)]
pub(crate) struct Template {
    bytes: Vec<u8>,
    /// In order of position, each with a bit in what follows.
    holes: Vec<Hole>,
    /// What is between these is compared. The others are scalars that are passed over and have not been
    /// seen to vary: compared like the rest.
    open: u64,
    /// These vary from answer to answer.
    varied: u64,
    /// The answer of which it is, or was met in.
    answer: u64,
    /// Where the delta lies.
    delta: Option<Range<usize>>,
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
    /// Whether it is the first of the answer that matched a template of an earlier one.
    pub(crate) is_first: bool,
}

/// A payload that has something else in place of a template's delta.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// All up to where the delta must end.
    pub(crate) text: &'a str,
    /// Where it must begin.
    pub(crate) start: usize,
}

/// What a part of a template is compared for.
#[derive(Debug)]
enum Compare<'l> {
    /// To be told.
    All,
    /// To be told without its delta: values have the template's lengths, so that all places are known.
    Frame,
    /// To be told and to take the template's place: each hole's length is noted.
    Meet(&'l mut [u16; MOST_HOLES]),
}

impl Template {
    /// Compares a payload of this answer with the template.
    #[inline]
    pub(crate) fn match_payload<'a>(
        &mut self,
        payload: &'a [u8],
        answer: u64,
    ) -> Option<Match<'a>> {
        if self.answer != answer {
            return self.meet(payload, answer);
        }
        let found = self.compare(0..self.bytes.len(), payload, Compare::All);
        found.map_err(|place| self.differs = place).ok()
    }

    /// Compares the first payload of an answer with the template, which it takes the place of.
    #[inline(never)]
    fn meet<'a>(&mut self, payload: &'a [u8], answer: u64) -> Option<Match<'a>> {
        if payload.len() > LARGEST {
            return None;
        }
        let mut lengths = [0; MOST_HOLES];
        let met = self.compare(0..self.bytes.len(), payload, Compare::Meet(&mut lengths));
        let found = met.map_err(|place| self.differs = place).ok()?;
        let Range { start, end } = self.delta.clone().unwrap_or_default();
        // By how much all moves that stands behind.
        let mut by = 0;
        let open = self.open | self.varied;
        for (number, hole) in self.holes.iter_mut().enumerate() {
            let old = *hole;
            let is_open = open & (1 << number) != 0;
            let length = if is_open { lengths[number] } else { old.length() };
            hole.shift(by, length);
            by += length.wrapping_sub(old.length()).cast_signed();
            if let Some(delta) = &mut self.delta {
                if old.start() < start {
                    delta.start = start.wrapping_add_signed(by.into());
                }
                if old.start() < end {
                    delta.end = end.wrapping_add_signed(by.into());
                }
            }
        }
        self.bytes.clear();
        self.bytes.reserve_exact(payload.len());
        self.bytes.extend_from_slice(payload);
        self.answer = answer;
        Some(Match { is_first: true, ..found })
    }

    /// Compares a payload of this answer with the template but for the delta, which may be another one.
    pub(crate) fn match_frame<'a>(&mut self, payload: &'a [u8], answer: u64) -> Option<Frame<'a>> {
        let (Range { start, end }, length) = (self.delta.clone()?, self.bytes.len());
        // It has just been compared with all of it.
        if self.answer != answer || !(start..=end).contains(&self.differs) {
            return None;
        }
        let behind = payload.len().checked_sub(length - end).filter(|behind| start <= *behind)?;
        self.compare_frame(0..start, &payload[..start])?;
        self.compare_frame(end..length, &payload[behind..])?;
        Some(Frame { text: str::from_utf8(&payload[..behind]).ok()?, start })
    }

    #[inline(never)]
    fn compare_frame(&mut self, part: Range<usize>, payload: &[u8]) -> Option<()> {
        self.compare(part, payload, Compare::Frame).ok().map(drop)
    }

    /// Compares with a part of the template; if it fails, up to where both are the same. A scalar that
    /// is found to vary is a hole from then on.
    // For each use apart: what the others need costs nothing.
    #[inline(always)]
    fn compare<'a>(
        &mut self,
        part: Range<usize>,
        payload: &'a [u8],
        mut what: Compare<'_>,
    ) -> Result<Match<'a>, usize> {
        let mut found = Match::default();
        let mut string = Str::default();
        let (mut rest, mut from) = (payload, part.start);
        let mut open = self.open;
        if let Compare::Meet(_) = what {
            open |= self.varied;
        }
        // Those that lie ahead.
        let mut ahead = match part.start {
            0 => open,
            start => open & (u64::MAX << self.holes.partition_point(|hole| hole.start() < start)),
        };
        loop {
            let number = ahead.trailing_zeros() as usize;
            let hole = self.holes.get(number).filter(|hole| hole.start() < part.end).copied();
            let fixed = &self.bytes[from..hole.map_or(part.end, Hole::start)];
            let Some(behind) = rest.strip_prefix(fixed) else {
                let place = from + common(rest, fixed);
                let bit = self.closed_at(place, open).ok_or(place)?;
                (open, ahead) = (open | bit, ahead | bit);
                match what {
                    Compare::All | Compare::Frame => self.open |= bit,
                    Compare::Meet(_) => self.varied |= bit,
                }
                continue;
            };
            rest = behind;
            let Some(hole) = hole else {
                return if rest.is_empty() { Ok(found) } else { Err(part.end) };
            };
            let start = hole.start();
            let length = match hole.kind {
                Kind::Number => number_length(rest).ok_or(start)?,
                Kind::Count(_) | Kind::Index => {
                    let length = number_length(rest).ok_or(start)?;
                    let number = str::from_utf8(&rest[..length]).map_err(|_| start)?;
                    match hole.kind {
                        Kind::Count(count) => *count.of(&mut self.usage) = number.parse().ok(),
                        _ => self.form.index = number.parse().unwrap_or(0),
                    }
                    length
                }
                Kind::Detail | Kind::Id | Kind::Model | Kind::String | Kind::Words => {
                    // Some servers say the same twice.
                    let is_again = !string.raw.is_empty() && string.is_at(rest);
                    if !is_again {
                        string = string_at(rest).ok_or(start)?;
                    }
                    match hole.kind {
                        Kind::Detail if string.has_surrogates() => return Err(start),
                        // Absent: what is there in its place may come later.
                        Kind::Id | Kind::Model if string.raw.is_empty() => return Err(start),
                        Kind::Detail => found.detail = string,
                        Kind::Words => found.words = string,
                        _ => {}
                    }
                    string.raw.len()
                }
            };
            match &mut what {
                Compare::All => {}
                Compare::Frame if length != usize::from(hole.length()) => return Err(start),
                Compare::Frame => {}
                Compare::Meet(lengths) => {
                    // It is no longer than the payload.
                    lengths[number] = u16::try_from(length).map_err(|_| start)?;
                }
            }
            rest = &rest[length..];
            from = hole.end();
            ahead &= ahead - 1;
        }
    }

    /// The bit of the scalar at this place, if there is one that is not open.
    #[cold]
    fn closed_at(&self, place: usize, open: u64) -> Option<u64> {
        // Behind its last byte too: there it goes on in the payload.
        let is_there = |hole: &Hole| hole.start() <= place && place <= hole.end();
        let bits = (0..self.holes.len()).map(|number| 1 << number);
        let mut closed = self.holes.iter().zip(bits).filter(|(_, bit)| open & bit == 0);
        closed.find_map(|(hole, bit)| is_there(hole).then_some(bit))
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
        let detail = form.detail.as_deref().map(grown);
        Told { form, words, detail, usage: self.usage(), met: found.is_first.then_some(self) }
    }

    fn usage(&self) -> Option<&Usage> {
        Some(&self.usage).filter(|usage| self.has_usage && **usage != Usage::default())
    }

    /// The server's id of the answer.
    pub(crate) fn id(&self) -> Option<Cow<'_, str>> {
        self.string(Kind::Id)
    }

    /// The model of the answer.
    pub(crate) fn model(&self) -> Option<Cow<'_, str>> {
        self.string(Kind::Model)
    }

    fn string(&self, kind: Kind) -> Option<Cow<'_, str>> {
        let hole = self.holes.iter().find(|hole| hole.kind == kind)?;
        string_at(&self.bytes[hole.start()..]).map(Str::text)
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
            let reason = self.form.finish_reason.as_deref();
            choice.finish_reason = reason.map(|word| word.to_owned().into());
        }
        chunk.usage = self.usage().copied();
        let Range { start, end } = self.delta.clone().unwrap_or_default();
        for hole in &self.holes {
            if hole.end() <= start {
                skipped.push(*hole);
            } else if end <= hole.start() {
                skipped.extend(hole.moved(end, frame.text.len()));
            }
        }
        target.delta = Some(start..frame.text.len());
        target.seen = Seen { deltas: 1, ids: 1, indices: 1, models: 1, usages: 1 };
    }

    /// Learns from a payload that was read, if chunks like it can be told by comparison.
    ///
    /// The number tells it from all other templates of the stream.
    pub(crate) fn learn(
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        target: &Target<'_>,
        skipped: &[Hole],
        (number, answer): (u64, u64),
        memory: Memory,
    ) -> Option<Self> {
        let Seen { deltas, ids, indices, models, usages } = target.seen;
        if payload.len() > LARGEST
            || skipped.len() >= MOST_NOTED
            || deltas.max(ids).max(indices).max(models).max(usages) > 1
        {
            return None;
        }
        let (mut form, words) = Form::of(chunk, target, memory)?;
        let mut holes = Vec::with_capacity(skipped.len() + 2);
        if let Some(words) = words {
            holes.push(Hole::new(words.start, words.end(), Kind::Words)?);
        }
        if let (Some(detail), Some(item)) = (&mut form.detail, target.detail) {
            detail.number = number;
            holes.push(detail.hole(item.start)?);
            chunk.detail_form = number;
        }
        holes.extend_from_slice(skipped);
        holes.sort_unstable_by_key(|hole| hole.start());
        let (mut open, mut has_usage) = (0, false);
        for (number, hole) in holes.iter().enumerate() {
            match hole.kind {
                // What counts is read each time.
                Kind::Count(_) => (open, has_usage) = (open | 1 << number, true),
                Kind::Detail | Kind::Words => open |= 1 << number,
                Kind::Id | Kind::Index | Kind::Model | Kind::Number | Kind::String => {}
            }
        }
        Some(Self {
            bytes: payload.to_vec(),
            holes,
            open,
            varied: 0,
            answer,
            delta: target.delta.clone(),
            differs: 0,
            form,
            has_usage,
            usage: Usage::default(),
        })
    }
}

/// How many bytes both begin with; sixteen at a time.
fn common(one: &[u8], other: &[u8]) -> usize {
    let pairs = one.as_chunks::<16>().0.iter().zip(other.as_chunks::<16>().0);
    let from = 16 * pairs.take_while(|(one, other)| one == other).count();
    let rest = one[from..].iter().zip(&other[from..]);
    from + rest.take_while(|(one, other)| one == other).count()
}
