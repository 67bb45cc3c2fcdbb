use crate::grammar::Stop;

/// How a call may begin, read from left to right as far as the answer is there.
///
/// Whoever looks past the text that is there gets [`Stop::More`], unless the answer has ended: so a
/// question that is answered once is never answered otherwise when more text comes.
///
/// ```
/// use oa_fallback::{Head, Stop};
///
/// let mut head = Head::new("[CALL: add", false);
/// head.literal("[call:")?;
/// head.blanks()?;
/// assert_eq!(head.name(), Err(Stop::More)); // the name may go on
///
/// let mut head = Head::new("[CALM", false);
/// assert_eq!(head.literal("[call:"), Err(Stop::No));
/// # Ok::<(), Stop>(())
/// ```
#[derive(Clone, Debug)]
pub struct Head<'a> {
    text: &'a str,
    at: usize,
    has_ended: bool,
}

impl<'a> Head<'a> {
    /// A name of a tool is not longer, in bytes.
    pub const NAME: usize = 128;

    /// Reads `text`, behind which more may come unless the answer has ended.
    #[must_use]
    pub fn new(text: &'a str, has_ended: bool) -> Self {
        Self { text, at: 0, has_ended }
    }

    /// Returns how many bytes were read.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Goes back to a place where [`at`](Self::at) was.
    pub fn go_back(&mut self, at: usize) {
        if at <= self.at && self.text.is_char_boundary(at) {
            self.at = at;
        }
    }

    /// Returns the next character, none at the end of the answer.
    ///
    /// # Errors
    ///
    /// [`Stop::More`] where the text ends.
    pub fn peek(&self) -> Result<Option<char>, Stop> {
        match self.rest().chars().next() {
            None if !self.has_ended => Err(Stop::More),
            next => Ok(next),
        }
    }

    /// Reads a text, in ASCII letters of either case.
    ///
    /// # Errors
    ///
    /// [`Stop::No`] if something else is there, and nothing is read. [`Stop::More`] where the text ends.
    pub fn literal(&mut self, literal: &str) -> Result<(), Stop> {
        let rest = self.rest().as_bytes();
        let length = rest.len().min(literal.len());
        if !rest[..length].eq_ignore_ascii_case(&literal.as_bytes()[..length]) {
            return Err(Stop::No);
        }
        if length < literal.len() {
            return Err(if self.has_ended { Stop::No } else { Stop::More });
        }
        self.at += length;
        Ok(())
    }

    /// Reads a text if it is there, and returns whether it was.
    ///
    /// # Errors
    ///
    /// [`Stop::More`] where the text ends.
    pub fn maybe(&mut self, literal: &str) -> Result<bool, Stop> {
        match self.literal(literal) {
            Ok(()) => Ok(true),
            Err(Stop::No) => Ok(false),
            Err(more) => Err(more),
        }
    }

    /// Reads characters as long as they are `wanted`.
    ///
    /// # Errors
    ///
    /// [`Stop::More`] where the text ends.
    pub fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> Result<&'a str, Stop> {
        let rest = self.rest();
        let length = match rest.find(|c| !wanted(c)) {
            Some(length) => length,
            None if self.has_ended => rest.len(),
            None => return Err(Stop::More),
        };
        self.at += length;
        Ok(&rest[..length])
    }

    /// Reads white space, line breaks too.
    ///
    /// # Errors
    ///
    /// [`Stop::More`] where the text ends.
    pub fn spaces(&mut self) -> Result<(), Stop> {
        self.take_while(|c| c.is_ascii_whitespace()).map(drop)
    }

    /// Reads white space within a line.
    ///
    /// # Errors
    ///
    /// [`Stop::More`] where the text ends.
    pub fn blanks(&mut self) -> Result<(), Stop> {
        self.take_while(|c| c == ' ' || c == '\t').map(drop)
    }

    /// Reads a tool's name: ASCII letters and digits, `_`, `-` and, in the middle, dots.
    ///
    /// # Errors
    ///
    /// [`Stop::No`] if there is none. [`Stop::More`] where the text ends.
    pub fn name(&mut self) -> Result<&'a str, Stop> {
        let start = self.at;
        let is_in_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = self.take_while(is_in_name)?.trim_end_matches('.');
        self.at = start + name.len();
        if name.is_empty() || name.starts_with(['.', '-']) || name.len() > Self::NAME {
            self.at = start;
            return Err(Stop::No);
        }
        Ok(name)
    }

    /// Reads the opening line of a code fence, if one is there.
    ///
    /// # Errors
    ///
    /// [`Stop::No`] if it is no whole line. [`Stop::More`] where the text ends.
    pub fn fence(&mut self) -> Result<(), Stop> {
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
