//! Converts bytes to deltas and blocks: parser, aggregator, and bodies that are not event streams.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr_iter;
use oa_aggregate::{
    AggregatedAnswer, Aggregator, Delta, Problem, StreamStatus, TemplateCache, UncleanEnd,
    UnreadablePayload, payload_of_line,
};
use oa_sse::{Item, Parser};
use oa_types::wire::ServerError;

/// The maximum stored size of an unreadable body, in bytes. It is larger than what is shown, so that a key at the end
/// of the shown part is complete and can be masked.
const EXCERPT: usize = 4096;

/// The maximum time to wait after a finish reason for the end of the body, which some servers never send.
const AFTER_FINISH: Duration = Duration::from_secs(5);

/// The longest wait for more after an error inside the stream: usually nothing follows.
const AFTER_ERROR: Duration = Duration::from_secs(1);

/// The policy for a chunk that is not JSON.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum OnBadChunk {
    /// End the answer with an error of kind `Stream`. The part that arrived before it stays.
    Fail,
    /// Report a [`Problem`], log it, and continue, because proxies insert lines of their own into streams.
    #[default]
    Report,
}

/// Options of one pipeline.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct PipelineOptions {
    /// The parser's limits; a body of plain JSON may be as large as an event.
    pub parser: oa_sse::Limits,
    /// The aggregator's limits and quirks.
    pub aggregator: oa_aggregate::Options,
    /// The policy for a chunk that is not JSON.
    pub on_bad_chunk: OnBadChunk,
}

/// Reads the body of one response, of any supported form, without I/O.
///
/// If the first non-blank byte is `{` or `[`, the body is one JSON document, whatever its content type (QUIRKS
/// row 71), and behind it there may be events, such as `data: [DONE]`; everything else is an event stream. Lines of
/// JSON among the events are payloads too (row 68), and so is the value of a field `error`, which the standard ignores
/// (row 104). That field and an event named `error` (row 115) are errors, whatever JSON they contain.
///
/// Push / next / finish: [`push`](Self::push) bytes, take deltas with [`next_delta`](Self::next_delta) until it
/// returns `None`. At the end of the body call [`finish`](Self::finish), take the remaining deltas, and make the
/// answer with [`into_answer`](Self::into_answer).
#[derive(Debug)]
pub struct Pipeline {
    parser: Parser,
    /// Boxed, because a pipeline is moved more than once.
    aggregator: Box<Aggregator>,
    form: BodyForm,
    received: u64,
    head: Vec<u8>,
    payloads: u64,
    limit: usize,
    on_bad_chunk: OnBadChunk,
}

/// The form of the body, as far as it is known.
#[derive(Debug)]
enum BodyForm {
    /// Only blanks so far, and this much of a byte order mark.
    Unknown(usize),
    Events,
    /// Nothing more is read: the last event was `[DONE]`, or an error ended the answer.
    Done,
    Json(Vec<u8>),
}

/// The body exceeds a limit, or has a chunk that must not be skipped.
#[derive(Debug)]
#[non_exhaustive]
pub enum PipelineError {
    /// The answer is too large.
    Answer(oa_aggregate::Error),
    /// A chunk is not JSON, and [`OnBadChunk::Fail`] is set.
    BadChunk(UnreadablePayload),
    /// A body of plain JSON is larger than this many bytes.
    Document(usize),
    /// An event is too large.
    Event(oa_sse::Error),
}

impl Pipeline {
    /// Creates a pipeline for one body.
    #[must_use]
    pub fn new(options: PipelineOptions) -> Self {
        Self::of(options, Box::new(Aggregator::with_options(options.aggregator)))
    }

    /// Creates a pipeline for one body with the templates of earlier answers of the same server.
    ///
    /// The templates do not change the answer: see [`TemplateCache`].
    #[must_use]
    pub fn with_templates(options: PipelineOptions, templates: TemplateCache) -> Self {
        let aggregator = Aggregator::with_templates(options.aggregator, templates);
        Self::of(options, Box::new(aggregator))
    }

    fn of(options: PipelineOptions, aggregator: Box<Aggregator>) -> Self {
        Self {
            parser: Parser::with_limits(options.parser),
            aggregator,
            form: BodyForm::Unknown(0),
            received: 0,
            head: Vec::new(),
            payloads: 0,
            limit: options.parser.event_bytes,
            on_bad_chunk: options.on_bad_chunk,
        }
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    ///
    /// The body exceeds a limit, or a chunk is not JSON with [`OnBadChunk::Fail`]. Earlier deltas can still be taken.
    #[inline]
    pub fn push(&mut self, bytes: Bytes) -> Result<StreamStatus, PipelineError> {
        self.received += bytes.len() as u64;
        if !matches!(self.form, BodyForm::Events) {
            let mut bytes = &bytes[..];
            if let BodyForm::Unknown(_) = self.form {
                bytes = &bytes[self.look_at(bytes)..];
            }
            match &mut self.form {
                BodyForm::Json(document) if document.len() + bytes.len() > self.limit => {
                    self.form = BodyForm::Done;
                    return Err(PipelineError::Document(self.limit));
                }
                BodyForm::Json(document) => {
                    document.extend_from_slice(bytes);
                    return Ok(StreamStatus::More);
                }
                BodyForm::Done => return Ok(StreamStatus::Done),
                BodyForm::Unknown(_) | BodyForm::Events => {}
            }
        }
        // Shares the buffer, and is dropped below unless nothing could be read from it.
        let begin = (self.payloads == 0).then(|| bytes.clone());
        self.parser.push(bytes);
        let progress = self.read_events();
        if let Some(begin) = begin.filter(|_| self.payloads == 0) {
            let room = EXCERPT.saturating_sub(self.head.len());
            self.head.extend_from_slice(&begin[..begin.len().min(room)]);
        }
        match progress {
            // The transport can read into the same buffer again.
            Ok(StreamStatus::More) => self.parser.release(),
            // What follows an error in the same piece is not part of the answer, either.
            _ => self.form = BodyForm::Done,
        }
        progress
    }

    /// Ends the body. Afterwards the deltas that were held back can be taken.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push).
    pub fn finish(&mut self) -> Result<(), PipelineError> {
        match std::mem::replace(&mut self.form, BodyForm::Done) {
            BodyForm::Done => {}
            BodyForm::Unknown(_) | BodyForm::Events => {
                self.parser.finish_lenient();
                self.read_events()?;
            }
            BodyForm::Json(document) => {
                self.head = document[..document.len().min(EXCERPT)].to_vec();
                self.payloads += 1;
                let mut document = Bytes::from(document);
                // All of it if it begins with no value, so that the error shows it.
                let length = oa_json::value_length(&document).unwrap_or(document.len());
                let events = document.split_off(length);
                self.aggregator.push(&document).map_err(PipelineError::Answer)?;
                self.check_chunks()?;
                self.parser.push(events);
                self.parser.finish_lenient();
                self.read_events()?;
            }
        }
        self.aggregator.finish().map_err(PipelineError::Answer)
    }

    /// Records that the connection broke, and returns true if the answer is complete anyway, because a finish reason
    /// has arrived (QUIRKS row 120). The body is still to be [finished](Self::finish).
    pub fn break_off(&mut self, end: UncleanEnd) -> bool {
        self.aggregator.break_off(end)
    }

    /// Returns the maximum time to wait for the end of the body; `None` while the answer is in progress.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        let is_error = |problem: &Problem| matches!(problem, Problem::Server(_));
        if self.problems().iter().any(is_error) {
            return Some(AFTER_ERROR);
        }
        self.aggregator.is_complete().then_some(AFTER_FINISH)
    }

    /// Returns the next change to the answer, or `None` when more bytes are needed.
    #[inline]
    pub fn next_delta(&mut self) -> Option<Delta<'_>> {
        self.aggregator.next_delta()
    }

    /// Takes the templates learned by this and earlier answers, for the server's next answer.
    #[must_use = "the templates are for the next answer"]
    pub fn take_templates(&mut self) -> TemplateCache {
        self.aggregator.take_templates()
    }

    /// Builds the answer.
    #[must_use]
    pub fn into_answer(self) -> AggregatedAnswer {
        self.aggregator.into_answer()
    }

    /// Builds the answer without consuming the pipeline, which is left empty.
    #[must_use]
    pub fn take_answer(&mut self) -> AggregatedAnswer {
        self.aggregator.take_answer()
    }

    /// Returns the aggregator.
    #[must_use]
    pub fn aggregator(&self) -> &Aggregator {
        &self.aggregator
    }

    /// Returns the problems in the stream so far.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        self.aggregator.problems()
    }

    /// Returns how many bytes of the body have arrived.
    #[must_use]
    pub fn received(&self) -> u64 {
        self.received
    }

    /// Returns how many payloads have arrived: events with data, lines of JSON, or the document.
    #[must_use]
    pub fn payloads(&self) -> u64 {
        self.payloads
    }

    /// Returns what may explain why there is no answer, for error messages: the start of a body that is a document or
    /// has no payloads, of the first payload without choices, or of a line behind payloads that is no part of an event
    /// stream. At most 4 KiB. It may contain a key.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    #[inline]
    fn read_events(&mut self) -> Result<StreamStatus, PipelineError> {
        while let Some(item) = self.parser.next_item().map_err(PipelineError::Event)? {
            let (payload, is_error) = match &item {
                Item::Event(event) => (event.raw_data(), event.is_named("error")),
                // The standard ignores such a line, but some servers put JSON or an error into one.
                Item::Unknown(line) => match payload_of_line(line) {
                    Some(told) => told,
                    None => {
                        // Behind payloads that are no answer, a proxy may say why there is none.
                        if self.payloads > 0 && self.head.is_empty() {
                            self.head = line[..line.len().min(EXCERPT)].to_vec();
                        }
                        continue;
                    }
                },
                _ => continue,
            };
            // The only place for it: it is large, and a part of this loop.
            let progress = if is_error {
                self.aggregator.push_error(payload)
            } else {
                self.aggregator.push(payload)
            };
            // A body with payloads has no other head.
            if self.payloads == 0 {
                self.head.clear();
            }
            if self.head.is_empty() && !self.aggregator.has_begun() && is_other(payload) {
                self.head = payload[..payload.len().min(EXCERPT)].to_vec();
            }
            self.payloads += 1;
            let progress = progress.map_err(PipelineError::Answer)?;
            self.check_chunks()?;
            if progress == StreamStatus::Done {
                return Ok(StreamStatus::Done);
            }
        }
        Ok(StreamStatus::More)
    }

    #[inline]
    fn check_chunks(&self) -> Result<(), PipelineError> {
        let chunk = self.aggregator.unreadable().filter(|_| self.on_bad_chunk == OnBadChunk::Fail);
        chunk.map_or(Ok(()), |chunk| Err(PipelineError::BadChunk(chunk.clone())))
    }

    /// Determines the form of the body by its first non-blank byte, and returns the start of a JSON document: its
    /// reader does not expect a byte order mark that is behind blanks, or split between pieces.
    #[cold]
    fn look_at(&mut self, bytes: &[u8]) -> usize {
        const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];
        let BodyForm::Unknown(mut matched) = self.form else { return 0 };
        for (place, &byte) in bytes.iter().enumerate() {
            match byte {
                _ if BYTE_ORDER_MARK.get(matched) == Some(&byte) => matched += 1,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'{' | b'[' => {
                    self.form = BodyForm::Json(Vec::new());
                    // Blanks of earlier pieces are in front of the document, not of the events behind it.
                    self.parser = Parser::with_limits(self.parser.limits());
                    return place;
                }
                _ => {
                    self.form = BodyForm::Events;
                    return 0;
                }
            }
        }
        self.form = BodyForm::Unknown(matched);
        0
    }
}

/// Returns true if a payload is JSON, but no part of an answer.
fn is_other(payload: &[u8]) -> bool {
    let is_choices = |place: usize| payload[place..].starts_with(b"choices\"");
    payload.starts_with(b"{") && !memchr_iter(b'c', payload).any(is_choices)
}

/// Returns the first error that the server reported inside the stream.
pub(crate) fn reported(problems: &[Problem]) -> Option<&ServerError> {
    problems.iter().find_map(|problem| match problem {
        Problem::Server(error) => Some(&**error),
        _ => None,
    })
}

impl fmt::Display for PipelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answer(error) => error.fmt(f),
            Self::BadChunk(chunk) => write!(f, "a chunk of the answer is {chunk}"),
            Self::Document(limit) => {
                write!(f, "the body is larger than the limit of {limit} bytes")
            }
            Self::Event(error) => error.fmt(f),
        }
    }
}

impl StdError for PipelineError {}
