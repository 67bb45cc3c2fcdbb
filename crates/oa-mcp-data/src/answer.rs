use oa_redact::Secrets;
use serde_json::Value;

use crate::elicitation::can_show;

/// The longest text of an error, in characters.
const TEXT: usize = 2_000;
/// The longest excerpt of an error's data, in characters.
const DATA: usize = 500;
/// The longest text that says that a session is lost, in bytes.
const LOST: usize = 300;
/// The code of a server that answers only after the user has visited pages, such as to log in elsewhere.
pub(crate) const PAGES_REQUIRED: i64 = -32042;
/// The maximum number of such pages that an error names.
const PAGES: usize = 3;

/// An answer that has no result.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "an answer is an error or not valid")]
pub enum AnswerError {
    /// The answer is not valid, for this reason.
    Malformed(&'static str),
    /// The server answered with an error.
    Refused {
        /// The error code, if there is one.
        code: Option<i64>,
        /// The message, bounded and masked.
        message: String,
    },
}

/// Takes the result out of a server's answer. A missing result is null: JavaScript leaves out one that is undefined.
///
/// # Errors
///
/// The server's error. One without a message is shown as it is. The message contains an excerpt of the error's data, or
/// names the pages that the user has to visit first (`URLElicitationRequiredError` of version 2025-11-25).
pub fn take_result(answer: &mut Value, secrets: &Secrets) -> Result<Value, AnswerError> {
    // Null counts as absent: servers that write every member send `"error": null` beside a result.
    let error = answer.get("error").filter(|error| !error.is_null());
    let result = answer.get("result").filter(|result| !result.is_null());
    match (error, result) {
        (Some(_), Some(_)) => {
            Err(AnswerError::Malformed("the answer has both a result and an error"))
        }
        (Some(error), None) => {
            let code = error.get("code").and_then(read_integer);
            // Servers that are not built on a library may send only a text.
            let text = error.get("message").unwrap_or(error).as_str();
            let text = text.filter(|text| !text.trim().is_empty());
            let shown = text.map_or_else(|| error.to_string(), str::to_owned);
            let mut message = secrets.excerpt(&shown, TEXT);
            let data = error.get("data").filter(|_| text.is_some());
            if code == Some(PAGES_REQUIRED) {
                let pages = required_pages(error);
                if !pages.is_empty() {
                    message.push_str("; the user has to visit first: ");
                    message.push_str(&secrets.mask(&pages.join(", ")));
                }
            } else if let Some(data) = data.and_then(|data| details(data, &shown)) {
                message.push_str(": ");
                message.push_str(&secrets.excerpt(&data, DATA));
            }
            Err(AnswerError::Refused { code, message })
        }
        (None, _) => Ok(answer.get_mut("result").map(Value::take).unwrap_or_default()),
    }
}

/// Returns the text of an error's data; `None` if it says nothing beyond the message.
fn details(data: &Value, message: &str) -> Option<String> {
    let text = match data {
        Value::Null | Value::Bool(_) => return None,
        Value::Array(items) if items.is_empty() => return None,
        Value::Object(members) if members.is_empty() => return None,
        Value::String(text) => text.trim().to_owned(),
        data => data.to_string(),
    };
    let is_repeated = message == text || message.ends_with(&format!(": {text}"));
    (!text.is_empty() && !is_repeated).then_some(text)
}

/// Returns the URLs of the pages in an error that can be shown.
fn required_pages(error: &Value) -> Vec<&str> {
    let pages = error.pointer("/data/elicitations").and_then(Value::as_array);
    let urls = pages.into_iter().flatten().filter_map(|page| page.get("url")?.as_str());
    urls.filter(|url| can_show(url)).take(PAGES).collect()
}

/// Returns true for the answer of a server over HTTP that has forgotten a session: an error that belongs to no request,
/// and says that the session or the handshake is missing. A body that is not JSON is a string.
///
/// ```
/// use serde_json::json;
///
/// // The answer of many servers in TypeScript, after a restart.
/// let error = json!({ "code": -32000, "message": "Bad Request: Server not initialized" });
/// assert!(oa_mcp_data::is_session_lost(&json!({ "error": error, "id": null })));
/// // That of servers built on `rmcp`.
/// assert!(oa_mcp_data::is_session_lost(&json!("Unauthorized: Session not found")));
/// ```
#[must_use]
pub fn is_session_lost(answer: &Value) -> bool {
    let error = answer.get("error").unwrap_or(answer);
    let message = error.get("message").unwrap_or(error).as_str().unwrap_or_default();
    // A web page about something else may have these words as well.
    if message.len() > LOST || answer.get("id").is_some_and(Value::is_number) {
        return false;
    }
    let message = message.to_ascii_lowercase();
    message.contains("session") || message.contains("not initialized")
}

/// Returns true if the response to a request within a session says that the session is lost: [`is_session_lost`], with a
/// status that servers use for it. The standard has 404, whatever the body.
///
/// `has_challenge` is true if the response says how to log in.
///
/// ```
/// use serde_json::json;
///
/// assert!(oa_mcp_data::forgets_session(400, false, &json!("Invalid session ID")));
/// assert!(!oa_mcp_data::forgets_session(403, false, &json!("your session may not do this")));
/// ```
#[must_use]
pub fn forgets_session(status: u16, has_challenge: bool, body: &Value) -> bool {
    is_session_lost(body)
        && match status {
            // Of many servers in TypeScript and Go.
            400 => true,
            // Of servers built on `rmcp`. With a challenge, it is about the key.
            401 => !has_challenge,
            // The text alone may be that of a failing tool.
            503 => body.is_object(),
            status => status == 404,
        }
}

/// Reads a whole number. Some servers write numbers as floats or texts: `7.0`, `"7"`.
#[must_use]
pub fn read_integer(number: &Value) -> Option<i64> {
    let of_float =
        || number.is_f64().then(|| number.to_string()).as_deref()?.strip_suffix(".0")?.parse().ok();
    number.as_i64().or_else(of_float).or_else(|| number.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: Value) -> Result<Value, (Option<i64>, String)> {
        let mut answer = answer;
        let mut secrets = Secrets::new();
        secrets.add_key("sk-0123456789");
        take_result(&mut answer, &secrets).map_err(|error| match error {
            AnswerError::Malformed(why) => (None, why.to_owned()),
            AnswerError::Refused { code, message } => (code, message),
        })
    }

    #[test]
    fn errors_of_any_form_are_described() {
        let refused = |code: Option<i64>, message: &str| Err((code, message.to_owned()));
        for (error, expected) in [
            (json!({ "code": -32602, "message": "no" }), refused(Some(-32602), "no")),
            (json!({ "code": "-32602", "message": "no" }), refused(Some(-32602), "no")),
            (json!({ "code": -32602.0, "message": "no" }), refused(Some(-32602), "no")),
            (json!({ "message": "bad key sk-0123456789" }), refused(None, "bad key ****")),
            (json!("the disk is full"), refused(None, "the disk is full")),
            (
                json!({ "code": 5, "detail": "full" }),
                refused(Some(5), r#"{"code":5,"detail":"full"}"#),
            ),
            (
                json!({ "message": { "text": "full" } }),
                refused(None, r#"{"message":{"text":"full"}}"#),
            ),
            (json!({ "code": 5, "message": "" }), refused(Some(5), r#"{"code":5,"message":""}"#)),
            (json!(true), refused(None, "true")),
        ] {
            assert_eq!(read(json!({ "id": 1, "error": error })), expected, "{error}");
        }
    }

    /// Servers say there which argument is wrong, or what they have instead.
    #[test]
    fn data_of_an_error_is_shown() {
        let of = |message: &str, data: Value| {
            let error = json!({ "code": -32602, "message": message, "data": data });
            read(json!({ "id": 1, "error": error })).unwrap_err().1
        };
        assert_eq!(of("no", json!("`path`: too long")), "no: `path`: too long");
        assert_eq!(of("no", json!({ "path": ["a", 1] })), r#"no: {"path":["a",1]}"#);
        assert_eq!(of("no", json!({ "key": "sk-0123456789" })), r#"no: {"key":"****"}"#);
        for nothing in [json!(null), json!(""), json!(" "), json!({}), json!([]), json!(true)] {
            assert_eq!(of("no", nothing.clone()), "no", "{nothing}");
        }
        assert_eq!(of("no such file: a", json!("a")), "no such file: a");
        assert_eq!(of("no", json!("no")), "no");
        assert_eq!(of("invalid", json!("id")), "invalid: id");
        assert_eq!(of("", json!("a")), r#"{"code":-32602,"message":"","data":"a"}"#);
        let long = of("no", json!("x".repeat(10_000)));
        assert_eq!(long.len(), "no: ".len() + DATA + "...".len());
    }

    /// Only the user can go on, and the address is nowhere else.
    #[test]
    fn required_pages_are_named() {
        let page = |url: &str| json!({ "mode": "url", "elicitationId": "1", "url": url });
        let of = |code: i64, pages: Value| {
            let error =
                json!({ "code": code, "message": "log in", "data": { "elicitations": pages } });
            read(json!({ "id": 1, "error": error })).unwrap_err().1
        };
        let pages =
            json!([page("https://a.example/?key=sk-0123456789"), page("https://b.example/2")]);
        let told =
            "log in; the user has to visit first: https://a.example/?key=****, https://b.example/2";
        assert_eq!(of(PAGES_REQUIRED, pages.clone()), told);
        let other = of(-32000, pages);
        assert!(other.starts_with(r#"log in: {"elicitations":["#), "{other}");
        let hidden = ["javascript:alert(1)", "https://\u{430}.example", "https://a b"].map(page);
        assert_eq!(of(PAGES_REQUIRED, json!([hidden[0], hidden[1], hidden[2], {}, 7])), "log in");
        assert_eq!(of(PAGES_REQUIRED, json!("https://a.example")), "log in");
        let many = vec![page("https://a.example"); 9];
        assert_eq!(of(PAGES_REQUIRED, json!(many)).matches("https://").count(), PAGES);
    }

    #[test]
    fn null_counts_as_absent() {
        assert_eq!(read(json!({ "result": 7, "error": null })), Ok(json!(7)));
        assert_eq!(read(json!({ "result": null, "error": null })), Ok(Value::Null));
        assert_eq!(read(json!({ "id": 1 })), Ok(Value::Null));
        let both = read(json!({ "result": {}, "error": {} })).unwrap_err();
        assert_eq!(both.1, "the answer has both a result and an error");
        let error = json!({ "message": "no" });
        assert_eq!(read(json!({ "result": null, "error": error })), Err((None, "no".to_owned())));
    }

    #[test]
    fn lost_sessions_belong_to_no_request() {
        let of = |id: Value, message: &str| {
            is_session_lost(&json!({ "id": id, "error": { "message": message } }))
        };
        for message in [
            "Bad Request: No valid session ID provided",
            "Session not found",
            "Bad Request: Server not initialized",
        ] {
            assert!(of(Value::Null, message), "{message}");
            assert!(of(json!("server-error"), message), "{message}");
            assert!(!of(json!(7), message), "{message}");
        }
        assert!(!of(Value::Null, "bad arguments"));
        assert!(!is_session_lost(&Value::Null));
        assert!(is_session_lost(&json!({ "error": "Session not found" })));
        let page = format!("<html>{}</html>", "Your session has been recorded. ".repeat(20));
        assert!(!is_session_lost(&json!(page)));
    }

    #[test]
    fn only_some_statuses_tell_of_a_lost_session() {
        let text = json!("Unauthorized: Session not found");
        let error =
            json!({ "error": { "code": -32001, "message": "Unknown session" }, "id": null });
        let all = |body: &Value| {
            [200, 400, 401, 403, 404, 422, 429, 500, 502, 503]
                .into_iter()
                .filter(|status| forgets_session(*status, false, body))
                .collect::<Vec<u16>>()
        };
        assert_eq!(all(&text), [400, 401, 404]);
        assert_eq!(all(&error), [400, 401, 404, 503]);
        assert_eq!(all(&json!("the disk is full")), [0; 0]);
        assert!(!forgets_session(401, true, &text), "the key has expired");
    }
}
