//! Each accessor of a block returns its own kind and no other.

use oa_types::{
    AssistantMessage, ContentBlock, ImageBlock, Message, Outcome, TextBlock, ThinkingBlock,
    ToolResultBlock, ToolUseBlock, ToolUseError,
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

#[test]
fn answers_return_their_text_and_calls() {
    let call = ToolUseBlock::new("call_1", "add", json!({}));
    let mut answer = AssistantMessage::new(vec![
        ThinkingBlock::new("Hm.").into(),
        TextBlock::new("One ").into(),
        ToolUseError::new("no JSON", "{").into(),
        call.clone().into(),
        TextBlock::new("two.").into(),
    ]);
    answer.extra.insert("signature".to_owned(), json!("s"));
    assert_eq!(answer.text(), "One two.");
    assert_eq!(answer.tool_uses().collect::<Vec<_>>(), [&call]);
    let message = Message::from(answer.clone());
    assert_eq!((message.content, message.extra), (answer.content, answer.extra));
}

#[test]
fn only_one_outcome_is_a_success() {
    for outcome in [
        Outcome::Blocked,
        Outcome::Cancelled,
        Outcome::Failed,
        Outcome::InvalidInput,
        Outcome::Malformed,
        Outcome::NotRun,
        Outcome::Ok,
        Outcome::Panicked,
        Outcome::TimedOut,
        Outcome::Unknown,
        Outcome::UnknownTool,
    ] {
        assert_eq!(json!(outcome), outcome.as_str());
        assert_eq!(outcome.is_ok(), outcome == Outcome::Ok, "{outcome}");
        assert_ne!(outcome.is_ok(), outcome.is_error(), "{outcome}");
    }
}

#[test]
fn text_blocks_are_displayed_as_their_text() {
    let block = TextBlock::new("Hi.");
    assert_eq!(format!("{block}|{block:>4}"), "Hi.| Hi.");
}
