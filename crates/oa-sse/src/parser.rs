mod state;

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

use self::state::{Data, End, Found, Name, Want};
use crate::error::Error;
use crate::event::{DataLocation, Event, Item};
use crate::limits::Limits;
use crate::line::{
    DATA, Line, Lines, Span, Step, after_line_break, append, empty, find_line_end, milliseconds,
};

/// A push parser for event streams.
///
/// Pass chunks to [`push`](Self::push) and call [`next_event`](Self::next_event) until it returns `None` ("need
/// more input"). At the end of the input call [`finish`](Self::finish) or
/// [`finish_lenient`](Self::finish_lenient), after which `next_event` returns the rest. The events do not
/// depend on how the input is split into chunks.
///
/// After the end, the parser is ready for another stream; the last event id and retry time are kept, as when a
/// browser reconnects.
#[derive(Debug, Default)]
pub struct Parser {
    lines: Lines,
    data: Data,
    /// Data of several lines, or of lines in earlier chunks. Empty while `data` is `None`: swaps with
    /// `Lines::carried` rely on it.
    held: Vec<u8>,
    name: Name,
    held_name: Vec<u8>,
    /// The standard's "last event ID buffer", committed to `id` by a blank line.
    id_buffer: Option<Arc<str>>,
    id: Option<Arc<str>>,
    retry: Option<Duration>,
    /// The size in bytes of the current block's data and name.
    used: usize,
    /// The current block was returned and must be cleared first. A push before that may replace the chunk
    /// that its spans refer to.
    lent: bool,
    /// The current block is too large and is being skipped.
    discarding: bool,
    /// The comment or unknown line that was found.
    found: Line,
    /// Nothing of the current block was seen, not even part of its first line. False for a new parser, so
    /// that the full parser looks for the byte order mark.
    fresh: bool,
    end: End,
    limits: Limits,
}

impl Parser {
    /// Creates a parser with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a parser with these limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Accepts the next chunk of input.
    ///
    /// Usually called when `next_event` has returned `None`; chunks pushed earlier are queued. The first chunk
    /// after an end starts a new stream and discards events of the previous one that were not taken, including
    /// one that [`finish_lenient`](Self::finish_lenient) would deliver.
    #[inline]
    pub fn push(&mut self, chunk: Bytes) {
        if self.is_in_line() {
            if let Err(searched) = self.lines.continue_line(&chunk, self.room()) {
                self.lines.set_chunk(chunk, searched);
            }
            return;
        }
        if self.end != End::Open {
            self.restart();
        }
        // The current chunk may be replaced while an incomplete block refers to it: `advance` may have
        // returned a comment at the end of the chunk, before it detached the block itself.
        if !self.lent && self.refers_to_chunk() {
            self.detach();
        }
        self.lines.push(chunk);
    }

    /// Releases the last chunk if all of it was read, so that its memory can be reused before more input
    /// arrives.
    #[inline]
    pub fn release(&mut self) {
        if !self.lines.is_spent() || self.lines.chunk.is_empty() {
            return;
        }
        if !self.lent && self.refers_to_chunk() {
            self.detach();
        }
        self.lines.set_chunk(Bytes::new(), 0);
    }

    /// Accepts the next chunk of input by copying it, so that the caller can reuse its buffer.
    ///
    /// The events are the same as with [`push`](Self::push). Cheaper if reads are much smaller than events: the
    /// middle of a line is copied straight to its destination, without creating a `Bytes`.
    #[inline]
    pub fn push_slice(&mut self, chunk: &[u8]) {
        if !self.is_in_line() {
            return self.push(Bytes::copy_from_slice(chunk));
        }
        if let Err(searched) = self.lines.continue_line(chunk, self.room()) {
            self.lines.set_chunk(Bytes::copy_from_slice(chunk), searched);
        }
    }

    /// Returns true if all input was read and ended in the middle of a line. Then nothing is borrowed and
    /// nothing refers to the last chunk, because a carried line has been copied.
    #[inline]
    fn is_in_line(&self) -> bool {
        let is_in_line = self.end == End::Open && self.lines.is_in_line();
        debug_assert!(!is_in_line || !self.lent && !self.refers_to_chunk());
        is_in_line
    }

    /// Returns the next event, or `None` if it needs more input.
    ///
    /// # Errors
    ///
    /// [`EventTooLarge`](crate::ErrorKind::EventTooLarge), once per oversized event; the parser then skips the
    /// rest of it and continues with the next.
    #[inline]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        if self.is_idle() && !self.lent {
            return Ok(None);
        }
        self.read_event()
    }

    fn read_event(&mut self) -> Result<Option<Event<'_>>, Error> {
        if self.lent {
            self.clear_block();
            if self.is_idle() {
                return Ok(None);
            }
        }
        if self.fresh
            && let Some((name, data)) = self.whole_event()
        {
            return Ok(Some(self.event_in_chunk(name, data)));
        }
        if self.straddling_event() {
            return Ok(Some(self.lend_event()));
        }
        Ok(if self.find_event()? { Some(self.lend_event()) } else { None })
    }

    #[inline]
    fn event_in_chunk(&self, name: Span, data: Span) -> Event<'_> {
        let chunk = &self.lines.chunk;
        Event::new(DataLocation::Chunk(chunk, data), name.of(chunk), self.id.as_ref())
    }

    /// Returns true if `lend_event` has an event to return.
    #[inline]
    pub(crate) fn find_event(&mut self) -> Result<bool, Error> {
        match self.advance(Want::Events) {
            Found::TooLarge => Err(Error::event_too_large(self.limits.event_bytes)),
            found => Ok(found == Found::Event),
        }
    }

    /// Takes a block that is entirely in the chunk and consists of an optional name and one data line.
    ///
    /// Nearly all blocks are like this; all others are left to the full parser.
    #[inline]
    fn whole_event(&mut self) -> Option<(Span, Span)> {
        /// More than the full parser counts: close to the limit, the full parser decides.
        const PREFIXES: usize = b"event: data:".len();
        // A line break must be LF or CRLF here. After a CR at the end of the chunk, only the next byte says
        // where the next line starts.
        let lines = &mut self.lines;
        let chunk = &lines.chunk[..];
        let mut rest = &chunk[lines.position..];
        let mut name = Span { start: lines.position, end: lines.position };
        if let Some(value) = rest.strip_prefix(b"event: ") {
            let end = memchr2(b'\n', b'\r', value)?;
            rest = after_line_break(&value[end..])?;
            let start = chunk.len() - value.len();
            name = Span { start, end: start + end };
        }
        let value = rest.strip_prefix(DATA)?;
        let Some(end) = find_line_end(value) else {
            // The full parser need not search this line again. After an event name, `position` is still at
            // the name's line, which has a line end, so `searched` would be wrong.
            if chunk.len() - rest.len() == lines.position {
                lines.searched = chunk.len();
            }
            return None;
        };
        let next = after_line_break(after_line_break(&value[end..])?)?;
        if PREFIXES + name.len() + end > self.limits.event_bytes {
            return None;
        }
        let start = chunk.len() - value.len();
        let space = usize::from(value[0] == b' ');
        lines.position = chunk.len() - next.len();
        Some((name, Span { start: start + space, end: start + end }))
    }

    /// Ends a block whose single data line started in an earlier chunk and ends in this one, directly followed
    /// by the blank line. Most events that span reads end like this; any other is left to the full parser, with
    /// nothing changed.
    ///
    /// Being inside a line rules out the special cases at chunk borders: half a line break, half a byte order
    /// mark, a skipped line.
    #[inline]
    fn straddling_event(&mut self) -> bool {
        let Some(end) = self.lines.straddling() else { return false };
        // The limit is the one of `Lines::end_carried`, which counts the line with its field name.
        let is_whole = matches!((self.data, self.name), (Data::None, Name::None))
            && !self.discarding
            && self.lines.carried.len() + end.part.len() <= self.limits.event_bytes;
        if !is_whole {
            return false;
        }
        self.lines.end_straddling(&end, &mut self.held);
        // `held` is the whole line, so the data starts after `data: `.
        let start = DATA.len() + usize::from(self.held.get(DATA.len()) == Some(&b' '));
        self.data = Data::Held(start);
        self.used = self.held.len() - start;
        self.end_block() == Found::Event
    }

    /// Returns the next event, comment or line with an unknown field, or `None` if it needs more input.
    ///
    /// Comments serve as keep-alives. The standard ignores lines with unknown fields, but some servers report
    /// errors in them.
    ///
    /// # Errors
    ///
    /// The same as [`next_event`](Self::next_event).
    #[inline]
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Error> {
        if self.lent {
            self.clear_block();
        }
        if self.is_idle() {
            return Ok(None);
        }
        if self.fresh
            && let Some((name, data)) = self.whole_event()
        {
            return Ok(Some(Item::Event(self.event_in_chunk(name, data))));
        }
        if self.straddling_event() {
            return Ok(Some(Item::Event(self.lend_event())));
        }
        Ok(match self.advance(Want::Everything) {
            Found::Nothing => None,
            Found::TooLarge => return Err(Error::event_too_large(self.limits.event_bytes)),
            Found::Event => Some(Item::Event(self.lend_event())),
            Found::Comment => {
                let text = &self.line(self.found)[1..];
                Some(Item::Comment(text.strip_prefix(b" ").unwrap_or(text)))
            }
            Found::Unknown => Some(Item::Unknown(self.line(self.found))),
        })
    }

    /// Ends the input as the standard requires: a block without its blank line is discarded.
    pub fn finish(&mut self) {
        self.end = End::Strict;
    }

    /// Ends the input and lets `next_event` return a final block without its blank line.
    ///
    /// Many model servers omit it. Take the remaining events before the next [`push`](Self::push).
    pub fn finish_lenient(&mut self) {
        self.end = End::Lenient;
    }

    /// Returns the last event id of the stream, or an empty string if none was set or it was cleared.
    ///
    /// Set by any complete block, even one without data.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Returns the reconnection time last requested by the server.
    #[must_use]
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Returns the parser's limits.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Reads lines until one completes an item, or until the input is exhausted.
    #[inline]
    fn advance(&mut self, want: Want) -> Found {
        if self.lent {
            self.clear_block();
        }
        loop {
            match self.lines.next_line(self.room()) {
                Step::Line(line) => {
                    self.fresh = false;
                    let found = self.take_line(line, want);
                    if found != Found::Nothing {
                        return found;
                    }
                }
                Step::ChunkEnd => {
                    // Even if no chunk is queued: within a line, `push` replaces the chunk unchecked.
                    self.fresh &= self.lines.at_line_start();
                    if self.refers_to_chunk() {
                        self.detach();
                    }
                    if !self.lines.next_chunk() {
                        if self.end == End::Open {
                            return Found::Nothing;
                        }
                        return self.take_end(want);
                    }
                }
                Step::Skipped => {}
                Step::TooLong => {
                    // One error per event: later long lines of the same block are skipped silently.
                    if !self.discarding {
                        self.clear_block();
                        self.discarding = true;
                        self.fresh = false;
                        return Found::TooLarge;
                    }
                }
            }
        }
    }

    #[inline]
    fn take_line(&mut self, line: Line, want: Want) -> Found {
        let bytes = self.line(line);
        if bytes.is_empty() {
            // Also if the block is skipped: it has no data, so this only commits its id and resumes reading.
            return self.end_block();
        }
        if self.discarding {
            return Found::Nothing;
        }
        if let Some(value) = bytes.strip_prefix(DATA) {
            let start = bytes.len() - value.len();
            let start = start + usize::from(value.first() == Some(&b' '));
            self.add_data(line, start);
            return Found::Nothing;
        }
        self.take_other_line(line, want)
    }

    fn take_other_line(&mut self, line: Line, want: Want) -> Found {
        let bytes = self.line(line);
        let colon = bytes.iter().position(|&byte| byte == b':');
        // A line without a colon is a field name with an empty value: `data` is `data:`.
        let field = &bytes[..colon.unwrap_or(bytes.len())];
        let start = match colon {
            Some(colon) if bytes.get(colon + 1) == Some(&b' ') => colon + 2,
            Some(colon) => colon + 1,
            None => bytes.len(),
        };
        match field {
            b"" if want == Want::Everything => {
                self.found = line;
                return Found::Comment;
            }
            b"" => {}
            b"data" => self.add_data(line, start),
            b"event" => self.set_name(line, start),
            b"id" => {
                let value = &bytes[start..];
                // The standard ignores an id with NUL; an empty one clears the id.
                if !value.contains(&0) {
                    let id = (!value.is_empty()).then(|| String::from_utf8_lossy(value).into());
                    self.id_buffer = id;
                }
            }
            b"retry" => {
                if let Some(retry) = milliseconds(&bytes[start..]) {
                    self.retry = Some(retry);
                }
            }
            _ if want == Want::Everything => {
                self.found = line;
                return Found::Unknown;
            }
            _ => {}
        }
        Found::Nothing
    }

    #[inline]
    fn add_data(&mut self, line: Line, start: usize) {
        match (self.data, line) {
            (Data::None, Line::Chunk(span)) => {
                let data = Span { start: span.start + start, ..span };
                self.data = Data::Chunk(data);
                self.used += data.len();
            }
            (Data::None, Line::Carried) => {
                // Swap the buffers instead of copying the carried line again: `held` becomes `data: first
                // half` with its prefix, and `carried` gets an empty buffer.
                mem::swap(&mut self.held, &mut self.lines.carried);
                self.data = Data::Held(start);
                self.used += self.held.len() - start;
            }
            _ => self.join_data(line, start),
        }
    }

    /// Appends a further data line to the block's data, after a LF.
    fn join_data(&mut self, line: Line, start: usize) {
        self.hold_data();
        let before = self.held.len();
        self.held.push(b'\n');
        match line {
            Line::Chunk(span) => {
                append(&mut self.held, &span.of(&self.lines.chunk)[start..]);
            }
            Line::Carried => append(&mut self.held, &self.lines.carried[start..]),
        }
        self.used += self.held.len() - before;
    }

    fn set_name(&mut self, line: Line, start: usize) {
        // The last name of a block wins, and only that one counts.
        self.used -= self.name_bytes().len();
        self.name = match line {
            Line::Chunk(span) => Name::Chunk(Span { start: span.start + start, ..span }),
            Line::Carried => {
                self.held_name.clear();
                self.held_name.extend_from_slice(&self.lines.carried[start..]);
                Name::Held
            }
        };
        self.used += self.name_bytes().len();
    }

    /// Ends the block at a blank line, as the standard's "dispatch the event" does: the id is committed, and
    /// a block without data is no event.
    #[inline]
    fn end_block(&mut self) -> Found {
        if self.id_buffer != self.id {
            self.id.clone_from(&self.id_buffer);
        }
        if matches!(self.data, Data::None) {
            self.clear_block();
            return Found::Nothing;
        }
        self.lent = true;
        Found::Event
    }

    /// Returns or drops the last block at the end of the input.
    ///
    /// Called again after each item that it returned: an unfinished comment first, then the event, then
    /// nothing.
    fn take_end(&mut self, want: Want) -> Found {
        if self.end == End::Lenient {
            if let Some(line) = self.lines.take_unfinished() {
                let found = self.take_line(line, want);
                if found != Found::Nothing {
                    return found;
                }
            }
            if self.end_block() == Found::Event {
                return Found::Event;
            }
        }
        self.restart();
        Found::Nothing
    }

    #[inline]
    fn refers_to_chunk(&self) -> bool {
        matches!(self.data, Data::Chunk(_)) || matches!(self.name, Name::Chunk(_))
    }

    /// Copies the parts of the current block that are in the chunk.
    fn detach(&mut self) {
        self.hold_data();
        if let Name::Chunk(span) = self.name {
            self.held_name.clear();
            self.held_name.extend_from_slice(span.of(&self.lines.chunk));
            self.name = Name::Held;
        }
    }

    #[inline]
    fn hold_data(&mut self) {
        if let Data::Chunk(span) = self.data {
            self.held.clear();
            append(&mut self.held, span.of(&self.lines.chunk));
            self.data = Data::Held(0);
        }
    }

    #[inline]
    fn clear_block(&mut self) {
        self.lent = false;
        self.discarding = false;
        self.data = Data::None;
        self.name = Name::None;
        self.used = 0;
        empty(&mut self.held);
        empty(&mut self.held_name);
        self.lines.offer(&mut self.held);
        self.fresh = self.lines.at_line_start();
    }

    /// Prepares for another stream; the last event id and the retry time are kept.
    pub(crate) fn restart(&mut self) {
        // First: `clear_block` asks whether the next byte starts a line, and only a full parser finds a mark there.
        self.lines.reset();
        self.clear_block();
        // An id of a block that was cut off is not the stream's.
        self.id_buffer.clone_from(&self.id);
        self.end = End::Open;
    }

    /// Returns true if there is nothing to read, as is common after a small read.
    #[inline]
    fn is_idle(&self) -> bool {
        self.lines.is_spent() && self.end == End::Open
    }

    /// Returns the limit on the line in progress, in bytes.
    #[inline]
    fn room(&self) -> usize {
        self.limits.event_bytes.saturating_sub(self.used)
    }

    #[inline]
    fn line(&self, line: Line) -> &[u8] {
        match line {
            Line::Chunk(span) => span.of(&self.lines.chunk),
            Line::Carried => &self.lines.carried,
        }
    }

    fn name_bytes(&self) -> &[u8] {
        match self.name {
            Name::None => &[],
            Name::Chunk(span) => span.of(&self.lines.chunk),
            Name::Held => &self.held_name,
        }
    }

    #[inline]
    pub(crate) fn lend_event(&mut self) -> Event<'_> {
        let chunk = &self.lines.chunk;
        let name = match self.name {
            Name::None => &[],
            Name::Chunk(span) => span.of(chunk),
            Name::Held => &self.held_name[..],
        };
        let place = match self.data {
            // Does not occur: only blocks with data are lent.
            Data::None => DataLocation::Chunk(chunk, Span { start: 0, end: 0 }),
            Data::Chunk(span) => DataLocation::Chunk(chunk, span),
            Data::Held(start) => DataLocation::Held(&mut self.held, start),
        };
        Event::new(place, name, self.id.as_ref())
    }
}
