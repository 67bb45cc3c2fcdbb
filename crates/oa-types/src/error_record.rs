use std::{error, fmt};

use serde::{Deserialize, Serialize};

/// An error as data, for a journal: a replay reports the same error.
///
/// Texts are for people; [`kind`](Self::kind) and the numbers are for programs. Unknown words are kept as they are,
/// so that a record of a later version can be read and written again.
///
/// ```
/// use oa_types::ErrorRecord;
///
/// let mut record = ErrorRecord::new("api", "the server answered 429: slow down");
/// (record.status, record.retry_after_ms, record.is_retryable) = (Some(429), Some(1_500), true);
/// let json = serde_json::to_string(&record)?;
/// assert_eq!(serde_json::from_str::<ErrorRecord>(&json)?, record);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ErrorRecord {
    /// The kind of the error, a word in snake case: `api`, `timeout`, `context_overflow`.
    pub kind: String,
    /// The error message.
    pub message: String,
    /// The HTTP status, if a server answered with an error status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The HTTP status in an error that the server reported inside an answer, whose own status was a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported_status: Option<u16>,
    /// The server's own code or type of error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The server's id of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The delay that the server asks for before a retry, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// True if the same request may succeed later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_retryable: bool,
    /// The timeout that expired, in snake case: `connect`, `first_token`, `idle`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// The size of the prompt, in tokens, if the server reported that it does not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_tokens: Option<u64>,
    /// The size of the model's context, in tokens, if the server reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The bytes of the answer that had arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// The last answer of the model, if it was not a valid structured output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_output: Option<String>,
}

impl ErrorRecord {
    /// Creates a record with a kind, a message and nothing else.
    #[must_use]
    pub fn new(kind: impl Into<String>, message: impl Into<String>) -> Self {
        Self { kind: kind.into(), message: message.into(), ..Self::default() }
    }
}

impl fmt::Display for ErrorRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl error::Error for ErrorRecord {}
