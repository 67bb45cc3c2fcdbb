use std::io::{self, BufRead, Read};

/// An iterator over lines of limited length.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
}

/// The end of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineEnd {
    /// End of file: the writer was interrupted, or someone edited the file.
    File,
    Newline,
    /// The line exceeds the limit.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, line: Vec::new() }
    }

    /// Reads the next line and returns how it ends.
    pub(crate) fn next_end(&mut self) -> io::Result<Option<LineEnd>> {
        self.line.clear();
        // One more byte, for the newline of a line of maximal length.
        let most = (self.limit as u64).saturating_add(1);
        let count = self.reader.by_ref().take(most).read_until(b'\n', &mut self.line)?;
        if count == 0 {
            return Ok(None);
        }
        Ok(Some(match self.line.pop_if(|last| *last == b'\n') {
            Some(_) => LineEnd::Newline,
            None if self.line.len() > self.limit => LineEnd::TooLong,
            None => LineEnd::File,
        }))
    }

    /// Returns the line without its newline.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns true at the end of the file.
    pub(crate) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }
}
