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

/// Returns the beginning of a text: at most this many bytes, cut between characters.
#[doc(hidden)]
#[must_use]
pub fn beginning(text: &str, bytes: usize) -> &str {
    // `floor_char_boundary` needs a newer Rust than our minimum.
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the [excerpt] in backticks.
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
