use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Reads lines of a bounded length.
///
/// # Cancel safety
///
/// Cancel safe: a partly read line is kept.
pub(crate) struct Lines<R> {
    reader: R,
    line: Vec<u8>,
    limit: usize,
    /// The current line was returned to the caller.
    is_lent: bool,
}

pub(crate) enum Line<'a> {
    Whole(&'a [u8]),
    /// A line longer than the limit; nothing more can be read.
    TooLong,
    End,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, line: Vec::new(), limit, is_lent: false }
    }

    /// Reads the next line, without its line break. The last line needs none.
    pub(crate) async fn next(&mut self) -> io::Result<Line<'_>> {
        if self.is_lent {
            self.line.clear();
            // Do not keep the memory of a large message.
            self.line.shrink_to(64 * 1024);
            self.is_lent = false;
        }
        loop {
            let read = self.reader.fill_buf().await?;
            if read.is_empty() {
                if self.line.is_empty() {
                    return Ok(Line::End);
                }
                break;
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            if self.line.len() + part.len() > self.limit {
                return Ok(Line::TooLong);
            }
            // No await between the copy and `consume`, so a dropped future neither loses nor repeats bytes.
            self.line.extend_from_slice(part);
            let used = part.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                break;
            }
        }
        self.is_lent = true;
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        Ok(Line::Whole(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &[u8], limit: usize) -> Vec<String> {
        let mut lines = Lines::new(text, limit);
        let mut seen = Vec::new();
        loop {
            match lines.next().await {
                Ok(Line::Whole(line)) => seen.push(String::from_utf8_lossy(line).into_owned()),
                Ok(Line::TooLong) => {
                    seen.push("too long".to_owned());
                    return seen;
                }
                Ok(Line::End) | Err(_) => return seen,
            }
        }
    }

    #[tokio::test]
    async fn lines_are_split_and_bounded() {
        assert_eq!(read(b"a\r\n\nbc", 2).await, ["a", "", "bc"]);
        assert_eq!(read(b"abc\nd", 2).await, ["too long"]);
        assert!(read(b"", 2).await.is_empty());
    }
}
