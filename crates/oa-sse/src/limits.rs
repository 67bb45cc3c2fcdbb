/// Bounds on the memory that a peer can make the parser hold.
///
/// ```
/// use oa_sse::{Limits, Parser};
///
/// let mut limits = Limits::default();
/// limits.event_bytes = 64 << 10;
/// let parser = Parser::with_limits(limits);
/// # assert_eq!(parser.limits(), limits);
/// ```
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
