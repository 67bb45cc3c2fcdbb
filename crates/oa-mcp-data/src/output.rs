use oa_tools::check_arguments;
use serde_json::Value;

use crate::client::memory_of;

/// The memory of the largest structured content that is checked, in bytes: the check copies it, and takes time.
const LARGEST: usize = 1024 * 1024;

/// The schema that a server promises for the structured content of a tool's results.
///
/// Models do not see it. It is checked with [`check_arguments`], so missing members with a default, and `null` for
/// members that may be missing, match.
///
/// ```
/// use oa_mcp_data::OutputSchema;
/// use serde_json::json;
///
/// let of_sum = json!({ "type": "object", "properties": { "sum": { "type": "number" } }, "required": ["sum"] });
/// let schema = OutputSchema::read(&json!({ "name": "add", "outputSchema": of_sum }), 64 * 1024).unwrap();
/// assert_eq!(schema.problem(&json!({ "structuredContent": { "sum": 3 } })), None);
/// let problem = schema.problem(&json!({ "structuredContent": { "sum": "three" } }));
/// assert_eq!(problem.as_deref(), Some("`sum`: expected number, found string \"three\""));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSchema(Value);

impl OutputSchema {
    /// Reads the schema of a tool; `None` if it has none, or one of more than `limit` bytes.
    #[must_use]
    pub fn read(tool: &Value, limit: usize) -> Option<Self> {
        let schema = tool.get("outputSchema").filter(|schema| schema.is_object())?;
        (schema.to_string().len() <= limit).then(|| Self(schema.clone()))
    }

    /// Returns the problem of a result whose structured content is missing or does not match. `None` also for the
    /// result of a call that failed, which need not match, and for content that takes more than 1 MiB of memory.
    #[must_use]
    pub fn problem(&self, result: &Value) -> Option<String> {
        if result.get("isError") == Some(&Value::Bool(true)) {
            return None;
        }
        match result.get("structuredContent") {
            Some(content) if memory_of(content) > LARGEST => None,
            Some(content) => {
                check_arguments(&self.0, content.clone()).err().map(|error| error.to_string())
            }
            None => Some("it is missing".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(schema: &Value, result: &Value) -> Option<String> {
        OutputSchema::read(&json!({ "outputSchema": schema }), 1_000)?.problem(result)
    }

    #[test]
    fn structured_content_is_checked() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": { "names": { "$ref": "#/$defs/names" }, "note": { "type": "string" } },
            "required": ["names"],
            "$defs": { "names": { "type": "array", "items": { "type": "string" } } },
        });
        let of = |content: Value| problem(&schema, &json!({ "structuredContent": content }));
        assert_eq!(of(json!({ "names": ["a"], "other": 1 })), None);
        assert_eq!(
            of(json!({ "names": [], "note": null })),
            None,
            "Python writes what is not there"
        );
        let expected = "`names[0]`: expected string, found number 1";
        assert_eq!(of(json!({ "names": [1] })).as_deref(), Some(expected));
        assert_eq!(of(json!([])).as_deref(), Some("expected object, found array of 0"));
        assert_eq!(problem(&schema, &json!({ "content": [] })).as_deref(), Some("it is missing"));
        let failed = json!({ "content": [], "structuredContent": { "error": 1 }, "isError": true });
        assert_eq!(problem(&schema, &failed), None);
    }

    /// Since 2026-07-28, structured content may be of any type.
    #[test]
    fn content_may_be_of_any_type() {
        let schema = json!({ "type": "array", "items": { "type": "integer" } });
        assert_eq!(problem(&schema, &json!({ "structuredContent": [1, 2] })), None);
        let expected = "`[1]`: expected integer, found string \"2\"";
        let wrong = problem(&schema, &json!({ "structuredContent": [1, "2"] }));
        assert_eq!(wrong.as_deref(), Some(expected));
    }

    #[test]
    fn large_content_is_not_checked() {
        let schema = json!({ "type": "object" });
        let of = |values: usize| problem(&schema, &json!({ "structuredContent": vec![0; values] }));
        assert!(of(1_000).is_some());
        assert_eq!(of(20_000), None);
    }

    #[test]
    fn schemas_are_bounded() {
        let schema = |length: usize| json!({ "outputSchema": { "title": "x".repeat(length) } });
        assert!(OutputSchema::read(&schema(10), 22).is_some());
        assert!(OutputSchema::read(&schema(11), 22).is_none());
        for schema in [json!({}), json!({ "outputSchema": null }), json!({ "outputSchema": true })]
        {
            assert!(OutputSchema::read(&schema, 1_000).is_none(), "{schema}");
        }
        // References without an end.
        let circle = json!({ "allOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        let _ = problem(&circle, &json!({ "structuredContent": {} }));
    }
}
