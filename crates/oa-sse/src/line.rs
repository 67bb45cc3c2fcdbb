//! Splits chunks into lines: LF, CR, CRLF, and the byte order mark.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

/// The start of nearly every line that is not blank.
pub(crate) const DATA: &[u8] = b"data:";

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// A range of a chunk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    #[inline]
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }
}

/// The location of a complete line, without its terminator.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Line {
    /// In the current chunk.
    Chunk(Span),
    /// In [`Lines::carried`], because it started in an earlier chunk.
    #[default]
    Carried,
}

/// A result of [`Lines::next_line`].
#[derive(Debug)]
pub(crate) enum Step {
    Line(Line),
    /// The chunk is exhausted; any partial line is carried.
    ChunkEnd,
    /// The end of an overlong line.
    Skipped,
    /// The line in progress exceeds the available room; the rest of it is skipped.
    TooLong,
}

/// The end of a block whose only line is a data line that started in an earlier chunk.
#[derive(Debug)]
pub(crate) struct Straddling {
    /// The end of that line.
    pub(crate) part: Span,
    /// The start of the next block, after the blank line.
    pub(crate) next: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) chunk: Bytes,
    pub(crate) position: usize,
    /// The chunk has no line end between `position` and this index.
    pub(crate) searched: usize,
    /// Chunks pushed before the current one was exhausted.
    queue: VecDeque<Bytes>,
    /// The partial line from earlier chunks.
    pub(crate) carried: Vec<u8>,
    /// There is a partial line, and the next byte belongs to it.
    in_line: bool,
    /// The carried line was returned; clear it before the next one. The caller may read it or swap it out.
    carried_is_spent: bool,
    /// The last chunk ended in CR, so a leading LF belongs to it. The line was returned at the CR: waiting
    /// for the next byte would delay an event until the server sends another.
    skip_lf: bool,
    /// The rest of an overlong line is being skipped.
    skipping: bool,
    start: Start,
}

/// The part of the byte order mark seen at the start of the stream. Chunks may split it anywhere.
#[derive(Debug, Default)]
enum Start {
    #[default]
    Nothing,
    One,
    Two,
    Past,
}

impl Start {
    /// Returns the number of bytes of the mark held back.
    fn matched(&self) -> usize {
        match self {
            Self::Nothing | Self::Past => 0,
            Self::One => 1,
            Self::Two => 2,
        }
    }
}

impl Lines {
    /// Accepts a chunk.
    #[inline]
    pub(crate) fn push(&mut self, chunk: Bytes) {
        if self.is_spent() {
            self.set_chunk(chunk, 0);
        } else {
            self.queue.push_back(chunk);
        }
    }

    /// Returns true if all input was read and ended in the middle of a line.
    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        self.in_line && self.is_spent()
    }

    /// Accepts a chunk that contains only part of the line in progress, as most small reads do, and carries it
    /// immediately. `room` is the limit on the line's length in bytes.
    ///
    /// Rejects any other chunk, returning the number of leading bytes without a line end.
    #[inline]
    pub(crate) fn continue_line(&mut self, chunk: &[u8], room: usize) -> Result<(), usize> {
        match find_unlikely_line_end(chunk) {
            None if self.carried.len() + chunk.len() <= room => {
                append(&mut self.carried, chunk);
                Ok(())
            }
            end => Err(end.unwrap_or(chunk.len())),
        }
    }

    /// Sets the current chunk, whose first `searched` bytes contain no line end.
    #[inline]
    pub(crate) fn set_chunk(&mut self, chunk: Bytes, searched: usize) {
        self.chunk = chunk;
        self.position = 0;
        self.searched = searched;
    }

    /// Returns true if all input was processed.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.position == self.chunk.len() && self.queue.is_empty()
    }

    /// Moves to the next queued chunk; returns false if there is none.
    pub(crate) fn next_chunk(&mut self) -> bool {
        // With an empty queue the exhausted chunk stays, so that `push` can replace it directly.
        let Some(chunk) = self.queue.pop_front() else {
            return false;
        };
        self.set_chunk(chunk, 0);
        true
    }

    /// Returns true if the next byte starts a line.
    pub(crate) fn at_line_start(&self) -> bool {
        (self.carried.is_empty() || self.carried_is_spent)
            && !self.skip_lf
            && !self.skipping
            && matches!(self.start, Start::Past)
    }

    /// Finds the next line; `room` is the limit on its length in bytes.
    #[inline(always)]
    pub(crate) fn next_line(&mut self, room: usize) -> Step {
        if self.carried_is_spent {
            self.carried_is_spent = false;
            empty(&mut self.carried);
        }
        // First, because it moves `position`, where the line starts.
        if self.skip_lf || !matches!(self.start, Start::Past) {
            self.pass_edge();
        }
        let start = self.position;
        let Some(end) = self.line_end(start) else {
            return if self.carry(room) { Step::ChunkEnd } else { Step::TooLong };
        };
        self.position = end + 1;
        if self.chunk[end] == b'\r' {
            match self.chunk.get(end + 1) {
                Some(b'\n') => self.position += 1,
                Some(_) => {}
                None => self.skip_lf = true,
            }
        }
        // Not a `Line`: an empty one would end the block.
        if self.skipping {
            self.skipping = false;
            return Step::Skipped;
        }
        // `in_line` does not tell: half a byte order mark is carried without it.
        if self.carried.is_empty() {
            if end - start > room {
                // All of the line was read, so nothing is left to skip.
                return Step::TooLong;
            }
            return Step::Line(Line::Chunk(Span { start, end }));
        }
        if self.end_carried(Span { start, end }, room) {
            Step::Line(Line::Carried)
        } else {
            Step::TooLong
        }
    }

    /// Returns the end of the line in this chunk, given where its unsearched part starts.
    #[inline]
    pub(crate) fn line_end(&self, start: usize) -> Option<usize> {
        // The blank line after each event needs no search.
        if let Some(b'\n' | b'\r') = self.chunk.get(start) {
            return Some(start);
        }
        let from = start.max(self.searched);
        if from == self.chunk.len() {
            // Everything was searched, or nothing is left: skip the call to `memchr`.
            return None;
        }
        Some(from + memchr2(b'\n', b'\r', &self.chunk[from..])?)
    }

    /// Finds the end of the line in progress if it is a data line followed by a blank line.
    #[inline]
    pub(crate) fn straddling(&self) -> Option<Straddling> {
        if !self.in_line || !self.carried.starts_with(DATA) {
            return None;
        }
        let chunk = &self.chunk[..];
        let part = Span { start: self.position, end: self.line_end(self.position)? };
        let next = after_line_break(after_line_break(&chunk[part.end..])?)?;
        Some(Straddling { part, next: chunk.len() - next.len() })
    }

    /// Ends the line in progress and its block, moving the line into `held`.
    #[inline]
    pub(crate) fn end_straddling(&mut self, end: &Straddling, held: &mut Vec<u8>) {
        append(&mut self.carried, end.part.of(&self.chunk));
        self.in_line = false;
        self.position = end.next;
        // `held` was empty, so no line is carried afterwards.
        mem::swap(held, &mut self.carried);
    }

    /// Completes a carried line with its part in this chunk; returns false if it is too long.
    fn end_carried(&mut self, part: Span, room: usize) -> bool {
        self.carried_is_spent = true;
        self.in_line = false;
        if self.carried.len() + part.len() > room {
            return false;
        }
        append(&mut self.carried, part.of(&self.chunk));
        true
    }

    /// Carries the partial line at the end of the chunk; returns false if it is too long.
    fn carry(&mut self, room: usize) -> bool {
        let rest = &self.chunk[self.position..];
        self.position = self.chunk.len();
        if rest.is_empty() || self.skipping {
            return true;
        }
        if self.carried.len() + rest.len() > room {
            empty(&mut self.carried);
            self.in_line = false;
            self.skipping = true;
            return false;
        }
        append(&mut self.carried, rest);
        self.in_line = true;
        true
    }

    /// Swaps buffers with the caller if the caller's is empty and larger and this one is empty. One large
    /// buffer then serves both, and the next long line need not grow a second one.
    pub(crate) fn offer(&mut self, buffer: &mut Vec<u8>) {
        const LARGE: usize = 16 << 10;
        let least = self.carried.capacity().max(LARGE);
        if buffer.capacity() > least && self.carried.is_empty() {
            mem::swap(buffer, &mut self.carried);
        }
    }

    /// Ends the input: the carried text becomes a line without a terminator.
    pub(crate) fn take_unfinished(&mut self) -> Option<Line> {
        // Half a mark at the end of the input is a line like any other.
        let matched = self.start.matched();
        self.carried.extend_from_slice(&BYTE_ORDER_MARK[..matched]);
        self.start = Start::Past;
        if self.carried.is_empty() || self.carried_is_spent {
            return None;
        }
        self.carried_is_spent = true;
        self.in_line = false;
        Some(Line::Carried)
    }

    /// Discards all input, as at the start of a stream.
    pub(crate) fn reset(&mut self) {
        self.carried.clear();
        *self = Self { carried: mem::take(&mut self.carried), ..Self::default() };
    }

    /// Skips an LF whose CR ended the last chunk, and the byte order mark at the start of the stream.
    #[cold]
    fn pass_edge(&mut self) {
        if self.skip_lf && self.position < self.chunk.len() {
            self.skip_lf = false;
            if self.chunk[self.position] == b'\n' {
                self.position += 1;
            }
        }
        while !matches!(self.start, Start::Past) && self.position < self.chunk.len() {
            let matched = self.start.matched();
            if self.chunk[self.position] != BYTE_ORDER_MARK[matched] {
                // The bytes held back start the first line. They may be from an earlier chunk: carry them.
                self.carried.extend_from_slice(&BYTE_ORDER_MARK[..matched]);
                self.start = Start::Past;
                return;
            }
            self.position += 1;
            self.start = match self.start {
                Start::Nothing => Start::One,
                Start::One => Start::Two,
                Start::Two | Start::Past => Start::Past,
            };
        }
    }
}

/// Returns what follows a leading LF or CRLF; `None` if `bytes` is empty or starts with anything else. A lone
/// CR is left to the full parser.
#[inline]
pub(crate) fn after_line_break(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Returns the end of the first line.
///
/// Meant for the rest of a chunk after an event: a long rest usually contains a line end, a short one does not.
#[inline]
pub(crate) fn find_line_end(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 64;
    if bytes.len() <= SHORT {
        return find_unlikely_line_end(bytes);
    }
    memchr2(b'\n', b'\r', bytes)
}

/// Returns the end of the first line in bytes that probably contain no line end.
#[inline]
fn find_unlikely_line_end(bytes: &[u8]) -> Option<usize> {
    // `memchr` is called through a pointer, a cost that matters for small reads.
    const SMALL: usize = 2048;
    if bytes.len() <= SMALL && !has_control(bytes) {
        return None;
    }
    memchr2(b'\n', b'\r', bytes)
}

/// Returns true if there is a byte below 14. In text, only tabs and line ends are.
#[inline]
fn has_control(bytes: &[u8]) -> bool {
    const LEAST: u8 = b'\r' + 1;
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    // The first and last blocks may overlap, so that no remainder is left for a byte-by-byte check.
    if let Some(&last) = bytes.last_chunk::<16>() {
        let (blocks, _) = bytes.as_chunks::<16>();
        let mut least = last;
        for block in blocks {
            for (least, &byte) in least.iter_mut().zip(block) {
                *least = byte.min(*least);
            }
        }
        return least.iter().fold(false, |any, &byte| any | (byte < LEAST));
    }
    if let (Some(&first), Some(&last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // Subtracting sets the top bit of each byte that was too small; `!word` excludes bytes that had it
        // before. A borrow may also set the next byte's, but only if this byte was too small anyway.
        let below = |word: u64| word.wrapping_sub(EACH * u64::from(LEAST)) & !word & (EACH << 7);
        return below(u64::from_ne_bytes(first)) | below(u64::from_ne_bytes(last)) != 0;
    }
    bytes.iter().any(|&byte| byte < LEAST)
}

/// Appends to a buffer in pieces of 2 KiB.
///
/// For larger copies the C library uses string instructions, which take twice as long when the destination is
/// unaligned, and twenty times as long when it is a few bytes after the source modulo the page size. A buffer
/// that grows by network reads is at arbitrary offsets.
#[inline]
pub(crate) fn append(buffer: &mut Vec<u8>, bytes: &[u8]) {
    const PIECE: usize = 2048;
    if bytes.len() > buffer.capacity() - buffer.len() {
        grow(buffer, bytes.len());
    }
    if bytes.len() <= PIECE {
        buffer.extend_from_slice(bytes);
        return;
    }
    for piece in bytes.chunks(PIECE) {
        buffer.extend_from_slice(piece);
    }
}

/// Makes room for `more` bytes and, in a small buffer, for much more: data that exceeds one read usually
/// exceeds the next as well, and doubling would copy all of it each time.
#[cold]
fn grow(buffer: &mut Vec<u8>, more: usize) {
    // Not a power of two, which reads and payloads often are: the few bytes around them must fit too.
    const FACTOR: usize = 6;
    let ample = (buffer.len() + more).saturating_mul(FACTOR);
    buffer.reserve(if ample <= KEEP { ample - buffer.len() } else { more });
}

/// Clears a buffer, and frees it if one huge event made it huge.
pub(crate) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP {
        *buffer = Vec::new();
    }
}

/// The largest buffer kept between events.
const KEEP: usize = 1 << 20;

/// Parses a time in milliseconds, ASCII digits only; saturates on overflow.
pub(crate) fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    Some(Duration::from_millis(value.iter().fold(0, digit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_are_found_at_any_position() {
        for size in 0..70 {
            let mut bytes = vec![b'x'; size];
            assert!(!has_control(&bytes));
            for at in 0..size {
                for byte in 0..=u8::MAX {
                    bytes[at] = byte;
                    assert_eq!(has_control(&bytes), byte < 14, "{byte} at {at} of {size}");
                }
                bytes[at] = b'x';
            }
        }
    }
}
