//! The grammar of loosely written JSON, shared by [`LenientReader`](crate::LenientReader) and
//! [`repair`](crate::repair()).

use crate::error::{Error, ErrorKind, Result};
use crate::escape::{Escape, EscapeError, lone_surrogate, unknown_escape};
use crate::excerpt::{quoted, unexpected};
use crate::limits::{Limits, MAX_DEPTH};

/// The handling of ambiguous text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Doubt {
    /// It is an error.
    Refuse,
    /// It is read as what was most likely meant.
    Resolve,
}

/// A type of value that the parser can build.
pub(crate) trait Build: Sized {
    type Members: Default;

    /// Returns the bytes of memory that the `count`-th item adds to an array.
    fn item_cost(count: usize) -> usize;
    /// Returns the bytes of memory that the `count`-th member adds to an object.
    fn member_cost(count: usize) -> usize;

    fn array(items: Vec<Self>) -> Self;
    /// Adds a member, unless its name is taken and duplicates are rejected.
    fn insert(members: &mut Self::Members, name: String, value: Self, doubt: Doubt) -> Result<()>;
    fn object(members: Self::Members, doubt: Doubt) -> Result<Self>;
    fn string(text: String) -> Self;
    fn word(word: &str, doubt: Doubt) -> Result<Self>;
}

#[derive(Clone, Debug)]
pub(crate) struct Syntax<'a> {
    rest: &'a str,
    doubt: Doubt,
    /// The characters of words without quotes.
    is_bare: fn(char) -> bool,
    limits: Limits,
    /// The number of bytes that may still be held.
    room: usize,
}

impl<'a> Syntax<'a> {
    pub(crate) fn new(text: &'a str, doubt: Doubt, limits: Limits) -> Self {
        // Strings grow to twice their length at most, beside what they grew from.
        let room = limits.held_bytes.saturating_sub(text.len().saturating_mul(3));
        Self { rest: text, doubt, is_bare: is_of_word, limits, room }
    }

    pub(crate) fn set_bare(&mut self, is_bare: fn(char) -> bool) {
        self.is_bare = is_bare;
    }

    /// Returns the rest after white space, and after comments if they are skipped.
    pub(crate) fn rest(&mut self) -> &'a str {
        loop {
            self.rest = self.rest.trim_start();
            if self.doubt == Doubt::Refuse || !self.skip_comment() {
                return self.rest;
            }
        }
    }

    /// Reads a character if it comes next.
    pub(crate) fn take(&mut self, wanted: char) -> bool {
        let behind = self.rest().strip_prefix(wanted);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// Reads a value.
    pub(crate) fn value<B: Build>(&mut self) -> Result<B> {
        // `new` sets aside three times the text's length for strings. If that exceeds the limit, it saturates
        // at zero, which only arrays and objects would notice.
        if self.rest.len() > self.limits.held_bytes / 3 {
            return Err(Error::too_large(self.limits.held_bytes));
        }
        self.nested(MAX_DEPTH)
    }

    /// Reads a name: a word, or text in quotes. Nothing is read if there is none.
    pub(crate) fn name(&mut self) -> Result<Option<String>> {
        if self.rest().starts_with(['"', '\'']) {
            return self.string().map(Some);
        }
        let is_in_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
        let name = self.take_while(is_in_name);
        Ok((!name.is_empty()).then(|| name.to_owned()))
    }

    /// Makes sure that nothing is left.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.rest() {
            "" => Ok(()),
            rest => {
                Err(Error::new(ErrorKind::Ambiguous, format!("{} follows the value", quoted(rest))))
            }
        }
    }

    /// Reads a value with at most this many nested arrays and objects.
    fn nested<B: Build>(&mut self, depth: usize) -> Result<B> {
        match self.rest().as_bytes().first() {
            Some(b'[') => self.array(depth.checked_sub(1).ok_or_else(Error::too_deep)?),
            Some(b'{') => self.object(depth.checked_sub(1).ok_or_else(Error::too_deep)?),
            Some(b'"' | b'\'') => self.string().map(B::string),
            _ => self.word(),
        }
    }

    fn array<B: Build>(&mut self, depth: usize) -> Result<B> {
        self.take('[');
        let mut items = Vec::new();
        while !self.take(']') && !self.ends_here() {
            if self.skips_comma() {
                continue;
            }
            self.hold(B::item_cost(items.len() + 1))?;
            items.push(self.nested(depth)?);
            self.comma(']')?;
        }
        Ok(B::array(items))
    }

    fn object<B: Build>(&mut self, depth: usize) -> Result<B> {
        self.take('{');
        let (mut members, mut count) = (B::Members::default(), 0);
        while !self.take('}') && !self.ends_here() {
            if self.skips_comma() {
                continue;
            }
            let name = self.name()?.ok_or_else(|| self.unexpected("the name of a member"))?;
            if !self.take(':') && !self.ends_here() {
                return Err(self.unexpected(&format!("a colon after {}", quoted(&name))));
            }
            // A member without its value is dropped. The name itself may be cut, too.
            if self.ends_here() {
                break;
            }
            count += 1;
            self.hold(B::member_cost(count))?;
            let value = self.nested(depth)?;
            self.comma('}')?;
            B::insert(&mut members, name, value, self.doubt)?;
        }
        B::object(members, self.doubt)
    }

    /// Returns true if the text ends here and its end closes open values.
    fn ends_here(&mut self) -> bool {
        self.doubt == Doubt::Resolve && self.rest().is_empty()
    }

    /// Reads a comma that separates nothing, where such are skipped.
    fn skips_comma(&mut self) -> bool {
        self.doubt == Doubt::Resolve && self.take(',')
    }

    /// Checks that a comma or the closing bracket follows a value, and reads the comma.
    fn comma(&mut self, close: char) -> Result<()> {
        if self.take(',') || self.rest.starts_with(close) || self.ends_here() {
            return Ok(());
        }
        Err(self.unexpected(&format!("a comma or `{close}`")))
    }

    fn word<B: Build>(&mut self) -> Result<B> {
        let word = self.take_while(self.is_bare).trim();
        if word.is_empty() {
            return Err(self.unexpected("a value"));
        }
        B::word(word, self.doubt)
    }

    fn string(&mut self) -> Result<String> {
        let mut characters = self.rest.chars();
        let quote = characters.next();
        let mut rest = characters.as_str();
        let mut string = String::new();
        loop {
            // Both quotes stop the search, and the one that did not open the string is text.
            let Some(length) = rest.find(['\\', '"', '\'']) else {
                string.push_str(rest);
                return self.unclosed(string);
            };
            string.push_str(&rest[..length]);
            rest = &rest[length..];
            let mark = rest.chars().next();
            if mark == quote {
                self.rest = &rest[1..];
                return Ok(string);
            }
            let length = if mark != Some('\\') {
                string.extend(mark);
                1
            } else if rest.starts_with("\\'") {
                string.push('\'');
                2
            } else {
                match Escape::read_last(rest) {
                    Ok(escape) => {
                        string.push(self.character(escape, rest)?);
                        escape.length
                    }
                    // The text ends within the escape, which is dropped.
                    Err(EscapeError::Incomplete) => return self.unclosed(string),
                    // A path or a pattern: the backslash may or may not be literal.
                    Err(EscapeError::Unknown) => return Err(unknown_escape(rest)),
                }
            };
            rest = &rest[length..];
        }
    }

    fn character(&self, escape: Escape, rest: &str) -> Result<char> {
        match (escape.character, self.doubt) {
            (Some(character), _) => Ok(character),
            (None, Doubt::Resolve) => Ok(char::REPLACEMENT_CHARACTER),
            (None, Doubt::Refuse) => Err(lone_surrogate(rest)),
        }
    }

    /// A string that the text ends in.
    fn unclosed(&mut self, string: String) -> Result<String> {
        self.rest = "";
        match self.doubt {
            Doubt::Resolve => Ok(string),
            Doubt::Refuse => Err(Error::new(ErrorKind::Unfinished, "a string is not closed")),
        }
    }

    /// Skips a comment, if one comes next.
    fn skip_comment(&mut self) -> bool {
        let length = if self.rest.starts_with("//") {
            self.rest.find('\n')
        } else if let Some(inner) = self.rest.strip_prefix("/*") {
            inner.find("*/").map(|end| end + 4)
        } else {
            return false;
        };
        self.rest = &self.rest[length.unwrap_or(self.rest.len())..];
        true
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|c| !wanted(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Counts bytes before they are held.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let left = self.room.checked_sub(bytes);
        self.room = left.ok_or_else(|| Error::too_large(self.limits.held_bytes))?;
        Ok(())
    }

    /// Returns the error for what comes next. At the end of the text, more of it may help.
    fn unexpected(&self, wanted: &str) -> Error {
        let kind = if self.rest.is_empty() { ErrorKind::Unfinished } else { ErrorKind::Syntax };
        Error::new(kind, unexpected(wanted, self.rest))
    }
}

/// Returns true if an unquoted word may contain this character. Readers can choose a different rule.
pub(crate) fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')
}
