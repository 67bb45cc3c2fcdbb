//! Detection of closing tags, byte by byte.

/// A case-insensitive finder of a tag.
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
        // Most text has no tag. No tag begins with a letter, which could be written in another way.
        if self.seen == 0 && !text.as_bytes().contains(&self.tag.as_bytes()[0]) {
            return None;
        }
        text.bytes().position(|byte| self.ends_with(byte)).map(|at| at + 1)
    }

    /// Reads one more byte, and returns true if the tag ends with it.
    fn ends_with(&mut self, byte: u8) -> bool {
        let tag = self.tag.as_bytes();
        // Another tag may have begun within the bytes that were seen, as in `</</b>`.
        while self.seen > 0 && !byte.eq_ignore_ascii_case(&tag[self.seen]) {
            self.seen = border(&tag[..self.seen]);
        }
        self.seen += usize::from(byte.eq_ignore_ascii_case(&tag[self.seen]));
        let has_ended = self.seen == tag.len();
        if has_ended {
            self.seen = 0;
        }
        has_ended
    }

    /// Returns the text before the tag.
    pub(crate) fn before<'a>(&self, text: &'a str) -> &'a str {
        let tag = text.len().checked_sub(self.tag.len());
        tag.and_then(|at| text.get(..at)).unwrap_or(text)
    }
}

/// Returns the length of the longest beginning of a text, except for the whole, that is also its end.
fn border(text: &[u8]) -> usize {
    let is_border =
        |&length: &usize| text[..length].eq_ignore_ascii_case(&text[text.len() - length..]);
    (1..text.len()).rev().find(is_border).unwrap_or(0)
}

/// A finder of the tag that closes a call. It skips the values between tags: the closing tag of the call may occur in
/// their text.
#[derive(Debug)]
pub(crate) struct CallClosing {
    call: Closing,
    value_open: Closing,
    value_close: Closing,
    is_in_value: bool,
}

impl CallClosing {
    pub(crate) fn new(
        call: &'static str,
        value_open: &'static str,
        value_close: &'static str,
    ) -> Self {
        let [call, value_open, value_close] = [call, value_open, value_close].map(Closing::new);
        Self { call, value_open, value_close, is_in_value: false }
    }

    /// Reads more text, and returns the offset at which the call's tag ends.
    pub(crate) fn push(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if self.is_in_value {
                self.is_in_value = !self.value_close.ends_with(byte);
                continue;
            }
            self.is_in_value = self.value_open.ends_with(byte);
            if self.call.ends_with(byte) {
                return Some(at + 1);
            }
        }
        None
    }

    /// Returns the text before the call's tag.
    pub(crate) fn before<'a>(&self, text: &'a str) -> &'a str {
        self.call.before(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn tags_that_begin_twice_are_found() {
        let tag = "]<]m[>[</b>";
        for text in ["]<]<]m[>[</b>", "]<]m[>[]<]m[>[</b>x", "]]<]m[>[</]<]m[>[</b>"] {
            let end = text.find(tag).map(|at| at + tag.len());
            assert_eq!(Closing::new(tag).push(text), end, "{text}");
        }
    }

    #[test]
    fn tags_in_values_close_no_call() {
        let text = "<v>a</c></v> <v></v></c></c>";
        let mut closing = CallClosing::new("</c>", "<v>", "</v>");
        let end = text.len() - "</c>".len();
        assert_eq!(closing.push(text), Some(end));
        assert_eq!(closing.before(&text[..end]), &text[..end - 4]);
        assert_eq!(CallClosing::new("</c>", "<v>", "</v>").push("<v>a</c></c>"), None);
    }
}
