//! Answers in a requested format.

use open_agent::{FinishReason, json};
use serde_json::Value;

use crate::answer::ask;
use crate::server::{Wanted, check};

#[test]
fn output_matches_the_schema() {
    check(Wanted::Any, async |server| {
        let schema = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string" },
                "tags": { "type": "array", "items": { "type": "string" }, "maxItems": 3 },
                "score": { "type": "integer" },
                "ok": { "type": "boolean" },
            },
            "required": ["title", "tags", "score", "ok"],
            "additionalProperties": false,
        });
        let schema = json!({ "name": "note", "strict": true, "schema": schema });
        let format = json!({ "type": "json_schema", "json_schema": schema });
        let options = server.options().seed(2).response_format(format).build().unwrap();
        let answer = ask(&options, "Write a note about a lamp.").await;
        let Some(answer) = server.unless_lacking("output by a schema", answer) else {
            return;
        };
        let text = answer.text();
        let Ok(note) = serde_json::from_str::<Value>(&text) else {
            return server.lacks("output by a schema", &answer);
        };
        let is_note = note["title"].is_string()
            && note["tags"].as_array().is_some_and(|tags| tags.iter().all(Value::is_string))
            && note["score"].is_i64()
            && note["ok"].is_boolean()
            && note.as_object().is_some_and(|note| note.len() == 4);
        if !is_note {
            return server.lacks("output by a schema", &answer);
        }
        assert!(answer.pieces() > 1, "it came in one piece");
        assert_eq!(*answer.finish(), FinishReason::Stop);
        println!("{text}");
    });
}

#[test]
fn json_object_output_is_an_object() {
    check(Wanted::Any, async |server| {
        let format = json!({ "type": "json_object" });
        let options = server.options().seed(2).response_format(format).build().unwrap();
        let answer = ask(&options, "Write a note about a lamp as a JSON object.").await;
        let Some(answer) = server.unless_lacking("output as JSON", answer) else {
            return;
        };
        let text = answer.text();
        if !serde_json::from_str::<Value>(&text).is_ok_and(|value| value.is_object()) {
            return server.lacks("output as JSON", &answer);
        }
        println!("{text}");
    });
}
