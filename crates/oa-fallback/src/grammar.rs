use std::fmt;

use serde_json::{Map, Value};

use crate::head::Head;

/// How calls look in text: where they begin, and how they are read.
///
/// A [`Scanner`](crate::Scanner) asks it, and does everything else: it cuts, holds back, bounds and
/// queues. That an answer is read the same however it was cut into pieces follows from two things: what
/// [`begin`](Self::begin) finds depends only on what it looked at through its [`Head`], and a [`Body`]
/// looks at one byte after the other.
pub trait Grammar: fmt::Debug + Send + Sync {
    /// Returns whether a call, or anything else that [`begin`](Self::begin) finds, may begin with this
    /// byte. All other text goes out without a further look. White space is never asked about where it goes
    /// with the call behind it ([`After::Cut`]).
    fn may_begin(&self, byte: u8) -> bool;

    /// Looks whether a call begins here, and goes with the head to where its body begins.
    ///
    /// # Errors
    ///
    /// [`Stop::No`] if none begins here: what was looked at is text. [`Stop::More`] if that cannot be told
    /// yet; the head's own methods answer it where the text ends.
    fn begin(&self, head: &mut Head<'_>, place: Place) -> Result<Found, Stop>;

    /// Returns what becomes of the text behind a call.
    fn after(&self) -> After {
        After::Cut
    }
}

/// One call that is being read, from where its head ended.
pub trait Body: fmt::Debug + Send + Sync {
    /// Takes more text in, and returns at how many bytes of it the call ends, if it ends there. The first
    /// text is empty, for calls whose head says everything.
    fn push(&mut self, text: &str) -> Option<usize>;

    /// Reads what was taken in, up to where it ended.
    fn read(&self, text: &str, end: End) -> Vec<Reading>;
}

/// What surrounds a place in an answer.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Place {
    /// A call ended before it, with nothing but white space between.
    pub after_call: bool,
    /// Nothing but white space comes before it in the whole answer.
    pub at_start: bool,
    /// Nothing but white space comes before it in its line.
    pub at_line_start: bool,
}

/// What was found where a head ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum Found {
    /// A label that is not shown, and behind which everything is text: the final answer.
    Answer,
    /// A call, whose body comes next.
    Call(Box<dyn Body>),
    /// Something that belongs to a call and is not shown, such as a closing tag.
    Skip,
}

/// Why nothing was found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third answer")]
pub enum Stop {
    /// It cannot be told before more of the answer is there.
    More,
    /// What stands here is text.
    No,
}

/// What becomes of the text behind a call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum After {
    /// Further calls are read if nothing but white space lies between; the rest is cut, because the model
    /// wrote it without the result.
    Cut,
    /// It is text, and the white space around a call is too.
    GoOn,
}

/// How a body came to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third end")]
pub enum End {
    /// By its own mark.
    Closed,
    /// The answer ended first.
    Open,
}

/// One call as a body reads it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reading {
    /// A call that can be run.
    Call {
        /// The tool's name.
        name: String,
        /// The arguments.
        input: Map<String, Value>,
    },
    /// What was plainly meant as a call, and is none.
    Malformed {
        /// The tool's name, if it can be told.
        name: Option<String>,
        /// What is wrong with it, in words for the model.
        error: String,
    },
}

impl Reading {
    /// A call of the tool `name`.
    #[must_use]
    pub fn call(name: impl Into<String>, input: Map<String, Value>) -> Self {
        Self::Call { name: name.into(), input }
    }

    /// A call that cannot be run.
    #[must_use]
    pub fn malformed(name: Option<&str>, error: impl Into<String>) -> Self {
        Self::Malformed { name: name.map(str::to_owned), error: error.into() }
    }

    /// A call, if its arguments could be read.
    pub(crate) fn of(name: &str, input: Result<Map<String, Value>, String>) -> Self {
        match input {
            Ok(input) => Self::call(name, input),
            Err(error) => Self::malformed(Some(name), error),
        }
    }
}
