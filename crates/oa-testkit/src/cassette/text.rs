//! The text format of cassettes: JSON for code reviews.

use std::collections::BTreeMap;
use std::fmt::Write;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Uri};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::interaction::{Interaction, RecordedResponse};
use super::parts;
use super::question::{Payload, Question};
use super::secrets::Secrets;

/// The only supported format version.
const VERSION: u64 = 1;

/// Formats a cassette, deterministically.
pub(super) fn write(interactions: &[Interaction]) -> String {
    let mut text = format!("{{\n  \"version\": {VERSION},\n  \"interactions\": [");
    for (index, Interaction { answer, question }) in interactions.iter().enumerate() {
        text.push_str(if index == 0 { "\n    {\n" } else { ",\n    {\n" });
        let mut members = vec![
            ("method", Value::from(question.method.as_str()).to_string()),
            ("path", Value::from(question.target.as_str()).to_string()),
        ];
        match &question.body {
            Payload::Bytes(bytes) if bytes.is_empty() => {}
            Payload::Bytes(bytes) => members.push(("body", list(&parts::write_bytes(bytes)))),
            Payload::Json(value) => members.push(("json", format!("{value:#}"))),
        }
        object(&mut text, "request", &members);
        text.push_str(",\n");
        object(&mut text, "response", &response(answer));
        text.push_str("\n    }");
    }
    text.push_str(if interactions.is_empty() { "]\n}\n" } else { "\n  ]\n}\n" });
    text
}

fn response(answer: &RecordedResponse) -> Vec<(&'static str, String)> {
    let headers = answer.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        (name.as_str().to_owned(), Value::from(value))
    });
    let mut members = vec![
        ("status", answer.status.as_u16().to_string()),
        ("headers", format!("{:#}", Value::Object(headers.collect()))),
        ("body", list(&parts::write(answer))),
    ];
    if let Some(borders) = &answer.borders {
        members.push(("borders", Value::from(borders.clone()).to_string()));
    }
    if let Some(cut) = &answer.cut {
        members.push(("cut", Value::from(cut.as_str()).to_string()));
    }
    members
}

/// Formats a list of parts, one per line.
fn list(parts: &[String]) -> String {
    if parts.is_empty() {
        return "[]".to_owned();
    }
    format!("[\n  {}\n]", parts.join(",\n  "))
}

/// Formats an object at the level of a request.
fn object(text: &mut String, name: &str, members: &[(&str, String)]) {
    let _ = write!(text, "      \"{name}\": {{");
    for (index, (name, value)) in members.iter().enumerate() {
        let end = if index == 0 { "" } else { "," };
        // Line breaks in JSON are outside its strings, where indentation is allowed.
        let value = value.replace('\n', "\n        ");
        let _ = write!(text, "{end}\n        \"{name}\": {value}");
    }
    text.push_str("\n      }");
}

/// Parses a cassette.
pub(super) fn read(text: &str) -> Result<Vec<Interaction>, String> {
    let whole: &RawValue = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut cassette = Members::new(whole)?;
    match cassette.required::<u64>("version") {
        Ok(VERSION) => {}
        Ok(version) => {
            return Err(format!(
                "it has format version {version}, but only {VERSION} is supported"
            ));
        }
        Err(error) => return Err(error),
    }
    let interactions = cassette.list("interactions")?;
    cassette.finish()?;
    let read = |(index, interaction)| {
        interaction_of(interaction).map_err(|what| format!("interaction {}: {what}", index + 1))
    };
    interactions.into_iter().enumerate().map(read).collect()
}

fn interaction_of(text: &RawValue) -> Result<Interaction, String> {
    let mut members = Members::new(text)?;
    let within = |what: &'static str| move |error| format!("{what}: {error}");
    let question = question(members.raw("request")?).map_err(within("request"))?;
    let answer = answer(members.raw("response")?).map_err(within("response"))?;
    members.finish()?;
    Ok(Interaction { answer, question })
}

fn question(text: &RawValue) -> Result<Question, String> {
    let mut members = Members::new(text)?;
    let method = members.required::<String>("method")?.parse().map_err(|_| "not a method")?;
    let uri: Uri = members.required::<String>("path")?.parse().map_err(|_| "not a path")?;
    let body = match members.optional::<Value>("json")? {
        Some(value) => value.to_string().into(),
        None if members.has("body") => members.body()?,
        None => Vec::new(),
    };
    members.finish()?;
    Ok(Question::new(method, &uri, &body, &Secrets::default()))
}

fn answer(text: &RawValue) -> Result<RecordedResponse, String> {
    let mut members = Members::new(text)?;
    let status = StatusCode::from_u16(members.required("status")?).map_err(|_| "not a status")?;
    let mut headers = HeaderMap::new();
    for (name, value) in members.required::<BTreeMap<String, String>>("headers")? {
        let header = (HeaderName::try_from(&name), HeaderValue::from_bytes(value.as_bytes()));
        let (Ok(key), Ok(value)) = header else {
            return Err(format!("{name:?} is not a valid header"));
        };
        headers.insert(key, value);
    }
    let body = members.body()?.into();
    let answer = RecordedResponse {
        body,
        borders: members.optional("borders")?,
        cut: members.optional("cut")?,
        headers,
        status,
    };
    members.finish()?;
    Ok(answer)
}

/// The members of an object not read yet.
struct Members<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    fn new(text: &'a RawValue) -> Result<Self, String> {
        serde_json::from_str(text.get()).map(Self).map_err(|_| "not an object".to_owned())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    fn raw(&mut self, name: &str) -> Result<&'a RawValue, String> {
        self.0.remove(name).ok_or_else(|| format!("`{name}` is missing"))
    }

    fn required<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        let value = self.raw(name)?;
        serde_json::from_str(value.get()).map_err(|error| format!("`{name}`: {error}"))
    }

    fn optional<T: DeserializeOwned>(&mut self, name: &str) -> Result<Option<T>, String> {
        if self.has(name) { self.required(name).map(Some) } else { Ok(None) }
    }

    fn list(&mut self, name: &str) -> Result<Vec<&'a RawValue>, String> {
        let value = self.raw(name)?;
        serde_json::from_str(value.get()).map_err(|_| format!("`{name}` is not a list"))
    }

    fn body(&mut self) -> Result<Vec<u8>, String> {
        let mut body = Vec::new();
        for part in self.list("body")? {
            body.extend(parts::read(part)?);
        }
        Ok(body)
    }

    /// Reject unknown members, which may be typos in a file edited by hand.
    fn finish(self) -> Result<(), String> {
        match self.0.keys().next() {
            Some(name) => Err(format!("unknown member `{name}`")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Method;
    use http::header::CONTENT_TYPE;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn interaction() -> impl Strategy<Value = Interaction> {
        let asked = prop_oneof![
            Just(String::new()),
            "[a{]{1,9}\n?",
            Just(json!({ "b": [1.5, "\n"], "a": null }).to_string()),
        ];
        let kind = prop_oneof![Just("text/event-stream"), Just("application/json")];
        let body = prop_oneof![
            prop::collection::vec(any::<u8>(), 0..30),
            Just(b"data: {\"b\":1, \"a\":\"x\"}\n\ndata: [DONE]\n\n".to_vec()),
            Just(b"{\"error\": [\"x\"]}\n".to_vec()),
        ];
        let borders = prop::option::of(prop::collection::vec(1..30_usize, 0..4));
        let cut = prop::option::of("[a-z\"\n]{0,9}");
        (asked, kind, body, borders, cut, 200..600_u16).prop_map(
            |(asked, kind, body, borders, cut, status)| {
                let uri = Uri::from_static("/v1/chat?a=b");
                let secrets = Secrets::default();
                let question = Question::new(Method::POST, &uri, asked.as_bytes(), &secrets);
                let headers =
                    HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
                let status = StatusCode::from_u16(status).expect("a status");
                let answer = RecordedResponse { body: body.into(), borders, cut, headers, status };
                Interaction { answer, question }
            },
        )
    }

    proptest! {
        #[test]
        fn written_cassettes_are_read_back(interactions in prop::collection::vec(interaction(), 0..4)) {
            let text = write(&interactions);
            let again = read(&text).expect("what was written");
            prop_assert_eq!(&again, &interactions, "{}", text);
            prop_assert_eq!(&write(&again), &text);
            prop_assert!(text.ends_with('\n'));
        }
    }
}
