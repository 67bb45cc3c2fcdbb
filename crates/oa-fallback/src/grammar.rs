use std::fmt;

use serde_json::{Map, Value};

use crate::head::{CallHead, NoMatch};

/// The syntax of calls in text: where they begin, and how they are parsed.
///
/// A [`Scanner`](crate::Scanner) drives it: the scanner buffers text, enforces limits and queues items. Two rules
/// ensure that the result does not depend on how the answer was split: the result of [`begin`](Self::begin) depends
/// only on the text that it read through its [`CallHead`], and a [`CallBody`] reads byte by byte.
pub trait Grammar: fmt::Debug + Send + Sync {
    /// Returns true if anything that [`begin`](Self::begin) matches may start with this byte. All other text is emitted
    /// immediately. It is not called for white space that is removed with the call after it ([`AfterCall::Cut`]).
    fn may_begin(&self, byte: u8) -> bool;

    /// Matches the start of a call, and leaves the head at the start of the call's body.
    ///
    /// # Errors
    ///
    /// [`NoMatch::Mismatch`] if no call begins here. [`NoMatch::Incomplete`] if more text is needed to decide; the
    /// methods of the head return it at the end of the text.
    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch>;

    /// Returns the treatment of text after a call.
    fn after_call(&self) -> AfterCall {
        AfterCall::Cut
    }
}

/// A parser of the rest of a call, after its head.
pub trait CallBody: fmt::Debug + Send + Sync {
    /// Reads more text, and returns the offset at which the call ends, if it ends in this text. The first text is
    /// empty, for calls without a body.
    fn push(&mut self, text: &str) -> Option<usize>;

    /// Parses the text of the body, up to its end.
    ///
    /// Text that is no call after all is lost with an empty list: it is neither shown nor sent back. For a call that
    /// cannot be run, return [`ParsedCall::malformed`]: the model reads the problem and can correct the call.
    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall>;
}

/// A decoder of text for the user.
pub trait TextBody: fmt::Debug + Send + Sync {
    /// Reads more of the answer, and appends the decoded text to `shown`. Returns the offset at which the text ends, if
    /// it ends in this piece. A text without an end continues to the end of the answer.
    fn push(&mut self, text: &str, shown: &mut String) -> Option<usize>;
}

/// The position in an answer at which a call may begin.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Position {
    /// True if a call ended before it, with only white space in between.
    pub after_call: bool,
    /// True if only white space comes before it in the whole answer.
    pub at_start: bool,
    /// True if only white space comes before it in its line.
    pub at_line_start: bool,
}

/// The part of an answer that a [`Grammar`] matched.
#[derive(Debug)]
#[non_exhaustive]
pub enum Match {
    /// The label of the final answer. It is not shown, and everything after it is text.
    Answer,
    /// The head of a call. Its body comes next.
    Call(Box<dyn CallBody>),
    /// The start of encoded text for the user, such as a JSON string. The text after it is treated as after a call.
    Encoded(Box<dyn TextBody>),
    /// Text that belongs to a call and is not shown, such as a closing tag.
    Skip,
}

/// The treatment of text after a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum AfterCall {
    /// Further calls are read if only white space comes between them. The rest is dropped, because the model wrote it
    /// without the result.
    Cut,
    /// The text is kept, like the white space around a call.
    Keep,
}

/// The way in which the body of a call ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third end")]
pub enum BodyEnd {
    /// The body ended with its closing mark.
    Closed,
    /// The answer ended first.
    Open,
}

/// One call, parsed from the text of a body.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParsedCall {
    /// A call that is recognizable but cannot be run.
    Malformed {
        /// The tool's name, if it is known.
        name: Option<String>,
        /// The problem, in words for the model.
        error: String,
    },
    /// A valid call.
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

    /// Creates a valid or a malformed call, depending on whether its arguments could be read.
    pub(crate) fn of(name: &str, input: Result<Map<String, Value>, String>) -> Self {
        match input {
            Ok(input) => Self::new(name, input),
            Err(error) => Self::malformed(Some(name), error),
        }
    }
}
