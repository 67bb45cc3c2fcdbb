use std::io;

use serde_json::Value;

/// The default limit, in characters.
const CHARS: usize = 10_000;

/// A limit on the size of results shown to the model.
///
/// Cuts at a character boundary and adds a note with the number of omitted characters; the full result stays in
/// [`ExecutionResult`](crate::ExecutionResult). A result that is not text is measured as JSON, and becomes text
/// when cut.
///
/// ```
/// use oa_executor::TruncationPolicy;
/// use serde_json::json;
///
/// let policy = TruncationPolicy::max_chars(4);
/// assert_eq!(policy.cut(&json!("four")), None);
/// assert_eq!(policy.cut(&json!("größer")), Some("größ\n[2 of 6 characters left out]".to_owned()));
/// assert_eq!(TruncationPolicy::none().cut(&json!("anything")), None);
/// ```
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TruncationPolicy(Option<usize>);

impl TruncationPolicy {
    /// Creates a policy that keeps this many characters, plus the note.
    #[must_use]
    pub fn max_chars(chars: usize) -> Self {
        Self(Some(chars))
    }

    /// Creates a policy that keeps everything.
    #[must_use]
    pub fn none() -> Self {
        Self(None)
    }

    /// Returns the limit in characters; `None` for no limit.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.0
    }

    /// Returns the truncated value with its note, or `None` if the value fits.
    #[must_use]
    pub fn cut(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => self.cut_text(text),
            value => {
                let mut head = Head::new(self.0?);
                serde_json::to_writer(&mut head, value).expect("memory takes all bytes");
                head.into_cut()
            }
        }
    }

    /// Returns the truncated text with its note, or `None` if the text fits.
    pub(crate) fn cut_text(&self, text: &str) -> Option<String> {
        let mut head = Head::new(self.0?);
        if text.len() <= head.limit {
            return None;
        }
        head.push(text.as_bytes());
        head.into_cut()
    }
}

impl Default for TruncationPolicy {
    fn default() -> Self {
        Self::max_chars(CHARS)
    }
}

/// A writer that keeps the first characters and counts them all.
struct Head {
    limit: usize,
    kept: Vec<u8>,
    chars: usize,
}

impl Head {
    fn new(limit: usize) -> Self {
        Self { limit, kept: Vec::new(), chars: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let mut end = bytes.len();
        for (at, byte) in bytes.iter().enumerate() {
            // UTF-8 continuation bytes start with the bits 10.
            if byte & 0b1100_0000 != 0b1000_0000 {
                // The first character that does not fit. Without a sum: the limit may be the largest number.
                if self.chars == self.limit {
                    end = at;
                }
                self.chars += 1;
            }
        }
        // Only the piece that passes the limit sets `end`; the pieces after it are just counted.
        let was_full = self.chars > self.limit && end == bytes.len();
        if !was_full {
            self.kept.extend_from_slice(&bytes[..end]);
        }
    }

    /// Returns the kept characters with the note, unless all were kept.
    fn into_cut(self) -> Option<String> {
        let left_out = self.chars.checked_sub(self.limit).filter(|left_out| *left_out > 0)?;
        let kept = String::from_utf8(self.kept).expect("cut at a character");
        Some(format!("{kept}\n[{left_out} of {} characters left out]", self.chars))
    }
}

impl io::Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
