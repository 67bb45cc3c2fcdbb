//! Calls in the text of an answer beside native ones, and prompts that are sent again.

use oa_chat::{RetryConfig, ToolMode};
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, ResponseFormat};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::{ContentBlock, Message};
use serde_json::{Value, json};

fn agent(server: &MemoryServer) -> AgentOptionsBuilder {
    AgentOptions::builder().model("any").transport(server.clone()).retry(RetryConfig::none())
}

fn native(index: u32, name: &str) -> Value {
    let function = json!({ "name": name, "arguments": "{}" });
    let call = json!({ "index": index, "id": format!("native_{index}"), "function": function });
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] })
}

/// Front ends tell the deltas of several calls apart by this number.
#[tokio::test]
async fn native_and_text_calls_share_numbers() {
    let in_text = |name: &str| {
        format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {{}}}}</tool_call>")
    };
    let reply = Reply::new()
        .say(in_text("a"))
        .event(native(0, "b"))
        .say(in_text("c"))
        .event(native(1, "d"))
        .finish("tool_calls");
    let server = MemoryServer::new([reply]);
    let tools = ["a", "b", "c", "d"].map(|name| tool(name, "Works").external());
    let options = agent(&server).tools(tools).tool_mode(ToolMode::TaggedJson);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    client.send("Go.").await.unwrap();
    let (mut begun, mut calls) = (Vec::new(), Vec::new());
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::ToolUseDelta(delta) => match delta.name {
                Some(name) => begun.push((delta.call, name)),
                None => assert!(begun.iter().any(|(call, _)| *call == delta.call)),
            },
            AgentEvent::Block(ContentBlock::ToolUse(call)) => calls.push(call.name),
            _ => {}
        }
    }
    let numbers: Vec<usize> = begun.iter().map(|(call, _)| *call).collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let names: Vec<String> = begun.into_iter().map(|(_, name)| name).collect();
    assert_eq!(calls, names, "the calls are in the order of their numbers");
    let mut sorted = calls;
    sorted.sort();
    assert_eq!(sorted, ["a", "b", "c", "d"]);
}

fn told(client: &Client) -> Vec<String> {
    client.history().iter().map(Message::text).collect()
}

#[tokio::test]
async fn failed_corrections_keep_one_prompt() {
    let broken = [Reply::error(500, "out of memory"), Reply::text("{\"n\"").reset_after(120)];
    for broken in broken {
        let script = Script::new().strict().reply(Reply::text("Three.")).reply(broken);
        let server = MemoryServer::new(script.reply(Reply::text(r#"{"n": 3}"#)));
        let mut client = Client::new(agent(&server).build().unwrap()).unwrap();
        let count = || {
            let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
            ResponseFormat::new("count", schema)
        };
        let error = client.send_for_format("How many?", count()).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Api | ErrorKind::Stream), "{error}");
        assert_eq!(told(&client), ["How many?"]);
        let answer = client.send_for_format("How many?", count()).await.unwrap();
        assert_eq!(answer.value, json!({ "n": 3 }));
        assert_eq!(told(&client), ["How many?", r#"{"n": 3}"#]);
        assert_eq!(server.requests().last().unwrap().messages().len(), 1);
        assert_eq!(client.turn_metadata().turns, 1);
    }
}

#[tokio::test]
async fn failures_after_lost_calls_keep_one_prompt() {
    let nameless = json!({ "index": 0, "id": "call_1", "function": { "arguments": "{\"a\":" } });
    let lost = json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [nameless] } }] });
    let script = Script::new()
        .strict()
        .reply(Reply::new().event(lost).finish("tool_calls"))
        .reply(Reply::error(500, "out of memory"))
        .reply(Reply::text("Three."));
    let server = MemoryServer::new(script);
    let count = tool("count", "Counts").build(|_| async { Ok(json!(3)) });
    let options = agent(&server).tool(count).auto_execute_tools(true);
    let mut client = Client::new(options.build().unwrap()).unwrap();
    assert_eq!(client.ask("How many?").await.unwrap_err().kind(), ErrorKind::Api);
    assert_eq!(client.ask("How many?").await.unwrap().text, "Three.");
    let told = told(&client);
    assert_eq!(told.iter().filter(|text| *text == "How many?").count(), 1, "{told:?}");
    let is_note = |text: &&String| text.starts_with("Your tool call could not be used");
    assert_eq!(told.iter().filter(is_note).count(), 1, "{told:?}");
}
