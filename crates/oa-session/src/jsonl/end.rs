use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::jsonl::chain::Chain;
use crate::record::Draft;

/// The end of the valid part of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) len: u64,
    pub(crate) chain: Chain,
    pub(crate) lines: u64,
    /// The checksum of the last line, if it has one.
    pub(crate) sum: Option<u64>,
    /// True if the last line ends with a newline.
    pub(crate) is_terminated: bool,
}

impl Default for End {
    fn default() -> Self {
        Self { len: 0, chain: Chain::new(), lines: 0, sum: None, is_terminated: true }
    }
}

impl End {
    /// Advances past bytes that were read or written.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.chain.update(bytes);
    }

    /// Returns a record as the next line with its checksum, and advances past it.
    pub(crate) fn seal(&mut self, draft: &Draft) -> (String, u64) {
        // The last line may be complete except for its newline. It was applied when it was read, so the next
        // record goes behind it and brings the missing newline.
        let newline = if self.is_terminated { "" } else { "\n" };
        self.pass(newline.as_bytes());
        let (line, sum) = self.chain.seal(draft);
        self.pass(line.as_bytes());
        self.pass(b"\n");
        self.lines += 1;
        self.sum = Some(sum);
        self.is_terminated = true;
        (format!("{newline}{line}\n"), sum)
    }

    /// Writes a record here, overwriting any incomplete record, and returns its checksum. The record is on disk
    /// when this returns; after an error, this value must not be used again.
    pub(crate) fn write(&mut self, file: &mut File, draft: &Draft) -> io::Result<u64> {
        let start = self.len;
        let (text, sum) = self.seal(draft);
        // Without this, a record shorter than the incomplete one would leave the rest of that behind it.
        if file.metadata()?.len() != start {
            file.set_len(start)?;
        }
        file.seek(SeekFrom::Start(start))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).inspect_err(|_| {
            // May fail, because a partial record is ignored when reading.
            let _ = file.set_len(start);
        })?;
        Ok(sum)
    }

    /// Returns true if the file still starts with the bytes that were read.
    pub(crate) fn is_in(&self, file: &mut File) -> io::Result<bool> {
        // Lines of version 0 have no checksum, and a line without a newline may have grown since.
        let Some(sum) = self.sum.filter(|_| self.is_terminated) else {
            return Ok(false);
        };
        // The checksum of the last line covers everything before it.
        let expected = Chain::closing(sum);
        // One more for the newline.
        let Some(start) = self.len.checked_sub(expected.len() as u64 + 1) else {
            return Ok(false);
        };
        if file.metadata()?.len() < self.len {
            return Ok(false);
        }
        let mut found = vec![0; expected.len()];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut found)?;
        Ok(found == expected.as_bytes())
    }
}
