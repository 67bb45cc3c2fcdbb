use std::fs::File;
use std::io::{self, BufReader, Seek, SeekFrom};
use std::path::Path;

use oa_types::{Message, MessageRole, json_size};
use serde_json::value::RawValue;

use crate::error::{Error, ErrorKind};
use crate::id::SessionId;
use crate::jsonl::end::End;
use crate::jsonl::lines::{LineEnd, Lines};
use crate::ledger::{Entry, Ledger};
use crate::limits::Limits;
use crate::pending::Pending;
use crate::record::{Record, role_of};
use crate::revision::Revision;
use crate::rules::{check_record, open_calls};
use crate::session::{NewSession, Session, SessionInfo};
use crate::timestamp::Timestamp;

/// The largest part of a line other than its messages or metadata, in bytes.
const OVERHEAD: usize = 1 << 10;

/// The parsed content of a session's file, up to `end`.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// `None` until the first record was read.
    ledger: Option<Ledger>,
    end: End,
    /// Present if messages are wanted.
    contents: Option<Contents>,
}

/// The parts of a file that are not needed for the next change.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// As JSON, each with its line number.
    pub(crate) messages: Vec<(Box<str>, u64)>,
    pub(crate) pending: Option<Box<Pending>>,
}

impl Log {
    /// Creates an empty log that keeps messages.
    pub(crate) fn with_contents() -> Self {
        Self { contents: Some(Contents::default()), ..Self::default() }
    }

    /// Creates the log of a file that was just written.
    pub(crate) fn written(ledger: Ledger, end: End) -> Self {
        Self { ledger: Some(ledger), end, contents: None }
    }

    pub(crate) fn end_mut(&mut self) -> &mut End {
        &mut self.end
    }

    /// Returns true if the file still starts with the part that was read.
    pub(crate) fn is_start_of(&self, file: &mut File) -> io::Result<bool> {
        self.end.is_in(file)
    }

    pub(crate) fn ledger(&self) -> Result<&Ledger, Error> {
        self.ledger.as_ref().ok_or_else(no_beginning)
    }

    pub(crate) fn ledger_mut(&mut self) -> Result<&mut Ledger, Error> {
        self.ledger.as_mut().ok_or_else(no_beginning)
    }

    /// Returns the approximate size in memory, without messages.
    pub(crate) fn size(&self) -> usize {
        // In memory, a text in metadata takes about its JSON size, and a small value many times as much.
        let size = |ledger: &Ledger| {
            4 * json_size(&ledger.info.metadata)
                + size_of_val(ledger.entries())
                + size_of::<Ledger>()
        };
        size_of::<Self>() + self.ledger.as_ref().map_or(0, size)
    }

    /// Takes out the messages, which cached logs do not keep.
    pub(crate) fn take_contents(&mut self) -> Contents {
        self.contents.take().unwrap_or_default()
    }

    /// Reads the lines added since the last read. An incomplete record at the very end is ignored, because it
    /// was never acknowledged.
    pub(crate) fn read_on(
        &mut self,
        file: &mut File,
        path: &Path,
        id: &SessionId,
        limits: &Limits,
    ) -> Result<(), Error> {
        let broken = |error| Error::unreadable(path, error);
        file.seek(SeekFrom::Start(self.end.len)).map_err(broken)?;
        let most = limits.record_bytes.max(limits.metadata_bytes).saturating_add(OVERHEAD);
        let mut lines = Lines::new(BufReader::with_capacity(1 << 16, file), most);
        while let Some(end) = lines.next_end().map_err(broken)? {
            let number = self.end.lines + 1;
            let is_last = lines.is_at_end().map_err(broken)?;
            let line = lines.line();
            let read = match end {
                LineEnd::TooLong => {
                    Err(Error::limit(format!("the line is longer than {most} bytes")))
                }
                LineEnd::File | LineEnd::Newline => self.read_line(line, id, limits),
            };
            let sum = match read {
                Ok(sum) => sum,
                // Only the last record can be incomplete, because each one is synced before the next is
                // written. A damaged line anywhere else was once acknowledged, so it is an error.
                Err(error)
                    if is_last
                        && error.kind() == ErrorKind::Corrupt
                        && self.is_incomplete(line, end) =>
                {
                    break;
                }
                Err(error) => return Err(error.at(path, number)),
            };
            // Only after the line was applied. When the loop breaks, the end is that of the last good line,
            // and the next record overwrites the incomplete one.
            self.end.pass(line);
            self.end.sum = sum;
            self.end.lines = number;
            self.end.is_terminated = end == LineEnd::Newline;
            if self.end.is_terminated {
                self.end.pass(b"\n");
            }
        }
        if self.ledger.is_none() {
            return Err(no_beginning().at(path, 1));
        }
        Ok(())
    }

    /// Returns true if a last line that cannot be read was not written to its end.
    fn is_incomplete(&self, line: &[u8], end: LineEnd) -> bool {
        // After a power failure, a file system may leave zero bytes, which JSON never contains.
        let Some(zero) = line.iter().position(|byte| *byte == 0) else {
            return end == LineEnd::File;
        };
        let (before, rest) = line.split_at(zero);
        // A complete record with more behind it was once acknowledged: the zero was its newline.
        rest.iter().all(|byte| *byte == 0) || !self.is_complete(before)
    }

    fn is_complete(&self, line: &[u8]) -> bool {
        let Ok(line) = str::from_utf8(line) else { return false };
        match Record::read(line) {
            Ok(Record::Message(_)) => true,
            Ok(_) => self.end.chain.check(line).is_ok(),
            Err(_) => false,
        }
    }

    /// Applies one line and returns its checksum, if it has one.
    fn read_line(
        &mut self,
        line: &[u8],
        id: &SessionId,
        limits: &Limits,
    ) -> Result<Option<u64>, Error> {
        let line = str::from_utf8(line)
            .map_err(|error| Error::corrupt("the line is not UTF-8 text").with_source(error))?;
        let record = Record::read(line)?;
        if let Record::Message(json) = record {
            self.read_old(json, id, limits)?;
            return Ok(None);
        }
        // The checksum is also the session's revision: it depends on all lines so far, so it changes with
        // each of them and differs between two files with different pasts.
        let sum = self.end.chain.check(line)?;
        self.apply(record, line.len() as u64, id, Revision::from_bits(sum), limits)?;
        Ok(Some(sum))
    }

    /// Applies a message of version 0, which has no time or checksum.
    fn read_old(&mut self, json: &str, id: &SessionId, limits: &Limits) -> Result<(), Error> {
        // Bare messages are only at the beginning: a file of version 0 is continued with records.
        if self.end.sum.is_some() {
            return Err(Error::corrupt("a bare message must not follow a record"));
        }
        // Before the log changes: a line that fails here may be ignored as an incomplete one.
        let entry = Entry { bytes: json.len() as u64, role: role_of(json)? };
        // A copy: `read_on` passes the line later, and would count it twice.
        let mut chain = self.end.chain;
        chain.update(json.as_bytes());
        let revision = Revision::from_bits(chain.value());
        let ledger = self.ledger.get_or_insert_with(|| {
            let session = NewSession::new(id.clone(), Timestamp::default());
            Ledger::new(SessionInfo::new(session, revision))
        });
        let keep = ledger.entries().len();
        ledger.check_room(keep, 1, entry.bytes, limits)?;
        ledger.append(keep, [entry], Timestamp::default(), revision);
        if let Some(contents) = &mut self.contents {
            contents.messages.push((json.into(), self.end.lines + 1));
        }
        Ok(())
    }

    /// Applies a record that is this many bytes long.
    fn apply(
        &mut self,
        record: Record<'_>,
        bytes: u64,
        id: &SessionId,
        revision: Revision,
        limits: &Limits,
    ) -> Result<(), Error> {
        match record {
            Record::Append { at, keep, messages } => {
                self.append(at, keep, &messages, revision, limits)?;
            }
            Record::Create { id: named, at, metadata } => {
                if self.ledger.is_some() {
                    return Err(Error::corrupt("the file has more than one `create` record"));
                }
                if named != *id {
                    return Err(Error::corrupt(format!(
                        "the file belongs to session {named}, not {id}"
                    )));
                }
                let session = NewSession::new(named, at).with_metadata(metadata);
                self.ledger = Some(Ledger::new(SessionInfo::new(session, revision)));
            }
            Record::Message(_) => return Err(Error::corrupt("a bare message has a checksum")),
            // Metadata does not change the revision, although the line has a checksum of its own.
            Record::Metadata { at, metadata } => {
                let info = &mut self.ledger_mut()?.info;
                info.metadata = metadata;
                info.updated_at = at;
            }
            Record::Pending { at, pending } => {
                self.ledger_mut()?.set_pending(pending.as_ref().map(|_| bytes), at, revision);
                self.keep_pending(pending);
            }
            Record::State { at, revision, pending } => {
                self.ledger_mut()?.set_pending(pending.as_ref().map(|_| bytes), at, revision);
                self.keep_pending(pending);
            }
        }
        Ok(())
    }

    fn append(
        &mut self,
        at: Timestamp,
        keep: Option<usize>,
        messages: &[&RawValue],
        revision: Revision,
        limits: &Limits,
    ) -> Result<(), Error> {
        let line = self.end.lines + 1;
        let ledger = self.ledger_mut()?;
        let keep = keep.unwrap_or(ledger.info.message_count);
        // A record that no store would have written. The same check is `InvalidInput` for a caller.
        ledger.check_keep(keep).map_err(|error| Error::corrupt(error.to_string()))?;
        let entries = messages.iter().map(|message| {
            let json = message.get();
            Ok(Entry { bytes: json.len() as u64, role: role_of(json)? })
        });
        let entries = entries.collect::<Result<Vec<_>, Error>>()?;
        let bytes = entries.iter().map(|entry| entry.bytes).sum();
        ledger.check_room(keep, entries.len(), bytes, limits)?;
        ledger.append(keep, entries, at, revision);
        if let Some(contents) = &mut self.contents {
            contents.messages.truncate(keep);
            contents.messages.extend(messages.iter().map(|message| (message.get().into(), line)));
            contents.pending = None;
        }
        Ok(())
    }

    fn keep_pending(&mut self, pending: Option<Box<Pending>>) {
        if let Some(contents) = &mut self.contents {
            contents.pending = pending;
        }
    }

    /// Returns the session with these contents.
    pub(crate) fn session(&self, contents: &Contents, path: &Path) -> Result<Session, Error> {
        // Parsed here and not while lines are read, because later lines may have replaced messages.
        let messages = contents.messages.iter().map(|(json, line)| {
            serde_json::from_str::<Message>(json).map_err(|error| {
                let message = "a message is damaged";
                Error::corrupt(message).with_source(error).at(path, *line)
            })
        });
        let messages = messages.collect::<Result<Vec<_>, Error>>()?;
        let last = self.end.lines;
        let open = open_calls(&messages)
            .map_err(|error| Error::corrupt(error.to_string()).at(path, last))?;
        if let Some(id) = open.first() {
            let message = format!("the conversation ends without the result of call {id:.64}");
            return Err(Error::corrupt(message).at(path, last));
        }
        let pending = contents.pending.as_deref().cloned();
        Ok(Session::new(self.ledger()?.info.clone(), messages, pending))
    }
}

impl Contents {
    /// Splits the first `keep` messages into records within the length limit, never between a call and its
    /// result. Fails if those together exceed the limit, which a file of version 0, with a line for each, may
    /// allow.
    pub(crate) fn batches(
        &self,
        ledger: &Ledger,
        keep: usize,
        limits: &Limits,
    ) -> Result<Vec<Vec<&str>>, Error> {
        let messages = self.messages.iter().map(|(json, _)| &**json);
        let kept: Vec<(&str, &Entry)> = messages.zip(ledger.entries()).take(keep).collect();
        let mut batches = Vec::new();
        let (mut batch, mut size) = (Vec::new(), 0);
        // A unit is a message with the results that follow it. Each message has a separator.
        for unit in kept.chunk_by(|_, (_, next)| next.role == MessageRole::Tool) {
            let bytes: usize = unit.iter().map(|(json, _)| json.len() + 1).sum();
            check_record(bytes, limits)?;
            if size + bytes > limits.record_bytes && !batch.is_empty() {
                batches.push(std::mem::take(&mut batch));
                size = 0;
            }
            batch.extend(unit.iter().map(|(json, _)| *json));
            size += bytes;
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        Ok(batches)
    }
}

fn no_beginning() -> Error {
    Error::corrupt("the file has no `create` record")
}
