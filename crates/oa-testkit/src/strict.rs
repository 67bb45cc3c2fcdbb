//! Checks requests as the strictest server would.

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

/// Checks chat requests as strictly as all servers combined: a request that passes is accepted by every server.
///
/// Servers reject different things, each only in some situations, so a client that works with one may fail with
/// the next. This check knows nothing about how requests are built; it reads the JSON and requires:
///
/// - `model` and `messages`, and otherwise only members of the original protocol
///   ([`allow_member`](Self::allow_member) allows others), each in its range. Nothing is null except the
///   content of a call without text, and no member is repeated.
/// - `tools` is omitted rather than empty; `tool_choice` (a string) and `parallel_tool_calls` appear only with
///   tools, `stream_options` only with a stream, and at most one token limit.
/// - The conversation starts with the user, after at most one system message; no role except tool appears twice
///   in a row; the last message is not the assistant's.
/// - No message is blank: an assistant's content may be missing, `null` or `""` only next to calls. Content is
///   a string unless it has an image.
/// - Every call is answered directly, once, in order, by a message with its id and name. Ids are unique, with 1
///   to 64 characters; names have 1 to 64 letters, digits, `_` and `-`; arguments are a string with a JSON
///   object.
///
/// The methods relax this for servers that need it, or make it stricter.
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
///      messages[1].role is assistant: there is nothing to answer",
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
    result_images: bool,
    repeated_roles: bool,
    text_parts: bool,
    word_between: bool,
}

impl Strict {
    /// Creates the check described above.
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows a member that is not known to all servers: `top_k`, or inside lists
    /// `messages[].reasoning_content`, `messages[].tool_calls[].extra_content`.
    pub fn allow_member(mut self, path: impl Into<String>) -> Self {
        self.allowed.insert(path.into());
        self
    }

    /// Allows the assistant to speak first (QUIRKS row 88).
    pub fn allow_assistant_first(mut self) -> Self {
        self.assistant_first = true;
        self
    }

    /// Allows call ids of more than 64 characters (QUIRKS row 91).
    pub fn allow_long_ids(mut self) -> Self {
        self.long_ids = true;
        self
    }

    /// Allows `tool_choice` to be an object that names a tool (QUIRKS row 79).
    pub fn allow_named_tool_choice(mut self) -> Self {
        self.named_choice = true;
        self
    }

    /// Allows tool messages without `name` (QUIRKS row 92).
    pub fn allow_nameless_results(mut self) -> Self {
        self.nameless_results = true;
        self
    }

    /// Allows later assistant messages to reuse earlier ids.
    pub fn allow_repeated_ids(mut self) -> Self {
        self.repeated_ids = true;
        self
    }

    /// Allows images in tool messages (QUIRKS row 97).
    pub fn allow_result_images(mut self) -> Self {
        self.result_images = true;
        self
    }

    /// Allows users and assistants to speak twice in a row, and assistants first (QUIRKS row 88).
    pub fn allow_repeated_roles(mut self) -> Self {
        self.repeated_roles = true;
        self
    }

    /// Allows content to be a list of only text (QUIRKS row 97).
    pub fn allow_text_parts(mut self) -> Self {
        self.text_parts = true;
        self
    }

    /// Rejects a user message directly after a tool message (QUIRKS row 89).
    pub fn refuse_user_after_tool(mut self) -> Self {
        self.word_between = true;
        self
    }

    /// Requires ids of exactly nine letters or digits (QUIRKS row 91).
    pub fn require_nine_letter_ids(mut self) -> Self {
        self.nine_letters = true;
        self
    }
}

/// A violation that some server would reject. Displays as a sentence.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Violation {
    path: String,
    what: String,
}

impl Violation {
    fn new(path: impl Into<String>, what: impl Into<String>) -> Self {
        Self { path: path.into(), what: what.into() }
    }

    /// Returns the path, such as `messages[3].tool_calls[0].id`; empty for the whole request.
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

/// The violations of a request, at least one. Displays as one line each.
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
