//! Each accessor of a block returns its own kind and no other.

use oa_types::{
    ContentBlock, ImageBlock, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError,
};
use serde_json::json;

#[test]
fn accessors_return_their_kind_only() {
    let blocks: [ContentBlock; 6] = [
        ImageBlock::from_url("http://host/a.png").unwrap().into(),
        TextBlock::new("text").into(),
        ThinkingBlock::new("thinking").into(),
        ToolResultBlock::new("call_1", json!(1)).into(),
        ToolUseBlock::new("call_1", "add", json!({})).into(),
        ToolUseError::new("no JSON", "{").into(),
    ];
    for (own, block) in blocks.iter().enumerate() {
        let found = [
            block.as_image().is_some(),
            block.as_text() == Some("text"),
            block.as_thinking() == Some("thinking"),
            block.as_tool_result().is_some(),
            block.as_tool_use().is_some(),
            block.as_tool_use_error().is_some(),
        ];
        assert_eq!(found, std::array::from_fn(|at| at == own), "{block:?}");
    }
}

#[test]
fn results_are_text_as_the_model_sees_them() {
    for (content, text) in [
        (json!("a \"b\""), "a \"b\""),
        (json!({"a": ["b"]}), r#"{"a":["b"]}"#),
        (json!(null), "null"),
    ] {
        assert_eq!(ToolResultBlock::new("call_1", content).text(), text);
    }
}
