/// Splits input into lines of a bounded length, without I/O.
#[derive(Debug)]
pub struct LineSplitter {
    line: Vec<u8>,
    limit: usize,
    /// The current line exceeds the limit, so the rest of it is skipped.
    is_skipping: bool,
}

/// A line of input.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum InputLine {
    /// A complete line, without its line break.
    Whole(Vec<u8>),
    /// A line longer than the limit, which was skipped.
    TooLong,
}

impl LineSplitter {
    /// Creates a splitter for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { line: Vec::new(), limit, is_skipping: false }
    }

    /// Reads from the start of a chunk. Returns the next complete line, without its line break, and the number of bytes
    /// read. Blank lines are left out.
    pub fn push(&mut self, chunk: &[u8]) -> (Option<InputLine>, usize) {
        let mut used = 0;
        while used < chunk.len() {
            let rest = &chunk[used..];
            let end = rest.iter().position(|byte| *byte == b'\n');
            let part = &rest[..end.unwrap_or(rest.len())];
            used += part.len() + usize::from(end.is_some());
            if self.is_skipping || self.line.len() + part.len() > self.limit {
                self.is_skipping = true;
                // Not `clear`, so that the memory of a long line is free while the rest of it is skipped.
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(part);
            }
            if end.is_some()
                && let Some(input) = self.finish()
            {
                return (Some(input), used);
            }
        }
        (None, used)
    }

    /// Ends the input and returns the last line, which needs no line break.
    pub fn finish(&mut self) -> Option<InputLine> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_skipping) {
            return Some(InputLine::TooLong);
        }
        (!line.iter().all(u8::is_ascii_whitespace)).then_some(InputLine::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]], limit: usize) -> Vec<InputLine> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let (input, used) = splitter.push(rest);
                lines.extend(input);
                rest = &rest[used..];
            }
        }
        lines.extend(splitter.finish());
        lines
    }

    #[test]
    fn long_and_blank_lines_are_skipped() {
        let line = |text: &str| InputLine::Whole(text.as_bytes().to_vec());
        let lines = split(&[b"ab\n \r\n\nabcd\nabc\ne"], 3);
        assert_eq!(lines, [line("ab"), InputLine::TooLong, line("abc"), line("e")]);
        assert_eq!(split(&[b"abcd"], 3), [InputLine::TooLong]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_chunks(text in "[ab\n ]{0,40}", cuts in proptest::collection::vec(0..40_usize, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(&chunks, 5), split(&[bytes], 5));
        }
    }
}
