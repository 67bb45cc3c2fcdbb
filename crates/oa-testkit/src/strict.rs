//! A request, read as the strictest server would.

mod messages;
mod request;
mod settings;
mod tools;

mod check;
mod repeated;

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::ops::Deref;

/// A check of chat requests, as strict as all servers together: what it lets pass is understood
/// everywhere.
///
/// Servers differ in what they refuse, and each only in some situation, so that a client which works
/// with one may fail with the next. This knows nothing of how requests are built; it reads the JSON.
/// What it demands:
///
/// - `model` and `messages`, and beyond them only members that the protocol has had from its
///   beginning ([`allow_member`](Self::allow_member) lets others in), each in its range. Nothing is
///   null but the content of a call without text, nothing stands twice.
/// - `tools` is left out rather than empty, `tool_choice` (a string) and `parallel_tool_calls` come
///   only with tools, `stream_options` only with a stream, one limit of tokens at most.
/// - The conversation begins with the user, behind at most one system message; no role but the tool's
///   speaks twice in a row; the last word is not the assistant's.
/// - Nobody says nothing, or nothing but white space: an assistant's content may be missing, `null` or `""`
///   beside calls, and only there. Content is a string unless it has a picture.
/// - Every call of the assistant is answered at once, once, in order, by a message with its id and
///   name. Ids are unique and of 1 to 64 characters, names of 1 to 64 letters, digits, `_` and `-`,
///   arguments a string of a JSON object.
///
/// The methods loosen that for servers which want it otherwise, or tighten it further.
///
/// # Examples
///
/// ```
/// use oa_testkit::Strict;
/// use serde_json::json;
///
/// let request = json!({
///     "model": "any",
///     "messages": [
///         {"role": "user", "content": "What is 1 + 2?"},
///         {"role": "assistant", "content": "", "tool_calls": [{
///             "id": "call_1", "type": "function",
///             "function": {"name": "add", "arguments": "{\"a\": 1, \"b\": 2}"},
///         }]},
///     ],
/// });
/// let violations = Strict::new().check(&request).unwrap_err();
/// assert_eq!(
///     violations.to_string(),
///     "messages[1].tool_calls[0] is not answered\n\
///      messages[1].role is assistant: nobody is left to answer",
/// );
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "rules do nothing until they check something"]
pub struct Strict {
    allowed: BTreeSet<String>,
    assistant_first: bool,
    long_ids: bool,
    named_choice: bool,
    nameless_results: bool,
    nine_letters: bool,
    repeated_ids: bool,
    repeated_roles: bool,
    text_parts: bool,
    word_between: bool,
}

impl Strict {
    /// Creates the check as it is described above.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets a member in which servers do not know in general: `top_k`, or in a list
    /// `messages[].reasoning_content`, `messages[].tool_calls[].extra_content`.
    pub fn allow_member(mut self, path: impl Into<String>) -> Self {
        self.allowed.insert(path.into());
        self
    }

    /// Lets the assistant speak first (QUIRKS row 88).
    pub fn allow_assistant_first(mut self) -> Self {
        self.assistant_first = true;
        self
    }

    /// Lets ids of calls have more than 64 characters (QUIRKS row 91).
    pub fn allow_long_ids(mut self) -> Self {
        self.long_ids = true;
        self
    }

    /// Lets `tool_choice` be an object that names a tool (QUIRKS row 79).
    pub fn allow_named_tool_choice(mut self) -> Self {
        self.named_choice = true;
        self
    }

    /// Lets the messages of tools do without `name` (QUIRKS row 92).
    pub fn allow_nameless_results(mut self) -> Self {
        self.nameless_results = true;
        self
    }

    /// Lets a later message of the assistant use the ids of an earlier one again.
    pub fn allow_repeated_ids(mut self) -> Self {
        self.repeated_ids = true;
        self
    }

    /// Lets users and assistants speak twice in a row, and assistants first (QUIRKS row 88).
    pub fn allow_repeated_roles(mut self) -> Self {
        self.repeated_roles = true;
        self
    }

    /// Lets content be a list of text alone (QUIRKS row 97).
    pub fn allow_text_parts(mut self) -> Self {
        self.text_parts = true;
        self
    }

    /// Refuses the user's word right after a tool's (QUIRKS row 89).
    pub fn refuse_user_after_tool(mut self) -> Self {
        self.word_between = true;
        self
    }

    /// Wants ids of exactly nine letters or digits (QUIRKS row 91).
    pub fn require_nine_letter_ids(mut self) -> Self {
        self.nine_letters = true;
        self
    }
}

/// One thing that some server would refuse. Displayed it is a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    path: String,
    what: String,
}

impl Violation {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// Returns where it is, such as `messages[3].tool_calls[0].id`; empty for the whole request.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let subject = if self.path.is_empty() { "the request" } else { &self.path };
        write!(f, "{subject} {}", self.what)
    }
}

/// All that is wrong with a request, at least one thing. Displayed each is a line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violations(Vec<Violation>);

impl Deref for Violations {
    type Target = [Violation];

    fn deref(&self) -> &[Violation] {
        &self.0
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, violation) in self.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{violation}")?;
        }
        Ok(())
    }
}

impl Error for Violations {}
