//! Detection of closing tags, byte by byte.

/// A case-insensitive finder of a tag. The tag's first byte must not occur in it again.
#[derive(Debug)]
pub(crate) struct Closing {
    tag: &'static str,
    /// The number of bytes of the tag seen so far.
    seen: usize,
}

impl Closing {
    pub(crate) fn new(tag: &'static str) -> Self {
        Self { tag, seen: 0 }
    }

    /// Reads more text, and returns the offset at which the tag ends.
    pub(crate) fn push(&mut self, text: &str) -> Option<usize> {
        let tag = self.tag.as_bytes();
        for (at, byte) in text.bytes().enumerate() {
            if byte.eq_ignore_ascii_case(&tag[self.seen]) {
                self.seen += 1;
                if self.seen == tag.len() {
                    return Some(at + 1);
                }
            } else {
                self.seen = usize::from(byte == tag[0]);
            }
        }
        None
    }

    /// Returns the text before the tag.
    pub(crate) fn before<'a>(&self, text: &'a str) -> &'a str {
        let tag = text.len().checked_sub(self.tag.len());
        tag.and_then(|at| text.get(..at)).unwrap_or(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Closing;

    #[test]
    fn tags_are_found_after_partial_tags() {
        for text in ["a</b", "a</b</b></b>", "<</b>", "</B>x"] {
            let mut closing = Closing::new("</b>");
            let end = text.to_lowercase().find("</b>").map(|at| at + 4);
            assert_eq!(closing.push(text), end, "{text}");
            if let Some(end) = end {
                assert_eq!(closing.before(&text[..end]), &text[..end - 4]);
            }
        }
    }
}
