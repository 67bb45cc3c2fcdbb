use serde_json::{Map, Value};

use crate::client::header_text;
use crate::subschemas::below;

/// The keyword that marks an argument.
pub(crate) const MARK: &str = "x-mcp-header";
/// The types of arguments that fit into a header.
const TYPES: [&str; 3] = ["boolean", "integer", "string"];
/// The largest whole number that every JSON parser represents exactly.
const EXACT: f64 = 9_007_199_254_740_991.0;

/// The arguments of a tool that are repeated in HTTP headers in the stateless version, so that proxies can route a call
/// without reading its body. The tool's schema marks them with `x-mcp-header`.
///
/// ```
/// use oa_mcp_data::MirroredArguments;
/// use serde_json::json;
///
/// let schema = json!({ "properties": { "region": { "type": "string", "x-mcp-header": "Region" } } });
/// let mirrored = MirroredArguments::read(&schema)?;
/// let headers = mirrored.headers(&json!({ "region": "eu-north", "query": "tea" }));
/// assert_eq!(headers, [("Mcp-Param-Region".to_owned(), "eu-north".to_owned())]);
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct MirroredArguments(Vec<Mirrored>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Mirrored {
    header: String,
    /// The names of the properties that lead to the argument.
    path: Vec<String>,
}

impl MirroredArguments {
    /// Reads the marks of a tool's schema.
    ///
    /// # Errors
    ///
    /// The reason why a mark is not valid. A client must not use such a tool over HTTP: its server refuses the calls.
    pub fn read(schema: &Value) -> Result<Self, String> {
        let mut found = Vec::new();
        if let Value::Object(keywords) = schema {
            read_properties(keywords, &mut Vec::new(), &mut found)?;
        }
        // An argument in a list or an alternative has no fixed path.
        if found.len() != marks(schema) {
            return Err(format!("its {MARK} marks more than properties"));
        }
        Ok(Self(found))
    }

    /// Returns the headers of a call. Missing arguments and null have none, and neither has a value that does not fit
    /// into a header, such as a list, a fraction, or a whole number beyond 2^53.
    #[must_use]
    pub fn headers(&self, arguments: &Value) -> Vec<(String, String)> {
        let header = |mirrored: &Mirrored| {
            let value = mirrored.path.iter().try_fold(arguments, |value, name| value.get(name))?;
            Some((mirrored.header.clone(), text_of(value)?))
        };
        self.0.iter().filter_map(header).collect()
    }
}

fn read_properties(
    keywords: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<Mirrored>,
) -> Result<(), String> {
    let Some(Value::Object(properties)) = keywords.get("properties") else { return Ok(()) };
    for (name, schema) in properties {
        let Value::Object(keywords) = schema else { continue };
        path.push(name.clone());
        if let Some(mark) = keywords.get(MARK) {
            let name = mark.as_str().filter(|name| is_token(name));
            let name = name.ok_or_else(|| format!("its {MARK} is not the name of a header"))?;
            if !is_primitive(keywords) {
                return Err(format!(
                    "its {MARK} {name} is not on a string, an integer or a boolean"
                ));
            }
            let header = format!("Mcp-Param-{name}");
            if found.iter().any(|other| other.header.eq_ignore_ascii_case(&header)) {
                return Err(format!("two arguments have the {MARK} {name}"));
            }
            found.push(Mirrored { header, path: path.clone() });
        }
        read_properties(keywords, path, found)?;
        path.pop();
    }
    Ok(())
}

/// Counts the marks anywhere in a schema.
fn marks(schema: &Value) -> usize {
    let Value::Object(keywords) = schema else { return 0 };
    usize::from(keywords.contains_key(MARK)) + below(keywords).map(marks).sum::<usize>()
}

/// Returns true for a name that HTTP allows.
fn is_token(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_allowed)
}

/// Returns true if the type fits into a header; an argument may also be null, which has no header.
fn is_primitive(keywords: &Map<String, Value>) -> bool {
    let is_known = |of: &Value| of.as_str().is_some_and(|of| TYPES.contains(&of));
    match keywords.get("type") {
        Some(Value::Array(of)) => {
            of.iter().any(is_known) && of.iter().all(|of| is_known(of) || of == "null")
        }
        Some(of) => is_known(of),
        None => false,
    }
}

fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(header_text(text)),
        Value::Bool(is_true) => Some(is_true.to_string()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            // The sum turns the negative zero into zero.
            let is_whole = number.fract() == 0.0 && number.abs() <= EXACT;
            is_whole.then(|| format!("{:.0}", number + 0.0))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(properties: Value) -> String {
        let schema = json!({ "type": "object", "properties": properties });
        MirroredArguments::read(&schema).err().unwrap_or_default()
    }

    #[test]
    fn marked_arguments_become_headers() {
        let schema = json!({ "type": "object", "properties": {
            "region": { "type": "string", "x-mcp-header": "Region" },
            "count": { "type": ["integer", "null"], "x-mcp-header": "Count" },
            "dry": { "type": "boolean", "x-mcp-header": "dry.run" },
            "tenant": { "type": "object", "properties": { "id": { "type": "integer", "x-mcp-header": "Id" } } },
            "x-mcp-header": { "type": "string", "default": { "x-mcp-header": "data" } },
        } });
        let mirrored = MirroredArguments::read(&schema).unwrap();
        let headers = |arguments: Value| -> Vec<String> {
            let headers = mirrored.headers(&arguments).into_iter();
            headers.map(|(name, value)| format!("{name}: {value}")).collect()
        };
        assert_eq!(
            headers(
                json!({ "region": "eu", "count": 3.0, "dry": false, "tenant": { "id": -7 }, "x-mcp-header": "x" })
            ),
            [
                "Mcp-Param-Region: eu",
                "Mcp-Param-Count: 3",
                "Mcp-Param-dry.run: false",
                "Mcp-Param-Id: -7"
            ]
        );
        assert_eq!(headers(json!({ "region": null, "tenant": null })), Vec::<String>::new());
        assert_eq!(headers(json!([])), Vec::<String>::new());
        assert_eq!(headers(json!({ "region": "" })), ["Mcp-Param-Region: "]);
        assert_eq!(headers(json!({ "count": -0.0 })), ["Mcp-Param-Count: 0"]);
        let exact = 9_007_199_254_740_991_i64;
        assert_eq!(headers(json!({ "count": exact })), [format!("Mcp-Param-Count: {exact}")]);
        for unfit in [json!(exact + 1), json!(0.5), json!([1]), json!({ "a": 1 })] {
            assert_eq!(headers(json!({ "count": unfit })), Vec::<String>::new(), "{unfit}");
        }
    }

    /// The examples of the protocol.
    #[test]
    fn values_that_would_change_are_encoded() {
        for (text, value) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(text_of(&json!(text)).as_deref(), Some(value));
        }
    }

    #[test]
    fn invalid_marks_are_errors() {
        let marked = |mark: Value| json!({ "a": { "type": "string", "x-mcp-header": mark } });
        assert_eq!(refused(marked(json!("Region"))), "");
        for name in [json!(""), json!("a b"), json!("a:b"), json!("a\r\nb"), json!("é"), json!(5)]
        {
            let why = refused(marked(name.clone()));
            assert_eq!(why, "its x-mcp-header is not the name of a header", "{name}");
        }
        for of in [json!("number"), json!("object"), json!(["string", "array"]), json!(["null"])] {
            let why = refused(json!({ "a": { "type": of, "x-mcp-header": "A" } }));
            assert_eq!(why, "its x-mcp-header A is not on a string, an integer or a boolean");
        }
        assert!(refused(json!({ "a": { "enum": ["x"], "x-mcp-header": "A" } })).contains("not on"));
        let twice = json!({
            "a": { "type": "string", "x-mcp-header": "Region" },
            "b": { "properties": { "c": { "type": "string", "x-mcp-header": "region" } } },
        });
        assert_eq!(refused(twice), "two arguments have the x-mcp-header region");
    }

    #[test]
    fn marks_without_a_path_are_errors() {
        let marked = json!({ "type": "string", "x-mcp-header": "A" });
        for elsewhere in [
            json!({ "items": marked }),
            json!({ "anyOf": [marked] }),
            json!({ "$defs": { "a": marked } }),
            json!({ "properties": { "b": { "items": { "properties": { "a": marked } } } } }),
            json!({ "if": { "properties": { "a": marked } } }),
            marked,
        ] {
            let why = MirroredArguments::read(&elsewhere).err();
            let expected = "its x-mcp-header marks more than properties";
            assert_eq!(why.as_deref(), Some(expected), "{elsewhere}");
        }
    }
}
