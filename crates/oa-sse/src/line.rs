//! Lines across chunk borders: LF, CR, CRLF and the byte order mark.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2;

/// How nearly every line begins that is not blank.
pub(crate) const DATA: &[u8] = b"data:";

const BYTE_ORDER_MARK: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// Where something lies in a chunk.
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

/// Where a complete line lies, its terminator left out.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Line {
    /// In the current chunk.
    Chunk(Span),
    /// In [`Lines::carried`]: it began in an earlier chunk.
    #[default]
    Carried,
}

/// What [`Lines::next_line`] found.
#[derive(Debug)]
pub(crate) enum Step {
    Line(Line),
    /// The chunk is used up; what is left of it is carried.
    ChunkEnd,
    /// The end of a line that was too long.
    Skipped,
    /// The line in progress has outgrown the room there is; the rest of it is skipped.
    TooLong,
}

/// The rest of a block whose only line is one of data that began in an earlier chunk.
#[derive(Debug)]
pub(crate) struct Straddling {
    /// The end of that line.
    pub(crate) part: Span,
    /// Where the next block begins, behind the blank line.
    pub(crate) next: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(crate) chunk: Bytes,
    pub(crate) position: usize,
    /// Up to here the chunk is known to have no line end behind `position`.
    pub(crate) searched: usize,
    /// Chunks pushed before the one at hand was used up.
    queue: VecDeque<Bytes>,
    /// The line that began in an earlier chunk, as far as it has come.
    pub(crate) carried: Vec<u8>,
    /// There is such a line, it is not over, and the next byte belongs to it.
    in_line: bool,
    /// The carried line was handed out; it goes before the next one comes.
    carried_is_spent: bool,
    /// The last chunk ended in CR: an LF that comes first belongs to it.
    skip_lf: bool,
    /// The rest of an over-long line is being passed over.
    skipping: bool,
    start: Start,
}

/// How much of the byte order mark has been seen at the very start of the stream.
#[derive(Debug, Default)]
enum Start {
    #[default]
    Nothing,
    One,
    Two,
    Past,
}

impl Start {
    /// How many bytes of the mark are held back.
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

    /// Returns whether all input was read and ended in the middle of a line.
    #[inline]
    pub(crate) fn is_in_line(&self) -> bool {
        self.in_line && self.is_spent()
    }

    /// Takes a chunk that holds nothing but a part of the line in progress, as most small reads do: it is
    /// carried at once. `room` is how many bytes the line may have.
    ///
    /// Any other chunk is left alone: an error, with the number of bytes at its start that hold no line end.
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

    /// Goes on with this chunk, of which `searched` bytes are known to hold no line end.
    #[inline]
    pub(crate) fn set_chunk(&mut self, chunk: Bytes, searched: usize) {
        self.chunk = chunk;
        self.position = 0;
        self.searched = searched;
    }

    /// Whether everything that was pushed has been looked at.
    #[inline]
    pub(crate) fn is_spent(&self) -> bool {
        self.position == self.chunk.len() && self.queue.is_empty()
    }

    /// Moves on to the next queued chunk; false if there is none.
    pub(crate) fn next_chunk(&mut self) -> bool {
        // An empty queue leaves the spent chunk in place: `push` replaces it without a detour.
        let Some(chunk) = self.queue.pop_front() else {
            return false;
        };
        self.set_chunk(chunk, 0);
        true
    }

    /// Whether the next byte begins a line of which nothing has been seen.
    pub(crate) fn at_line_start(&self) -> bool {
        (self.carried.is_empty() || self.carried_is_spent)
            && !self.skip_lf
            && !self.skipping
            && matches!(self.start, Start::Past)
    }

    /// Finds the next line; `room` is how many bytes it may have.
    #[inline(always)]
    pub(crate) fn next_line(&mut self, room: usize) -> Step {
        if self.carried_is_spent {
            self.carried_is_spent = false;
            empty(&mut self.carried);
        }
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
        if self.skipping {
            self.skipping = false;
            return Step::Skipped;
        }
        if self.carried.is_empty() {
            if end - start > room {
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

    /// Where the line that has come as far as `start` ends in this chunk.
    #[inline]
    pub(crate) fn line_end(&self, start: usize) -> Option<usize> {
        // The blank line behind every event needs no search.
        if let Some(b'\n' | b'\r') = self.chunk.get(start) {
            return Some(start);
        }
        let from = start.max(self.searched);
        if from == self.chunk.len() {
            // All of it is searched, or there is none: no reason to call `memchr`.
            return None;
        }
        Some(from + memchr2(b'\n', b'\r', &self.chunk[from..])?)
    }

    /// Finds the end of the line in progress if it is one of data and a blank line follows it.
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

    /// Ends the line in progress and its block; the line goes where `held` was.
    #[inline]
    pub(crate) fn end_straddling(&mut self, end: &Straddling, held: &mut Vec<u8>) {
        append(&mut self.carried, end.part.of(&self.chunk));
        self.in_line = false;
        self.position = end.next;
        mem::swap(held, &mut self.carried);
    }

    /// Ends a line that began in an earlier chunk with the part that lies in this one; false if it is
    /// too long.
    fn end_carried(&mut self, part: Span, room: usize) -> bool {
        self.carried_is_spent = true;
        self.in_line = false;
        if self.carried.len() + part.len() > room {
            return false;
        }
        append(&mut self.carried, part.of(&self.chunk));
        true
    }

    /// Keeps the unfinished line at the end of the chunk; false if it is too long.
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

    /// Swaps an empty buffer of the caller's for this one, if the caller's is large and this one is empty and
    /// smaller: one large buffer is enough for both, and the next long line need not grow a second.
    pub(crate) fn offer(&mut self, buffer: &mut Vec<u8>) {
        const LARGE: usize = 16 << 10;
        let least = self.carried.capacity().max(LARGE);
        if buffer.capacity() > least && self.carried.is_empty() {
            mem::swap(buffer, &mut self.carried);
        }
    }

    /// Ends the input: what is carried becomes a line although it has no terminator.
    pub(crate) fn take_unfinished(&mut self) -> Option<Line> {
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

    /// Forgets all input, as at the start of a stream.
    pub(crate) fn reset(&mut self) {
        self.carried.clear();
        *self = Self { carried: mem::take(&mut self.carried), ..Self::default() };
    }

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

/// A time in milliseconds: ASCII digits only; what does not fit is as long as can be said.
pub(crate) fn milliseconds(value: &[u8]) -> Option<Duration> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |sum: u64, byte: &u8| sum.saturating_mul(10).saturating_add(u64::from(byte - b'0'));
    Some(Duration::from_millis(value.iter().fold(0, digit)))
}

/// Returns what follows the line break that `bytes` begin with; `None` if that cannot be said yet.
#[inline]
pub(crate) fn after_line_break(bytes: &[u8]) -> Option<&[u8]> {
    match bytes {
        [b'\n', rest @ ..] | [b'\r', b'\n', rest @ ..] => Some(rest),
        _ => None,
    }
}

/// Where the first line ends.
///
/// Made for the rest of a chunk behind an event: a long rest mostly holds a line end, a short one does not.
#[inline]
pub(crate) fn find_line_end(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 64;
    if bytes.len() <= SHORT {
        return find_unlikely_line_end(bytes);
    }
    memchr2(b'\n', b'\r', bytes)
}

/// Where the first line ends in bytes that probably hold no line end.
#[inline]
fn find_unlikely_line_end(bytes: &[u8]) -> Option<usize> {
    // `memchr` is called through a pointer, which small reads would feel.
    const SMALL: usize = 2048;
    if bytes.len() <= SMALL && !has_control(bytes) {
        return None;
    }
    memchr2(b'\n', b'\r', bytes)
}

/// Whether there is a byte below 14: text has none but tabs and line ends.
#[inline]
fn has_control(bytes: &[u8]) -> bool {
    const LEAST: u8 = b'\r' + 1;
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    // The first and the last block may overlap, so that no rest is left to look at byte by byte.
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
        // Subtracting sets the top bit of a byte that was too small.
        let below = |word: u64| word.wrapping_sub(EACH * u64::from(LEAST)) & !word & (EACH << 7);
        return below(u64::from_ne_bytes(first)) | below(u64::from_ne_bytes(last)) != 0;
    }
    bytes.iter().any(|&byte| byte < LEAST)
}

/// Appends to a buffer in pieces of 2 KiB.
///
/// For larger ones the C library turns to string instructions, which take twice as long when the
/// destination is not aligned, and twenty times as long when it lies a few bytes behind the source
/// in their pages; a buffer that grows by whatever the network brings lies anywhere.
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

/// Makes room for `more` bytes and, in a small buffer, for much more than that: what outgrows one read
/// mostly outgrows the next as well, and doubling would copy all of it once again.
#[cold]
fn grow(buffer: &mut Vec<u8>, more: usize) {
    // Not a power of two, as reads and payloads like to be: the few bytes around them must fit too.
    const FACTOR: usize = 6;
    let ample = (buffer.len() + more).saturating_mul(FACTOR);
    buffer.reserve(if ample <= KEEP { ample - buffer.len() } else { more });
}

/// Empties a buffer, and gives it back when one huge event has made it huge.
pub(crate) fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    if buffer.capacity() > KEEP {
        *buffer = Vec::new();
    }
}

/// How large a buffer the parser keeps from one event to the next.
const KEEP: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_end_is_overlooked_wherever_it_lies() {
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
