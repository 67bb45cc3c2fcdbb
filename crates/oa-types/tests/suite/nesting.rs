//! Values that are nested too deeply for a conversation.

use oa_types::wire::ServerError;
use oa_types::{MAX_NESTING, Message, ToolResultBlock, flattened, is_nested_within};
use serde_json::{Value, json};

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, level| {
        // Not `json!`, which copies what it contains.
        if level.is_multiple_of(2) {
            Value::Array(vec![inner])
        } else {
            Value::Object([("a".to_owned(), inner)].into_iter().collect())
        }
    })
}

#[test]
fn deep_values_become_text() {
    assert!(is_nested_within(&json!("text"), 0) && !is_nested_within(&json!([]), 0));
    assert!(is_nested_within(&nested(3), 3) && !is_nested_within(&nested(4), 3));
    let fits = nested(MAX_NESTING);
    assert_eq!(flattened(fits.clone()), fits);
    for levels in [MAX_NESTING + 1, 500] {
        let deep = nested(levels);
        assert_eq!(flattened(deep.clone()), json!(deep.to_string()));
    }
    let left_out = json!("[a value that is nested more than 500 levels deep]");
    assert_eq!(flattened(nested(501)), left_out);
    assert_eq!(flattened(nested(100_000)), left_out, "its size takes no stack");
}

#[test]
fn messages_with_deep_values_can_be_read() {
    for levels in [MAX_NESTING, MAX_NESTING + 1, 127] {
        let result = ToolResultBlock::new("1", flattened(nested(levels)));
        let messages = [Message::tool(result)];
        let json = serde_json::to_string(&messages).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Message>>(&json).unwrap(), messages);
    }
}

/// Arguments are a text there, which may be as deep as JSON is read.
#[test]
fn deep_arguments_of_chat_apis_become_errors() {
    for (levels, fits) in [(99, true), (100, false), (126, false)] {
        let arguments = json!({ "a": nested(levels) }).to_string();
        let call = json!({ "id": "1", "function": { "name": "f", "arguments": arguments } });
        let json = json!({ "role": "assistant", "tool_calls": [call] }).to_string();
        let message: Message = serde_json::from_str(&json).unwrap();
        assert_eq!(message.tool_uses().count(), usize::from(fits));
        let stored = serde_json::to_string(&[&message]).unwrap();
        assert_eq!(serde_json::from_str::<[Message; 1]>(&stored).unwrap(), [message]);
    }
}

/// Events contain them, a few levels deep.
#[test]
fn deep_errors_of_servers_can_be_read_in_events() {
    for levels in [90, 98, 99, 124] {
        let body = json!({ "error": { "message": "no", "details": nested(levels) } }).to_string();
        let error = ServerError::from_body(body.as_bytes());
        assert_eq!(error.message, "no");
        let event = serde_json::to_string(&json!([[[[error]]]])).unwrap();
        assert!(event.parse::<Value>().is_ok(), "{levels}");
    }
}
