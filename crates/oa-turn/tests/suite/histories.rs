//! Conversations from callers: any blocks in any role, in any order.

use oa_types::{
    ContentBlock, ImageBlock, Message, MessageRole, TextBlock, ThinkingBlock, ToolResultBlock,
    ToolUseBlock, ToolUseError,
};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Any messages, except images in system messages, which are refused.
pub(crate) fn histories() -> impl Strategy<Value = Vec<Message>> {
    vec(message(), 0..14)
}

fn message() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![
        MessageRole::Assistant,
        MessageRole::Assistant,
        MessageRole::System,
        MessageRole::Tool,
        MessageRole::Tool,
        MessageRole::User,
        MessageRole::User,
    ]);
    (role, vec(block(), 0..5), prop::bool::weighted(0.2), prop::bool::weighted(0.2)).prop_map(
        |(role, mut content, interrupted, has_extra)| {
            if role == MessageRole::System {
                content.retain(|block| !matches!(block, ContentBlock::Image(_)));
            }
            let mut message = Message::new(role, content);
            message.interrupted = interrupted;
            if has_extra {
                let extra = json!({ "role": "user", "details": [1], "refusal": null });
                message.extra = extra.as_object().cloned().unwrap_or_default().into();
            }
            message
        },
    )
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let text = || prop::sample::select(vec!["", " ", "\n\n", "Words.", "Some\nlines", "ünïcödé"]);
    let id = || {
        let long = "very_long_".repeat(7);
        let ids = ["a", "b", "call_0", "call_1", "a_2", "", "nineChars", "with space", &long];
        prop::sample::select(ids.map(str::to_owned).to_vec())
    };
    let name = || prop::sample::select(vec!["look", "echo", "read file", "", "天気"]);
    let value = || {
        let values =
            [json!({}), json!({ "at": 1 }), Value::Null, json!("text"), json!(""), json!([1, 2])];
        prop::sample::select(values.to_vec())
    };
    let result = (id(), value(), any::<bool>(), proptest::option::of(name()));
    prop_oneof![
        5 => text().prop_map(|text| TextBlock::new(text).into()),
        1 => text().prop_map(|text| ThinkingBlock::new(text).into()),
        1 => Just(ImageBlock::from_url("https://host/a.png").expect("an address").into()),
        5 => (id(), name(), value(), prop::bool::weighted(0.1)).prop_map(|(id, name, input, extra)| {
            let mut call = ToolUseBlock::new(id, name, input);
            if extra {
                call.extra.insert("signature".to_owned(), json!("x"));
                call.extra.insert("index".to_owned(), Value::Null);
            }
            call.into()
        }),
        1 => (id(), name()).prop_map(|(id, name)| {
            let mut error = ToolUseError::new("broken", "{");
            (error.id, error.name) = (Some(id), Some(name.to_owned()));
            error.into()
        }),
        5 => result.prop_map(|(id, content, is_error, name)| {
            let mut result = ToolResultBlock::new(id, content);
            (result.is_error, result.name) = (is_error, name.map(Into::into));
            result.into()
        }),
    ]
}
