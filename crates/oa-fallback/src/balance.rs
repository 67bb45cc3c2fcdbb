//! Detection of closing brackets, byte by byte.

/// A finder of the bracket that closes a value. It skips strings and nested brackets.
///
/// A quote begins a string only where a value may begin, so that an apostrophe in bare text does not.
#[derive(Debug)]
pub(crate) struct Balance {
    depth: u32,
    quote: Option<u8>,
    is_escaped: bool,
    /// The last byte that was not white space.
    before: u8,
    lines: Lines,
    /// A `<` outside strings ends the value.
    is_before_tag: bool,
}

/// The number of lines that brackets may span.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lines {
    Many,
    /// One line, except within strings and nested brackets. Any other line break ends the value.
    One,
}

impl Balance {
    /// Creates a finder for a value whose opening bracket comes next.
    pub(crate) fn of_value() -> Self {
        let lines = Lines::Many;
        Self { depth: 0, quote: None, is_escaped: false, before: b'(', lines, is_before_tag: false }
    }

    /// Creates a finder for JSON whose opening bracket comes next. It also ends before a `<` outside strings: JSON has
    /// none there, so this is the tag that closes a call with a missing bracket, or opens the next call.
    pub(crate) fn of_json() -> Self {
        Self { is_before_tag: true, ..Self::of_value() }
    }

    /// Creates a finder for a value whose opening bracket was read already.
    pub(crate) fn opened(lines: Lines) -> Self {
        Self { depth: 1, lines, ..Self::of_value() }
    }

    /// Reads more text, and returns the offset at which the brackets end: after the closing one, or before a line break
    /// or a tag that is not allowed.
    pub(crate) fn push(&mut self, text: &str) -> Option<usize> {
        for (at, byte) in text.bytes().enumerate() {
            if let Some(quote) = self.quote {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    _ if byte == quote => self.quote = None,
                    _ => {}
                }
                continue;
            }
            match byte {
                // Only where a value may begin, see `Balance`: `it's` has no string, `a='it'` has one.
                b'"' | b'\'' if b"=,:([{".contains(&self.before) => self.quote = Some(byte),
                b'(' | b'[' | b'{' => self.depth = self.depth.saturating_add(1),
                b')' | b']' | b'}' => {
                    // Kinds of brackets are not told apart. The reader of the value reports `(1]`.
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        return Some(at + 1);
                    }
                }
                b'\n' if self.lines == Lines::One && self.depth == 1 => return Some(at),
                b'<' if self.is_before_tag => return Some(at),
                _ => {}
            }
            if !byte.is_ascii_whitespace() {
                self.before = byte;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(balance: fn() -> Balance, text: &str, end: Option<usize>) {
        assert_eq!(balance().push(text), end, "{text}");
        let mut bytewise = balance();
        let found = (0..text.len()).find_map(|at| Some(at + bytewise.push(&text[at..=at])?));
        assert_eq!(found, end, "{text}, byte by byte");
    }

    #[test]
    fn values_end_with_their_bracket() {
        check(Balance::of_value, r#"{"a": [1, {"b": "}]"}]} tail"#, Some(23));
        check(Balance::of_value, r#"{"a": "\"}"} tail"#, Some(12));
        check(Balance::of_value, r"{'a': 'it\'s }'}", Some(16));
        check(Balance::of_value, r#"{"a": "}"#, None);
    }

    #[test]
    fn apostrophes_open_no_string() {
        check(|| Balance::opened(Lines::Many), "text=it's fine) tail", Some(15));
        check(|| Balance::opened(Lines::Many), "text='a)', b=2) tail", Some(15));
    }

    #[test]
    fn tags_end_json_with_a_missing_bracket() {
        check(Balance::of_json, r#"{"a": {"b": 1}</c>{}"#, Some(14));
        check(Balance::of_json, r#"{"a": "</c>", "b": '<'}</c>"#, Some(23));
        check(Balance::of_value, r#"{"a": <"b">}"#, Some(12));
    }

    #[test]
    fn line_breaks_end_one_line_values() {
        let one = || Balance::opened(Lines::One);
        check(one, "a=1\n]", Some(3));
        check(one, "a='1\n2', b=[\n1]]", Some(16));
    }
}
