use std::time::Duration;

/// What a session may grow to. Passing one is an error of kind `Limit`, and changes nothing.
///
/// The same limits hold when reading, so that what a store holds in memory is bounded too. A session
/// that was written under wider limits is not lost: it can be read by a store that has them.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// Most messages of one session, all of which are read at once; 100,000.
    pub messages: usize,
    /// Most bytes of a session's metadata as JSON; 64 KiB.
    pub metadata_bytes: usize,
    /// Most sessions of one page of a list; 1,000.
    pub page: usize,
    /// Most bytes of what is written at once, as JSON: the messages of one append, a pending approval;
    /// 64 MiB.
    pub record_bytes: usize,
    /// Most bytes of all messages of one session as JSON; 512 MiB.
    pub session_bytes: u64,
    /// How long is waited while another process writes, before an error of kind `Busy`; 30 seconds.
    pub wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 100_000,
            metadata_bytes: 64 << 10,
            page: 1_000,
            record_bytes: 64 << 20,
            session_bytes: 512 << 20,
            wait: Duration::from_secs(30),
        }
    }
}
