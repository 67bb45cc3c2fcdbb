//! Failures that pass: the same request may succeed later.

use serde_json::Value;

use super::error::{ServerError, innermost};

impl ServerError {
    /// Returns true if the same request may succeed later. `status` is that of the response, or `None` for an error inside
    /// an answer, whose code may then be a status.
    ///
    /// A status of the server's own failures is enough, unless the message shows that the request fails each time (QUIRKS row
    /// 103). With another status, or inside an answer, the error must tell of an overload, or of a failure behind the server
    /// (rows 144 and 145): a mere 500 inside an answer is often about the request.
    ///
    /// ```
    /// use oa_types::wire::ServerError;
    ///
    /// let error = ServerError::from_body(br#"{"error": {"code": 429, "message": "busy"}}"#);
    /// assert!(error.is_transient(Some(503)) && error.is_transient(None));
    /// let error = ServerError::from_body(br#"{"error": "no such model"}"#);
    /// assert!(!error.is_transient(Some(404)) && !error.is_transient(None));
    /// ```
    #[must_use]
    pub fn is_transient(&self, status: Option<u16>) -> bool {
        // Only the part that is shown: template errors include whole programs.
        let words = self.to_string().to_ascii_lowercase();
        match (status, self.reported_status()) {
            (Some(408 | 409 | 425 | 429 | 502..=504 | 529), _) => true,
            (None, Some(429 | 502..=504 | 529)) => true,
            (Some(500), _) => !is_lasting(&words),
            (Some(400 | 403), _) | (None, None | Some(400 | 403 | 500..)) => {
                self.tells_of_overload(&words) && !is_lasting(&words)
            }
            // What is wrong with a key, an account or the size of the request stays wrong.
            _ => false,
        }
    }

    /// Returns the HTTP status that is the error's code.
    #[must_use]
    pub fn reported_status(&self) -> Option<u16> {
        self.code.as_ref()?.parse().ok().filter(|code| (300..600).contains(code))
    }

    /// Returns true if the server says that it has too much to do, or that one behind it failed.
    fn tells_of_overload(&self, words: &str) -> bool {
        let error_type = innermost(&self.raw).pointer("/metadata/error_type");
        let marks =
            [self.code.as_deref(), self.kind.as_deref(), error_type.and_then(Value::as_str)];
        let is_known = |mark: &str| OVERLOADS.iter().any(|it| it.eq_ignore_ascii_case(mark));
        marks.into_iter().flatten().any(is_known)
            || OVERLOAD_WORDS.iter().any(|it| words.contains(it))
            // The connection of a relay to the server behind it: other text may quote the request.
            || words.ends_with("unexpected eof")
    }
}

/// Codes and types with which servers and gateways say so.
const OVERLOADS: [&str; 10] = [
    "engine_overloaded_error",
    "overloaded_error",
    "provider_unavailable",
    "rate_limit_error",
    "rate_limit_exceeded",
    "resource_exhausted",
    "server_is_overloaded",
    "service_unavailable",
    "service_unavailable_error",
    "unavailable",
];

/// The same in words.
const OVERLOAD_WORDS: [&str; 5] = [
    "currently overloaded",
    "failed to get response from provider",
    "too many requests",
    "try again later",
    "upstream request failed: [server_error]",
];

/// True if a retry would fail again: some servers answer client mistakes with a 500 (QUIRKS row 103). What the model
/// wrote is no such mistake, and the message may quote it (QUIRKS row 129).
fn is_lasting(words: &str) -> bool {
    let has = |marks: &[&str]| marks.iter().any(|mark| words.contains(mark));
    !has(&["failed to parse input at pos", "failed to parse json:", "error parsing tool call"])
        && has(&[
            "jinja",
            "template",
            "chat format",
            "failed to parse",
            "not supported",
            "requires --",
        ])
}
