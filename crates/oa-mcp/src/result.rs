use oa_redact::Secrets;
use oa_tools::{ToolContext, ToolError};
use serde_json::{Value, json};

use crate::error::Error;

/// The longest excerpt of an answer that cannot be read.
const EXCERPT: usize = 200;

/// Reads the result of a call: what the model gets.
///
/// Text stays text; structured content is the result if the text says nothing else. Media are named in the text and go
/// out as an emission. Blocks that are not known are named, and the others kept.
pub(crate) fn read(
    result: &Value,
    cx: &ToolContext,
    secrets: &Secrets,
) -> Result<Value, ToolError> {
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    let content = match result.get("content") {
        Some(Value::Array(blocks)) => blocks.as_slice(),
        None if structured.is_some() => &[],
        _ => {
            let excerpt = secrets.excerpt(&result.to_string(), EXCERPT);
            return Err(
                Error::protocol(format!("the answer is no result of a tool: {excerpt}")).into()
            );
        }
    };
    let pieces: Vec<String> = content.iter().map(|block| piece(block, cx)).collect();
    let text = pieces.join("\n");
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let message = match structured {
            Some(structured) if text.is_empty() => structured.to_string(),
            _ if text.is_empty() => "the tool failed without a word".to_owned(),
            _ => text,
        };
        // Whether it may be repeated is not known.
        return Err(ToolError::new(message).retryable(false));
    }
    match structured {
        Some(structured) if says_the_same(&text, structured) => Ok(structured.clone()),
        _ => Ok(text.into()),
    }
}

fn says_the_same(text: &str, structured: &Value) -> bool {
    text.is_empty() || serde_json::from_str::<Value>(text).is_ok_and(|value| value == *structured)
}

/// Returns the text for one block.
fn piece(block: &Value, cx: &ToolContext) -> String {
    let text = |name: &str| block.get(name).and_then(Value::as_str);
    match text("type") {
        Some("text") => match text("text") {
            Some(text) => text.to_owned(),
            None => "[text without text]".to_owned(),
        },
        Some(of @ ("audio" | "image")) => media(block, of, text("data"), cx),
        Some("resource") => {
            let resource = &block["resource"];
            let uri = resource["uri"].as_str().unwrap_or("without a URI");
            match (resource["text"].as_str(), resource["blob"].as_str()) {
                (Some(text), _) => format!("[{uri}]\n{text}"),
                (None, Some(blob)) => {
                    format!("[{uri}]\n{}", media(resource, "blob", Some(blob), cx))
                }
                (None, None) => format!("[{uri}]"),
            }
        }
        Some("resource_link") => {
            let name = text("name").or_else(|| text("title")).unwrap_or("unnamed");
            format!("[resource {name} {}]", text("uri").unwrap_or("without a URI"))
        }
        Some(other) => {
            format!("[content of an unknown kind: {}]", Secrets::new().excerpt(other, 40))
        }
        None => "[content without a kind]".to_owned(),
    }
}

/// Names media in the text, and hands out the block as an emission.
fn media(block: &Value, of: &str, data: Option<&str>, cx: &ToolContext) -> String {
    let mime = block.get("mimeType").and_then(Value::as_str).unwrap_or(of);
    let mime = Secrets::new().excerpt(mime, 80);
    let Some(data) = data else { return format!("[{mime}, without data]") };
    cx.emit_with("mcp_content", || json!({ "type": of, "mimeType": mime, "data": data }));
    // Base64 takes four bytes for three.
    let bytes = data.trim_end_matches('=').len() * 3 / 4;
    match bytes {
        0..1024 => format!("[{mime}, {bytes} bytes]"),
        _ => format!("[{mime}, {} KiB]", bytes.div_ceil(1024)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use oa_tools::Emission;

    use super::*;

    fn check(result: &Value) -> Result<Value, String> {
        let cx = ToolContext::new("c", "t");
        read(result, &cx, &Secrets::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn text_and_structure_are_never_both_sent() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        assert_eq!(check(&json!({ "content": [text("a")] })), Ok(json!("a")));
        assert_eq!(check(&json!({ "content": [text("a"), text("b")] })), Ok(json!("a\nb")));
        assert_eq!(check(&json!({ "content": [] })), Ok(json!("")));
        let both = json!({ "content": [text("{\"sum\": 3}")], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&both), Ok(json!({ "sum": 3 })));
        let different = json!({ "content": [text("three")], "structuredContent": { "sum": 3 } });
        assert_eq!(check(&different), Ok(json!("three")));
        assert_eq!(check(&json!({ "structuredContent": { "sum": 3 } })), Ok(json!({ "sum": 3 })));
    }

    #[test]
    fn known_blocks_are_kept_beside_unknown_ones() {
        let result = json!({ "content": [
            { "type": "text", "text": "good" },
            { "type": "hologram", "rays": 7 },
            { "type": "resource_link", "name": "plan", "uri": "file:///plan" },
            { "type": "resource", "resource": { "uri": "demo://1", "text": "inside" } },
            { "nothing": true },
        ] });
        let expected = "good\n[content of an unknown kind: hologram]\n[resource plan file:///plan]\n[demo://1]\ninside\n[content without a kind]";
        assert_eq!(check(&result), Ok(json!(expected)));
    }

    #[test]
    fn media_are_named_and_emitted_but_never_text() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&seen);
        let emitter = move |emission: Emission| sink.lock().unwrap().push(emission);
        let cx = ToolContext::new("c", "t").with_emitter(Arc::new(emitter));
        let data = "QUJD".repeat(1_000);
        let result =
            json!({ "content": [{ "type": "image", "mimeType": "image/png", "data": data }] });
        let value = read(&result, &cx, &Secrets::new()).unwrap();
        assert_eq!(value, json!("[image/png, 3 KiB]"));
        let expected = json!({ "type": "image", "mimeType": "image/png", "data": data });
        let seen = seen.lock().unwrap();
        assert_eq!(*seen, [Emission::Custom { name: "mcp_content".to_owned(), data: expected }]);
    }

    #[test]
    fn errors_of_tools_are_errors_with_their_text() {
        let failed =
            json!({ "content": [{ "type": "text", "text": "no such file" }], "isError": true });
        assert_eq!(check(&failed), Err("no such file".to_owned()));
        assert_eq!(
            check(&json!({ "content": [], "isError": true })),
            Err("the tool failed without a word".to_owned())
        );
        assert!(check(&json!(5)).unwrap_err().contains("no result of a tool: 5"));
        assert!(check(&json!({ "content": "text" })).unwrap_err().contains("no result of a tool"));
    }
}
