use std::collections::VecDeque;

use oa_types::{ContentBlock, Message, MessageRole, TextBlock};

use crate::counter::TokenCounter;
use crate::estimate::Estimator;
use crate::exchange::{is_prompt, leading_system};
use crate::transcript::{clip, parts};
use crate::truncate::Truncated;

/// A summary in progress: the requests for a model, and the replacement for the dropped messages.
///
/// Send each [`next_request`](Self::next_request) to a model and push its answer until there are no more, then
/// call [`finish`](Self::finish). Text longer than the model's context is summarized in parts, each with the
/// summary so far. If the model fails, [`give_up`](Self::give_up) drops the messages without a summary.
#[derive(Clone, Debug)]
#[must_use = "nothing is summarized until its requests are answered"]
pub struct Summary {
    cut: Truncated,
    instructions: String,
    /// The parts of the conversation not summarized yet.
    parts: VecDeque<String>,
    /// The token limit of the summary, by the estimator.
    room: usize,
    written: String,
    /// True if the summary becomes a separate message.
    stands_apart: bool,
}

impl Summary {
    /// Returns the token limit of a summary, which must be shorter than the `lost` tokens of messages that it replaces;
    /// `None` if they are not worth one. `frame` is [`FRAME`] in the tokens of the server.
    pub(crate) fn room(most: usize, lost: usize, frame: usize) -> Option<usize> {
        let room = most.min(lost.saturating_sub(frame));
        (room > 0 && room >= frame / 2).then_some(room)
    }

    /// `room` is the token limit of the summary, `asked` that of one request.
    pub(crate) fn new<C>(
        messages: &[Message],
        cut: Truncated,
        instructions: String,
        room: usize,
        asked: usize,
        counter: &C,
    ) -> Self
    where
        C: TokenCounter + ?Sized,
    {
        let overheads = [counter.count_text(&instructions), room, FRAME];
        // A request has the instructions, the summary so far, which has up to `room` tokens, and one part.
        let tokens = overheads.into_iter().fold(asked, usize::saturating_sub).max(SMALLEST_PART);
        let gone = cut.dropped().into_iter().flat_map(|range| &messages[range]);
        let parts = parts(gone, tokens, counter);
        let room = estimated(room, parts.first().map_or("", String::as_str), counter);
        let parts = parts.into();
        Self { cut, instructions, parts, room, written: String::new(), stands_apart: false }
    }

    /// Makes the summary a separate message, after the system messages.
    pub(crate) fn standing_apart(mut self) -> Self {
        self.stands_apart = true;
        self
    }

    pub(crate) fn is_written(&self) -> bool {
        !self.written.is_empty()
    }

    /// Returns the next request, one user message to be sent without tools; `None` when all parts are done.
    #[must_use]
    pub fn next_request(&self) -> Option<Vec<Message>> {
        let part = self.parts.front()?;
        let Self { instructions, room, written, .. } = self;
        // A word is a little more than a token.
        let words = room * 3 / 4;
        let before = if written.is_empty() {
            String::new()
        } else {
            format!("What came before, summarized; carry it over:\n{written}\n\n")
        };
        let text = format!(
            "{instructions}\n\nUse at most {words} words.\n\n{before}The conversation:\n{part}"
        );
        Some(vec![Message::user(text)])
    }

    /// Adds the model's answer to the last request, cut if it is too long.
    pub fn push(&mut self, answer: impl AsRef<str>) {
        if self.parts.pop_front().is_none() {
            return;
        }
        // Whatever number of words the model kept to: the next request must have room for it.
        let answer = clip(answer.as_ref().trim(), self.room, &Estimator::new());
        if !answer.is_empty() {
            self.written = answer.to_owned();
        }
    }

    /// Returns the remaining messages, with the summary at the start of the first prompt among them.
    ///
    /// The summary is part of the prompt so that roles keep alternating. Parts without an answer are lost.
    /// Without any summary, this is the same as [`Truncated::apply`].
    #[must_use]
    pub fn finish(self, messages: &[Message]) -> Vec<Message> {
        let mut kept = self.cut.apply(messages);
        if self.written.is_empty() {
            return kept;
        }
        let said = format!("{HEADING}\n{}\n{FOOTING}", self.written);
        let block = TextBlock::new(said).into();
        match kept.iter_mut().find(|message| is_prompt(message)) {
            Some(prompt) if !self.stands_apart => prompt.content.insert(0, block),
            _ => {
                let place = leading_system(&kept);
                kept.insert(place, Message::new(MessageRole::User, vec![block]));
            }
        }
        kept
    }

    /// Returns the plan without a summary.
    #[must_use]
    pub fn give_up(self) -> Truncated {
        self.cut
    }
}

/// Converts a number of the counter's tokens to estimated tokens, because answers are cut by the estimator: a summary
/// does not store the counter. `text` is the start of the summarized text, which is in the same language.
fn estimated<C: TokenCounter + ?Sized>(tokens: usize, text: &str, counter: &C) -> usize {
    match (Estimator::new().count_text(text), counter.count_text(text)) {
        (_, 0) => tokens,
        (estimated, counted) => (tokens as f64 * estimated as f64 / counted as f64) as usize,
    }
}

/// Returns true if a message contains only a summary.
pub(crate) fn is_summary(message: &Message) -> bool {
    let [ContentBlock::Text(block)] = &message.content[..] else { return false };
    message.role == MessageRole::User
        && block.text.starts_with(HEADING)
        && block.text.ends_with(FOOTING)
}

const HEADING: &str = "(Earlier parts of this conversation were left out. A summary of them:)";
const FOOTING: &str = "(The conversation continues here.)";
/// Tokens of a request other than the instructions, the summary so far and the part; also those around a summary.
pub(crate) const FRAME: usize = 60;
/// Smaller parts are not worth summarizing.
const SMALLEST_PART: usize = 100;
