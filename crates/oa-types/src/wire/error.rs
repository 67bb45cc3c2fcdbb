use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::overflow::Sizes;
use super::retry_words::{in_member, in_words};
use crate::nesting::shallow;

/// The longest part of a server's message that is shown, in characters.
const WORDS: usize = 2_000;

/// The longest part of a body without a message that is shown, in characters.
const BODY: usize = 200;

/// The longest error in an error that is read, in bytes.
const NESTED: usize = 1 << 14;

/// The most brackets, commas and colons in a JSON text that is read. As a value, `{"":0},` takes a hundred times its
/// length, so a body with more of them is shown as text: such as one that repeats the whole prompt as a list of tokens.
const SIGNS: usize = 1 << 16;

/// An error reported by a server, in any known format (QUIRKS rows 67, 102 and 114).
///
/// All texts are the server's, uncut: they may repeat the API key that it was sent, and contain terminal
/// control characters. Mask secrets before cutting, because a cut key is no longer recognized.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ServerError {
    /// The server's message, or the text of a body without one; empty if there is neither.
    pub message: String,
    /// The server's error code; numbers as digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The server's error type, such as `invalid_request_error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The whole error object, for members without a field here (failed generation, context sizes). What is nested too
    /// deeply for a conversation is text.
    pub raw: Value,
    /// True if the message is the text of a body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_body: bool,
}

impl ServerError {
    /// Parses the value of an `error` member, or a whole error body.
    #[must_use]
    pub fn from_value(value: Value) -> Self {
        let (inner, outer) = (innermost(&value), &value);
        let member = |name: &str| {
            [inner, outer].into_iter().find_map(|value| value.get(name).and_then(word))
        };
        // In `{"type":"error","error":{..}}` the outer type names only the envelope.
        let kind = member("type").filter(|kind| kind != "error").or_else(|| member("status"));
        let code = member("code").or_else(|| member("error_code"));
        let upstream = upstream(inner);
        let kind = kind.or_else(|| {
            let upstream = upstream.as_ref()?;
            upstream.code.clone().or_else(|| upstream.kind.clone())
        });
        // Beside `{"error": "Bad Request"}`, a gateway may say what is wrong.
        let beside = ["message", "msg", "detail"].iter().find_map(|it| message(outer.get(it)?));
        let message = match (message(inner), beside) {
            (Some(short), Some(long)) if inner.is_string() && long.contains(&short) => long,
            (Some(short), Some(long)) if inner.is_string() && !short.contains(&long) => {
                format!("{short}: {long}")
            }
            (words, beside) => {
                let words = words.or(beside).or_else(|| code.clone()).or_else(|| kind.clone());
                words.unwrap_or_default()
            }
        };
        let message = match upstream.map(|error| error.message) {
            Some(reason) if !reason.is_empty() && !message.contains(&reason) => {
                format!("{message}: {reason}")
            }
            _ => message,
        };
        Self { message, code, kind, raw: shallow(value), is_body: false }
    }

    /// Parses the body of a response with an error status: JSON in any known format, otherwise its text without
    /// HTML tags. JSON of so many values that it would take far more memory than its text is not read, either.
    #[must_use]
    pub fn from_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let text = text.trim_start_matches('\u{feff}').trim();
        // An event stream, in which each line is a field (QUIRKS row 102).
        let in_event = |line: &str| {
            let (_, value) = line.split_once(':').filter(|it| ["data", "error"].contains(&it.0))?;
            read(value).filter(|value| value.is_object() || value.is_array())
        };
        let is_error = |value: &Value| !value["error"].is_null() || !value[0]["error"].is_null();
        let events = || text.lines().filter_map(in_event);
        // Other events may come before the error.
        let error = || events().find(is_error).or_else(|| events().find(Value::is_object));
        match read(text).or_else(error) {
            Some(value @ (Value::Object(_) | Value::Array(_) | Value::String(_))) => {
                let error = Self::from_value(value);
                if error.message.is_empty() {
                    return Self { message: text.to_owned(), is_body: true, ..error };
                }
                error
            }
            _ => Self {
                message: without_tags(text),
                code: None,
                kind: None,
                raw: Value::Null,
                is_body: true,
            },
        }
    }

    /// Returns true if the server says that the prompt does not fit into the model's context (QUIRKS row 101).
    #[must_use]
    pub fn is_context_overflow(&self) -> bool {
        let says = |word: &Option<String>, marks: &[&str]| {
            word.as_deref().is_some_and(|word| marks.contains(&word))
        };
        let marks = [
            "context_length_exceeded",
            "exceed_context_size_error",
            "string_above_max_length",
            "tokens_limit_reached",
        ];
        if says(&self.kind, &marks) || says(&self.code, &marks) {
            return true;
        }
        let message = self.message.to_ascii_lowercase();
        [
            "exceeds the available context size",
            "maximum context length",
            "context length exceeded",
            "context window",
            "context shift is disabled",
            "cannot truncate prompt with n_keep",
            "contextwindowexceeded",
            "prompt is too long",
            "input is too long",
            "exceeds context size",
            "exceeds the context",
            "exceeded max context length",
            "greater than max_seq_len",
            "greater than the context length",
            "context length of only",
            "reached context length",
            "longer than the model's context length",
            "model's context length is only",
            "longer than the maximum model length",
            "too long to fit into the model",
            "exceeds the maximum number of tokens allowed",
            "cannot exceed the total tokens limit",
            "configured context size",
            "does not fit in context length",
            "context size has been exceeded",
            "exceed context limit",
            "exceeded model token limit",
            "exceeds the max input token limit",
            "exceeds the maximum allowed input length",
            "inputs` must have less than",
            "inputs` tokens + `max_new_tokens` must be",
            "longer than the context length",
            "maximum prompt length is",
            "prompt exceeds max length",
            "prompt sequence length is greater than",
            "prompt token count of",
            "range of input length should be",
            "reduce the length of the messages",
            "request body too large for",
            "should not exceed max_num_tokens",
            "size limit exceeded by",
            "tokens in request more than max tokens allowed",
            "tokens) exceeds the maximum allowed length",
        ]
        .iter()
        .any(|mark| message.contains(mark))
    }

    /// Returns how much of the message to show, in characters: 2,000 of a server's message, 200 of a body
    /// without one.
    #[must_use]
    pub fn message_limit(&self) -> usize {
        if self.is_body { BODY } else { WORDS }
    }

    /// Returns the sizes of the prompt and the context in tokens, if the server stated both: in members of
    /// their own, or in a known sentence. A size that the server calls a guess is not used.
    #[must_use]
    pub fn context_sizes(&self) -> Option<(u64, u64)> {
        let sizes = self.sizes();
        Some((sizes.prompt?, sizes.context?))
    }

    /// Returns the size of the context in tokens, if the server stated it.
    #[must_use]
    pub fn context_size(&self) -> Option<u64> {
        self.sizes().context
    }

    /// Returns the delay before a retry, if the error states one: in its message, as in "Please try again in 7.66s", or
    /// as `retryDelay` in its details (QUIRKS row 100). Servers do so with status 429.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        let details = innermost(&self.raw)["details"].as_array().into_iter().flatten();
        let mut delays = details.filter_map(|detail| detail["retryDelay"].as_str());
        delays.find_map(in_member).or_else(|| in_words(&self.message))
    }

    fn sizes(&self) -> Sizes {
        let inner = innermost(&self.raw);
        let member = |name: &str| inner.get(name)?.as_u64().filter(|&size| size > 0);
        match (member("n_prompt_tokens"), member("n_ctx")) {
            (prompt, context @ Some(_)) => Sizes { prompt, context },
            _ if self.is_context_overflow() => Sizes::of(&self.message),
            _ => Sizes::default(),
        }
    }
}

/// Writes the message up to its [limit](Self::message_limit), otherwise as the server wrote it.
impl fmt::Display for ServerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.char_indices().nth(self.message_limit()) {
            Some((end, _)) => write!(f, "{}...", &self.message[..end]),
            None => f.write_str(&self.message),
        }
    }
}

/// Parses JSON, unless it has too many values.
fn read(json: &str) -> Option<Value> {
    let (mut signs, mut in_string) = (0, false);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            // An escape: its second byte may be a quote.
            b'\\' if in_string => _ = bytes.next(),
            b'[' | b'{' | b',' | b':' if !in_string => signs += 1,
            _ => {}
        }
    }
    if signs > SIGNS { None } else { json.parse().ok() }
}

/// Returns the object that describes the error: from `{"error": ..}`, `[{"error": ..}]`, `{"errors": [..]}`, or
/// the value itself.
pub(super) fn innermost(value: &Value) -> &Value {
    if let Some(first) = value.as_array().and_then(|list| list.first()) {
        return innermost(first);
    }
    for member in ["error", "errors"] {
        match value.get(member) {
            Some(error @ (Value::Object(_) | Value::String(_))) => return error,
            Some(Value::Array(list)) if !list.is_empty() => return innermost(&list[0]),
            _ => {}
        }
    }
    value
}

fn message(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        Value::Array(list) => list.iter().find_map(message),
        Value::Object(_) => {
            let members = [
                "message",
                "msg",
                "detail",
                "error",
                "error_message",
                "error_msg",
                "description",
                "text",
            ];
            let words = members.iter().find_map(|member| message(value.get(member)?))?;
            Some(match place(value) {
                Some(place) => format!("{place}: {words}"),
                None => words,
            })
        }
        _ => None,
    }
}

/// Returns the error of the server behind a gateway, whose own message tells nothing (QUIRKS row 151): from `metadata.raw`
/// or `value.error_message`, as text, JSON, JSON in text, or an event.
fn upstream(inner: &Value) -> Option<ServerError> {
    let places = ["/metadata/raw", "/value/error_message"];
    let body = places.into_iter().find_map(|place| inner.pointer(place))?;
    match body {
        // A text takes far more memory as a value.
        Value::String(text) if text.len() <= NESTED => {
            Some(ServerError::from_body(text.as_bytes()))
        }
        Value::Object(_) => Some(ServerError::from_value(body.clone())),
        _ => None,
    }
}

/// Returns the request member that an entry of a FastAPI error list is about.
fn place(item: &Value) -> Option<String> {
    let place = item.get("loc")?.as_array()?.iter().filter_map(word);
    let place: Vec<String> = place.skip_while(|word| word == "body").collect();
    (!place.is_empty()).then(|| place.join("."))
}

/// Returns a string or number as text, unless it is empty.
fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Strips an HTML page to its text: no tags, scripts or styles, whitespace folded. Runs in linear time.
fn without_tags(text: &str) -> String {
    // Only ASCII changes its case here, so positions in `lower` are positions in `text`.
    let lower = text.to_ascii_lowercase();
    let mut words = String::new();
    let mut at = 0;
    while let Some(tag) = text[at..].find('<') {
        // As in HTML: `must be <= 4096` has no tag, and neither has `<|im_start|>`.
        let is_in_tag = |next: &u8| next.is_ascii_alphabetic() || b"/!?".contains(next);
        if !text.as_bytes().get(at + tag + 1).is_none_or(is_in_tag) {
            words.push_str(&text[at..=at + tag]);
            at += tag + 1;
            continue;
        }
        words.push_str(&text[at..at + tag]);
        words.push(' ');
        at += tag;
        for (opens, closes) in [("<script", "</script"), ("<style", "</style")] {
            if lower[at..].starts_with(opens) {
                // Without its end, the rest of the page is script. Each search covers only what it skips.
                at = lower[at..].find(closes).map_or(text.len(), |end| at + end);
            }
        }
        at = text[at..].find('>').map_or(text.len(), |end| at + end + 1);
    }
    words.push_str(&text[at..]);
    let mut folded = String::new();
    // Not collected first: a list of short words takes many times their length.
    for word in words.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}
