//! A request, as written and compared.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HeaderMap;
use http::{Method, Uri};
use oa_redact::visible;
use serde_json::Value;

use super::secrets::Secrets;
use crate::requests::{Request, RequestParts};

/// A request without headers and host.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Question {
    pub(super) body: Payload,
    pub(super) method: Method,
    /// The path with the query.
    pub(super) target: String,
}

/// A request body.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Payload {
    Bytes(Bytes),
    Json(Value),
}

impl Question {
    /// Creates a request with its secrets masked.
    pub(super) fn new(method: Method, uri: &Uri, body: &[u8], secrets: &Secrets) -> Self {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let body = match serde_json::from_slice(body) {
            Ok(value) => Payload::Json(secrets.json(&value)),
            Err(_) => Payload::Bytes(secrets.bytes(body, &mut [])),
        };
        Self { body, method, target: secrets.target(target) }
    }

    /// Formats the request as lines for comparison: method and path, then the body. Trailing commas of JSON
    /// lines are removed, because they change when the next line does. Invisible characters and bytes that are not
    /// text are escaped, and a line break at the end is followed by an empty line, so that each difference shows.
    pub(super) fn lines(&self) -> Vec<String> {
        let head = format!("{} {}", self.method, self.target);
        let line = |line: &str| visible(line.strip_suffix(',').unwrap_or(line)).into_owned();
        let body: Vec<_> = match &self.body {
            Payload::Bytes(bytes) if bytes.is_empty() => Vec::new(),
            Payload::Bytes(bytes) => text_of(bytes).split('\n').map(str::to_owned).collect(),
            Payload::Json(value) => format!("{value:#}").lines().map(line).collect(),
        };
        std::iter::once(head).chain(body).collect()
    }

    /// Describes the request on one line.
    pub(super) fn summary(&self) -> String {
        let body = match &self.body {
            Payload::Bytes(bytes) => bytes.clone(),
            Payload::Json(value) => value.to_string().into(),
        };
        let (headers, method) = (HeaderMap::new(), self.method.clone());
        let uri = self.target.parse().unwrap_or_default();
        Request::new(0, RequestParts { body, connection: None, headers, method, uri }).question()
    }
}

/// Returns a body as text in which everything but line feeds can be seen.
fn text_of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let lines: Vec<_> = chunk.valid().split('\n').map(visible).collect();
        text.push_str(&lines.join("\n"));
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
    }
    text
}

/// The parts of a request that are not compared.
#[derive(Clone, Default)]
pub(super) struct Blur {
    pub(super) ignored: Vec<Pointer>,
    pub(super) rewrites: Vec<Rewrite>,
}

pub(super) type Rewrite = Arc<dyn Fn(&mut Value) + Send + Sync>;

impl Blur {
    /// Returns the parts of a request that are compared.
    pub(super) fn apply(&self, question: &Question, secrets: &Secrets) -> Question {
        let mut question = question.clone();
        question.target = secrets.target(&question.target);
        question.body = match question.body {
            Payload::Bytes(bytes) => Payload::Bytes(secrets.bytes(&bytes, &mut [])),
            Payload::Json(value) => {
                let mut value = secrets.json(&value);
                self.ignored.iter().for_each(|pointer| pointer.remove(&mut value));
                self.rewrites.iter().for_each(|rewrite| rewrite(&mut value));
                // After the user's rewrites, which see the ids as they are.
                number_calls(&mut value);
                Payload::Json(value)
            }
        };
        question
    }
}

impl fmt::Debug for Blur {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blur")
            .field("ignored", &self.ignored)
            .field("rewrites", &self.rewrites.len())
            .finish()
    }
}

/// Replaces tool call ids with numbers: pairs are preserved, and a client may generate ids where a server omits
/// them.
fn number_calls(body: &mut Value) {
    let mut known: Vec<String> = Vec::new();
    let mut number = |id: &mut Value| {
        if let Value::String(text) = id {
            let index = known.iter().position(|known| known == text).unwrap_or_else(|| {
                known.push(std::mem::take(text));
                known.len() - 1
            });
            *text = format!("call {}", index + 1);
        }
    };
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        let ids = calls.into_iter().flatten().filter_map(|call| call.get_mut("id"));
        ids.for_each(&mut number);
        message.get_mut("tool_call_id").into_iter().for_each(&mut number);
    }
}

/// A JSON pointer (RFC 6901) in which `*` matches every item and member.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Pointer(Vec<String>);

impl Pointer {
    /// Parses a pointer; `None` if it is invalid or refers to the whole document.
    pub(super) fn new(text: &str) -> Option<Self> {
        let tokens = text.strip_prefix('/')?.split('/');
        let unescaped = |token: &str| {
            // `~` is only valid in `~0` and `~1`. These are decoded in the order of RFC 6901, section 4:
            // `~01` is `~1` and not `/`.
            let mut after = token.split('~').skip(1);
            after
                .all(|rest| rest.starts_with(['0', '1']))
                .then(|| token.replace("~1", "/").replace("~0", "~"))
        };
        tokens.map(unescaped).collect::<Option<_>>().map(Self)
    }

    fn remove(&self, value: &mut Value) {
        if let Some((last, parents)) = self.0.split_last() {
            remove(value, parents, last);
        }
    }
}

fn remove(value: &mut Value, parents: &[String], last: &str) {
    let Some((token, parents)) = parents.split_first() else {
        match value {
            Value::Array(items) if last == "*" => items.clear(),
            Value::Array(items) => {
                let index = last.parse().ok().filter(|index| *index < items.len());
                index.map(|index: usize| items.remove(index));
            }
            Value::Object(members) if last == "*" => members.clear(),
            Value::Object(members) => drop(members.remove(last)),
            Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
        }
        return;
    };
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                if token == "*" || *token == index.to_string() {
                    remove(item, parents, last);
                }
            }
        }
        Value::Object(members) => {
            for (_, member) in members.iter_mut().filter(|(name, _)| token == "*" || token == *name)
            {
                remove(member, parents, last);
            }
        }
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(pointer: &str, expected: Value) {
        let mut value = json!({
            "seed": 7,
            "a/b": { "~": 1, "c": 2 },
            "messages": [{ "id": 1, "text": "x" }, { "id": 2, "text": "y" }],
        });
        let whole = value.clone();
        Pointer::new(pointer).expect("a pointer").remove(&mut value);
        let mut left = whole;
        for (name, value) in expected.as_object().expect("members") {
            left[name] = value.clone();
        }
        left.as_object_mut().expect("members").retain(|_, value| *value != "gone");
        assert_eq!(value, left, "{pointer}");
    }

    #[test]
    fn pointers_remove_what_they_point_to() {
        check("/seed", json!({ "seed": "gone" }));
        check("/a~1b/~0", json!({ "a/b": { "c": 2 } }));
        check("/a~1b/*", json!({ "a/b": {} }));
        check("/messages/1", json!({ "messages": [{ "id": 1, "text": "x" }] }));
        check("/messages/0/id", json!({ "messages": [{ "text": "x" }, { "id": 2, "text": "y" }] }));
        check("/messages/*/id", json!({ "messages": [{ "text": "x" }, { "text": "y" }] }));
        check("/messages/7/id", json!({}));
        check("/seed/deeper", json!({}));
        check("/nothing", json!({}));
    }

    #[test]
    fn ids_of_calls_are_what_they_pair() {
        let numbered = |ids: [&str; 4]| {
            let [one, two, first, second] = ids;
            let mut body = json!({ "messages": [
                { "tool_calls": [{ "id": one }, { "id": two }, {}] },
                { "tool_call_id": first, "id": "kept" },
                { "tool_call_id": second },
                { "tool_calls": null, "tool_call_id": 3 },
            ] });
            number_calls(&mut body);
            body
        };
        assert_eq!(numbered(["a", "b", "b", "a"]), numbered(["call 2", "x", "x", "call 2"]));
        assert_ne!(numbered(["a", "b", "b", "a"]), numbered(["a", "b", "a", "b"]));
        assert_ne!(numbered(["a", "b", "a", "b"]), numbered(["a", "b", "a", "c"]));
        assert_eq!(numbered(["a", "b", "a", "b"])["messages"][1]["id"], "kept");
    }

    #[test]
    fn invalid_pointers_are_rejected() {
        for text in ["", "seed", "#/seed", "/a~", "/a~2", "/~~01", "/~~1", "/~0~"] {
            assert_eq!(Pointer::new(text), None, "{text:?}");
        }
    }
}
