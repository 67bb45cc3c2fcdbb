/// The maximum nesting depth of arrays and objects, as in serde_json.
pub const MAX_DEPTH: usize = 127;

/// Bounds on the memory that a text can make a reader hold.
///
/// ```
/// use oa_json::{ErrorKind, Limits, repair};
///
/// let mut limits = Limits::default();
/// limits.held_bytes = 4096;
/// let zeros = format!("[{}", "0,".repeat(1000)); // 2 kB of text, 32 kB or more as values
/// assert_eq!(repair(&zeros, limits).unwrap_err().kind(), ErrorKind::TooLarge);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Limits {
    /// The memory of a value, in bytes. Lists and objects take many times the size of their text (see
    /// [`held`](crate::held)). 64 MiB by default.
    pub held_bytes: usize,
    /// The total length of the names on the path to one value, in bytes. It bounds the work per value, because
    /// [`PartialReader`](crate::PartialReader) follows the path to each one. 4,096 by default.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { held_bytes: 64 << 20, path_bytes: 4096 }
    }
}
