use std::time::Duration;

/// The limits of a session. Exceeding one is an error of kind `Limit` and changes nothing.
///
/// They also apply to reading, so the memory used by a store is bounded. A session written under higher limits
/// is not lost: a store with those limits can read it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Messages per session, all of which are loaded at once; 100,000 by default.
    pub messages: usize,
    /// Bytes of a session's metadata as JSON; 64 KiB by default.
    pub metadata_bytes: usize,
    /// Sessions per page of a list; 1,000 by default.
    pub page: usize,
    /// Bytes of one write as JSON (the messages of one append, or a pending call); 64 MiB by default.
    pub record_bytes: usize,
    /// Bytes of all messages of one session as JSON; 512 MiB by default.
    pub session_bytes: u64,
    /// Time to wait for other writers before an error of kind `Busy`; 30 seconds by default.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 100_000,
            metadata_bytes: 64 << 10,
            page: 1_000,
            record_bytes: 64 << 20,
            session_bytes: 512 << 20,
            timeout: Duration::from_secs(30),
        }
    }
}
