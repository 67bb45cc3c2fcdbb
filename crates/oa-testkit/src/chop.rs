//! Cutting of bodies: where one piece ends and the next begins.

use bytes::Bytes;

/// Where a body is cut into pieces.
///
/// A piece is what leaves the server at once: an HTTP chunk and a write of its own on a socket, a
/// frame in memory. The pieces joined are always the body, whatever the cut, and no piece is empty.
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
    /// Before each of these bytes, counted from the start of the body, in any order. Positions at
    /// or behind the end say nothing.
    At(Vec<usize>),
    /// After each event: after the blank line which ends it, whatever the line ends are.
    Events,
    /// After every so many bytes; 0 is taken as 1.
    Every(usize),
    /// Into pieces of 1 to 256 bytes, small ones more often, the same ones for the same seed.
    Random {
        /// What the sizes are drawn from.
        seed: u64,
    },
    /// Nowhere: the body is one piece.
    Whole,
}

impl Cut {
    /// Returns every cut of a body of `length` bytes into two pieces, in the order of the cuts.
    ///
    /// # Examples
    ///
    /// The law of anything which reads a stream, for a recording:
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

    /// Cuts `body` into pieces, which share its memory.
    #[must_use]
    pub fn pieces(&self, body: &Bytes) -> Vec<Bytes> {
        let mut ends = match self {
            Self::At(positions) => positions.clone(),
            Self::Events => ends_of_events(body),
            Self::Every(size) => (0..body.len()).step_by((*size).max(1)).collect(),
            Self::Random { seed } => random_ends(*seed, body.len()),
            Self::Whole => Vec::new(),
        };
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

/// Finds where events end: behind each blank line, with LF, CR and CRLF as line ends.
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
        let ceiling = 1 << numbers.below(9);
        end += 1 + numbers.below(ceiling);
        ends.push(end);
    }
    ends
}

/// The splitmix64 generator: small, and the same everywhere.
struct SplitMix(u64);

impl SplitMix {
    /// Draws a number below `ceiling`, which is small: the bias of the remainder does not matter.
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
    fn positions_may_be_unsorted_repeated_and_out_of_range() {
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
