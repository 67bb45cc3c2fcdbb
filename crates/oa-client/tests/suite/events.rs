//! Events from a client: the first event of a call has its id and name.

use oa_chat::ToolMode;
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client};
use oa_testkit::{Cut, MemoryServer, Reply, Script};
use oa_tools::tool;
use oa_types::ContentBlock;
use serde_json::{Value, json};

/// Runs a prompt, and returns its events.
async fn events(options: AgentOptionsBuilder, server: &MemoryServer) -> Vec<AgentEvent> {
    let add = tool("add", "Adds").param("a", "integer").build(|_| async { Ok(json!(4)) });
    let options = options.model("any").transport(server.clone()).tool(add);
    let options = options.auto_execute_tools(true).build().expect("good options");
    let mut client = Client::new(options).expect("a good client");
    client.send("Add.").await.expect("the server answers");
    let mut events = Vec::new();
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        events.push(event);
    }
    let calls = client.history().iter().flat_map(|message| &message.content);
    let ids = calls.filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some(call.id.clone()),
        _ => None,
    });
    assert_eq!(
        started(&events),
        ids.collect::<Vec<_>>(),
        "history has the ids of the first events"
    );
    events
}

/// Returns the ids of the calls that start, after checking that all later events of each have the same.
fn started(events: &[AgentEvent]) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for event in events {
        let later = match event {
            AgentEvent::ToolUseDelta(delta) => {
                assert_eq!(delta.id.is_some(), delta.name.is_some());
                match &delta.id {
                    Some(id) => ids.push(id.clone()),
                    None => assert!(delta.call < ids.len(), "the call has started"),
                }
                continue;
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => &call.id,
            AgentEvent::Block(ContentBlock::ToolResult(result)) => &result.tool_use_id,
            AgentEvent::Tool(event) => match event.call_id() {
                Some(id) => id,
                None => continue,
            },
            _ => continue,
        };
        assert!(ids.iter().any(|id| id == later), "{later} is none of {ids:?}");
    }
    ids
}

fn fragment(call: Value) -> Value {
    json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [call] } }] })
}

#[tokio::test]
async fn call_ids_are_final_from_the_first_event() {
    let late = Reply::new()
        .event(fragment(
            json!({ "index": 0, "function": { "name": "add", "arguments": "{\"a\":" } }),
        ))
        .event(fragment(json!({ "index": 0, "id": "late", "function": { "arguments": "2}" } })))
        .finish("tool_calls");
    let too_late = Reply::new()
        .event(fragment(
            json!({ "index": 0, "function": { "name": "add", "arguments": "{\"a\":" } }),
        ))
        .event(fragment(json!({ "index": 0, "function": { "arguments": "2" } })))
        .event(fragment(json!({ "index": 0, "id": "late", "function": { "arguments": "}" } })))
        .finish("tool_calls");
    let named_last = Reply::new()
        .event(fragment(json!({ "index": 0, "id": "c1", "function": { "arguments": "{\"a\":" } })))
        .event(fragment(json!({ "index": 0, "function": { "name": "add", "arguments": "2}" } })))
        .finish("tool_calls");
    let known = Reply::new().call_with_id("c1", "add", json!({ "a": 2 }));
    let replies =
        [(late, Some("late")), (too_late, None), (named_last, Some("c1")), (known, Some("c1"))];
    for (reply, id) in replies {
        let server = MemoryServer::new([reply, Reply::text("4.")]);
        let started = started(&events(AgentOptions::builder(), &server).await);
        assert_eq!(started.len(), 1);
        assert!(id.map_or(started[0].len() == 9, |id| started[0] == id), "{started:?}");
    }
}

/// In each dialect, and however the server cuts its answer.
#[tokio::test]
async fn text_calls_start_with_id_and_name() {
    let constrained = r#"{"tool": "add", "arguments": {"a": 2}}"#;
    let tagged = r#"<tool_call>{"name": "add", "arguments": {"a": 2}}</tool_call>"#;
    for (mode, call, answer) in [
        (ToolMode::Constrained, constrained, r#"{"answer": "4."}"#),
        (ToolMode::Markers, "[TOOL:add:a=2]", "4."),
        (ToolMode::MarkersInline, "[TOOL:add:a=2]", "4."),
        (ToolMode::React, "Action: add(a=2)", "4."),
        (ToolMode::TaggedJson, tagged, "4."),
    ] {
        for cut in [Cut::Whole, Cut::Every(1)] {
            let script = Script::new().reply(Reply::text(call).cut(cut));
            let server = MemoryServer::new(script.otherwise(Reply::text(answer)));
            let options = AgentOptions::builder().tool_mode(mode.clone());
            let events = events(options, &server).await;
            let first = events.iter().find_map(|event| match event {
                AgentEvent::ToolUseDelta(delta) => Some((delta.id.clone(), delta.name.clone())),
                _ => None,
            });
            let id = started(&events).pop();
            assert_eq!(first, Some((id, Some("add".to_owned()))), "{mode:?}");
        }
    }
}
