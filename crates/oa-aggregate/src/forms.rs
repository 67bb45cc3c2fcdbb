//! The forms of chunk that a server sends.

use std::{fmt, iter, mem};

use crate::chunk::Chunk;
use crate::form::{Memory, Target, Told};
use crate::hole::Hole;
use crate::template::{Frame, Match, Template};

/// How many forms of one answer are remembered: text and thinking, arguments of a call, choices that
/// alternate.
const MOST: usize = 4;

/// How many of a server: those that begin and end its answers, too.
const MOST_OF_SERVER: usize = 8;

/// The forms of chunk that a server has been seen to send.
///
/// The answers of a server are alike but for their ids, times, words and numbers. What one
/// [`Aggregator`](crate::Aggregator) or [`Decoder`](crate::Decoder) has learned spares the next the
/// learning: a short answer is then compared from its first chunk to its last, and nothing of it is
/// read. An answer comes out the same with forms and without, whatever they were learned from; those of
/// another server are of no use.
///
/// There are eight at most, the one that was of use longest ago goes first, and none is of a chunk that
/// is larger than 4 KiB, so that all of them take 80 KiB at most, whatever a server sends.
///
/// ```
/// use oa_aggregate::{Aggregator, Forms, Options};
///
/// let mut forms = Forms::default();
/// for text in ["Hello", "Good morning"] {
///     let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
///     let mut aggregator = Aggregator::with_forms(Options::default(), forms);
///     aggregator.push(chunk.as_bytes())?;
///     forms = aggregator.take_forms();
///     assert_eq!(aggregator.into_answer().blocks[0].as_text(), Some(text));
/// }
/// # Ok::<(), oa_aggregate::Error>(())
/// ```
#[derive(Default)]
pub struct Forms {
    list: Vec<Remembered>,
    /// The one that matched or was learned last.
    latest: usize,
    clock: u64,
    /// When the answer began.
    answer: u64,
    memory: Memory,
}

#[derive(Debug)]
struct Remembered {
    template: Template,
    /// When it ceased to be the latest.
    used: u64,
}

impl Forms {
    /// Begins an answer whose forms may be of use to others.
    pub(crate) fn begin_answer(&mut self) {
        self.clock += 1;
        self.answer = self.clock;
        self.memory = Memory::Long;
    }

    /// Hands on all forms. Those that are learned from now on have other numbers.
    pub(crate) fn take(&mut self) -> Self {
        let Self { clock, answer, memory, .. } = *self;
        mem::replace(self, Self { clock, answer, memory, ..Self::default() })
    }

    /// Finds the form that a payload is of, the latest first.
    #[inline]
    pub(crate) fn find<'a>(&mut self, payload: &'a [u8]) -> Option<Match<'a>> {
        let latest = self.list.get_mut(self.latest)?;
        match latest.template.match_payload(payload, self.answer) {
            Some(found) => Some(found),
            None => self.find_other(payload),
        }
    }

    #[inline(never)]
    fn find_other<'a>(&mut self, payload: &'a [u8]) -> Option<Match<'a>> {
        // `[DONE]` is like none.
        if payload.first() == Some(&b'[') {
            return None;
        }
        // They were learned in the order of an answer: what comes next is the likeliest.
        let places = (self.latest + 1..self.list.len()).chain(0..self.latest);
        for place in places {
            let template = &mut self.list[place].template;
            if let Some(found) = template.match_payload(payload, self.answer) {
                self.turn_to(place);
                return Some(found);
            }
        }
        None
    }

    /// What the payload says that was found last; the buffers are for strings without their escapes.
    #[inline]
    pub(crate) fn told<'a>(
        &'a self,
        found: Match<'a>,
        words: &'a mut String,
        detail: &'a mut String,
    ) -> Told<'a> {
        let words = found.words.text_in(words);
        // Most servers that send details say the same twice.
        let is_same = found.detail.raw == found.words.raw;
        let detail = if is_same { words } else { found.detail.text_in(detail) };
        self.list[self.latest].template.told(words, detail, found)
    }

    /// Finds the form that a payload is of but for the delta, the latest first.
    pub(crate) fn find_frame<'a>(&mut self, payload: &'a [u8]) -> Option<Frame<'a>> {
        for place in iter::once(self.latest).chain(0..self.list.len()) {
            let Some(remembered) = self.list.get_mut(place) else { break };
            if let Some(frame) = remembered.template.match_frame(payload, self.answer) {
                self.turn_to(place);
                return Some(frame);
            }
        }
        None
    }

    /// Completes what was read of a payload whose frame was found last, and remembers it.
    pub(crate) fn learn_in_frame<'a>(
        &mut self,
        payload: &[u8],
        frame: Frame<'_>,
        chunk: &mut Chunk<'a>,
        target: &mut Target<'a>,
        skipped: &mut Vec<Hole>,
    ) {
        self.list[self.latest].template.complete(frame, chunk, target, skipped);
        self.learn(payload, chunk, target, skipped);
    }

    /// Remembers a payload that was read, in place of the one that was of use longest ago.
    pub(crate) fn learn(
        &mut self,
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        target: &Target<'_>,
        skipped: &[Hole],
    ) {
        self.clock += 1;
        let times = (self.clock, self.answer);
        let learned = Template::learn(payload, chunk, target, skipped, times, self.memory);
        let Some(template) = learned else {
            return;
        };
        let remembered = Remembered { template, used: self.clock };
        let most = if self.memory == Memory::Long { MOST_OF_SERVER } else { MOST };
        if self.list.len() < most {
            if self.list.len() == self.list.capacity() {
                self.list.reserve_exact(MOST);
            }
            self.list.push(remembered);
            self.turn_to(self.list.len() - 1);
            return;
        }
        self.turn_to(self.latest);
        let oldest = self.list.iter().enumerate().min_by_key(|(_, remembered)| remembered.used);
        self.latest = oldest.map_or(0, |(place, _)| place);
        self.list[self.latest] = remembered;
    }

    /// Makes another one the latest: until now the one before was in use.
    fn turn_to(&mut self, place: usize) {
        self.clock += 1;
        self.list[self.latest].used = self.clock;
        self.latest = place;
    }
}

impl fmt::Debug for Forms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // They have words of the answers in them.
        f.debug_struct("Forms").field("count", &self.list.len()).finish_non_exhaustive()
    }
}
