//! Calls that are found in the text of an answer, beside those that the server sends natively.

use futures_util::StreamExt as _;
use oa_chat::{AnswerDelta, ChatRequest, Endpoint};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use oa_types::{ContentBlock, Message, ToolSpec};
use serde_json::{Value, json};
use tower::ServiceExt as _;

fn delta(delta: &Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "index": 0, "delta": delta }] }))
}

fn text(text: &str) -> String {
    delta(&json!({ "content": text }))
}

/// A call in the text that assigns `n`.
fn in_text(tool: &str, n: &Value) -> String {
    let call = json!({ "name": tool, "arguments": { "n": n } });
    text(&format!("<tool_call>{call}</tool_call>"))
}

/// A native call, sent in two pieces.
fn native(index: usize, tool: &str, arguments: &str) -> String {
    let (one, two) = arguments.split_at(arguments.len() / 2);
    let id = format!("call_{index}");
    let start = json!({ "index": index, "id": id, "function": { "name": tool, "arguments": one } });
    let rest = json!({ "index": index, "function": { "arguments": two } });
    delta(&json!({ "tool_calls": [start] })) + &delta(&json!({ "tool_calls": [rest] }))
}

/// Asks with tools; returns what is told of the calls, and the blocks of the answer.
async fn ask(reply: Reply) -> (Vec<String>, Vec<ContentBlock>) {
    let server = MemoryServer::new(Script::new().otherwise(reply));
    let endpoint = Endpoint::builder().base_url("http://gpu/v1").transport(server).build();
    let request = ChatRequest::new("any", vec![Message::user("Go.")]).with_options(|options| {
        options.recognize_calls = true;
        let schema = json!({ "type": "object" });
        let tools =
            ["add", "get", "open_sluice"].map(|name| ToolSpec::new(name, "", schema.clone()));
        options.parameters.tools = tools.into();
    });
    let mut answer = endpoint.expect("it can be built").oneshot(request).await.expect("it answers");
    let mut told: Vec<String> = Vec::new();
    loop {
        match answer.next().await.expect("an end comes last").expect("nothing fails") {
            AnswerDelta::CallStart { call, name, .. } => {
                assert_eq!(call, told.len(), "calls are numbered as they are told");
                told.push(name.expect("each call has a name"));
            }
            AnswerDelta::CallArguments { call, fragment } => told[call].push_str(&fragment),
            AnswerDelta::End { message } => return (told, message.content),
            _ => {}
        }
    }
}

fn write(blocks: &[ContentBlock]) -> String {
    let write = |block: &ContentBlock| match block {
        ContentBlock::Text(text) => format!("{:?}", text.text),
        ContentBlock::ToolUse(call) => {
            let form = if call.id.starts_with("call_") { "native" } else { "in text" };
            format!("{}{} {form}", call.name, call.input)
        }
        other => format!("{other:?}"),
    };
    blocks.iter().map(write).collect::<Vec<_>>().join(", ")
}

/// Reads a body whole and byte by byte; returns what both show.
async fn shown(body: String) -> String {
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "tool_calls" }] });
    let body = format!("{body}data: {end}\n\ndata: [DONE]\n\n");
    let mut shown = Vec::new();
    for cut in [Cut::Whole, Cut::Every(1)] {
        let (told, blocks) = ask(Reply::sse(body.clone()).cut(cut)).await;
        shown.push(format!("told: {}; answer: {}", told.join(", "), write(&blocks)));
    }
    assert_eq!(shown[0], shown[1]);
    shown.swap_remove(0)
}

/// Some servers stream a call as text and send it again when it is complete (QUIRKS row 131). It must not run twice.
#[tokio::test(start_paused = true)]
async fn call_in_text_and_native_is_one() {
    let list = json!({ "a": 1.0, "b": " x\n" });
    for (body, expected) in [
        (
            text("Sure.") + &in_text("add", &json!(1)) + &native(0, "add", r#"{"n": 1}"#),
            "told: add{\"n\":1}; answer: \"Sure.\", add{\"n\":1} in text",
        ),
        (
            native(0, "add", r#"{"n":1}"#) + &in_text("add", &json!(1)),
            "told: add{\"n\":1}; answer: add{\"n\":1} native",
        ),
        // The server reads the text in another way.
        (
            in_text("add", &list) + &native(0, "add", r#"{"m":null,"n":"{\"b\":\"x\",\"a\":1}"}"#),
            "told: add{\"n\":{\"a\":1.0,\"b\":\" x\\n\"}}; answer: add{\"n\":{\"a\":1.0,\"b\":\" x\\n\"}} in text",
        ),
        // All of several calls, in another order.
        (
            in_text("add", &json!(1))
                + &in_text("get", &json!("x"))
                + &native(0, "get", r#"{"n":"x"}"#)
                + &native(1, "add", r#"{"n":1}"#),
            "told: add{\"n\":1}, get{\"n\":\"x\"}; answer: add{\"n\":1} in text, get{\"n\":\"x\"} in text",
        ),
    ] {
        assert_eq!(shown(body).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn other_calls_in_both_forms_all_stay() {
    let one = || in_text("add", &json!(1));
    for (body, expected) in [
        // The server recognized only the second call.
        (
            one() + &native(0, "add", r#"{"n":2}"#),
            "told: add{\"n\":1}; answer: add{\"n\":1} in text, add{\"n\":2} native",
        ),
        (
            one() + &native(0, "get", r#"{"n":1}"#),
            "told: add{\"n\":1}, get{\"n\":1}; answer: add{\"n\":1} in text, get{\"n\":1} native",
        ),
        // Two equal calls, one of them in both forms.
        (
            one() + &one() + &native(0, "add", r#"{"n":1}"#),
            "told: add{\"n\":1}, add{\"n\":1}; answer: add{\"n\":1} in text, add{\"n\":1} in text",
        ),
        (
            one() + &native(0, "add", r#"{"n":1}"#) + &native(1, "add", r#"{"n":1}"#),
            "told: add{\"n\":1}, add{\"n\":1}; answer: add{\"n\":1} in text, add{\"n\":1} native",
        ),
    ] {
        assert_eq!(shown(body).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_text_and_native_calls_differ_in_id() {
    let call = json!({ "index": 0, "function": { "name": "add", "arguments": "{\"n\":2}" } });
    let body = in_text("add", &json!(1)) + &delta(&json!({ "tool_calls": [call] }));
    let (_, blocks) = ask(Reply::sse(body)).await;
    let ids: Vec<&str> =
        blocks.iter().filter_map(ContentBlock::as_tool_use).map(|call| &*call.id).collect();
    let [one, two] = ids[..] else { panic!("{blocks:?}") };
    assert_ne!(one, two);
}

#[tokio::test(start_paused = true)]
async fn call_in_a_recording_is_one() {
    let path = "../../tests/fixtures/own/webui-call-in-text-too.sse";
    let body = std::fs::read(path).expect("the fixture is there");
    let (told, blocks) = ask(Reply::sse(body)).await;
    assert_eq!(told, [r#"open_sluice{"gate":"north","turns":3}"#]);
    assert_eq!(
        write(&blocks),
        r#""The sluice first.", open_sluice{"gate":"north","turns":3} in text"#
    );
}

/// Without its closing token, only the end of the answer ends such a call.
#[tokio::test(start_paused = true)]
async fn calls_in_text_that_were_cut_do_not_run() {
    for (reason, is_whole) in
        [("stop", true), ("length", false), ("content_filter", false), ("SAFETY", false)]
    {
        let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] });
        let body = text("<start_function_call>call:add{a:1}") + &format!("data: {end}\n\n");
        let (_, blocks) = ask(Reply::sse(body)).await;
        assert_eq!(
            matches!(blocks[..], [ContentBlock::ToolUse(_)]),
            is_whole,
            "{reason}: {blocks:?}"
        );
    }
}

fn thinking(words: &str) -> String {
    delta(&json!({ "reasoning_content": words }))
}

/// Some models call a tool before they end their thinking (QUIRKS row 152).
#[tokio::test]
async fn calls_at_the_end_of_thinking_are_found() {
    let call = |tool: &str| {
        format!("<tool_call>{{\"name\": \"{tool}\", \"arguments\": {{\"n\": 1}}}}</tool_call>")
    };
    let asked = async |pieces: &[String]| {
        let body = pieces.concat() + "data: [DONE]\n\n";
        ask(Reply::body(200, "text/event-stream", body)).await
    };
    let (one, two) = (call("add"), call("get"));
    let (told, blocks) =
        asked(&[thinking("I add.\n"), thinking(&one), thinking("\n"), thinking(&two)]).await;
    assert_eq!(told, [r#"add{"n":1}"#, r#"get{"n":1}"#]);
    assert_eq!(write(&blocks[1..]), r#"add{"n":1} in text, get{"n":1} in text"#);
    let ContentBlock::Thinking(kept) = &blocks[0] else { panic!("{blocks:?}") };
    assert_eq!(kept.thinking, format!("I add.\n{one}\n{two}"), "it is shown as it came");
    let unclosed = one.strip_suffix("</tool_call>").unwrap();
    assert_eq!(asked(&[thinking(unclosed)]).await.0, [r#"add{"n":1}"#]);
    let cut = r#"data: {"choices":[{"delta":{},"finish_reason":"length"}]}"#.to_owned() + "\n\n";
    let sent = native(0, "get", r#"{"n":2}"#);
    for (pieces, expected) in [
        // Drafts.
        (vec![thinking(&format!("{one} would do. Or not."))], 0),
        (vec![thinking(&one), text("No, I cannot.")], 0),
        (vec![thinking(&one), cut], 0),
        (vec![thinking(&call("teleport"))], 0),
        (vec![thinking(&format!("{one}{}", call("teleport")))], 0),
        (vec![thinking("<tool_call>{\"name\": \"add\", \"arguments\": {</tool_call>")], 0),
        // The server's own.
        (vec![thinking(&one), sent], 1),
    ] {
        let (told, blocks) = asked(&pieces).await;
        assert_eq!(told.len(), expected, "{pieces:?}: {blocks:?}");
    }
}
