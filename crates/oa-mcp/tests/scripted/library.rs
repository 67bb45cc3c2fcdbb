//! Resources and prompts.

use serde_json::{Value, json};

use crate::{refuse, respond};

pub(crate) fn answer(method: &str, id: &Value, params: &Value) {
    match method {
        // Two pages.
        "resources/list" => match params["cursor"].as_str() {
            None => respond(
                id,
                json!({ "resources": [{ "uri": "a://b", "name": "b", "description": "The letter", "title": "b".repeat(300) }], "nextCursor": "2" }),
            ),
            Some(_) => respond(
                id,
                json!({ "resources": [{ "name": "no URI" }, { "uri": "a://c", "name": "c", "mimeType": "image/png", "size": 3, "title": "c".repeat(300) }] }),
            ),
        },
        "resources/templates/list" => {
            respond(
                id,
                json!({ "resourceTemplates": [{ "uriTemplate": "a://{letter}", "name": "letters" }] }),
            );
        }
        "resources/read" => match params["uri"].as_str() {
            Some("a://b") => {
                respond(id, json!({ "contents": [{ "uri": "a://b", "text": "inside" }] }));
            }
            Some("a://c") => respond(
                id,
                json!({ "contents": [{ "uri": "a://c", "mimeType": "image/png", "blob": "QUJD" }] }),
            ),
            Some("a://shapeless") => respond(id, json!([])),
            _ => refuse(id, -32002, "no such resource"),
        },
        "prompts/list" => respond(
            id,
            json!({ "prompts": [{ "name": "greet", "description": "Greets", "arguments": [{ "name": "who", "required": true }] }] }),
        ),
        "prompts/get" => {
            let text =
                format!("Greet {}.", params["arguments"]["who"].as_str().unwrap_or("nobody"));
            respond(
                id,
                json!({ "description": "Greets", "messages": [
                    { "role": "user", "content": { "type": "text", "text": text } },
                    { "role": "assistant", "content": { "type": "image", "mimeType": "image/png", "data": "QUJD" } },
                ] }),
            );
        }
        _ => refuse(id, -32601, "not here"),
    }
}
