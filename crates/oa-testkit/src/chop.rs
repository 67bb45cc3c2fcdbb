//! Splitting of bodies into pieces.

use bytes::Bytes;

/// The split of a body into pieces.
///
/// A piece leaves the server at once: an HTTP chunk in a separate write on a socket, a frame in memory. The
/// pieces always add up to the body, and none is empty.
///
/// # Examples
///
/// ```
/// use bytes::Bytes;
/// use oa_testkit::Cut;
///
/// let body = Bytes::from_static(b"data: 1\n\ndata: 2\n\n");
///
/// assert_eq!(Cut::Events.pieces(&body), ["data: 1\n\n", "data: 2\n\n"]);
/// assert_eq!(Cut::At(vec![4]).pieces(&body), ["data", ": 1\n\ndata: 2\n\n"]);
/// assert_eq!(Cut::Every(1).pieces(&body).len(), body.len());
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Cut {
    /// Before each of these byte offsets, in any order. Offsets at or beyond the end are ignored.
    At(Vec<usize>),
    /// After each event: after the blank line that ends it, with any line ends.
    Events,
    /// After every this many bytes; 0 counts as 1.
    Every(usize),
    /// Into pieces of 1 to 256 bytes, more often small ones, determined by the seed.
    Random {
        /// The seed of the sizes.
        seed: u64,
    },
    /// Not at all: the body is one piece.
    Whole,
}

impl Cut {
    /// Returns every split of a body of `length` bytes into two pieces, in order.
    ///
    /// # Examples
    ///
    /// A law for any reader of a stream, tested on a recording:
    ///
    /// ```
    /// # use bytes::Bytes;
    /// # use oa_testkit::Cut;
    /// # fn read(pieces: Vec<Bytes>) -> Vec<u8> { pieces.concat() }
    /// let recording = Bytes::from_static(b"data: [DONE]\n\n");
    /// let expected = read(Cut::Whole.pieces(&recording));
    ///
    /// for cut in Cut::in_two(recording.len()) {
    ///     assert_eq!(read(cut.pieces(&recording)), expected, "{cut:?}");
    /// }
    /// ```
    pub fn in_two(length: usize) -> impl Iterator<Item = Self> {
        (1..length).map(|position| Self::At(vec![position]))
    }

    /// Splits `body` into pieces that share its memory.
    #[must_use]
    pub fn pieces(&self, body: &Bytes) -> Vec<Bytes> {
        let mut ends = match self {
            Self::At(positions) => positions.clone(),
            Self::Events => ends_of_events(body),
            Self::Every(size) => (0..body.len()).step_by((*size).max(1)).collect(),
            Self::Random { seed } => random_ends(*seed, body.len()),
            Self::Whole => Vec::new(),
        };
        // From here on, all splits are alike: ends in any order, some repeated, with the last one at the end
        // of the body.
        ends.retain(|end| *end < body.len());
        ends.push(body.len());
        ends.sort_unstable();

        let mut start = 0;
        let mut pieces = Vec::with_capacity(ends.len());
        for end in ends {
            if end > start {
                pieces.push(body.slice(start..end));
                start = end;
            }
        }
        pieces
    }
}

/// Finds the ends of events: after each blank line, with LF, CR or CRLF as line ends.
fn ends_of_events(body: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut line_is_blank = true;
    let mut at = 0;
    while at < body.len() {
        let width = match (body[at], body.get(at + 1)) {
            (b'\r', Some(b'\n')) => 2,
            (b'\r' | b'\n', _) => 1,
            _ => 0,
        };
        if width == 0 {
            line_is_blank = false;
            at += 1;
            continue;
        }
        at += width;
        if line_is_blank {
            ends.push(at);
        }
        line_is_blank = true;
    }
    ends
}

fn random_ends(seed: u64, length: usize) -> Vec<usize> {
    let mut numbers = SplitMix(seed);
    let mut ends = Vec::new();
    let mut end = 0;
    while end < length {
        // The ceiling is 1, 2, 4, .. or 256 with equal probability, so more than half of the pieces have at
        // most 16 bytes.
        let ceiling = 1 << numbers.below(9);
        end += 1 + numbers.below(ceiling);
        ends.push(end);
    }
    ends
}

/// The SplitMix64 generator, small and portable.
struct SplitMix(u64);

impl SplitMix {
    /// Draws a number below `ceiling`, which is so small that modulo bias does not matter.
    fn below(&mut self, ceiling: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        usize::try_from(bits >> 33).expect("31 bits fit") % ceiling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(cut: Cut, body: &'static str, expected: &[&str]) {
        assert_eq!(cut.pieces(&Bytes::from_static(body.as_bytes())), expected);
    }

    #[test]
    fn events_end_behind_blank_lines_of_any_kind() {
        check(Cut::Events, "data: 1\n\ndata: 2\n\n", &["data: 1\n\n", "data: 2\n\n"]);
        check(Cut::Events, "a\r\n\r\nb\r\rc\n\r\nd", &["a\r\n\r\n", "b\r\r", "c\n\r\n", "d"]);
    }

    #[test]
    fn unsorted_and_wild_positions_are_accepted() {
        check(Cut::At(vec![4, 2, 2, 0, 9, 6]), "abcdef", &["ab", "cd", "ef"]);
    }

    #[test]
    fn an_empty_body_has_no_pieces() {
        for cut in
            [Cut::At(vec![0]), Cut::Events, Cut::Every(0), Cut::Random { seed: 1 }, Cut::Whole]
        {
            check(cut, "", &[]);
        }
    }

    #[test]
    fn a_seed_decides_the_pieces() {
        let body = Bytes::from(vec![b'x'; 10_000]);
        let pieces = Cut::Random { seed: 7 }.pieces(&body);
        assert_eq!(pieces, Cut::Random { seed: 7 }.pieces(&body));
        assert_ne!(pieces, Cut::Random { seed: 8 }.pieces(&body));
        assert_eq!(pieces.concat(), body);
        assert!(pieces.iter().any(|piece| piece.len() == 1));
        assert!(pieces.iter().any(|piece| piece.len() > 64));
    }
}
