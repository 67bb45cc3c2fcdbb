/// Bounds on the memory that a peer can make the parser hold.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The size of one event in bytes: its data and name so far plus the line in progress. 8 MiB by default.
    pub event_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { event_bytes: 8 << 20 }
    }
}
