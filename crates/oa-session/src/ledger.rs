use oa_types::{Message, MessageRole, json_size};

use crate::error::Error;
use crate::limits::Limits;
use crate::revision::Revision;
use crate::rules::{check_keep, check_size};
use crate::session::SessionInfo;
use crate::timestamp::Timestamp;

/// The facts about a session needed to validate the next change, without its messages.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    pub(crate) info: SessionInfo,
    entries: Vec<Entry>,
    bytes: u64,
    pending_bytes: u64,
}

/// The facts about one message.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    /// The size of its JSON.
    pub(crate) bytes: u64,
    pub(crate) role: MessageRole,
}

impl Entry {
    pub(crate) fn new(message: &Message, json: &str) -> Self {
        Self { bytes: json.len() as u64, role: message.role }
    }
}

impl Ledger {
    pub(crate) fn new(info: SessionInfo) -> Self {
        Self { info, entries: Vec::new(), bytes: 0, pending_bytes: 0 }
    }

    /// Removes all but the first `keep` messages, adds others, and clears the pending call.
    pub(crate) fn append(
        &mut self,
        keep: usize,
        entries: impl IntoIterator<Item = Entry>,
        at: Timestamp,
        revision: Revision,
    ) {
        // `bytes` is the sum of all entries, so this cannot underflow.
        let gone = self.entries.drain(keep.min(self.entries.len())..);
        self.bytes -= gone.map(|entry| entry.bytes).sum::<u64>();
        for entry in entries {
            self.bytes += entry.bytes;
            self.entries.push(entry);
        }
        self.info.message_count = self.entries.len();
        self.set_pending(None, at, revision);
    }

    /// Sets or clears the pending call, of which only the size of its JSON is known.
    pub(crate) fn set_pending(&mut self, bytes: Option<u64>, at: Timestamp, revision: Revision) {
        self.info.is_pending = bytes.is_some();
        self.pending_bytes = bytes.unwrap_or_default();
        self.info.updated_at = at;
        self.info.revision = revision;
    }

    /// Checks that this is the revision that a writer knows.
    pub(crate) fn check_revision(&self, expected: Revision) -> Result<(), Error> {
        let found = self.info.revision;
        if found == expected {
            return Ok(());
        }
        Err(Error::conflict(&self.info.id, expected, found))
    }

    /// Checks that the conversation may end after `keep` messages.
    pub(crate) fn check_keep(&self, keep: usize) -> Result<(), Error> {
        let next = self.entries.get(keep).map(|entry| entry.role);
        check_keep(keep, self.entries.len(), next)
    }

    /// Checks that more messages fit after the first `keep`.
    pub(crate) fn check_room(
        &self,
        keep: usize,
        count: usize,
        bytes: u64,
        limits: &Limits,
    ) -> Result<(), Error> {
        let gone: u64 = self.entries.iter().skip(keep).map(|entry| entry.bytes).sum();
        let kept = self.bytes - gone;
        check_size(keep.saturating_add(count), kept.saturating_add(bytes), limits)
    }

    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the size in bytes of all that a reader of the session needs.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes + self.pending_bytes + json_size(&self.info.metadata) as u64
    }
}
