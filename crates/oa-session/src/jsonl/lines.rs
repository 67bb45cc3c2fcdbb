use std::io::{self, BufRead, Read};

/// The lines of a file, none of them longer than a limit.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    line: Vec<u8>,
}

/// How a line ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LineEnd {
    /// With the file: the writer was stopped, or somebody has edited it.
    File,
    Newline,
    /// Not within the limit.
    TooLong,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, line: Vec::new() }
    }

    /// Reads the next line, and returns how it ends.
    pub(crate) fn next_end(&mut self) -> io::Result<Option<LineEnd>> {
        self.line.clear();
        // Room for the end of a line that is as long as it may be.
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

    /// Returns the line that was read, without what ends it.
    pub(crate) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns whether nothing stands behind the last line.
    pub(crate) fn is_at_end(&mut self) -> io::Result<bool> {
        Ok(self.reader.fill_buf()?.is_empty())
    }
}
