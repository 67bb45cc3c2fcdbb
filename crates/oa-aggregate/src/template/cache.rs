//! The templates of a server's chunks.

use std::{fmt, iter, mem};

use crate::chunk::Chunk;
use crate::template::chunk_template::{ChunkTemplate, Frame};
use crate::template::matched::Matched;
use crate::template::notes::Notes;
use crate::template::pattern::Captures;
use crate::template::shape::Scope;
use crate::template::slot::Slot;

/// The number of templates that one answer needs: for text, thinking, arguments, and alternating choices.
const MOST_OF_ANSWER: usize = 4;

/// The number of templates that a server needs, including those for the first and last chunks of its answers.
const MOST_OF_SERVER: usize = 8;

/// The templates of chunks that a server has sent.
///
/// The answers of a server differ only in ids, times, text and numbers. Templates that one
/// [`Aggregator`](crate::Aggregator) or [`Decoder`](crate::Decoder) has learned can be used by the next: a short
/// answer is then compared from its first chunk to its last, and none of its JSON is parsed. Templates never change an
/// answer, whatever they were learned from. Those of another server are useless but harmless.
///
/// A cache holds at most eight templates and drops the least recently used one first. No template is larger than 4 KiB,
/// so a cache takes at most 80 KiB, whatever a server sends.
///
/// ```
/// use oa_aggregate::{Aggregator, Options, TemplateCache};
///
/// let mut templates = TemplateCache::default();
/// for text in ["Hello", "Good morning"] {
///     let chunk = format!(r#"{{"choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
///     let mut aggregator = Aggregator::with_templates(Options::default(), templates);
///     aggregator.push(chunk.as_bytes())?;
///     templates = aggregator.take_templates();
///     assert_eq!(aggregator.into_answer().blocks[0].as_text(), Some(text));
/// }
/// # Ok::<(), oa_aggregate::Error>(())
/// ```
#[derive(Default)]
pub struct TemplateCache {
    list: Vec<Entry>,
    /// The template that matched or was learned last: a valid index, unless the list is empty.
    latest: usize,
    /// A counter that increases with each answer, each template and each switch to another template. Its values serve
    /// as times and as unique numbers of templates and answers.
    clock: u64,
    /// The time at which the current answer began.
    answer: u64,
    scope: Scope,
}

#[derive(Debug)]
struct Entry {
    template: ChunkTemplate,
    /// The time at which it stopped being the latest.
    used: u64,
}

impl TemplateCache {
    /// Begins an answer whose templates may be used by later ones.
    pub(crate) fn begin_answer(&mut self) {
        self.clock += 1;
        self.answer = self.clock;
        self.scope = Scope::Server;
        // Templates are mostly in the order of an answer's chunks, and the previous answer ended with the
        // latest. So the first chunk is likely to match the next one in the circle.
        if !self.list.is_empty() {
            self.turn_to((self.latest + 1) % self.list.len());
        }
    }

    /// Removes and returns all templates. Those learned from now on have different numbers.
    pub(crate) fn take(&mut self) -> Self {
        let Self { clock, answer, scope, .. } = *self;
        mem::replace(self, Self { clock, answer, scope, ..Self::default() })
    }

    /// Finds the template that a payload matches, the latest first; then [`matched`](Self::matched) has the content.
    #[inline]
    pub(crate) fn find<'a>(&mut self, payload: &'a [u8]) -> Option<Captures<'a>> {
        let latest = self.list.get_mut(self.latest)?;
        match latest.template.match_payload(payload, self.answer) {
            Some(captures) => Some(captures),
            None => self.find_other(payload),
        }
    }

    #[inline(never)]
    fn find_other<'a>(&mut self, payload: &'a [u8]) -> Option<Captures<'a>> {
        // `[DONE]` matches no template.
        if payload.first() == Some(&b'[') {
            return None;
        }
        // Templates are learned in the order of an answer's chunks, so the next one is the most likely.
        let places = (self.latest + 1..self.list.len()).chain(0..self.latest);
        for place in places {
            let template = &mut self.list[place].template;
            if let Some(captures) = template.match_payload(payload, self.answer) {
                self.turn_to(place);
                return Some(captures);
            }
        }
        None
    }

    /// Returns the content of the payload that matched last; the buffers are for unescaped strings.
    #[inline]
    pub(crate) fn matched<'a>(
        &'a self,
        captures: Captures<'a>,
        words: &'a mut String,
        detail: &'a mut String,
    ) -> Matched<'a> {
        let words = captures.words.text_in(words);
        // Most servers that send details send the same text twice.
        let raw = captures.detail.raw;
        let detail =
            if raw == captures.words.raw { words } else { captures.detail.text_in(detail) };
        let template = &self.list[self.latest].template;
        Matched::new(template, words, detail, raw.len(), captures.is_first)
    }

    /// Finds the template that a payload matches except for the delta, the latest first.
    pub(crate) fn find_frame<'a>(&mut self, payload: &'a [u8]) -> Option<Frame<'a>> {
        for place in iter::once(self.latest).chain(0..self.list.len()) {
            let Some(entry) = self.list.get_mut(place) else { break };
            if let Some(frame) = entry.template.match_frame(payload, self.answer) {
                self.turn_to(place);
                return Some(frame);
            }
        }
        None
    }

    /// Completes the chunk of the payload whose frame matched last, and remembers the payload.
    pub(crate) fn learn_in_frame<'a>(
        &mut self,
        payload: &[u8],
        frame: Frame<'_>,
        chunk: &mut Chunk<'a>,
        notes: &mut Notes<'a>,
        skipped: &mut Vec<Slot>,
    ) {
        self.list[self.latest].template.complete(frame, chunk, notes, skipped);
        self.learn(payload, chunk, notes, skipped);
    }

    /// Makes a template of a payload that was read, replacing the least recently used one.
    pub(crate) fn learn(
        &mut self,
        payload: &[u8],
        chunk: &mut Chunk<'_>,
        notes: &Notes<'_>,
        skipped: &mut Vec<Slot>,
    ) {
        self.clock += 1;
        let times = (self.clock, self.answer);
        let learned = ChunkTemplate::learn(payload, chunk, notes, skipped, times, self.scope);
        let Some(template) = learned else {
            return;
        };
        let entry = Entry { template, used: self.clock };
        let most = match self.scope {
            Scope::Answer => MOST_OF_ANSWER,
            Scope::Server => MOST_OF_SERVER,
        };
        if self.list.len() < most {
            if self.list.len() == self.list.capacity() {
                // Most answers need two: a first chunk's and that of the rest.
                self.list.reserve_exact(self.list.len().max(2));
            }
            self.list.push(entry);
            self.turn_to(self.list.len() - 1);
            return;
        }
        // Brings the time of the latest up to date: it was in use until now, and must not be the oldest.
        self.turn_to(self.latest);
        let oldest = self.list.iter().enumerate().min_by_key(|(_, entry)| entry.used);
        self.latest = oldest.map_or(0, |(place, _)| place);
        self.list[self.latest] = entry;
    }

    /// Makes another template the latest; the previous one was in use until now.
    fn turn_to(&mut self, place: usize) {
        self.clock += 1;
        self.list[self.latest].used = self.clock;
        self.latest = place;
    }
}

impl fmt::Debug for TemplateCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Templates contain text of the answers.
        f.debug_struct("TemplateCache").field("count", &self.list.len()).finish_non_exhaustive()
    }
}
