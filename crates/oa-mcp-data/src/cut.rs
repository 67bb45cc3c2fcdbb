/// Removes invisible characters from a server's text and cuts it after `limit` bytes, with a mark.
#[must_use]
pub fn cut(text: &str, limit: usize) -> String {
    let text = oa_redact::strip_invisible(text);
    if text.len() <= limit {
        return text.into_owned();
    }
    let end = (0..=limit).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{}...", &text[..end])
}
