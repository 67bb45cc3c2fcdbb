//! The names of error kinds.

use std::fmt;
use std::str::FromStr;

use super::{Error, ErrorKind};

const NAMES: [(ErrorKind, &str); 16] = {
    use ErrorKind as E;
    [
        (E::Api, "api"),
        (E::Blocked, "blocked"),
        (E::Config, "config"),
        (E::Connect, "connect"),
        (E::ContextOverflow, "context_overflow"),
        (E::Hook, "hook"),
        (E::Interrupted, "interrupted"),
        (E::InvalidInput, "invalid_input"),
        (E::Limit, "limit"),
        (E::MaxTurns, "max_turns"),
        (E::Output, "output"),
        (E::Storage, "storage"),
        (E::Stream, "stream"),
        (E::Timeout, "timeout"),
        (E::Tool, "tool"),
        (E::Unavailable, "unavailable"),
    ]
};

// A variant that is missing above shifts those after it.
const _: () = {
    let mut place = 0;
    while place < NAMES.len() {
        assert!(NAMES[place].0 as usize == place, "the kinds are listed in their order");
        place += 1;
    }
};

impl ErrorKind {
    /// Returns the name in records, spans and metrics, such as `context_overflow`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        NAMES[self as usize].1
    }
}

/// The name, as in [`as_str`](ErrorKind::as_str).
impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Reads a name, as in [`as_str`](ErrorKind::as_str).
impl FromStr for ErrorKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = NAMES.into_iter().find(|(_, known)| *known == name);
        let unknown = || Error::new(Self::InvalidInput, format!("{name:?} is not an error kind"));
        found.map(|(kind, _)| kind).ok_or_else(unknown)
    }
}
