use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of a conversation.
///
/// It changes with every write of messages or a pending call and never repeats, so a writer that names the
/// revision it knows cannot append to messages it has not seen. Revisions can be compared only for equality.
/// The text and JSON format is 16 hexadecimal digits.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct Revision(u64);

impl Revision {
    /// Creates a revision from a store's counter.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the store's counter.
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
        bits.map(Self)
            .ok_or_else(|| Error::invalid_input("a revision must have 16 hexadecimal digits"))
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
