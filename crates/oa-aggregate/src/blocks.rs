//! The growing answer, and its deltas that have not been returned.

use std::collections::VecDeque;
use std::mem;

use oa_json::Trim;
use oa_types::{ContentBlock, PromptProgress};

use crate::budget::{Budget, COPIES};
use crate::call::Call;
use crate::delta::Delta;
use crate::error::{Error, ErrorKind, Problem};
use crate::place::Span;
use crate::prompt_progress::Packed;

/// A part of the answer. Parts are in the order in which they began.
#[derive(Debug)]
pub(crate) enum Part {
    /// The next of the calls.
    Call,
    Words(Words),
}

/// The memory of a block of the answer, in bytes: as a part, and in lists that grow.
const BLOCK: usize = 2 * size_of::<Part>() + 3 * size_of::<ContentBlock>();

/// The number of parts that every answer may have, and the bytes of its limit that allow one more.
const FEW: usize = 1024;
const BYTES_A_PART: usize = 64;

/// Room for a short text, in bytes.
pub(crate) const ROOM: usize = 128;

/// A run of words of one kind.
#[derive(Debug)]
pub(crate) struct Words {
    pub(crate) voice: Voice,
    pub(crate) text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Voice {
    Refusal,
    Text,
    Thinking,
}

/// A delta by its position, because the text that it is a part of moves when it grows.
#[derive(Clone, Copy, Debug)]
enum Pending {
    CallArguments { call: usize, start: usize, end: usize },
    CallStart(usize),
    Problem(usize),
    PromptProgress(Packed),
    Words { part: usize, start: usize, end: usize },
}

/// The deltas that have not been returned, in order.
///
/// A caller that takes deltas after each payload mostly finds one. That needs no heap memory and no ring arithmetic.
#[derive(Debug, Default)]
struct Queue {
    /// The first delta; if it is `None`, the rest is empty.
    first: Option<Pending>,
    behind: VecDeque<Pending>,
}

impl Queue {
    /// Makes room for one more.
    #[inline]
    fn reserve(&mut self, budget: &mut Budget) -> Result<(), Error> {
        if self.first.is_none() { Ok(()) } else { budget.reserve_next(&mut self.behind) }
    }

    #[inline]
    fn push(&mut self, pending: Pending) {
        if self.first.is_none() {
            self.first = Some(pending);
        } else {
            self.push_behind(pending);
        }
    }

    #[inline(never)]
    fn push_behind(&mut self, pending: Pending) {
        self.behind.push_back(pending);
    }

    #[inline]
    fn pop(&mut self) -> Option<Pending> {
        let first = self.first.take()?;
        if !self.behind.is_empty() {
            self.first = self.behind.pop_front();
        }
        Some(first)
    }
}

/// The growing answer. Deltas borrow from it, so text is stored once.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) parts: Vec<Part>,
    pending: Queue,
    text_bytes: usize,
    /// The first part that is thinking.
    thinking: Option<usize>,
    /// The text of each voice, if a server has repeated it.
    said: Option<Box<[Said; 3]>>,
}

/// All text of one voice, up to a position in the parts.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) text: String,
    /// The white space around it.
    pub(crate) edges: Trim,
    /// The number of parts that were read, and the number of bytes of the next one.
    parts: usize,
    bytes: usize,
}

impl Blocks {
    /// Returns the number of bytes of text and thinking so far.
    pub(crate) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    #[inline]
    pub(crate) fn say(
        &mut self,
        voice: Voice,
        words: &str,
        limit: usize,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        self.text_bytes += words.len();
        if self.text_bytes > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        if voice == Voice::Refusal {
            // The answer contains it a second time.
            budget.hold(2 * words.len())?;
        }
        // Before the text grows, so that no text is without its delta.
        self.pending.reserve(budget)?;
        let count = self.parts.len();
        let (start, end) = match self.parts.last_mut() {
            Some(Part::Words(last)) if last.voice == voice => last.add(words, budget)?,
            // Text that changes its kind with each byte would take many times its size.
            _ if count >= FEW + limit / BYTES_A_PART => {
                return Err(Error::new(ErrorKind::TextTooLong, limit));
            }
            _ => {
                // Avoids growing for the first few, which are often the only ones.
                let room = if count < 4 { ROOM } else { 0 };
                budget.hold(BLOCK)?;
                let mut text = Words { voice, text: String::new() };
                budget.reserve(&mut text.text, room, COPIES)?;
                let added = text.add(words, budget)?;
                if voice == Voice::Thinking {
                    self.thinking.get_or_insert(count);
                }
                // Text alone, or thinking and text.
                if count == 0 {
                    self.parts.reserve_exact(2);
                }
                self.parts.push(Part::Words(text));
                added
            }
        };
        let part = self.parts.len() - 1;
        self.pending.push(Pending::Words { part, start, end });
        Ok(())
    }

    /// Returns the first run of thinking so far; empty if there is none.
    pub(crate) fn thinking(&self) -> &str {
        match self.thinking.and_then(|part| self.parts.get(part)) {
            Some(Part::Words(words)) => &words.text,
            _ => "",
        }
    }

    /// Returns all text of one voice, which is joined as it grows.
    pub(crate) fn said(&mut self, voice: Voice, budget: &mut Budget) -> Result<&mut Said, Error> {
        let said = &mut self.said.get_or_insert_default()[voice as usize];
        for part in &self.parts[said.parts..] {
            // Only the first of them was read in part.
            let from = mem::take(&mut said.bytes);
            if let Part::Words(words) = part
                && words.voice == voice
            {
                let more = &words.text[from..];
                budget.reserve(&mut said.text, more.len(), 1)?;
                said.text.push_str(more);
            }
        }
        if let Some(Part::Words(last)) = self.parts.last()
            && last.voice == voice
        {
            said.bytes = last.text.len();
        }
        // The last one may grow.
        said.parts = self.parts.len().saturating_sub(1);
        Ok(said)
    }

    pub(crate) fn call_began(&mut self, budget: &mut Budget) -> Result<(), Error> {
        budget.hold(BLOCK)?;
        self.parts.push(Part::Call);
        Ok(())
    }

    /// Adds the start of a call whose id and name are settled.
    pub(crate) fn call_started(&mut self, call: usize, budget: &mut Budget) -> Result<(), Error> {
        self.pending.reserve(budget)?;
        self.pending.push(Pending::CallStart(call));
        Ok(())
    }

    #[inline]
    pub(crate) fn call_grew(
        &mut self,
        call: usize,
        (start, end): Span,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        if start < end {
            self.pending.reserve(budget)?;
            self.pending.push(Pending::CallArguments { call, start, end });
        }
        Ok(())
    }

    pub(crate) fn problem(&mut self, problem: usize, budget: &mut Budget) -> Result<(), Error> {
        self.pending.reserve(budget)?;
        self.pending.push(Pending::Problem(problem));
        Ok(())
    }

    /// Queues the progress of a server that reads the prompt.
    pub(crate) fn progress(
        &mut self,
        progress: &PromptProgress,
        budget: &mut Budget,
    ) -> Result<(), Error> {
        self.pending.reserve(budget)?;
        self.pending.push(Pending::PromptProgress(progress.into()));
        Ok(())
    }

    /// Records the new position of a problem.
    pub(crate) fn problem_moved(&mut self, from: usize, to: usize) {
        for pending in self.pending.first.iter_mut().chain(&mut self.pending.behind) {
            if let Pending::Problem(place) = pending
                && *place == from
            {
                *place = to;
            }
        }
    }

    #[inline]
    pub(crate) fn next<'a>(
        &'a mut self,
        calls: &'a [Call],
        problems: &'a [Problem],
    ) -> Option<Delta<'a>> {
        Some(match self.pending.pop()? {
            Pending::CallStart(call) => {
                let (id, name) = calls[call].identity();
                Delta::CallStart { call, id, name }
            }
            Pending::CallArguments { call, start, end } => {
                Delta::CallArguments { call, fragment: calls[call].arguments.slice(start, end) }
            }
            Pending::Problem(problem) => Delta::Problem(&problems[problem]),
            Pending::PromptProgress(progress) => Delta::PromptProgress(progress.into()),
            Pending::Words { part, start, end } => {
                let Part::Words(Words { voice, text }) = &self.parts[part] else { return None };
                let words = &text[start..end];
                match voice {
                    Voice::Refusal => Delta::Refusal(words),
                    Voice::Text => Delta::Text(words),
                    Voice::Thinking => Delta::Thinking(words),
                }
            }
        })
    }
}

impl Words {
    /// Adds text, and returns its start and end.
    #[inline]
    fn add(&mut self, words: &str, budget: &mut Budget) -> Result<Span, Error> {
        let start = self.text.len();
        budget.append(&mut self.text, words)?;
        Ok((start, self.text.len()))
    }
}
