use oa_json::{count_values, replace_lone_surrogates};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Number, Value};

/// Input that is not JSON, or JSON that cannot be represented or is too large.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Unreadable {
    /// The id, if the input is an object with a valid one.
    pub id: Option<Value>,
    /// The input has a method, so it is not an answer.
    pub has_method: bool,
    /// The input has too many values.
    pub is_too_large: bool,
    /// The problem.
    pub cause: String,
}

/// The members by which an unreadable message can still be answered. The others are skipped and not checked.
#[derive(Default, Deserialize)]
struct Head {
    id: Option<Id>,
    method: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(Number),
    Text(String),
}

/// Reads a message of at most `most_values` JSON values. Lone surrogates and bytes that are not UTF-8 become U+FFFD, and a
/// byte order mark is skipped.
///
/// Node writes a lone surrogate where a text was cut within a character.
///
/// ```
/// use oa_mcp_data::read_json;
/// use serde_json::json;
///
/// assert_eq!(read_json(br#"["cut: \ud83d"]"#, 100).unwrap(), json!(["cut: \u{fffd}"]));
///
/// let error = read_json(br#"{"id": 5, "result": 1e400}"#, 100).unwrap_err();
/// assert_eq!(error.id, Some(json!(5)));
/// ```
///
/// # Errors
///
/// The reason, and the id of the message if it has one.
pub fn read_json(bytes: &[u8], most_values: usize) -> Result<Value, Unreadable> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    // Counted before parsing, because a value takes much more memory than its text: `[0,0,0,..]`.
    if count_values(bytes) > most_values {
        let cause = format!("the message has more than {most_values} values");
        return Err(Unreadable { is_too_large: true, ..unreadable(bytes, cause) });
    }
    let error = match serde_json::from_slice(bytes) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    // Only what looks like a message is worth a copy.
    if !bytes.trim_ascii_start().starts_with(b"{") && !bytes.trim_ascii_start().starts_with(b"[") {
        return Err(unreadable(b"", error.to_string()));
    }
    let text = String::from_utf8_lossy(bytes);
    let text = replace_lone_surrogates(&text);
    serde_json::from_str(&text).map_err(|error| unreadable(text.as_bytes(), error.to_string()))
}

fn unreadable(bytes: &[u8], cause: String) -> Unreadable {
    let head: Head = serde_json::from_slice(bytes).unwrap_or_default();
    let id = head.id.map(|id| match id {
        Id::Number(number) => Value::Number(number),
        Id::Text(text) => Value::String(text),
    });
    Unreadable { id, has_method: head.method.is_some(), is_too_large: false, cause }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lone_surrogates_and_bytes_are_replaced() {
        let read = |bytes: &[u8]| read_json(bytes, 1_000).unwrap();
        assert_eq!(read(br#"["\ud83d", "\ude00\ud83d", "\ud83d\ude00"]"#), {
            json!(["\u{fffd}", "\u{fffd}\u{fffd}", "\u{1f600}"])
        });
        assert_eq!(read(br#"["\\ud83d", "\ud83d\\", "\ud83d\n"]"#), {
            json!(["\\ud83d", "\u{fffd}\\", "\u{fffd}\n"])
        });
        assert_eq!(read(b"{\"caf\xe9\": \"\\ud83dx\"}"), json!({ "caf\u{fffd}": "\u{fffd}x" }));
        assert_eq!(read(b"\xef\xbb\xbf{}"), json!({}));
    }

    #[test]
    fn id_of_an_unreadable_message_is_known() {
        let of = |text: &str| {
            let error = read_json(text.as_bytes(), 1_000).unwrap_err();
            (error.id, error.has_method)
        };
        let deep = format!(r#"{{"result": {}{}, "id": 5}}"#, "[".repeat(200), "]".repeat(200));
        assert_eq!(of(&deep), (Some(json!(5)), false));
        let infinite = r#"{"id": "a", "method": "x", "params": {"text": "\ud83d", "n": 1e400}}"#;
        assert_eq!(of(infinite), (Some(json!("a")), true));
        assert_eq!(of(r#"{"id": [], "n": 1e400}"#), (None, false));
        for garbage in ["Loading...", "{", "[1, 2", r#"{"id": 5, "result": "#, "{\"\\u12", "{\"\\"]
        {
            assert_eq!(of(garbage), (None, false), "{garbage}");
        }
    }

    proptest! {
        #[test]
        fn valid_escapes_stay(text in any::<String>()) {
            let json = json!([text]).to_string();
            prop_assert_eq!(replace_lone_surrogates(&json), json.as_str());
        }

        #[test]
        fn any_escapes_are_read(parts in prop::collection::vec("[a\u{e9}]|\\\\u[dD][89abCDef][0-9a]{2}|\\\\[n\\\\]", 0..8)) {
            let json = format!("[\"{}\"]", parts.concat());
            prop_assert!(read_json(json.as_bytes(), 1_000).is_ok(), "{}", json);
        }
    }
}
