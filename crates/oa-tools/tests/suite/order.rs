//! Schema members keep their declaration order, because models write arguments in that order.

use oa_tools::{FnTool, ToolBuilder, tool};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The parameter names in the order of the serialized schema.
fn names(tool: &FnTool) -> (Vec<String>, Vec<String>) {
    let schema: Value =
        serde_json::from_str(&tool.input_schema().to_string()).expect("nothing fails here");
    let properties =
        schema["properties"].as_object().expect("nothing fails here").keys().cloned().collect();
    let required = schema["required"].as_array().expect("nothing fails here").iter();
    (properties, required.filter_map(Value::as_str).map(str::to_owned).collect())
}

fn end(tool: ToolBuilder) -> FnTool {
    tool.build(|_| async { Ok(Value::Null) })
}

#[cfg(feature = "schemars")]
#[test]
fn typed_schemas_keep_field_order() {
    use schemars::JsonSchema;
    use serde::Deserialize;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Review {
        summary: String,
        author: String,
        stars: u8,
        #[serde(flatten)]
        rest: Rest,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only the schema is of interest")]
    struct Rest {
        zest: bool,
        age: u8,
    }

    let review = tool("review", "Reviews").typed(|_: Review| async { Ok(Value::Null) });
    let fields = ["summary", "author", "stars", "zest", "age"].map(str::to_owned).to_vec();
    assert_eq!(names(&review), (fields.clone(), fields));
    // Removing flags does not reorder the remaining members.
    let schema = review.input_schema().to_string();
    assert!(schema.starts_with(r#"{"type":"object","properties":{"summary""#), "{schema}");
}

#[test]
fn removing_flags_keeps_member_order() {
    let parameter =
        json!({"default": 1, "type": "int", "minimum": 0, "optional": true, "maximum": 9});
    let tool = end(tool("a", "A").param_with("n", parameter));
    let schema = tool.input_schema()["properties"]["n"].to_string();
    assert_eq!(schema, r#"{"type":"integer","minimum":0,"maximum":9}"#);
}

proptest! {
    #[test]
    fn parameters_keep_declaration_order(
        wanted in prop::collection::hash_set("[a-z]{1,6}", 1..12),
    ) {
        let wanted: Vec<String> = wanted.into_iter().map(|name| format!("p_{name}")).collect();
        let each = |of: Value| wanted.iter().map(|name| (name.clone(), of.clone())).collect::<Map<_, _>>();
        let built = wanted.iter().fold(tool("a", "A"), |tool, name| tool.param(name, "string"));
        let short = tool("a", "A").schema(each(json!("string")).into());
        let whole = tool("a", "A").schema(json!({
            "type": "object", "properties": each(json!({"type": "string"})), "required": wanted,
        }));
        for tool in [built, short, whole] {
            prop_assert_eq!(names(&end(tool)), (wanted.clone(), wanted.clone()));
        }
    }
}
