use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::jsonl::chain::Chain;
use crate::record::Draft;

/// How far a file was read and is good.
#[derive(Clone, Copy, Debug)]
pub(crate) struct End {
    pub(crate) len: u64,
    pub(crate) chain: Chain,
    pub(crate) lines: u64,
    /// The checksum of the last line, if it has one.
    pub(crate) sum: Option<u64>,
    /// Whether the newline of the last line is there.
    pub(crate) is_terminated: bool,
}

impl Default for End {
    fn default() -> Self {
        Self { len: 0, chain: Chain::new(), lines: 0, sum: None, is_terminated: true }
    }
}

impl End {
    /// Goes on by what was read or written.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        self.len += bytes.len() as u64;
        self.chain.update(bytes);
    }

    /// Returns a record as the next line, and its checksum, and passes it.
    pub(crate) fn seal(&mut self, draft: &Draft) -> (String, u64) {
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

    /// Writes a record here, over what may stand behind and is none, and returns its checksum. When this
    /// returns it is on the disk; after an error it is not to be gone on from.
    pub(crate) fn write(&mut self, file: &mut File, draft: &Draft) -> io::Result<u64> {
        let start = self.len;
        let (text, sum) = self.seal(draft);
        if file.metadata()?.len() != start {
            file.set_len(start)?;
        }
        file.seek(SeekFrom::Start(start))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_data()).inspect_err(|_| {
            // What was written by half is passed by when it is read, so this may fail.
            let _ = file.set_len(start);
        })?;
        Ok(sum)
    }

    /// Returns whether the file still begins with what was read of it.
    pub(crate) fn is_in(&self, file: &mut File) -> io::Result<bool> {
        let Some(sum) = self.sum.filter(|_| self.is_terminated) else {
            return Ok(false);
        };
        // The checksum at the end of the last line is over all that stands before it.
        let expected = Chain::closing(sum);
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
