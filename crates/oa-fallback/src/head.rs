/// Reads the beginning of a call from left to right, as far as the answer has arrived.
///
/// A method that would need more text returns [`NoMatch::Incomplete`], unless the answer has ended. So the value that
/// a method returns does not change when more text arrives.
///
/// ```
/// use oa_fallback::{CallHead, NoMatch};
///
/// let mut head = CallHead::new("[CALL: add", false);
/// head.literal("[call:")?;
/// head.blanks()?;
/// assert_eq!(head.name(), Err(NoMatch::Incomplete)); // the name may go on
///
/// let mut head = CallHead::new("[CALM", false);
/// assert_eq!(head.literal("[call:"), Err(NoMatch::Mismatch));
/// # Ok::<(), NoMatch>(())
/// ```
#[derive(Clone, Debug)]
pub struct CallHead<'a> {
    text: &'a str,
    at: usize,
    has_ended: bool,
}

/// The reason why a [`Grammar`](crate::Grammar) matched nothing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a text either can go on to match or cannot")]
pub enum NoMatch {
    /// More text is needed to decide.
    Incomplete,
    /// The text is not a call.
    Mismatch,
}

impl<'a> CallHead<'a> {
    /// The maximum length of a tool's name, in bytes.
    pub const NAME: usize = 128;

    /// Creates a reader of `text`. More may follow it, unless the answer has ended.
    #[must_use]
    pub fn new(text: &'a str, has_ended: bool) -> Self {
        Self { text, at: 0, has_ended }
    }

    /// Returns the number of bytes read.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a position that [`at`](Self::at) returned earlier.
    pub fn go_back(&mut self, at: usize) {
        if at <= self.at && self.text.is_char_boundary(at) {
            self.at = at;
        }
    }

    /// Returns the next character; `None` at the end of the answer.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Incomplete`] if more text is needed.
    pub fn peek(&self) -> Result<Option<char>, NoMatch> {
        match self.rest().chars().next() {
            // At the end of the text, every method must ask for more instead of deciding: `begin` is called
            // again with the same text and more behind it, and must come to the same result.
            None if !self.has_ended => Err(NoMatch::Incomplete),
            next => Ok(next),
        }
    }

    /// Reads a literal text, ignoring ASCII case.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Mismatch`] if the text differs; nothing is read then. [`NoMatch::Incomplete`] if more text is needed.
    pub fn literal(&mut self, literal: &str) -> Result<(), NoMatch> {
        let rest = self.rest().as_bytes();
        let length = rest.len().min(literal.len());
        // A difference decides at once; only the beginning of the literal has to wait for more.
        if !rest[..length].eq_ignore_ascii_case(&literal.as_bytes()[..length]) {
            return Err(NoMatch::Mismatch);
        }
        if length < literal.len() {
            return Err(if self.has_ended { NoMatch::Mismatch } else { NoMatch::Incomplete });
        }
        self.at += length;
        Ok(())
    }

    /// Reads a literal text if it comes next. Returns true if it did.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Incomplete`] if more text is needed.
    pub fn maybe(&mut self, literal: &str) -> Result<bool, NoMatch> {
        match self.literal(literal) {
            Ok(()) => Ok(true),
            Err(NoMatch::Mismatch) => Ok(false),
            Err(more) => Err(more),
        }
    }

    /// Reads characters while `wanted` returns true.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Incomplete`] if more text is needed.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> Result<&'a str, NoMatch> {
        let rest = self.rest();
        let length = match rest.find(|c| !wanted(c)) {
            Some(length) => length,
            None if self.has_ended => rest.len(),
            None => return Err(NoMatch::Incomplete),
        };
        self.at += length;
        Ok(&rest[..length])
    }

    /// Reads white space, including line breaks.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Incomplete`] if more text is needed.
    pub fn spaces(&mut self) -> Result<(), NoMatch> {
        self.take_while(|c| c.is_ascii_whitespace()).map(drop)
    }

    /// Reads white space within a line.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Incomplete`] if more text is needed.
    pub fn blanks(&mut self) -> Result<(), NoMatch> {
        self.take_while(|c| c == ' ' || c == '\t').map(drop)
    }

    /// Reads a tool's name: ASCII letters and digits, `_`, `-` and, in the middle, dots.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Mismatch`] if no name comes next. [`NoMatch::Incomplete`] if more text is needed.
    pub fn name(&mut self) -> Result<&'a str, NoMatch> {
        let start = self.at;
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        // A dot at the end is punctuation, and is left unread.
        let name = self.take_while(is_in_name)?.trim_end_matches('.');
        self.at = start + name.len();
        if name.is_empty() || name.starts_with(['.', '-']) || name.len() > Self::NAME {
            self.at = start;
            return Err(NoMatch::Mismatch);
        }
        Ok(name)
    }

    /// Reads the name of a JSON member and the colon after it, if the member has this name. Returns true if it did.
    pub(crate) fn key(&mut self, name: &str) -> Result<bool, NoMatch> {
        let start = self.at;
        let mut read = || {
            self.literal("\"")?;
            self.literal(name)?;
            self.literal("\"")?;
            self.spaces()?;
            self.literal(":")?;
            self.spaces()
        };
        match read() {
            Ok(()) => Ok(true),
            Err(NoMatch::Mismatch) => {
                self.at = start;
                Ok(false)
            }
            Err(more) => Err(more),
        }
    }

    /// Reads the opening line of a code fence, if one comes next.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Mismatch`] if the fence is not alone on its line. [`NoMatch::Incomplete`] if more text is needed.
    pub fn fence(&mut self) -> Result<(), NoMatch> {
        if self.maybe("```")? {
            self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')?;
            self.blanks()?;
            self.maybe("\r")?;
            self.literal("\n")?;
            self.spaces()?;
        }
        Ok(())
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }
}
