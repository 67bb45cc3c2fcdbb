//! The schemas directly below a schema.

use serde_json::{Map, Value};

/// The place of schemas in the value of a keyword.
enum Place {
    /// The value is data.
    Nowhere,
    /// The value's members are schemas.
    Members,
    /// The value is a schema or a list of them. An unknown keyword may have schemas, so what looks like one there is
    /// treated as one.
    Here,
}

fn place(keyword: &str) -> Place {
    match keyword {
        "const" | "default" | "enum" | "examples" | "required" | "type" => Place::Nowhere,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => {
            Place::Members
        }
        _ => Place::Here,
    }
}

/// Returns the values in the position of a schema directly below a schema.
pub(crate) fn below(keywords: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    keywords.iter().flat_map(|(keyword, value)| {
        let found: Vec<&Value> = match (place(keyword), value) {
            (Place::Members, Value::Object(named)) => named.values().collect(),
            (Place::Here, Value::Array(parts)) => parts.iter().collect(),
            (Place::Here, value) => vec![value],
            _ => Vec::new(),
        };
        found
    })
}

/// Calls `visit` for each value in the position of a schema directly below a schema.
pub(crate) fn visit_below(
    keywords: &mut Map<String, Value>,
    visit: &mut dyn FnMut(&mut Value) -> Result<(), String>,
) -> Result<(), String> {
    for (keyword, value) in keywords {
        match (place(keyword), value) {
            (Place::Members, Value::Object(named)) => {
                named.values_mut().try_for_each(&mut *visit)?;
            }
            (Place::Here, Value::Array(parts)) => parts.iter_mut().try_for_each(&mut *visit)?,
            (Place::Here, value) => visit(value)?,
            _ => {}
        }
    }
    Ok(())
}
