use oa_json::ValueEnd;
use oa_types::{FinishReason, Usage};

use crate::answer::AggregatedAnswer;
use crate::chunk::Chunk;
use crate::decode::Decoder;
use crate::delta::Delta;
use crate::error::{Error, Problem, UncleanEnd, UnreadablePayload};
use crate::failure;
use crate::options::Options;
use crate::state::State;
use crate::stream_status::StreamStatus;
use crate::template::TemplateCache;

/// Turns the payloads of one stream into deltas as they arrive, and into blocks at the end.
///
/// Feed it payloads (the data of events, or a body that is plain JSON as a whole) with [`push`](Self::push), and take
/// deltas with [`next_delta`](Self::next_delta) until it returns `None`. At the end of the input, call
/// [`finish`](Self::finish), take the deltas that were held back, and take the [`AggregatedAnswer`] with
/// [`into_answer`](Self::into_answer).
///
/// The project's list of server quirks explains the rules row by row.
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
    /// Creates an aggregator for one stream of an unknown server.
    ///
    /// The ids that it generates are the same for each such stream: give each answer a different [`Options::id_seed`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_options(Options::default())
    }

    /// Creates an aggregator for one stream.
    #[must_use]
    pub fn with_options(options: Options) -> Self {
        Self { decoder: Decoder::new(), state: State::new(options) }
    }

    /// Creates an aggregator for one stream with the templates of earlier answers of the same server, or with
    /// `TemplateCache::default()` for the first answer.
    ///
    /// Templates do not change the answer. [`take_templates`](Self::take_templates) returns them together with those
    /// learned from this stream.
    #[must_use]
    pub fn with_templates(options: Options, templates: TemplateCache) -> Self {
        Self { decoder: Decoder::with_templates(templates), state: State::new(options) }
    }

    /// Removes and returns the templates that it was given or has learned, for the server's next answer.
    #[must_use = "the templates are for the next answer"]
    pub fn take_templates(&mut self) -> TemplateCache {
        self.decoder.take_templates()
    }

    /// Takes the next payload.
    ///
    /// A payload that is not JSON, or that reports an error, becomes a [`Problem`], and the stream continues. If its
    /// first line is JSON and more follow, each line is a payload. An empty payload is ignored, and so is JSON without
    /// any member of a chunk.
    ///
    /// # Errors
    ///
    /// The answer exceeds a limit. Everything before it is kept.
    #[inline]
    pub fn push(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        if state.done || state.is_finished {
            return Ok(StreamStatus::Done);
        }
        if let Some(error) = state.failed {
            return Err(error);
        }
        if let Some(matched) = self.decoder.recognize(payload) {
            let taken = state.take_matched(&matched);
            return state.status(taken);
        }
        self.push_unmatched(payload)
    }

    /// Takes a payload that is an error according to its framing: the data of an event named `error`, or the value of
    /// a field of that name (QUIRKS rows 104 and 115).
    ///
    /// A payload that is a chunk is taken as one, because some servers name all their events.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    #[cold]
    pub fn push_error(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        if state.done || state.is_finished || state.failed.is_some() {
            return self.push(payload);
        }
        let room = state.budget.left();
        let mut chunk = Chunk::default();
        match self.decoder.read_within(payload, room, &mut chunk) {
            Ok(StreamStatus::More) if chunk.is_empty() && !chunk.is_cut => {}
            // Taken now: read again, it would match its own template, whose id and model count as taken.
            Ok(StreamStatus::More) => {
                let taken = state.take(&chunk);
                drop(chunk);
                return self.end_chunk(taken);
            }
            Ok(StreamStatus::Done) => {
                state.done = true;
                return Ok(StreamStatus::Done);
            }
            Err(_) if has_payload_lines(payload) => {
                return self.push_lines(payload, Self::push_error);
            }
            Err(_) => {}
        }
        let mut error = failure::in_body(payload, room);
        if error.message.is_empty() {
            error.message = "the server reported an error without details".to_owned();
        }
        let taken = state.add_problem(Problem::Server(Box::new(error)));
        state.status(taken)
    }

    /// Takes a line of an event stream that is no field of the standard: a parser's unknown line. Bare JSON is a payload
    /// (QUIRKS row 68), and the value of a field `error` is an [error](Self::push_error) (row 104). Any other line is
    /// ignored.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn push_line(&mut self, line: &[u8]) -> Result<StreamStatus, Error> {
        let (payload, is_error) = payload_of_line(line).unwrap_or_default();
        if is_error { self.push_error(payload) } else { self.push(payload) }
    }

    fn push_unmatched(&mut self, payload: &[u8]) -> Result<StreamStatus, Error> {
        let state = &mut self.state;
        let mut chunk = Chunk::default();
        match self.decoder.read_within(payload, state.budget.left(), &mut chunk) {
            Ok(StreamStatus::More) => {
                let taken = state.take(&chunk);
                drop(chunk);
                self.end_chunk(taken)
            }
            Ok(StreamStatus::Done) => {
                state.done = true;
                Ok(StreamStatus::Done)
            }
            Err(_) if has_payload_lines(payload) => self.push_lines(payload, Self::push),
            Err(unreadable) => {
                let taken = state.add_unreadable(&unreadable);
                state.status(taken)
            }
        }
    }

    /// Prepares for the payload after a chunk that was read and taken.
    #[inline]
    fn end_chunk(&mut self, taken: Result<(), Error>) -> Result<StreamStatus, Error> {
        let Self { decoder, state } = self;
        // Templates are for words that need no others, and hide an id that differs.
        decoder.read_in_full(state.half.is_some() || state.speech.notice.is_open());
        state.status(taken)
    }

    /// Takes the lines of an event as payloads of their own.
    #[cold]
    fn push_lines(
        &mut self,
        payload: &[u8],
        push: fn(&mut Self, &[u8]) -> Result<StreamStatus, Error>,
    ) -> Result<StreamStatus, Error> {
        lines(payload).try_fold(StreamStatus::More, |_, line| push(self, line))
    }

    /// Returns the next change to the answer, or `None` if it needs more input.
    #[inline]
    pub fn next_delta(&mut self) -> Option<Delta<'_>> {
        let State { speech, calls, problems, .. } = &mut self.state;
        speech.blocks.next(&calls.list, problems)
    }

    /// Ends the input: what was held back becomes deltas. A second call does nothing, and later payloads are ignored.
    ///
    /// # Errors
    ///
    /// What was held back exceeds a limit: it is dropped, and everything before it is in the answer.
    pub fn finish(&mut self) -> Result<(), Error> {
        self.state.finish()
    }

    /// Records that the stream broke off, and returns true if the answer is complete anyway.
    ///
    /// It is if the server had already reported the end. Then a [`Problem`] reports the break (QUIRKS row 120). The
    /// input is still to be [finished](Self::finish).
    pub fn break_off(&mut self, end: UncleanEnd) -> bool {
        let is_complete = self.is_complete();
        if is_complete {
            // Left out if the answer has used up its budget.
            let _ = self.state.add_problem(Problem::UncleanEnd(end));
        }
        is_complete
    }

    /// Ends the input, if that has not been done, and returns the answer.
    #[must_use]
    pub fn into_answer(mut self) -> AggregatedAnswer {
        self.take_answer()
    }

    /// Returns the answer as [`into_answer`](Self::into_answer) does, and leaves the aggregator without deltas.
    #[must_use]
    pub fn take_answer(&mut self) -> AggregatedAnswer {
        let _ = self.state.finish();
        self.state.take_answer()
    }

    /// Returns true if any text, thinking or call has arrived.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.state.speech.blocks.parts.is_empty()
    }

    /// Returns true if the server reported the end, by `[DONE]` or a finish reason.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.state.done || self.state.finish_reason != FinishReason::Unspecified
    }

    /// Returns the number of bytes of text and thinking that have arrived but are held back: no delta has them yet.
    #[must_use]
    pub fn held_back(&self) -> usize {
        self.state.speech.held()
    }

    /// Returns the reason why the answer ended, if the server has reported it.
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

    /// Returns the usage reported so far.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.state.usage
    }

    /// Returns the decoder, for its counters.
    #[must_use]
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }
}

/// Returns the payload in a line that is no field of the standard, and true if it is an error; `None` if it has none.
#[cold]
#[doc(hidden)]
#[must_use]
pub fn payload_of_line(line: &[u8]) -> Option<(&[u8], bool)> {
    if line.trim_ascii_start().starts_with(b"{") {
        return Some((line, false));
    }
    let value = line.strip_prefix(b"error:")?.trim_ascii();
    (!value.is_empty()).then_some((value, true))
}

fn lines(payload: &[u8]) -> impl Iterator<Item = &[u8]> {
    payload.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
}

/// Returns true if a payload that is not JSON is several payloads, which the server did not separate by blank lines
/// (QUIRKS row 123). JSON that is spread over several lines is whole only with the last of them.
#[cold]
fn has_payload_lines(payload: &[u8]) -> bool {
    let mut lines = lines(payload);
    let first = lines.next().unwrap_or_default().trim_ascii();
    let is_payload = first == b"[DONE]"
        || first.starts_with(b"{") && ValueEnd::default().find(first) == Some(first.len());
    is_payload && lines.next().is_some()
}
