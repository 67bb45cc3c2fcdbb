use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// Which state of a conversation a writer knows.
///
/// It changes with every message and every pending approval that is written, and never comes back: a
/// writer that names the revision it knows cannot write behind somebody else's words. Revisions are
/// equal or not; there is no order. As text, and in JSON, one is 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Revision(u64);

impl Revision {
    /// Creates a revision from what a store counts them by.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns what the store counts by.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }
}

impl TryFrom<String> for Revision {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        let is_hex = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u64::from_str_radix(&text, 16).ok().filter(|_| is_hex);
        bits.map(Self).ok_or_else(|| Error::invalid_input("a revision has 16 hexadecimal digits"))
    }
}

impl From<Revision> for String {
    fn from(revision: Revision) -> Self {
        revision.to_string()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}
