//! The beginning of a text, for an error.

const CHARACTERS: usize = 40;

/// Returns the first characters of a text, on one line.
#[doc(hidden)]
#[must_use]
pub fn excerpt(text: &str) -> String {
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// Returns the same in backticks.
#[doc(hidden)]
#[must_use]
pub fn quoted(text: &str) -> String {
    format!("`{}`", excerpt(text))
}

/// Returns the error for a text that differs from what was expected.
pub(crate) fn unexpected(wanted: &str, found: &str) -> String {
    match found {
        "" => format!("expected {wanted}, found the end"),
        found => format!("expected {wanted}, found {}", quoted(found)),
    }
}
