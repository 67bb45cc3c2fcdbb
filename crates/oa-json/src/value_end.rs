use serde_core::de::IgnoredAny;
use serde_json::Deserializer;

/// Finds the end of the first object, array or string in a text that grows.
///
/// Each byte is examined once, however often it is asked, and nothing is parsed: the value may be invalid. Brackets of
/// both kinds count alike, because a parser rejects a value whose brackets do not match.
///
/// ```
/// let mut end = oa_json::ValueEnd::default();
/// assert_eq!(end.find(br#" {"a": "}"#), None);
/// assert_eq!(end.find(br#" {"a": "}"} "#), Some(11));
/// assert!(end.is_last());
/// assert_eq!(end.find(br#" {"a": "}"} 5"#), Some(11));
/// assert!(!end.is_last());
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ValueEnd {
    read: usize,
    depth: usize,
    in_string: bool,
    escaped: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Blank,
    Open,
    /// The value ended here, and only white space followed.
    Closed(usize),
    /// The value ended here, and more text followed.
    Passed(usize),
    /// A number or a word: it has no end of its own.
    Scalar,
}

impl ValueEnd {
    /// Returns the position after the value, if that has ended. The text must begin with that of the last call.
    pub fn find(&mut self, text: &[u8]) -> Option<usize> {
        let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        for &byte in text.get(self.read..).unwrap_or_default() {
            self.read += 1;
            match self.state {
                State::Blank | State::Closed(_) if is_space(byte) => {}
                State::Blank => {
                    self.state = if matches!(byte, b'{' | b'[' | b'"') {
                        self.follow(byte);
                        State::Open
                    } else {
                        State::Scalar
                    };
                }
                State::Open => {
                    self.follow(byte);
                    if self.depth == 0 && !self.in_string {
                        self.state = State::Closed(self.read);
                    }
                }
                State::Closed(end) => self.state = State::Passed(end),
                State::Passed(_) | State::Scalar => break,
            }
        }
        match self.state {
            State::Closed(end) | State::Passed(end) => Some(end),
            State::Blank | State::Open | State::Scalar => None,
        }
    }

    /// Returns true unless more than white space has followed the value.
    #[must_use]
    pub fn is_last(&self) -> bool {
        !matches!(self.state, State::Passed(_))
    }

    fn follow(&mut self, byte: u8) {
        match byte {
            _ if std::mem::take(&mut self.escaped) => {}
            b'\\' => self.escaped = self.in_string,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => self.depth += 1,
            // Never below 0, where the value ends.
            b'}' | b']' => self.depth -= 1,
            _ => {}
        }
    }
}

/// Returns the length of the first JSON value, with the white space before it; `None` if the text begins with none that is
/// valid and ends. Nothing is decoded, so a lone surrogate or a number out of range is no error.
///
/// ```
/// assert_eq!(oa_json::value_length(br#" {"a": 1}data: "#), Some(9));
/// assert_eq!(oa_json::value_length(b"[1, 2"), None);
/// ```
#[must_use]
pub fn value_length(text: &[u8]) -> Option<usize> {
    let mut values = Deserializer::from_slice(text).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    Some(values.byte_offset())
}
