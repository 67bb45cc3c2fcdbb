//! The serde format of messages and blocks is part of the contract, because users store them.

use insta::assert_snapshot;
use oa_types::{
    AssistantMessage, AudioBlock, ContentBlock, FinishReason, ImageBlock, ImageDetail, Message,
    TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, ToolUseError, Usage,
};
use proptest::prelude::*;
use serde_json::json;

fn stored(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it serializes")
}

#[test]
fn every_kind_of_block_has_its_shape() {
    let block = |block: ContentBlock| {
        let text = stored(&block);
        assert_eq!(serde_json::from_str::<ContentBlock>(&text).unwrap(), block);
        text
    };
    assert_snapshot!(block(TextBlock::new("Hi").into()), @r#"{"type":"text","text":"Hi"}"#);
    assert_snapshot!(block(ThinkingBlock::new("Hm").into()), @r#"{"type":"thinking","thinking":"Hm"}"#);
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    assert_snapshot!(block(image.clone().into()), @r#"{"type":"image","url":"https://host/a.png"}"#);
    assert_snapshot!(block(image.with_detail(ImageDetail::Low).into()), @r#"{"type":"image","url":"https://host/a.png","detail":"low"}"#);
    let audio = AudioBlock::from_base64("aGk=", "audio/wav").unwrap();
    assert_snapshot!(block(audio.into()), @r#"{"type":"audio","data":"aGk=","format":"wav"}"#);
    let mut call = ToolUseBlock::new("call_1", "add", json!({"a": 1}));
    assert_snapshot!(block(call.clone().into()), @r#"{"type":"tool_use","id":"call_1","name":"add","input":{"a":1}}"#);
    call.extra.insert("extra_content".into(), json!({"google": {"thought_signature": "x"}}));
    assert_snapshot!(block(call.into()), @r#"{"type":"tool_use","id":"call_1","name":"add","input":{"a":1},"extra":{"extra_content":{"google":{"thought_signature":"x"}}}}"#);
    let mut error = ToolUseError::new("no name", "{}");
    assert_snapshot!(block(error.clone().into()), @r#"{"type":"tool_use_error","error":"no name","raw_data":"{}"}"#);
    (error.id, error.name) = (Some("call_1".into()), Some("add".into()));
    assert_snapshot!(block(error.into()), @r#"{"type":"tool_use_error","error":"no name","raw_data":"{}","id":"call_1","name":"add"}"#);
    let mut result = ToolResultBlock::new("call_1", json!({"sum": 3}));
    assert_snapshot!(block(result.clone().into()), @r#"{"type":"tool_result","tool_use_id":"call_1","content":{"sum":3}}"#);
    (result.is_error, result.name) = (true, Some("add".into()));
    assert_snapshot!(block(result.into()), @r#"{"type":"tool_result","tool_use_id":"call_1","content":{"sum":3},"is_error":true,"name":"add"}"#);
}

#[test]
fn messages_have_their_shape() {
    assert_snapshot!(stored(&Message::system("Be brief.")), @r#"{"role":"system","content":[{"type":"text","text":"Be brief."}]}"#);
    let mut message = Message::assistant(vec![TextBlock::new("Half").into()]);
    message.interrupted = true;
    assert_snapshot!(stored(&message), @r#"{"role":"assistant","content":[{"type":"text","text":"Half"}],"interrupted":true}"#);
    assert_snapshot!(stored(&Message::tool(ToolResultBlock::new("call_1", "3".into()))), @r#"{"role":"tool","content":[{"type":"tool_result","tool_use_id":"call_1","content":"3"}]}"#);
    let mut answer = AssistantMessage::new(vec![TextBlock::new("Hi").into()]);
    assert_snapshot!(stored(&answer), @r#"{"content":[{"type":"text","text":"Hi"}],"finish_reason":"unspecified"}"#);
    answer.finish_reason = FinishReason::from("model_length");
    answer.usage = Some(Usage::default());
    (answer.id, answer.model) = (Some("chatcmpl-1".into()), Some("qwen3".into()));
    assert_snapshot!(stored(&answer), @r#"{"content":[{"type":"text","text":"Hi"}],"finish_reason":"model_length","usage":{},"model":"qwen3","id":"chatcmpl-1"}"#);
    assert_eq!(serde_json::from_str::<AssistantMessage>(&stored(&answer)).unwrap(), answer);
}

#[test]
fn unknown_members_are_ignored() {
    let text = r#"{"role":"user","content":[{"type":"text","text":"Hi","color":"red"}],"later":1}"#;
    assert_eq!(serde_json::from_str::<Message>(text).unwrap(), Message::user("Hi"));
}

#[track_caller]
fn read(text: &str) -> Message {
    serde_json::from_str(text).expect("it is a message")
}

#[test]
fn plain_string_content_is_read() {
    assert_eq!(read(r#"{"role":"user","content":"Hi"}"#), Message::user("Hi"));
    assert_eq!(
        read(r#"{"role":"system","content":"Be \"brief\"."}"#),
        Message::system("Be \"brief\".")
    );
    let answer = Message::assistant(vec![TextBlock::new("Hello.").into()]);
    assert_eq!(read(r#"{"role":"assistant","content":"Hello.","refusal":null}"#), answer);
    // From a `Value` too, whose strings are owned.
    let value = json!({"role": "user", "content": "Hi"});
    assert_eq!(serde_json::from_value::<Message>(value).unwrap(), Message::user("Hi"));
}

#[test]
fn chat_api_calls_and_results_are_read() {
    let message = read(
        r#"{"role":"assistant","content":null,"tool_calls":[
            {"id":"c1","type":"function","function":{"name":"add","arguments":"{\"a\":1}"},"extra_content":{"x":1}},
            {"id":"c2","type":"function","function":{"name":"add","arguments":""}},
            {"id":"c3","type":"function","function":{"name":"add","arguments":"{\"a\""}}
        ]}"#,
    );
    let mut first = ToolUseBlock::new("c1", "add", json!({"a": 1}));
    first.extra.insert("extra_content".into(), json!({"x": 1}));
    assert_eq!(message.content[0], first.into());
    assert_eq!(message.content[1], ToolUseBlock::new("c2", "add", json!({})).into());
    let ContentBlock::ToolUseError(error) = &message.content[2] else { panic!("{message:?}") };
    assert_eq!((error.raw_data.as_str(), error.id.as_deref()), (r#"{"a""#, Some("c3")));
    // As servers write a call without arguments (QUIRKS rows 16 to 18).
    for arguments in [json!(" "), json!("null"), json!(null)] {
        let call = json!({"id": "c", "function": {"name": "now", "arguments": arguments}});
        let message = json!({"role": "assistant", "tool_calls": [call]}).to_string();
        assert_eq!(read(&message).content, [ToolUseBlock::new("c", "now", json!({})).into()]);
    }

    let result = read(r#"{"role":"tool","tool_call_id":"c1","name":"add","content":"3"}"#);
    let mut expected = ToolResultBlock::new("c1", json!("3"));
    expected.name = Some("add".into());
    assert_eq!(result, Message::tool(expected));
}

#[test]
fn broken_arguments_are_kept_in_part() {
    for (start, kept) in [("", 16 << 10), ("x", (16 << 10) - 1)] {
        let arguments = format!("{start}{}", "\u{e4}".repeat(20_000));
        let call = json!({"id": "c", "function": {"name": "add", "arguments": arguments}});
        let message = json!({"role": "assistant", "content": null, "tool_calls": [call]});
        let message: Message = serde_json::from_value(message).unwrap();
        let [ContentBlock::ToolUseError(error)] = &message.content[..] else { panic!() };
        assert_eq!(error.raw_data, arguments[..kept]);
    }
}

#[test]
fn invalid_content_is_rejected_by_name() {
    let error = |text: &str| serde_json::from_str::<Message>(text).unwrap_err().to_string();
    let refused = [
        (r#"{"role":"user"}"#, "missing field `content`"),
        (r#"{"role":"user","content":null}"#, "missing field `content`"),
        (r#"{"role":"user","content":7}"#, "expected a string or a list of content blocks"),
        (r#"{"role":"user","content":[{"type":"video"}]}"#, "unknown variant `video`"),
        (r#"{"role":"tool","content":"3"}"#, "missing field `tool_call_id`"),
    ];
    for (text, expected) in refused {
        assert!(error(text).contains(expected), "{text}: {}", error(text));
    }
}

proptest! {
    #[test]
    fn a_plain_string_reads_as_one_text_block(text in any::<String>()) {
        let json = json!({"role": "user", "content": text}).to_string();
        prop_assert_eq!(read(&json), Message::user(&*text));
        let stored = stored(&Message::user(&*text));
        prop_assert_eq!(read(&stored), Message::user(&*text));
    }

    #[test]
    fn a_finish_reason_is_any_word_and_reads_back(word in any::<String>()) {
        let reason = FinishReason::from(&*word);
        let expected = if word.is_empty() { "unspecified" } else { &word };
        prop_assert_eq!(reason.as_str(), expected);
        let text = stored(&reason);
        prop_assert_eq!(serde_json::from_str::<FinishReason>(&text).unwrap(), reason);
    }

    #[test]
    fn later_usage_replaces_by_number(
        first in any::<[Option<u64>; 5]>(),
        second in any::<[Option<u64>; 5]>(),
    ) {
        let usage = |[prompt, completion, total, cached, reasoning]: [Option<u64>; 5]| {
            let mut usage = Usage::default();
            usage.prompt_tokens = prompt;
            usage.completion_tokens = completion;
            usage.total_tokens = total;
            usage.cached_tokens = cached;
            usage.reasoning_tokens = reasoning;
            usage
        };
        let mut merged = usage(first);
        merged.merge(&usage(second));
        let expected = std::array::from_fn(|place| second[place].or(first[place]));
        prop_assert_eq!(merged, usage(expected));
    }
}

#[test]
fn all_ways_to_add_usage_agree() {
    let mut one = Usage::default();
    one.prompt_tokens = Some(3);
    let (mut by_name, mut by_value, mut by_reference) = (one, one, one);
    by_name.add(&one);
    by_value += one;
    by_reference += &one;
    assert_eq!(by_name.prompt_tokens, Some(6));
    assert_eq!((by_value, by_reference), (by_name, by_name));
    assert_eq!([one, one].iter().sum::<Usage>(), by_name);
    assert_eq!([one, one].into_iter().sum::<Usage>(), by_name);
}
