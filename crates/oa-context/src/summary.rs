use std::collections::VecDeque;

use oa_types::{Message, MessageRole, TextBlock};

use crate::counter::TokenCounter;
use crate::estimate::Estimator;
use crate::exchange::{is_prompt, leading_system};
use crate::transcript::{clip, parts};
use crate::truncate::Cut;

/// A summary under way: which requests a model is to answer, and what takes the place of the messages that go.
///
/// Ask [`next_request`](Self::next_request), push the answer, and so on until there is none; then
/// [`finish`](Self::finish). What is to be summarized may be longer than the model's context itself: then it
/// is read in parts, each with the summary so far. A model that fails is no reason to lose more than the
/// summary: [`give_up`](Self::give_up) is the plan without it.
#[derive(Clone, Debug)]
#[must_use = "nothing is summarized until its requests are answered"]
pub struct Summary {
    cut: Cut,
    instructions: String,
    /// The conversation's parts that were not read yet.
    parts: VecDeque<String>,
    /// Tokens that the summary may have.
    room: usize,
    written: String,
}

impl Summary {
    /// `asked` is how many tokens one request may have.
    pub(crate) fn new<C>(
        messages: &[Message],
        cut: Cut,
        instructions: String,
        room: usize,
        asked: usize,
        counter: &C,
    ) -> Self
    where
        C: TokenCounter + ?Sized,
    {
        let overheads = [counter.count_text(&instructions), room, FRAME];
        let tokens = overheads.into_iter().fold(asked, usize::saturating_sub).max(SMALLEST_PART);
        let gone = cut.dropped().into_iter().flat_map(|range| &messages[range]);
        let parts = parts(gone, tokens, counter).into();
        Self { cut, instructions, parts, room, written: String::new() }
    }

    /// Returns what the model is to be sent, without tools: one message of the user. `None` if everything
    /// was read.
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

    /// Takes the model's answer to the last request. Of one that is too long the beginning is kept.
    pub fn push(&mut self, answer: impl AsRef<str>) {
        if self.parts.pop_front().is_none() {
            return;
        }
        let answer = clip(answer.as_ref().trim(), self.room, &Estimator::new());
        if !answer.is_empty() {
            self.written = answer.to_owned();
        }
    }

    /// Returns what stays of the messages, with the summary at the beginning of the first prompt among them.
    ///
    /// The prompt is where it stands because the roles then still take turns. Parts that no answer was pushed
    /// for are lost. Without any summary it is [`Cut::apply`].
    #[must_use]
    pub fn finish(self, messages: &[Message]) -> Vec<Message> {
        let mut kept = self.cut.apply(messages);
        if self.written.is_empty() {
            return kept;
        }
        let said = format!("{HEADING}\n{}\n{FOOTING}", self.written);
        let block = TextBlock::new(said).into();
        match kept.iter_mut().find(|message| is_prompt(message)) {
            Some(prompt) => prompt.content.insert(0, block),
            None => {
                let place = leading_system(&kept);
                kept.insert(place, Message::new(MessageRole::User, vec![block]));
            }
        }
        kept
    }

    /// Returns what goes and stays, for those who cannot have a summary.
    #[must_use]
    pub fn give_up(self) -> Cut {
        self.cut
    }
}

const HEADING: &str = "(Earlier parts of this conversation were left out. A summary of them:)";
const FOOTING: &str = "(Here the conversation goes on.)";
/// Tokens of a request beside the instructions, the summary so far and the part.
const FRAME: usize = 60;
/// A part that is smaller says too little to be summarized.
const SMALLEST_PART: usize = 100;
