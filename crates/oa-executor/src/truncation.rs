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
/// The beginning is kept. The output of a command often tells at its end why it failed: see
/// [`keep_end`](Self::keep_end).
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
pub struct TruncationPolicy {
    limit: Option<usize>,
    /// The part of the limit that is kept at the end; at most half of it.
    end: usize,
}

impl TruncationPolicy {
    /// Creates a policy that keeps this many characters, plus the note.
    #[must_use]
    pub fn max_chars(chars: usize) -> Self {
        Self { limit: Some(chars), end: 0 }
    }

    /// Creates a policy that keeps everything.
    #[must_use]
    pub fn none() -> Self {
        Self { limit: None, end: 0 }
    }

    /// Keeps this many characters of the end, at most half of the limit, and as many fewer of the beginning. The note
    /// stands between the two.
    ///
    /// ```
    /// use oa_executor::TruncationPolicy;
    /// use serde_json::json;
    ///
    /// let policy = TruncationPolicy::max_chars(24).keep_end(12);
    /// let log = "Compiling 1\nCompiling 2\nCompiling 3\nerror: no 3";
    /// let cut = "Compiling 1\n\n[23 of 47 characters left out]\n\nerror: no 3";
    /// assert_eq!(policy.cut(&json!(log)).as_deref(), Some(cut));
    /// ```
    #[must_use]
    pub fn keep_end(mut self, chars: usize) -> Self {
        self.end = chars.min(self.limit.unwrap_or_default() / 2);
        self
    }

    /// Returns the limit in characters; `None` for no limit.
    #[must_use]
    pub fn limit(&self) -> Option<usize> {
        self.limit
    }

    /// Returns the truncated value with its note, or `None` if the value fits.
    #[must_use]
    pub fn cut(&self, value: &Value) -> Option<String> {
        self.parts(value).map(|parts| parts.with_hint(None))
    }

    /// Returns the parts that are kept of a value, or `None` if the value fits.
    pub(crate) fn parts(&self, value: &Value) -> Option<Parts> {
        match value {
            Value::String(text) => self.parts_of_text(text),
            value => {
                let mut kept = Kept::new(self.limit?, self.end);
                serde_json::to_writer(&mut kept, value).expect("memory takes all bytes");
                kept.into_parts()
            }
        }
    }

    /// Returns the parts that are kept of a text, or `None` if the text fits.
    pub(crate) fn parts_of_text(&self, text: &str) -> Option<Parts> {
        let mut kept = Kept::new(self.limit?, self.end);
        if text.len() <= kept.limit {
            return None;
        }
        kept.push(text.as_bytes());
        kept.into_parts()
    }
}

impl Default for TruncationPolicy {
    fn default() -> Self {
        Self::max_chars(CHARS)
    }
}

/// The kept parts of a text that does not fit.
pub(crate) struct Parts {
    head: String,
    tail: String,
    left_out: usize,
    chars: usize,
}

impl Parts {
    /// Joins the parts with a note, which may say how to read the rest.
    pub(crate) fn with_hint(self, hint: Option<&str>) -> String {
        let Self { head, tail, left_out, chars } = self;
        let hint = hint.map(|hint| format!("; to read on, {hint}")).unwrap_or_default();
        let gap = if tail.is_empty() { "" } else { "\n" };
        format!("{head}\n[{left_out} of {chars} characters left out{hint}]{gap}{tail}")
    }
}

/// A writer that keeps the first and the last characters, and counts them all.
struct Kept {
    limit: usize,
    /// The number of characters kept at the end.
    end: usize,
    head: Vec<u8>,
    /// The text behind the head: at least the last `end` characters, and never much more.
    tail: Vec<u8>,
    chars: usize,
}

impl Kept {
    fn new(limit: usize, end: usize) -> Self {
        Self { limit, end, head: Vec::new(), tail: Vec::new(), chars: 0 }
    }

    fn push(&mut self, bytes: &[u8]) {
        let most = self.limit - self.end;
        let mut end = bytes.len();
        for (at, byte) in bytes.iter().enumerate() {
            // UTF-8 continuation bytes start with the bits 10.
            if byte & 0b1100_0000 != 0b1000_0000 {
                // The first character that does not fit. Without a sum: the limit may be the largest number.
                if self.chars == most {
                    end = at;
                }
                self.chars += 1;
            }
        }
        // Only the piece that passes the limit sets `end`; the pieces after it are just counted.
        let was_full = self.chars > most && end == bytes.len();
        let (head, tail) = bytes.split_at(if was_full { 0 } else { end });
        self.head.extend_from_slice(head);
        // A character has at most four bytes.
        let most = self.end.saturating_mul(4);
        let needed = &tail[tail.len().saturating_sub(most)..];
        // Seldom enough to cost little.
        if self.tail.len() + needed.len() > most.saturating_mul(2) {
            let kept = most - needed.len();
            self.tail.drain(..self.tail.len().saturating_sub(kept));
        }
        self.tail.extend_from_slice(needed);
    }

    /// Returns the kept characters, unless all were kept.
    fn into_parts(self) -> Option<Parts> {
        let left_out = self.chars.checked_sub(self.limit).filter(|left_out| *left_out > 0)?;
        let head = String::from_utf8(self.head).expect("cut at a character");
        // May begin inside of a character, which is none of the last ones.
        let tail = String::from_utf8_lossy(&self.tail);
        let start = self.end.checked_sub(1).and_then(|last| tail.char_indices().nth_back(last));
        let tail = start.map_or("", |(start, _)| &tail[start..]).to_owned();
        Some(Parts { head, tail, left_out, chars: self.chars })
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
