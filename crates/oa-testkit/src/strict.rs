//! Checks requests as the strictest server would.

mod messages;
mod settings;
mod tools;

mod repeated;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::ops::Deref;

use serde_json::{Map, Value};

use crate::requests::quoted;

/// A check of chat requests, as strict as all servers combined: requests that pass are accepted everywhere.
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

    /// Checks the body of a request.
    ///
    /// # Errors
    ///
    /// All violations.
    pub fn check(&self, request: &Value) -> Result<(), Violations> {
        self.check_all(request, Vec::new())
    }

    /// Checks the body of a request as sent: in addition to [`check`](Self::check), that it is UTF-8 and JSON
    /// without repeated members.
    ///
    /// # Errors
    ///
    /// All violations.
    pub fn check_bytes(&self, body: &[u8]) -> Result<(), Violations> {
        let unreadable = |what: String| Violations(vec![Violation::new("", what)]);
        let text = str::from_utf8(body).map_err(|error| {
            unreadable(format!("is not UTF-8 from byte {}", error.valid_up_to()))
        })?;
        let request = serde_json::from_str(text)
            .map_err(|error| unreadable(format!("is not JSON: {error}")))?;
        let repeated = repeated::members(text).into_iter();
        let found = repeated.map(|path| Violation::new(path, "stands there twice")).collect();
        self.check_all(&request, found)
    }

    fn check_all(&self, request: &Value, found: Vec<Violation>) -> Result<(), Violations> {
        let mut check = Check { found, strict: self };
        check.request(request);
        if check.found.is_empty() { Ok(()) } else { Err(Violations(check.found)) }
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

/// A check in progress.
struct Check<'a> {
    found: Vec<Violation>,
    strict: &'a Strict,
}

impl Check<'_> {
    fn request(&mut self, request: &Value) {
        let Some(request) = self.object("", request, &TOP) else { return };

        match member(request, "model") {
            Some(model) => {
                self.text("model", model);
            }
            None => self.say("", "has no model"),
        }
        match member(request, "messages") {
            Some(messages) => {
                if let Some(messages) = self.list("messages", messages) {
                    messages::check(self, messages);
                }
            }
            None => self.say("", "has no messages"),
        }
        self.tools(request);
        self.settings(request);
    }
}

/// Checks shared by all parts of a request.
impl Check<'_> {
    fn say<'p>(&mut self, path: impl Into<Cow<'p, str>>, what: impl Into<String>) {
        self.found.push(Violation::new(path.into(), what));
    }

    /// Checks that it is an object with only known members, none of them null.
    fn object<'v>(
        &mut self,
        path: &str,
        value: &'v Value,
        known: &[&str],
    ) -> Option<&'v Map<String, Value>> {
        let Some(object) = value.as_object() else {
            self.say(path, "is not an object");
            return None;
        };
        for (name, value) in object {
            let path = at(path, name);
            let is_known =
                known.contains(&&**name) || self.strict.allowed.contains(&pattern(&path));
            if !is_known {
                self.say(path, "is not known to every server");
            } else if value.is_null() && name != "content" {
                self.say(path, "is null");
            }
        }
        Some(object)
    }

    /// Checks that it is a nonempty list.
    fn list<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v [Value]> {
        let list = value.as_array();
        match list {
            None => self.say(path, "is not a list"),
            Some(list) if list.is_empty() => self.say(path, "is empty"),
            Some(_) => {}
        }
        list.map(Vec::as_slice)
    }

    fn string<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v str> {
        let text = value.as_str();
        if text.is_none() {
            self.say(path, "is not a string");
        }
        text
    }

    /// Checks that it is a nonempty string.
    fn text<'v>(&mut self, path: &str, value: &'v Value) -> Option<&'v str> {
        let text = self.string(path, value)?;
        if text.is_empty() {
            self.say(path, "is empty");
        }
        Some(text)
    }

    fn flag(&mut self, path: &str, value: &Value) {
        if !value.is_boolean() {
            self.say(path, "is neither true nor false");
        }
    }

    /// Checks a member that must be one of several words.
    fn word(&mut self, path: &str, object: &Map<String, Value>, name: &str, words: &[&str]) {
        match member(object, name) {
            None => self.say(path, format!("has no {name}")),
            Some(value) => {
                let path = at(path, name);
                let Some(word) = self.string(&path, value) else { return };
                if !words.contains(&word) {
                    self.say(path, format!("is {}: {}", quoted(word), words.join(", ")));
                }
            }
        }
    }

    /// Checks the required `name` of an object.
    fn name<'v>(&mut self, path: &str, object: &'v Map<String, Value>) -> Option<&'v str> {
        let Some(name) = member(object, "name") else {
            self.say(path, "has no name");
            return None;
        };
        let path = at(path, "name");
        let name = self.string(&path, name)?;
        let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        if !(1..=LONGEST).contains(&name.len()) || !name.chars().all(is_letter) {
            let what = format!("is {}: 1 to {LONGEST} letters, digits, _ and -", quoted(name));
            self.say(path, what);
        }
        Some(name)
    }
}

/// Returns a member that is present and not null; null is reported separately.
fn member<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
    object.get(name).filter(|value| !value.is_null())
}

fn entries<'v>(path: &str, list: &'v [Value]) -> impl Iterator<Item = (String, &'v Value)> {
    list.iter().enumerate().map(move |(index, entry)| (format!("{path}[{index}]"), entry))
}

fn at(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Returns a path without the indices in its brackets.
fn pattern(path: &str) -> String {
    let mut inside = false;
    let outside = |c: &char| {
        let is_number = inside && c.is_ascii_digit();
        inside = *c == '[' || is_number;
        !is_number
    };
    path.chars().filter(outside).collect()
}

const TOP: [&str; 21] = [
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "parallel_tool_calls",
    "presence_penalty",
    "response_format",
    "seed",
    "stop",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
];
const LONGEST: usize = 64;
