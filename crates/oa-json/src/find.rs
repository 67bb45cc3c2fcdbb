use serde_json::Value;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::Limits;
use crate::partial::PartialReader;
use crate::thinking::ThinkingTags;

/// Finds the only JSON object in a text while it arrives.
///
/// Models put prose and code fences around the JSON that they were asked for. Text before the first `{` and after the
/// object is skipped. Another `{` after the object makes the text ambiguous, which is an error. Thinking at the start,
/// such as from `<think>` to `</think>`, is skipped, also if it is in several parts ([`ThinkingTags`] lists its tags).
/// The object itself must be valid JSON.
///
/// ```
/// use oa_json::ObjectFinder;
/// use serde_json::json;
///
/// let mut finder = ObjectFinder::new();
/// finder.push("Sure! ```json\n{\"city\": \"Os");
/// assert_eq!(finder.object().value(), Some(&json!({"city": "Os"})));
/// finder.push("lo\"}\n```");
/// assert_eq!(finder.finish()?, json!({"city": "Oslo"}));
/// # Ok::<(), oa_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ObjectFinder {
    state: State,
    /// The end of the text, held back because it may be the start of a tag.
    held: String,
    object: PartialReader,
    is_ambiguous: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    /// Nothing but white space so far, or since the thinking ended.
    #[default]
    Start,
    /// Inside thinking, up to this tag.
    Thinking(&'static str),
    Before,
    Inside,
    Behind,
}

impl ObjectFinder {
    /// Creates a finder for one text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a finder with other limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { object: PartialReader::with_limits(limits), ..Self::default() }
    }

    /// Reads more text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = match self.state {
                State::Start => self.start(rest),
                State::Thinking(close) => self.think(close, rest),
                State::Before => match rest.find('{') {
                    Some(at) => {
                        self.state = State::Inside;
                        &rest[at..]
                    }
                    None => "",
                },
                State::Inside => {
                    let behind = self.object.push(rest);
                    // After an error, the reader is never complete and ignores all further text.
                    if self.object.is_complete() {
                        self.state = State::Behind;
                    }
                    behind
                }
                State::Behind => {
                    self.is_ambiguous |= rest.contains('{');
                    ""
                }
            };
        }
    }

    /// Returns the reader of the object, which provides its value so far.
    #[must_use]
    pub fn object(&self) -> &PartialReader {
        &self.object
    }

    /// Ends the text and returns the object.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no `{`, [`Ambiguous`](ErrorKind::Ambiguous) if there is another one
    /// after the object, and the errors of [`PartialReader::finish`].
    pub fn finish(self) -> Result<Value> {
        if self.is_ambiguous {
            let message = "there is another `{` after the JSON object";
            return Err(Error::new(ErrorKind::Ambiguous, message));
        }
        match self.state {
            State::Inside | State::Behind => self.object.finish(),
            State::Start | State::Thinking(_) | State::Before => {
                Err(Error::new(ErrorKind::Missing, "the text contains no JSON object"))
            }
        }
    }

    /// Finds out whether the text begins with thinking.
    fn start<'a>(&mut self, rest: &'a str) -> &'a str {
        let rest = if self.held.is_empty() { rest.trim_start() } else { rest };
        // One more character at a time, because a tag may end in the middle of the text.
        for (at, next) in rest.char_indices() {
            self.held.push(next);
            if ThinkingTags::may_start_with(&self.held) {
                continue;
            }
            let tags = ThinkingTags::at_start_of(&self.held);
            self.held.clear();
            let Some(tags) = tags else {
                // What was held back is a beginning of a tag, which has no brace, so it need not be searched.
                self.state = State::Before;
                return &rest[at..];
            };
            self.state = State::Thinking(tags.close);
            return &rest[at + next.len_utf8()..];
        }
        ""
    }

    /// Skips thinking, up to the tag that closes it.
    fn think<'a>(&mut self, close: &str, rest: &'a str) -> &'a str {
        for (at, next) in rest.char_indices() {
            // After a mismatch, only `next` can start the tag, which has its first character only once.
            if close[self.held.len()..].starts_with(next) {
                self.held.push(next);
            } else {
                self.held.clear();
                if close.starts_with(next) {
                    self.held.push(next);
                }
            }
            if self.held == close {
                self.held.clear();
                // Some models think again before they answer.
                self.state = State::Start;
                return &rest[at + next.len_utf8()..];
            }
        }
        ""
    }
}

/// Finds the only JSON object in a text, as [`ObjectFinder`] does.
///
/// ```
/// use oa_json::{ErrorKind, Limits, find_object};
/// use serde_json::json;
///
/// let find = |text| find_object(text, Limits::default());
/// assert_eq!(find("It is {\"n\": 3}, I think.")?, json!({"n": 3}));
/// assert_eq!(find("{\"n\": 3} or {\"n\": 4}").unwrap_err().kind(), ErrorKind::Ambiguous);
/// # Ok::<(), oa_json::Error>(())
/// ```
///
/// # Errors
///
/// As [`ObjectFinder::finish`].
pub fn find_object(text: &str, limits: Limits) -> Result<Value> {
    let mut finder = ObjectFinder::with_limits(limits);
    finder.push(text);
    finder.finish()
}
