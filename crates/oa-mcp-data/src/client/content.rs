use std::fmt::Display;

use oa_tools::check_arguments;
use oa_types::{ImageBlock, Outcome};
use serde_json::{Value, json};

/// Returns the result of a call that failed, for the model to read.
#[must_use]
pub fn failure(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}

/// Returns the result of a call in the protocol's form. Its structured content must match `schema`.
///
/// # Errors
///
/// The error message: the tool failed, or its result does not match the schema.
pub fn tool_result(
    value: &Value,
    outcome: Outcome,
    images: &[ImageBlock],
    schema: Option<&Value>,
) -> Result<Value, String> {
    if outcome.is_error() {
        return Err(words(outcome, value));
    }
    let value = match schema {
        // Clients reject a result that violates the schema, with no message for the model.
        Some(schema) => {
            let mismatch =
                |why: &dyn Display| format!("the result does not match the output schema: {why}");
            let value = check_arguments(schema, value.clone()).map_err(|error| mismatch(&error))?;
            // Also if the schema has no type: clients are told that it is an object.
            if !value.is_object() {
                return Err(mismatch(&"expected object"));
            }
            value
        }
        None => value.clone(),
    };
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut blocks = Vec::with_capacity(1 + images.len());
    if !text.is_empty() || images.is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
    blocks.extend(images.iter().map(image));
    let mut content = json!({ "content": blocks });
    // The protocol defines this member as an object. Other values are in the text alone.
    if value.is_object() {
        content["structuredContent"] = value;
    }
    Ok(content)
}

fn words(outcome: Outcome, body: &Value) -> String {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let error = text("error").unwrap_or("the tool failed");
    match text("reason") {
        // The message of a panic is for the author of the tool.
        Some(reason) if outcome != Outcome::Panicked => format!("{error}: {reason}"),
        _ => error.to_owned(),
    }
}

fn image(image: &ImageBlock) -> Value {
    let inline = image.url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match inline {
        Some((mime, data)) => json!({ "type": "image", "mimeType": mime, "data": data }),
        // Clients do not fetch URLs, and a resource link would refer to this server.
        None => json!({ "type": "text", "text": format!("[image {}]", image.url) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value, outcome: Outcome) -> Result<Value, String> {
        let schema = json!({ "type": "object", "properties": { "sum": { "type": "integer" } } });
        tool_result(value, outcome, &[], value.is_object().then_some(&schema))
    }

    #[test]
    fn results_become_content_blocks() {
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        assert_eq!(read(&json!("a"), Outcome::Ok), Ok(text("a")));
        assert_eq!(read(&Value::Null, Outcome::Ok), Ok(text("")));
        let mut sum = text(r#"{"sum":3}"#);
        sum["structuredContent"] = json!({ "sum": 3 });
        assert_eq!(read(&json!({ "sum": 3 }), Outcome::Ok), Ok(sum));
        let wrong = read(&json!({ "sum": "3a" }), Outcome::Ok).unwrap_err();
        assert!(wrong.starts_with("the result does not match the output schema: "), "{wrong}");
        // Clients reject a result without structured content if the tool has an output schema.
        let untyped = json!({ "properties": { "sum": { "type": "integer" } } });
        let told = tool_result(&json!("three"), Outcome::Ok, &[], Some(&untyped)).unwrap_err();
        assert_eq!(told, "the result does not match the output schema: expected object");
        let failed = json!({ "error": "no", "reason": "secret" });
        assert_eq!(read(&failed, Outcome::Failed), Err("no: secret".to_owned()));
        assert_eq!(read(&failed, Outcome::Panicked), Err("no".to_owned()));
        assert_eq!(read(&json!(7), Outcome::Failed), Err("the tool failed".to_owned()));
    }

    #[test]
    fn images_become_content_blocks() {
        let images = [
            ImageBlock::from_url("data:image/png;base64,QUJD").unwrap(),
            ImageBlock::from_url("https://example.org/a.png").unwrap(),
        ];
        let result = tool_result(&Value::Null, Outcome::Ok, &images, None).unwrap();
        let expected = json!([
            { "type": "image", "mimeType": "image/png", "data": "QUJD" },
            { "type": "text", "text": "[image https://example.org/a.png]" },
        ]);
        assert_eq!(result["content"], expected);
    }
}
