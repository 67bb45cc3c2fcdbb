//! What has come so far, in order, and what of it has not been handed out.

use std::collections::VecDeque;

use crate::call::Call;
use crate::delta::Delta;
use crate::error::{Error, ErrorKind, Problem};

/// A part of the answer by its place; parts stand in the order in which they began.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    Call(usize),
    Words(usize),
}

/// Room for a short text, in bytes.
pub(crate) const ROOM: usize = 1024;

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

/// A delta by its place.
#[derive(Clone, Copy, Debug)]
enum Pending {
    CallArguments { call: usize, start: usize, end: usize },
    CallStart(usize),
    Problem(usize),
    Words { run: usize, start: usize, end: usize },
}

/// The answer as it grows. Deltas are slices of it: what arrives is stored once, and lent.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) parts: Vec<Part>,
    pub(crate) words: Vec<Words>,
    pending: VecDeque<Pending>,
    text_bytes: usize,
}

impl Blocks {
    #[inline]
    pub(crate) fn say(&mut self, voice: Voice, words: &str, limit: usize) -> Result<(), Error> {
        self.text_bytes += words.len();
        if self.text_bytes > limit {
            return Err(Error::new(ErrorKind::TextTooLong, limit));
        }
        let goes_on = match self.parts.last() {
            Some(Part::Words(run)) => self.words[*run].voice == voice,
            Some(Part::Call(_)) | None => false,
        };
        if !goes_on {
            self.parts.push(Part::Words(self.words.len()));
            // The first few, which are often the only ones, need not grow from nothing.
            let room = if self.words.len() < 4 { ROOM } else { 0 };
            self.words.push(Words { voice, text: String::with_capacity(room) });
        }
        let run = self.words.len() - 1;
        let text = &mut self.words[run].text;
        let start = text.len();
        text.push_str(words);
        let end = text.len();
        self.pending.push_back(Pending::Words { run, start, end });
        Ok(())
    }

    pub(crate) fn call_started(&mut self, call: usize) {
        self.parts.push(Part::Call(call));
        self.pending.push_back(Pending::CallStart(call));
    }

    pub(crate) fn call_grew(&mut self, call: usize, start: usize, end: usize) {
        if start < end {
            self.pending.push_back(Pending::CallArguments { call, start, end });
        }
    }

    pub(crate) fn problem(&mut self, problem: usize) {
        self.pending.push_back(Pending::Problem(problem));
    }

    /// All words of one kind, joined.
    pub(crate) fn words_of(&self, voice: Voice) -> String {
        let runs = self.words.iter().filter(|words| words.voice == voice);
        runs.map(|words| &*words.text).collect()
    }

    #[inline]
    pub(crate) fn next<'a>(
        &'a mut self,
        calls: &'a [Call],
        problems: &'a [Problem],
    ) -> Option<Delta<'a>> {
        Some(match self.pending.pop_front()? {
            Pending::CallStart(call) => {
                Delta::CallStart { call, name: calls[call].name.as_deref() }
            }
            Pending::CallArguments { call, start, end } => {
                Delta::CallArguments { call, fragment: calls[call].arguments.slice(start, end) }
            }
            Pending::Problem(problem) => Delta::Problem(&problems[problem]),
            Pending::Words { run, start, end } => {
                let Words { voice, text } = &self.words[run];
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
