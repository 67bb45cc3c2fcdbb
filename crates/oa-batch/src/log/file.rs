use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;
use std::time::Duration;

use oa_session::{Error, ErrorKind, LockedFile};

use crate::log::entry::{Entry, Lines};
use crate::log::line::{HEADER, LineHead, MOST, corrupt};

/// The longest wait for an earlier batch that has the log open, and may be about to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file of a log, on its own thread.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: LockedFile,
    /// The end of its complete lines.
    len: u64,
    /// Lines to be written.
    lines: Lines,
    /// After a failed write the end of the file is not known.
    is_broken: bool,
}

impl LogFile {
    /// Opens a log, reads where its outcomes are, and removes what a crash has cut off.
    pub(crate) fn open(path: PathBuf, lines: Lines) -> Result<(Self, Vec<Entry>), Error> {
        let file = LockedFile::open(&path, PATIENCE)?;
        let (entries, len) = read(&path, &file)?;
        // Not before: the path may name another program's file.
        file.close_to_others();
        let mut this = Self { path, file, len, lines, is_broken: false };
        this.trim().map_err(|error| this.failed("write", error))?;
        if len == 0 {
            this.append(HEADER.as_bytes())?;
        }
        Ok((this, entries))
    }

    /// Writes the lines that wait. They are on disk when this returns.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        if self.is_broken {
            let message = format!("an earlier write to {} failed", self.path.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
        if lines.is_empty() { Ok(()) } else { self.append(&lines) }
    }

    /// Reads the line that begins at this offset.
    pub(crate) fn read(&self, offset: u64) -> Result<Vec<u8>, Error> {
        let mut file = self.file.get_ref();
        let mut line = Vec::new();
        let read = file.seek(SeekFrom::Start(offset)).and_then(|_| {
            BufReader::with_capacity(1 << 14, file).take(MOST as u64).read_until(b'\n', &mut line)
        });
        read.map_err(|error| self.failed("read", error))?;
        Ok(line)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.check()?;
        let mut file = self.file.get_ref();
        let written = file
            .seek(SeekFrom::Start(self.len))
            .and_then(|_| file.write_all(bytes))
            .and_then(|()| file.sync_data());
        if let Err(error) = written {
            self.is_broken = true;
            // May fail: a line that is not complete is ignored.
            let _ = self.trim();
            return Err(self.failed("write", error));
        }
        self.len += bytes.len() as u64;
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn break_off(&mut self) {
        self.is_broken = true;
    }

    /// Cuts off everything after the complete lines.
    fn trim(&self) -> io::Result<()> {
        let file = self.file.get_ref();
        if file.metadata()?.len() == self.len { Ok(()) } else { file.set_len(self.len) }
    }

    fn failed(&self, what: &str, error: io::Error) -> Error {
        let message = format!("cannot {what} {}", self.path.display());
        Error::new(ErrorKind::Io, message).with_source(error)
    }
}

/// Replies that came before the batch was dropped, and were paid for, are kept.
impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// Returns the open file of a log's thread.
pub(crate) fn opened(file: &mut Option<LogFile>) -> Result<&mut LogFile, Error> {
    file.as_mut().ok_or_else(|| Error::new(ErrorKind::Closed, "the log is not open"))
}

/// Reads a log: its outcomes, sorted by index, and the length of its complete lines.
fn read(path: &Path, file: &LockedFile) -> Result<(Vec<Entry>, u64), Error> {
    let broken = |error| {
        Error::new(ErrorKind::Io, format!("cannot read {}", path.display())).with_source(error)
    };
    let mut reader = BufReader::with_capacity(1 << 16, file.get_ref());
    let (mut entries, mut len, mut number) = (Vec::new(), 0, 0_u64);
    let mut line = Vec::new();
    loop {
        line.clear();
        number += 1;
        let at = |error: Error| error.located(format_args!("{}, line {number}", path.display()));
        // One more byte shows that a line is too long.
        let most = 1 + if number == 1 { HEADER.len() } else { MOST } as u64;
        let count = reader.by_ref().take(most).read_until(b'\n', &mut line).map_err(broken)?;
        if number == 1 {
            // A header that was cut off, or is zero bytes after a power failure, is written again. Anything else is
            // another program's file.
            if line == HEADER.as_bytes() {
                len = count as u64;
                continue;
            }
            let written =
                line.iter().rposition(|byte| *byte != 0).map_or(&[][..], |last| &line[..=last]);
            if count <= HEADER.len() && HEADER.as_bytes().starts_with(written) {
                break;
            }
            return Err(at(corrupt("this is not a batch log, or it is from a newer version")));
        }
        if count == 0 {
            break;
        }
        if line.last() != Some(&b'\n') {
            if count > MOST {
                return Err(at(corrupt(format!("the line is longer than {MOST} bytes"))));
            }
            // Cut off by a crash, and never yielded.
            break;
        }
        // After a power failure, a file system may leave zero bytes in what was not synced, which JSON never has.
        if !line.contains(&0) {
            let head = LineHead::parse(&line).map_err(at)?;
            entries.push(Entry { index: head.index, offset: len, is_reply: head.is_reply() });
        }
        len += count as u64;
    }
    // Of several lines the last reply counts, or else the last failure.
    // `dedup_by_key` keeps the first, so the list is reversed for it: the last one of each index counts.
    entries.sort_by_key(|entry: &Entry| (entry.index, entry.is_reply, entry.offset));
    entries.reverse();
    entries.dedup_by_key(|entry| entry.index);
    entries.reverse();
    entries.shrink_to_fit();
    Ok((entries, len))
}
