use std::fmt;

use serde_json::{Map, Value};

use crate::head::{CallHead, NoMatch};

/// The syntax of calls in text: where they begin, and how they are parsed.
///
/// A [`Scanner`](crate::Scanner) drives it, and does everything else: it cuts, holds back, bounds and queues. That an
/// answer is read the same however it was cut follows from two rules: what [`begin`](Self::begin) returns depends only
/// on what it looked at through its [`CallHead`], and a [`CallBody`] looks at one byte after the other.
pub trait Grammar: fmt::Debug + Send + Sync {
    /// Returns whether anything that [`begin`](Self::begin) matches may begin with this byte. All other text is emitted
    /// without a further look. It is not asked about white space that is cut with the call behind it
    /// ([`AfterCall::Cut`]).
    fn may_begin(&self, byte: u8) -> bool;

    /// Matches the beginning of a call, and leaves the head where the body of the call begins.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Mismatch`] if no call begins here: what was looked at is text. [`NoMatch::Incomplete`] if more text
    /// decides; the head's own methods return it where the text ends.
    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch>;

    /// Returns what happens to the text behind a call.
    fn after_call(&self) -> AfterCall {
        AfterCall::Cut
    }
}

/// The rest of a call behind its head, as it is read.
pub trait CallBody: fmt::Debug + Send + Sync {
    /// Takes more text, and returns at how many bytes of it the call ends, if it ends there. The first text is empty,
    /// for calls whose head is all there is.
    fn push(&mut self, text: &str) -> Option<usize>;

    /// Parses the text of the body, up to its end.
    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall>;
}

/// The position in an answer at which a call may begin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Position {
    /// A call ended before it, with nothing but white space between.
    pub after_call: bool,
    /// Nothing but white space comes before it in the whole answer.
    pub at_start: bool,
    /// Nothing but white space comes before it in its line.
    pub at_line_start: bool,
}

/// The part of an answer that a [`Grammar`] matched.
#[derive(Debug)]
#[non_exhaustive]
pub enum Match {
    /// The label of the final answer: it is not shown, and everything behind it is text.
    Answer,
    /// The head of a call, whose body comes next.
    Call(Box<dyn CallBody>),
    /// Something that belongs to a call and is not shown, such as a closing tag.
    Skip,
}

/// The fate of the text behind a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AfterCall {
    /// Further calls are read if nothing but white space lies between; the rest is cut, because the model
    /// wrote it without the result.
    Cut,
    /// It stays text, like the white space around a call.
    Keep,
}

/// The way in which the body of a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third end")]
pub enum BodyEnd {
    /// By its own mark.
    Closed,
    /// By the end of the answer.
    Open,
}

/// One call, parsed from the text of a body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParsedCall {
    /// A call that was plainly meant and cannot be run.
    Malformed {
        /// The tool's name, if it can be told.
        name: Option<String>,
        /// The problem, in words for the model.
        error: String,
    },
    /// A call that can be run.
    Valid {
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Map<String, Value>,
    },
}

impl ParsedCall {
    /// Creates a call of the tool `name`.
    #[must_use]
    pub fn new(name: impl Into<String>, input: Map<String, Value>) -> Self {
        Self::Valid { name: name.into(), input }
    }

    /// Creates a call that cannot be run.
    #[must_use]
    pub fn malformed(name: Option<&str>, error: impl Into<String>) -> Self {
        Self::Malformed { name: name.map(str::to_owned), error: error.into() }
    }

    /// A call, if its arguments could be read.
    pub(crate) fn of(name: &str, input: Result<Map<String, Value>, String>) -> Self {
        match input {
            Ok(input) => Self::new(name, input),
            Err(error) => Self::malformed(Some(name), error),
        }
    }
}
