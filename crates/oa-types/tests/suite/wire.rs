//! The bytes sent to servers.

use insta::assert_snapshot;
use oa_types::wire::{
    CallIds, ChatParameters, EmptyContent, MessageFormat, ResultNames, ServerError, ThinkingReplay,
    ToolChoice, write_message,
};
use oa_types::{
    AudioBlock, ContentBlock, ImageBlock, ImageDetail, Message, MessageRole, TextBlock,
    ThinkingBlock, ToolResultBlock, ToolSpec, ToolUseBlock, ToolUseError,
};
use serde_json::{Value, json};

fn wire_as(form: &MessageFormat, messages: &[Message]) -> String {
    let mut out = vec![b'['];
    for message in messages {
        write_message(message, form, &mut out);
    }
    out.push(b']');
    let text = String::from_utf8(out).expect("JSON is UTF-8");
    serde_json::from_str::<Value>(&text).expect("it is JSON");
    text
}

fn wire(messages: &[Message]) -> String {
    wire_as(&MessageFormat::default(), messages)
}

fn call() -> ContentBlock {
    ToolUseBlock::new("call_1", "add", json!({"a": 1, "b": 2})).into()
}

#[test]
fn text_is_a_plain_string() {
    assert_snapshot!(wire(&[Message::system("Be \"brief\"."), Message::user("Hi\n\u{1f642}")]), @r#"[{"role":"system","content":"Be \"brief\"."},{"role":"user","content":"Hi\n🙂"}]"#);
    let two = vec![TextBlock::new("One.").into(), TextBlock::new("Two.").into()];
    assert_snapshot!(wire(&[Message::user_with_blocks(two)]), @r#"[{"role":"user","content":"One.\nTwo."}]"#);
}

#[test]
fn images_make_parts() {
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    assert_snapshot!(wire(&[Message::user_with_image("What is it?", image.clone())]), @r#"[{"role":"user","content":[{"type":"text","text":"What is it?"},{"type":"image_url","image_url":{"url":"https://host/a.png"}}]}]"#);
    let alone = vec![image.with_detail(ImageDetail::High).into(), TextBlock::new("").into()];
    assert_snapshot!(wire(&[Message::user_with_blocks(alone)]), @r#"[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://host/a.png","detail":"high"}}]}]"#);
}

#[test]
fn calls_and_results_have_the_wire_format() {
    let mut result = ToolResultBlock::new("call_1", json!({"sum": 3}));
    result.name = Some("add".into());
    let text = ToolResultBlock::new("call_1", "three".into());
    assert_snapshot!(wire(&[Message::assistant(vec![call()]), Message::tool(result), Message::tool(text)]), @r#"[{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{\"a\":1,\"b\":2}"}}]},{"role":"tool","content":"{\"sum\":3}","tool_call_id":"call_1","name":"add"},{"role":"tool","content":"three","tool_call_id":"call_1"}]"#);
}

#[test]
fn results_precede_the_text_of_the_user() {
    let result = ToolResultBlock::new("call_1", "three".into()).into();
    let user = Message::user_with_blocks(vec![TextBlock::new("And now?").into(), result]);
    assert_snapshot!(wire(&[user]), @r#"[{"role":"tool","content":"three","tool_call_id":"call_1"},{"role":"user","content":"And now?"}]"#);
}

#[test]
fn empty_content_follows_the_format() {
    let message = Message::assistant(vec![call()]);
    for (empty_content, expected) in [
        (EmptyContent::Empty, r#"{"role":"assistant","content":"","tool_calls""#),
        (EmptyContent::Null, r#"{"role":"assistant","content":null,"tool_calls""#),
        (EmptyContent::Absent, r#"{"role":"assistant","tool_calls""#),
    ] {
        let mut form = MessageFormat::default();
        form.empty_content = empty_content;
        assert!(
            wire_as(&form, std::slice::from_ref(&message)).contains(expected),
            "{empty_content:?}"
        );
    }
}

#[test]
fn thinking_goes_back_only_where_it_is_wanted() {
    let blocks = vec![ThinkingBlock::new("Hm.").into(), TextBlock::new("Hi.").into()];
    let message = Message::assistant(blocks);
    let replay = |thinking| {
        let mut form = MessageFormat::default();
        form.thinking = thinking;
        wire_as(&form, std::slice::from_ref(&message))
    };
    assert_snapshot!(replay(ThinkingReplay::Drop), @r#"[{"role":"assistant","content":"Hi."}]"#);
    assert_snapshot!(replay(ThinkingReplay::Reasoning), @r#"[{"role":"assistant","content":"Hi.","reasoning":"Hm."}]"#);
    assert_snapshot!(replay(ThinkingReplay::ReasoningContent), @r#"[{"role":"assistant","content":"Hi.","reasoning_content":"Hm."}]"#);
}

/// Some servers treat an empty text as missing (QUIRKS row 94).
#[test]
fn required_thinking_is_never_empty() {
    let sent = |blocks: Vec<ContentBlock>| {
        let mut form = MessageFormat::default();
        form.thinking = ThinkingReplay::RequiredReasoningContent;
        let message: Value =
            serde_json::from_str(&wire_as(&form, &[Message::assistant(blocks)])).unwrap();
        message[0]["reasoning_content"].as_str().map(str::to_owned)
    };
    let thinking = || ThinkingBlock::new("Hm.").into();
    assert_eq!(sent(vec![thinking(), call()]).as_deref(), Some("Hm."));
    assert_eq!(sent(vec![call()]).as_deref(), Some(" "));
    assert_eq!(sent(vec![ThinkingBlock::new("\n").into(), call()]).as_deref(), Some(" "));
    assert_eq!(sent(vec![thinking(), TextBlock::new("Hi.").into()]).as_deref(), Some("Hm."));
    assert_eq!(sent(vec![TextBlock::new("Hi.").into()]), None);
}

#[test]
fn results_have_names_unless_rejected() {
    let mut result = ToolResultBlock::new("call_1", json!("3"));
    result.name = Some("add".into());
    let message = Message::tool(result);
    let mut form = MessageFormat::default();
    assert_snapshot!(wire_as(&form, std::slice::from_ref(&message)), @r#"[{"role":"tool","content":"3","tool_call_id":"call_1","name":"add"}]"#);
    form.result_names = ResultNames::Absent;
    assert_snapshot!(wire_as(&form, &[message]), @r#"[{"role":"tool","content":"3","tool_call_id":"call_1"}]"#);
}

#[test]
fn extra_members_are_sent_back_once() {
    let mut call = ToolUseBlock::new("call_1", "add", json!({}));
    call.extra.insert("extra_content".into(), json!({"google": {"thought_signature": "x"}}));
    call.extra.insert("id".into(), json!("other"));
    let mut message = Message::assistant(vec![call.into()]);
    message
        .extra
        .insert("reasoning_details".into(), json!([{"data": "y", "type": "reasoning.encrypted"}]));
    message.extra.insert("role".into(), json!("other"));
    assert_snapshot!(wire(&[message]), @r#"[{"role":"assistant","content":"","tool_calls":[{"id":"call_1","type":"function","function":{"name":"add","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}],"reasoning_details":[{"data":"y","type":"reasoning.encrypted"}]}]"#);
}

#[test]
fn blank_messages_are_omitted() {
    let broken = ToolUseError::new("no name", "{}").into();
    let messages = [
        Message::system(""),
        Message::user(""),
        Message::assistant(vec![]),
        Message::assistant(vec![
            TextBlock::new("").into(),
            ThinkingBlock::new("Hm").into(),
            broken,
        ]),
    ];
    assert_eq!(wire(&messages), "[]");
    let blank = [
        Message::system(" \n"),
        Message::user("\t"),
        Message::assistant(vec![TextBlock::new("\n\n").into()]),
    ];
    assert_eq!(wire(&blank), "[]");
}

#[test]
fn blank_text_beside_a_call_counts_as_none() {
    let message = Message::assistant(vec![TextBlock::new("\n\n").into(), call()]);
    assert!(wire(&[message]).starts_with(r#"[{"role":"assistant","content":"","tool_calls""#));
}

#[test]
fn audio_makes_parts() {
    let audio = AudioBlock::from_base64("aGk=", "audio/mpeg").unwrap();
    assert_snapshot!(wire(&[Message::user_with_audio("What is said?", audio.clone())]), @r#"[{"role":"user","content":[{"type":"text","text":"What is said?"},{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]}]"#);
    let alone = vec![audio.into(), TextBlock::new(" ").into()];
    assert_snapshot!(wire(&[Message::user_with_blocks(alone)]), @r#"[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"aGk=","format":"mp3"}}]}]"#);
}

#[test]
fn only_users_send_media() {
    let image = ImageBlock::from_url("https://host/a.png").unwrap();
    let audio = AudioBlock::from_base64("aGk=", "audio/mpeg").unwrap();
    let blocks =
        |text: &str| vec![TextBlock::new(text).into(), image.clone().into(), audio.clone().into()];
    let messages = [
        Message::new(MessageRole::System, blocks("Be brief.")),
        Message::assistant(blocks("Here.")),
    ];
    assert_snapshot!(wire(&messages), @r#"[{"role":"system","content":"Be brief."},{"role":"assistant","content":"Here."}]"#);
}

#[test]
fn call_ids_are_shortened_by_format() {
    let long = "x".repeat(65);
    let id = |call_ids: CallIds, id: &str| {
        let mut form = MessageFormat::default();
        form.call_ids = call_ids;
        let mut out = b"[".to_vec();
        write_message(&Message::tool(ToolResultBlock::new(id, json!(1))), &form, &mut out);
        out.push(b']');
        let value: Value = serde_json::from_slice(&out).unwrap();
        value[0]["tool_call_id"].as_str().unwrap().to_owned()
    };
    assert_eq!(id(CallIds::AsTheyAre, &long), long);
    assert_eq!(id(CallIds::UpTo64, &long[..64]), long[..64]);
    assert_eq!(id(CallIds::UpTo64, &"é".repeat(64)), "é".repeat(64));
    assert_eq!(id(CallIds::UpTo64, &long), id(CallIds::NineLetters, &long));
    assert_eq!(id(CallIds::UpTo64, &long).len(), 9);
}

#[test]
fn unset_parameters_are_not_sent() {
    let request = |request: &ChatParameters| {
        let bytes = [request.head(), request.tail()].concat();
        serde_json::from_slice::<Value>(&bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let mut chat = ChatParameters::new("qwen3:8b");
    // Without tools, no tool settings are sent (QUIRKS row 80).
    chat.tool_choice = Some(ToolChoice::Required);
    chat.parallel_tool_calls = Some(false);
    assert_snapshot!(request(&chat), @r#"{"model":"qwen3:8b","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#);
    chat.tools = vec![ToolSpec::new("add", "Adds.", json!({"type": "object"}))];
    assert_snapshot!(request(&chat), @r#"{"model":"qwen3:8b","messages":[],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object"}}}],"tool_choice":"required","parallel_tool_calls":false}"#);
    chat.tool_choice = Some(ToolChoice::Tool("add".into()));
    chat.temperature = Some(0.7);
    chat.extra_body =
        json!({"model": "other", "num_ctx": 1, "tool_choice": "auto"}).as_object().unwrap().clone();
    assert_snapshot!(request(&chat), @r#"{"model":"other","messages":[],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"add","description":"Adds.","parameters":{"type":"object"}}}],"parallel_tool_calls":false,"temperature":0.7,"num_ctx":1,"tool_choice":"auto"}"#);
}

#[test]
fn html_is_stripped_in_linear_time() {
    // Rescanning the rest of the page at each tag would take a minute.
    let page =
        "<html>".to_owned() + &"<SCRIPT>let a = '<b>';</script><style>".repeat(1 << 16) + "lost";
    assert_eq!(ServerError::from_body(page.as_bytes()).message, "");
    let page = "<p>502</p><Style>p { }</STYLE> Bad\n<b>Gateway</b> <";
    assert_eq!(ServerError::from_body(page.as_bytes()).message, "502 Bad Gateway");
}
