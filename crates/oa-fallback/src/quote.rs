//! Quotation of text in errors.

/// Returns the beginning of a text, on one line and in backticks.
pub(crate) fn quote(text: &str) -> String {
    format!("`{}`", shorten(text))
}

/// Returns the beginning of a text, on one line.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
