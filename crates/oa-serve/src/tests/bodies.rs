//! Request bodies of all front ends.

use std::hash::RandomState;

use serde_json::{Value, json};

use crate::limits::ServeLimits;
use crate::{ag_ui, ai_sdk, openai};

/// Reads a body; returns what it means, as text.
type Read = fn(&[u8], &RandomState) -> Result<String, String>;

/// A request of each protocol with all its members.
fn requests() -> [(Value, Read); 3] {
    let call =
        json!({"id": "c", "type": "function", "function": {"name": "pick", "arguments": "{}"}});
    let answer = json!({
        "id": "2", "role": "assistant", "name": "it", "content": "Wait.", "toolCalls": [call], "encryptedValue": "x",
    });
    let result =
        json!({"id": "3", "role": "tool", "toolCallId": "c", "content": "teal", "error": "late"});
    let image = json!({"type": "image", "source": {"type": "url", "value": "https://x.example/a.png", "mimeType": "image/png"}});
    let ag_ui = json!({
        "threadId": "t", "runId": "r", "parentRunId": "p", "state": "s", "forwardedProps": {},
        "messages": [{"id": "1", "role": "user", "content": [image, {"type": "text", "text": "hi"}]}, answer, result],
        "tools": [{"name": "pick", "description": "Picks", "parameters": {}}],
        "context": [{"description": "time", "value": "noon"}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": {"approved": true, "reason": "so"}}],
    });
    let part = json!({
        "type": "tool-pick", "toolCallId": "c", "state": "output-available", "input": {}, "output": "teal",
        "preliminary": false, "approval": {"id": "q", "approved": true, "reason": "so"}, "errorText": "late",
    });
    let file = json!({"type": "file", "mediaType": "image/png", "filename": "a.png", "url": "https://x.example/a.png"});
    let ai_sdk = json!({
        "id": "x", "trigger": "submit-message", "messageId": "m",
        "messages": [
            {"id": "1", "role": "user", "metadata": {}, "parts": [{"type": "text", "text": "hi"}, file]},
            {"id": "2", "role": "assistant", "metadata": {}, "parts": [{"type": "step-start"}, part]},
            {"id": "3", "role": "user", "metadata": {}, "parts": [{"type": "text", "text": "on"}]},
        ],
    });
    let file = json!({"type": "file", "file": {"filename": "a.pdf", "file_data": "x"}});
    let openai = json!({
        "model": "agent", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "user", "name": "ada", "content": [{"type": "text", "text": "hi"}, file]},
            {"role": "assistant", "name": "it", "content": "Wait.", "refusal": "no", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "teal"},
        ],
        "tools": [{"type": "function", "function": {"name": "pick", "description": "Picks", "parameters": {}, "strict": true}}],
        "tool_choice": "auto", "parallel_tool_calls": true, "temperature": 0.5, "top_p": 0.5, "max_tokens": 9,
        "max_completion_tokens": 8, "stop": ["x"], "seed": 1, "frequency_penalty": 1, "presence_penalty": 1,
        "logit_bias": {}, "response_format": {"type": "json_object"}, "n": 1, "logprobs": false, "user": "ada",
    });
    [
        (ag_ui, |body, _| said(ag_ui::request::read(body, &ServeLimits::default()))),
        (ai_sdk, |body, _| said(ai_sdk::request::read(body, &ServeLimits::default()))),
        (openai, |body, hasher| said(openai::request::read(body, &ServeLimits::default(), hasher))),
    ]
}

fn said<T: std::fmt::Debug>(read: Result<T, crate::error::Refusal>) -> Result<String, String> {
    read.map(|read| format!("{read:?}")).map_err(|refusal| refusal.message)
}

/// Returns the JSON pointers to everything in a value.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let members: Vec<_> = match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), value)).collect()
        }
        Value::Array(values) => {
            values.iter().enumerate().map(|(place, value)| (place.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in members {
        let at = format!("{at}/{name}");
        pointers(value, &at, found);
        found.push(at);
    }
}

#[test]
fn null_members_count_as_absent() {
    let hasher = RandomState::new();
    for (body, read) in requests() {
        let read = |body: &Value| read(body.to_string().as_bytes(), &hasher);
        read(&body).expect("it is valid");
        let mut found = Vec::new();
        pointers(&body, "", &mut found);
        let mut optional = 0;
        for at in found {
            let (parent, name) = at.rsplit_once('/').expect("a pointer");
            let mut absent = body.clone();
            let parent = absent.pointer_mut(parent).and_then(Value::as_object_mut);
            if parent.is_none_or(|members| members.remove(name).is_none()) {
                continue;
            }
            let Ok(absent) = read(&absent) else { continue };
            optional += 1;
            let mut null = body.clone();
            *null.pointer_mut(&at).expect("it is there") = Value::Null;
            assert_eq!(read(&null).as_ref(), Ok(&absent), "{at}");
        }
        assert!(optional > 10, "{optional}");
    }
}

#[test]
fn arrays_in_place_of_objects_are_refused() {
    // In the order of the members, which is how serde would read them.
    let bodies = [
        json!(["t", "r", [{"role": "user", "content": "hi"}], null, [], [], []]),
        json!(["x", [{"role": "user", "parts": [{"type": "text", "text": "hi"}]}]]),
        json!(["agent", [{"role": "user", "content": "hi"}]]),
    ];
    for ((_, read), body) in requests().into_iter().zip(bodies) {
        let refused =
            read(body.to_string().as_bytes(), &RandomState::new()).expect_err("no object");
        assert!(refused.contains("invalid type: sequence, expected a map"), "{refused}");
    }
}
