use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::Error;

/// A session id: 1 to 64 bytes of text without control characters.
///
/// Chosen by the caller: a number, a user and project, a UUID. Case and whitespace are significant.
///
/// ```
/// use oa_session::SessionId;
///
/// let id = SessionId::new("notes/2024 ☂")?;
/// assert_eq!(id.as_str(), "notes/2024 ☂");
/// assert_eq!("notes/2024 ☂".parse::<SessionId>()?, id);
/// assert!(SessionId::new("").is_err());
/// # Ok::<(), oa_session::Error>(())
/// ```
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(String);

impl SessionId {
    /// The longest id in bytes, short enough for a file name.
    pub const MAX_BYTES: usize = 64;

    /// Creates an id.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if it is empty, too long, or contains control characters.
    pub fn new(id: impl Into<String>) -> Result<Self, Error> {
        let id = id.into();
        if id.is_empty() || id.len() > Self::MAX_BYTES || id.chars().any(char::is_control) {
            let excerpt: String = id.chars().take(Self::MAX_BYTES).collect();
            return Err(Error::invalid_input(format!(
                "a session id must have 1 to {} bytes and no control characters: {excerpt:?}",
                Self::MAX_BYTES
            )));
        }
        Ok(Self(id))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for SessionId {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(id: &str) -> Result<Self, Error> {
        Self::new(id)
    }
}

impl TryFrom<String> for SessionId {
    type Error = Error;

    fn try_from(id: String) -> Result<Self, Error> {
        Self::new(id)
    }
}

impl From<SessionId> for String {
    fn from(id: SessionId) -> Self {
        id.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
