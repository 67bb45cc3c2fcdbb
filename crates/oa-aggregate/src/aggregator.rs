use oa_types::{FinishReason, Usage};

use crate::answer::AggregatedAnswer;
use crate::chunk::Payload;
use crate::decode::Decoder;
use crate::delta::Delta;
use crate::error::{Error, Problem, UncleanEnd, UnreadablePayload};
use crate::failure;
use crate::options::Options;
use crate::state::State;
use crate::template::TemplateCache;

/// The status of a stream after a payload.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum StreamStatus {
    /// The server said `[DONE]`, and whatever follows is ignored.
    Done,
    /// More payloads are expected.
    More,
}

/// Turns the payloads of one stream into deltas as they come, and into blocks at the end.
///
/// Feed it payloads (the data of events, or a body that is plain JSON as a whole) with
/// [`push`](Self::push), take deltas with [`next_delta`](Self::next_delta) until it answers `None`, say
/// that the input has ended with [`finish`](Self::finish), take the deltas that were held back, and
/// take the [`AggregatedAnswer`] with [`into_answer`](Self::into_answer).
///
/// The project's list of server quirks explains, row by row, the rules that it follows.
#[derive(Debug)]
pub struct Aggregator {
    decoder: Decoder,
    state: State,
}

impl Default for Aggregator {
    fn default() -> Self {
        Self::new()
    }
}

impl Aggregator {
    /// Creates an aggregator for one stream of a server of which nothing is known.
    ///
    /// Ids that it makes up are the same in each such stream. In a conversation of several answers give each
    /// an [`Options::id_seed`] of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    /// Creates an aggregator for one stream.
    #[must_use]
    pub fn with_options(options: Options) -> Self {
        Self { decoder: Decoder::new(), state: State::new(options) }
    }

    /// Creates an aggregator for one stream with the templates of earlier answers of the same server;
    /// `TemplateCache::default()` for its first answer.
    ///
    /// The answer is the same as without them. [`take_templates`](Self::take_templates) returns them together with those
    /// that are learned from this stream.
    #[must_use]
    pub fn with_templates(options: Options, templates: TemplateCache) -> Self {
        Self { decoder: Decoder::with_templates(templates), state: State::new(options) }
    }

    /// Takes out the templates that it was given and has learned, for the server's next answer, and leaves it with
    /// none.
    #[must_use = "the templates are for the next answer"]
    pub fn take_templates(&mut self) -> TemplateCache {
        self.decoder.take_templates()
    }

    /// Takes the next payload.
    ///
    /// A payload that is not JSON, or that reports an error, becomes a [`Problem`], and the stream goes
    /// on.
    ///
    /// # Errors
    ///
    /// The answer passed a limit. What came before is kept.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        if state.done {
            return Ok(StreamStatus::Done);
        }
        if let Some(error) = state.failed {
            return Err(error);
        }
        if let Some(matched) = self.decoder.recognize(payload) {
            return state
                .take_matched(&matched)
                .map(|()| StreamStatus::More)
                .map_err(|error| state.fail(error));
        }
        self.push_unmatched(payload)
    }

    /// Takes a payload of which the framing says that it is an error: the data of an event named `error`,
    /// or what stands in a field of that name (QUIRKS rows 104 and 115).
    ///
    /// A payload that reads as a chunk is taken as one, since some servers name all of their events.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    #[cold]
    pub fn push_error(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        if state.done {
            return Ok(StreamStatus::Done);
        }
        if let Some(error) = state.failed {
            return Err(error);
        }
        let room = state.budget.left();
        match self.decoder.read_within(payload, room) {
            Ok(Payload::Chunk(chunk)) if chunk.is_empty() && !chunk.is_cut => {}
            Err(_) => {}
            Ok(_) => return self.push(payload),
        }
        let mut error = failure::in_body(payload, room);
        if error.message.is_empty() {
            error.message = "the server reported an error and did not say which".to_owned();
        }
        state
            .add_problem(Problem::Server(Box::new(error)))
            .map(|()| StreamStatus::More)
            .map_err(|error| state.fail(error))
    }

    fn push_unmatched(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        // By reference: a chunk is some 300 bytes that need not move.
        match &self.decoder.read_within(payload, state.budget.left()) {
            Ok(Payload::Chunk(chunk)) => {
                state.take(chunk).map(|()| StreamStatus::More).map_err(|error| state.fail(error))
            }
            Ok(Payload::Done) => {
                state.done = true;
                Ok(StreamStatus::Done)
            }
            Err(unreadable) => state
                .add_unreadable(unreadable)
                .map(|()| StreamStatus::More)
                .map_err(|error| state.fail(error)),
        }
    }

    /// Returns the next change to the answer, or `None` when it needs more input.
    #[inline]
    pub fn next_delta(&mut self) -> Option<Delta<'_>> {
        let State { speech, calls, problems, .. } = &mut self.state;
        speech.blocks.next(&calls.list, problems)
    }

    /// Ends the input: what was held back becomes deltas. Ending twice changes nothing.
    ///
    /// # Errors
    ///
    /// The text that was held back passed the limit of text.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.state.flush()
    }

    /// Ends the input of a stream that did not come to its end, and returns whether the answer is complete
    /// all the same: it is once the server has said that it was through, and a [`Problem`] tells of the rest
    /// (QUIRKS row 120).
    pub fn break_off(&mut self, end: UncleanEnd) -> bool {
        let is_complete = self.is_complete();
        if is_complete {
            // An answer that fills its budget to the last byte does without.
            let _ = self.state.add_problem(Problem::UncleanEnd(end));
        }
        is_complete
    }

    /// Ends the input, if that has not been said, and makes the answer.
    #[must_use]
    pub fn into_answer(mut self) -> AggregatedAnswer {
        self.take_answer()
    }

    /// Makes the answer as [`into_answer`](Self::into_answer) does, of an aggregator that stays where it
    /// is. Nothing is left to be told, and whatever is pushed after that is ignored.
    #[must_use]
    pub fn take_answer(&mut self) -> AggregatedAnswer {
        // A limit cuts off what was held back; everything before it is in the answer.
        let _ = self.state.flush();
        self.state.take_answer()
    }

    /// Returns true if text, thinking or a call has come.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.state.speech.blocks.parts.is_empty()
    }

    /// Returns true if the server said that it was through: by `[DONE]` or a finish reason.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state.done || self.state.finish_reason != FinishReason::Unspecified
    }

    /// Returns why the answer ended, as far as the server has said.
    #[must_use]
    pub fn finish_reason(&self) -> &FinishReason {
        &self.state.finish_reason
    }

    /// Returns the problems so far.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.state.problems
    }

    /// Returns the first payload that was not JSON.
    #[must_use]
    pub fn unreadable(&self) -> Option<&UnreadablePayload> {
        self.state.unreadable.as_ref()
    }

    /// Returns usage as reported so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.state.usage
    }

    /// Returns the decoder, for what it has counted.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}
