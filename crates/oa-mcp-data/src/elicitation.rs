use oa_tools::{ArgumentError, check_arguments};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::cut::cut;
use crate::subschemas::visit_below;

/// The longest URL that is shown to the user, in bytes.
const URL: usize = 4 * 1024;

/// A server's question to the user, asked while one of its tools runs.
///
/// The question is the server's: show the user which server asks, and never fill in anything that the user was not
/// asked for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Elicitation {
    /// The name under which hooks and permissions see the question: `<prefix>__elicitation`.
    pub name: String,
    /// The name of the server.
    pub server: String,
    /// The server's message, bounded and without invisible characters.
    pub message: String,
    /// The kind of question.
    #[serde(flatten)]
    pub mode: ElicitationMode,
}

/// The kind of a question to the user.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "mode")]
#[non_exhaustive]
pub enum ElicitationMode {
    /// A form to fill in.
    Form {
        /// The schema of the content: an object whose fields are not objects. Titles and descriptions are without
        /// invisible characters.
        schema: Value,
    },
    /// A page to visit, for data that must not pass through the agent. It is never opened automatically: show the whole
    /// URL and let the user decide.
    Url {
        /// The URL, which begins with `https://` or `http://`.
        url: String,
    },
}

/// The answer to an [`Elicitation`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ElicitationAnswer {
    /// The user agreed: the content of the form, or any value for a URL. Content that does not match the form is not
    /// sent; the server gets an error instead, or [`Cancel`](Self::Cancel) in version 2026-07-28.
    Accept(Value),
    /// The user closed the question without a decision.
    Cancel,
    /// The user declined.
    Decline,
    /// The user was not asked, for this reason. The server gets a protocol error, or [`Decline`](Self::Decline) in
    /// version 2026-07-28, which has no error for this.
    Refuse(String),
}

impl Elicitation {
    /// Checks content against the form: types, required and unknown fields, choices, lengths, ranges, and the formats
    /// `date`, `date-time`, `email` and `uri`. Fills in defaults. For a URL any content is accepted and becomes empty.
    ///
    /// ```
    /// use oa_mcp_data::Elicitation;
    /// # use serde_json::json;
    ///
    /// fn ask(question: &Elicitation) -> Result<serde_json::Value, oa_tools::ArgumentError> {
    ///     question.check(json!({ "age": "old" })) // "`age`: expected integer, .."
    /// }
    /// # let schema = json!({ "type": "object", "properties": { "age": { "type": "integer" } } });
    /// # let question = json!({ "name": "s__elicitation", "server": "s", "message": "", "mode": "form", "schema": schema });
    /// # assert!(ask(&serde_json::from_value(question).unwrap()).is_err());
    /// ```
    ///
    /// # Errors
    ///
    /// Lists the problems by field.
    pub fn check(&self, content: Value) -> Result<Value, ArgumentError> {
        let ElicitationMode::Form { schema } = &self.mode else { return Ok(json!({})) };
        // The shared checks allow fields that the schema does not name, and ignore formats. A server must not
        // get more than it has asked for, so both are checked here.
        let content = check_arguments(schema, content)?;
        let fields = schema.get("properties").and_then(Value::as_object);
        for (name, value) in content.as_object().into_iter().flatten() {
            let problem = match fields.and_then(|fields| fields.get(name)) {
                Some(field) => missing_format(field, value)
                    .map(|format| format!("expected the format {format}")),
                None => Some("the form has no such field".to_owned()),
            };
            if let Some(problem) = problem {
                return Err(ArgumentError::new(format!("`{name}`: {problem}")));
            }
        }
        Ok(content)
    }

    /// Reads a request from the server, with a message of at most `message_bytes` and a form of at most `form_bytes`.
    ///
    /// # Errors
    ///
    /// Describes the problem with the request.
    pub fn read(
        params: &Value,
        server: &str,
        name: String,
        message_bytes: usize,
        form_bytes: usize,
    ) -> Result<Self, String> {
        let message = params.get("message").and_then(Value::as_str).ok_or("it has no message")?;
        let mode = match params.get("mode").and_then(Value::as_str) {
            None | Some("form") => {
                let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
                ElicitationMode::Form { schema: form(schema, form_bytes)? }
            }
            Some("url") => {
                let url = params.get("url").and_then(Value::as_str).unwrap_or_default();
                if !can_show(url) {
                    return Err("its URL cannot be shown".to_owned());
                }
                ElicitationMode::Url { url: url.to_owned() }
            }
            Some(_) => return Err("its mode is neither form nor url".to_owned()),
        };
        let message = cut(message, message_bytes);
        Ok(Self { name, server: server.to_owned(), message, mode })
    }

    /// Returns the answer in the protocol's form.
    ///
    /// # Errors
    ///
    /// The reason why there is no answer: the content does not match the form, or the question was refused.
    pub fn answer(&self, answer: ElicitationAnswer) -> Result<Value, String> {
        match answer {
            ElicitationAnswer::Accept(content) => {
                let content = self
                    .check(content)
                    .map_err(|error| format!("the content does not match the form: {error}"))?;
                Ok(match self.mode {
                    ElicitationMode::Form { .. } => {
                        json!({ "action": "accept", "content": content })
                    }
                    ElicitationMode::Url { .. } => json!({ "action": "accept" }),
                })
            }
            ElicitationAnswer::Cancel => Ok(json!({ "action": "cancel" })),
            ElicitationAnswer::Decline => Ok(json!({ "action": "decline" })),
            ElicitationAnswer::Refuse(reason) => Err(reason),
        }
    }
}

/// Reads the schema of a form: an object whose fields are not objects.
fn form(schema: &Value, limit: usize) -> Result<Value, String> {
    let Some(keywords) = schema.as_object().filter(|_| schema["type"] == "object") else {
        return Err("its form is not an object".to_owned());
    };
    if schema.to_string().len() > limit {
        return Err(format!("its form has more than {limit} bytes"));
    }
    let empty = Map::new();
    let fields = match keywords.get("properties") {
        None => &empty,
        Some(Value::Object(fields)) => fields,
        Some(_) => return Err("the fields of its form are not an object".to_owned()),
    };
    if !fields.values().all(is_plain) {
        return Err("a field of its form has an unsupported type".to_owned());
    }
    let mut form = schema.clone();
    strip(&mut form);
    Ok(form)
}

/// Returns true if a URL may be shown to the user.
pub(crate) fn can_show(url: &str) -> bool {
    // ASCII only: letters of other scripts can imitate a host, and Punycode can express them.
    let is_web = url.starts_with("https://") || url.starts_with("http://");
    is_web && url.len() <= URL && url.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Returns true for the schema of a field that is not an object.
fn is_plain(field: &Value) -> bool {
    // An array is a choice of several.
    let is_plain_type =
        |of: &str| matches!(of, "array" | "boolean" | "integer" | "number" | "string");
    // A reference could lead to an object, past the check of the type.
    if field.get("$ref").is_some() {
        return false;
    }
    let list = |keyword: &str| field.get(keyword).and_then(Value::as_array);
    let is_null = |of: &Value| of == "null";
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    match field.get("type") {
        Some(Value::String(of)) => is_plain_type(of),
        Some(Value::Array(of)) => {
            let is_known = |of: &Value| is_null(of) || of.as_str().is_some_and(is_plain_type);
            !of.iter().all(is_null) && of.iter().all(is_known)
        }
        Some(_) => false,
        // Servers in Python write an optional field as a choice between a type and null, and a choice without its type.
        None => match (list("anyOf").or_else(|| list("oneOf")), list("enum")) {
            (Some(choices), _) => {
                let is_known = |choice: &Value| is_null(&choice["type"]) || is_plain(choice);
                choices.iter().any(is_plain) && choices.iter().all(is_known)
            }
            (None, Some(values)) => values.iter().all(is_scalar),
            (None, None) => field.get("const").is_some_and(is_scalar),
        },
    }
}

/// Removes invisible characters from the texts of a form that are shown to the user.
fn strip(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    for (keyword, shown) in &mut *keywords {
        let texts = match shown {
            Value::Array(names) if keyword == "enumNames" => names.as_mut_slice(),
            text if keyword == "title" || keyword == "description" => std::slice::from_mut(text),
            _ => continue,
        };
        for text in texts {
            if let Value::String(text) = text {
                *text = oa_redact::strip_invisible(text).into_owned();
            }
        }
    }
    let stripped = visit_below(keywords, &mut |schema| {
        strip(schema);
        Ok(())
    });
    debug_assert!(stripped.is_ok(), "no visit fails");
}

/// Returns the format that a text should have but does not. [`check_arguments`] checks everything else in a form.
fn missing_format<'a>(field: &'a Value, value: &Value) -> Option<&'a str> {
    if let Some(choices) = field.get("anyOf").and_then(Value::as_array) {
        // One of the choices is enough.
        let missing = choices.iter().filter(|choice| choice["type"] == "string");
        let missing = missing.map(|choice| missing_format(choice, value));
        return missing.reduce(Option::and).flatten();
    }
    let format = field.get("format")?.as_str()?;
    (!has_format(value.as_str()?, format)).then_some(format)
}

/// Checks a format as far as its characters go: a date may name a day that its month does not have.
fn has_format(text: &str, format: &str) -> bool {
    let is_digit = |digit: char| digit.is_ascii_digit();
    let like = |text: &str, pattern: &str| {
        text.len() == pattern.len()
            && text.bytes().zip(pattern.bytes()).all(|(byte, like)| match like {
                b'0' => byte.is_ascii_digit(),
                like => byte.eq_ignore_ascii_case(&like),
            })
    };
    // The number at two digits of a text that has them there.
    let number = |text: &str, at: usize| text[at..at + 2].parse().unwrap_or(u32::MAX);
    let is_date = |text: &str| {
        like(text, "0000-00-00")
            && (1..=12).contains(&number(text, 5))
            && (1..=31).contains(&number(text, 8))
    };
    match format {
        "date" => is_date(text),
        "date-time" => {
            // `2026-11-22T10:00:00` has 19 bytes. In a pattern, `0` stands for any digit.
            let (start, zone) = text.split_at_checked(19).unwrap_or((text, ""));
            // A fraction has at least one digit; without any, its point makes the zone invalid.
            let fraction = zone.strip_prefix('.').filter(|it| it.starts_with(is_digit));
            let zone = fraction.map_or(zone, |it| it.trim_start_matches(is_digit));
            let has_zone = like(zone, "z")
                || ((like(zone, "+00:00") || like(zone, "-00:00"))
                    && number(zone, 1) < 24
                    && number(zone, 4) < 60);
            // A leap second is the second 60.
            like(start, "0000-00-00t00:00:00")
                && is_date(&start[..10])
                && number(start, 11) < 24
                && number(start, 14) < 60
                && number(start, 17) <= 60
                && has_zone
        }
        "email" => text.split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(' ')
        }),
        "uri" => text.split_once(':').is_some_and(|(scheme, rest)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && !rest.is_empty()
                && !text.contains(char::is_whitespace)
        }),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &Value) -> Result<Elicitation, String> {
        Elicitation::read(params, "s", "s__elicitation".to_owned(), 4_096, 65_536)
    }

    fn question(fields: &Value) -> Elicitation {
        let schema = json!({ "type": "object", "properties": fields, "required": ["name"] });
        read(&json!({ "message": "Who?\u{200b}", "requestedSchema": schema })).unwrap()
    }

    #[test]
    fn content_is_checked_against_the_form() {
        let question = question(&json!({
            "name": { "type": "string", "minLength": 2, "maxLength": 5 },
            "age": { "type": "integer", "minimum": 18, "default": 20 },
            "mail": { "type": "string", "format": "email" },
            "born": { "type": "string", "format": "date" },
            "at": { "type": "string", "format": "date-time" },
            "home": { "type": "string", "format": "uri" },
            "color": { "type": "string", "enum": ["red", "green"] },
            "pets": { "type": "array", "maxItems": 1, "items": { "type": "string", "enum": ["cat", "dog"] } },
        }));
        assert_eq!(question.message, "Who?");
        let check = |content: Value| question.check(content).map_err(|error| error.to_string());
        assert_eq!(check(json!({ "name": "Ada" })), Ok(json!({ "name": "Ada", "age": 20 })));
        let good = json!({
            "name": "Ada", "age": 36, "mail": "ada@example.org", "born": "1815-12-10", "color": "red",
            "at": "2026-11-22T10:00:00.5+01:00", "home": "https://example.org", "pets": ["cat"],
        });
        assert_eq!(check(good.clone()), Ok(good));
        for (content, problem) in [
            (json!({}), "`name`: required, but missing"),
            (json!({ "name": "A" }), "`name`: expected at least 2 characters"),
            (json!({ "name": "Augusta" }), "`name`: expected at most 5 characters"),
            (json!({ "name": "Ada", "age": 17 }), "`age`: expected at least 18"),
            (json!({ "name": "Ada", "age": "old" }), "`age`: expected integer"),
            (json!({ "name": "Ada", "mail": "nobody" }), "`mail`: expected the format email"),
            (json!({ "name": "Ada", "born": "yesterday" }), "`born`: expected the format date"),
            (json!({ "name": "Ada", "at": "2026-11-22" }), "`at`: expected the format date-time"),
            (json!({ "name": "Ada", "home": "nowhere" }), "`home`: expected the format uri"),
            (json!({ "name": "Ada", "color": "blue" }), "`color`: "),
            (json!({ "name": "Ada", "pets": ["cat", "dog"] }), "`pets`: expected at most 1 item"),
            (json!({ "name": "Ada", "card": "4111" }), "`card`: the form has no such field"),
        ] {
            let told = check(content).unwrap_err();
            assert!(told.starts_with(problem), "{told}");
        }
    }

    /// As servers in Python write them.
    #[test]
    fn fields_may_be_optional_or_have_no_type() {
        let title = |name: &str| json!({ "const": name, "title": format!("A {name}") });
        let question = question(&json!({
            "name": { "anyOf": [{ "type": "string" }, { "type": "null" }], "default": null },
            "mail": { "anyOf": [{ "type": "string", "format": "email" }, { "type": "null" }] },
            "age": { "type": ["integer", "null"] },
            "pet": { "oneOf": [title("cat"), title("dog")] },
            "color": { "enum": ["red", "green"] },
        }));
        let check = |content: Value| question.check(content).map_err(|error| error.to_string());
        let good = json!({ "name": "Ada", "mail": "ada@example.org", "age": null, "pet": "cat", "color": "red" });
        assert_eq!(check(good.clone()), Ok(good));
        assert_eq!(check(json!({})), Ok(json!({ "name": null })));
        for (content, problem) in [
            (json!({ "name": 7 }), "`name`: "),
            (json!({ "mail": "nobody" }), "`mail`: expected the format email"),
            (json!({ "age": "old" }), "`age`: "),
            (json!({ "pet": "cow" }), "`pet`: "),
            (json!({ "color": "blue" }), "`color`: "),
        ] {
            let told = check(content).unwrap_err();
            assert!(told.starts_with(problem), "{told}");
        }
    }

    #[test]
    fn dates_and_times_are_in_range() {
        for (format, good, bad) in [
            (
                "date",
                ["2026-01-31", "2026-12-01"].as_slice(),
                ["2026-00-10", "2026-13-10", "2026-10-00", "2026-10-32", "2026-1-1"].as_slice(),
            ),
            (
                "date-time",
                &["2026-11-22T10:00:00Z", "2026-11-22t23:59:60.25-23:59", "2026-11-22T00:00:00.0z"],
                &[
                    "..T10:00:00.Z",
                    "2026-11-22T10:00:00.Z",
                    "2026-11-22T10:00:00",
                    "2026-99-22T10:00:00Z",
                    "2026-11-22T24:00:00Z",
                    "2026-11-22T10:60:00Z",
                    "2026-11-22T10:00:61Z",
                    "2026-11-22T10:00:00+24:00",
                    "2026-11-22T10:00:00+00:60",
                    "2026-11-2\u{e9}T10:00:00Z",
                ],
            ),
        ] {
            good.iter().for_each(|text| assert!(has_format(text, format), "{text}"));
            bad.iter().for_each(|text| assert!(!has_format(text, format), "{text}"));
        }
    }

    #[test]
    fn mismatched_answer_is_an_error() {
        let question = question(&json!({ "name": { "type": "string" } }));
        let answer = question.answer(ElicitationAnswer::Accept(json!({ "name": "Ada" })));
        assert_eq!(answer, Ok(json!({ "action": "accept", "content": { "name": "Ada" } })));
        let answer = question.answer(ElicitationAnswer::Accept(json!({ "name": 5 })));
        assert!(answer.unwrap_err().starts_with("the content does not match the form"));
        assert_eq!(question.answer(ElicitationAnswer::Decline), Ok(json!({ "action": "decline" })));
        assert_eq!(question.answer(ElicitationAnswer::Cancel), Ok(json!({ "action": "cancel" })));
        assert_eq!(question.answer(ElicitationAnswer::Refuse("no".into())), Err("no".to_owned()));
    }

    #[test]
    fn questions_that_cannot_be_shown_are_refused() {
        let of = |params: Value| read(&params).unwrap_err();
        assert_eq!(of(json!({})), "it has no message");
        assert_eq!(of(json!({ "message": "a" })), "its form is not an object");
        for field in [
            json!({ "type": "object" }),
            json!({ "type": ["object", "null"] }),
            json!({ "type": "null" }),
            json!({ "anyOf": [{ "type": "string" }, { "type": "object" }] }),
            json!({ "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/a" }] }),
            json!({ "oneOf": [{ "const": {} }] }),
            json!({ "anyOf": [{ "type": "null" }] }),
            json!({ "anyOf": [] }),
            json!({ "enum": [{}] }),
            json!({ "type": "string", "$ref": "#/$defs/a" }),
            json!({}),
        ] {
            let form = json!({ "type": "object", "properties": { "a": field } });
            assert_eq!(
                of(json!({ "message": "a", "requestedSchema": form })),
                "a field of its form has an unsupported type"
            );
        }
        let large =
            json!({ "type": "object", "properties": {}, "description": "x".repeat(70_000) });
        assert_eq!(
            of(json!({ "message": "a", "requestedSchema": large })),
            "its form has more than 65536 bytes"
        );
        for url in ["file:///etc/passwd", "javascript:alert(1)", "https://a b", "https://\u{430}"] {
            assert_eq!(
                of(json!({ "message": "a", "mode": "url", "url": url })),
                "its URL cannot be shown"
            );
        }
        assert_eq!(
            of(json!({ "message": "a", "mode": "video" })),
            "its mode is neither form nor url"
        );
        let question =
            read(&json!({ "message": "a", "mode": "url", "url": "https://a/b?c" })).unwrap();
        assert_eq!(
            question.answer(ElicitationAnswer::Accept(json!("anything"))),
            Ok(json!({ "action": "accept" }))
        );
    }

    #[test]
    fn shown_texts_have_no_invisible_characters() {
        let (hidden, shown) = ("Pay\u{202e} 5\u{200b}", "Pay 5");
        let field = |text: &str, value: &str| {
            let choice = json!({ "const": value, "title": text });
            json!({ "type": "string", "title": text, "description": text, "enumNames": [text], "oneOf": [choice] })
        };
        let question = question(&json!({ "name": field(hidden, hidden) }));
        let ElicitationMode::Form { schema } = question.mode else { panic!("no form") };
        assert_eq!(schema["properties"]["name"], field(shown, hidden), "values stay as they are");
    }

    #[test]
    fn questions_round_trip_through_json() {
        let question = question(&json!({ "name": { "type": "string" } }));
        let data = serde_json::to_value(&question).unwrap();
        assert_eq!(data["mode"], "form");
        assert_eq!(serde_json::from_value::<Elicitation>(data).unwrap(), question);
    }
}
