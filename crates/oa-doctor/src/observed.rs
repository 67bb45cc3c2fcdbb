use std::future::poll_fn;
use std::sync::Mutex;
use std::time::Duration;

use oa_aggregate::Delta;
use oa_chat::{AnswerStream, Concluded, Error, Result};
use oa_json::ThinkingTags;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, ToolUseBlock, ToolUseError};
use tokio::time::Instant;

use crate::tap::{Bytewise, lock};

/// An answer to one chat request, with timing.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) message: AssistantMessage,
    /// Why the answer is incomplete.
    pub(crate) failure: Option<Error>,
    /// The error with which the server refused to stream the answer.
    pub(crate) unstreamed: Option<Error>,
    /// True if the answer exceeded the requested length and was abandoned.
    pub(crate) is_endless: bool,
    pub(crate) bytewise: Bytewise,
    asked: Instant,
    pub(crate) deltas: u64,
    /// The number of pieces of the body that carried them.
    pub(crate) arrivals: u64,
    last_piece: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    most: u64,
}

impl Observed {
    /// Reads an answer of at most `max_tokens`, and records how it arrives.
    ///
    /// # Errors
    ///
    /// If nothing of an answer arrives.
    pub(crate) async fn read(
        mut answer: AnswerStream,
        seen: &Mutex<Bytewise>,
        asked: Instant,
        max_tokens: Option<u32>,
    ) -> Result<Self> {
        let mut observed = Self::new(asked, max_tokens);
        while let Some(more) =
            poll_fn(|cx| answer.poll_with(cx, |delta| Some(observed.note(delta, seen)))).await
        {
            if !more {
                break;
            }
        }
        observed.conclude(answer, seen).await
    }

    /// Starts to observe an answer of at most `max_tokens`.
    fn new(asked: Instant, max_tokens: Option<u32>) -> Self {
        Self {
            message: AssistantMessage::new(Vec::new()),
            failure: None,
            unstreamed: None,
            is_endless: false,
            bytewise: Bytewise::default(),
            asked,
            deltas: 0,
            arrivals: 0,
            last_piece: 0,
            first: None,
            last: None,
            // A token is rarely more than one delta; arguments and tags have deltas of their own.
            most: u64::from(max_tokens.unwrap_or_default()) * 3 + 100,
        }
    }

    /// Records a delta; `false` if there were enough of them.
    fn note(&mut self, delta: Delta<'_>, seen: &Mutex<Bytewise>) -> bool {
        if matches!(delta, Delta::Problem(_)) {
            return true;
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.deltas += 1;
        // The pipeline yields all deltas of a piece before it reads the next one, so this is the delta's own.
        let piece = lock(seen).pieces;
        self.arrivals += u64::from(piece != self.last_piece);
        self.last_piece = piece;
        self.is_endless = self.deltas > self.most;
        !self.is_endless
    }

    /// Ends the observation.
    ///
    /// # Errors
    ///
    /// If nothing of an answer arrived.
    async fn conclude(mut self, answer: AnswerStream, seen: &Mutex<Bytewise>) -> Result<Self> {
        if self.is_endless {
            // Consumes the answer, which closes the connection: an endless one would never conclude.
            self.message.content = answer.arrived();
        } else {
            let Concluded { message, failure, closing, .. } = answer.conclude();
            if let Some(error) = failure {
                if message.content.is_empty() {
                    return Err(error);
                }
                self.failure = Some(error);
            }
            self.message = message;
            if let Some(closing) = closing {
                closing.await;
            }
        }
        self.bytewise = std::mem::take(&mut *lock(seen));
        Ok(self)
    }

    /// Returns the time from the request to the first delta.
    pub(crate) fn to_first(&self) -> Option<Duration> {
        Some(self.first? - self.asked)
    }

    /// Returns the time from the first delta to the last.
    pub(crate) fn spread(&self) -> Duration {
        self.first.zip(self.last).map(|(first, last)| last - first).unwrap_or_default()
    }

    /// Returns the time from the request to the first comment.
    pub(crate) fn to_comment(&self) -> Option<Duration> {
        Some(self.bytewise.first_comment? - self.asked)
    }

    /// True if it was cut off, so that the missing part may have followed.
    pub(crate) fn is_cut(&self) -> bool {
        self.failure.is_some() || self.is_endless || self.message.finish_reason.is_length()
    }

    /// True if the server marked the answer as complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.bytewise.is_done || self.message.finish_reason != FinishReason::Unspecified
    }

    /// Returns all text, joined.
    pub(crate) fn text(&self) -> String {
        self.message.text()
    }

    /// Returns the text after all thinking.
    pub(crate) fn visible_text(&self) -> String {
        ThinkingTags::answer_in(&self.text()).trim_end().to_owned()
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &ToolUseBlock> {
        self.message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(call),
            _ => None,
        })
    }

    pub(crate) fn broken_call(&self) -> Option<&ToolUseError> {
        self.message.content.iter().find_map(|block| match block {
            ContentBlock::ToolUseError(error) => Some(error),
            _ => None,
        })
    }
}
