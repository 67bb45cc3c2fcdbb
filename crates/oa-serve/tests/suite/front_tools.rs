//! Tools and the front end: their shared state, and sub-agents.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use oa_agents::AgentTool;
use oa_client::AgentOptions;
use oa_serve::{AgentServer, FrontState};
use oa_session::{MemoryStore, SessionId, SessionStore, Timestamp};
use oa_tools::tool;
use serde_json::{Map, Value, json};

use crate::app::{App, agent, model};

/// An agent with a tool that reads the shared state and changes it, and with a sub-agent.
fn app() -> App {
    serving(|server| server)
}

fn serving(change: impl FnOnce(AgentServer) -> AgentServer) -> App {
    let add_step = tool("add_step", "Adds a step")
        .param("step", "string")
        .exclusive()
        .build_with_context(|args, context| async move {
            let state = context.require_state::<FrontState>()?;
            let mut steps = state.get()["steps"].as_array().cloned().unwrap_or_default();
            steps.push(args["step"].clone());
            context.emit("state", json!({"steps": steps}));
            // What was emitted is known once the run has read it.
            for _ in 0..1_000 {
                tokio::task::yield_now().await;
            }
            Ok(json!(steps.len()))
        });
    let helper = AgentOptions::builder().model("scripted").transport(model()).build();
    let helper = helper.unwrap_or_else(|error| panic!("{error}"));
    let helper =
        AgentTool::new("helper", "Helps", helper).unwrap_or_else(|error| panic!("{error}"));
    App::of(agent().tool(add_step).tool(helper), change)
}

fn of<'a>(frames: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame["type"] == kind)
}

fn input(text: &str, state: Value) -> Value {
    let messages = json!([{"id": "u", "role": "user", "content": text}]);
    json!({"threadId": "t", "runId": "r", "messages": messages, "state": state})
}

#[tokio::test]
async fn tools_share_state_with_ag_ui() {
    let app = app();
    let state = json!({"title": "Garden", "steps": ["dig"]});
    let run = app.frames("/ag-ui", &input("[plans]", state)).await;
    let snapshots: Vec<_> = of(&run, "STATE_SNAPSHOT").map(|event| &event["snapshot"]).collect();
    let grown = |steps: Value| json!({"title": "Garden", "steps": steps});
    assert_eq!(snapshots, [&grown(json!(["dig", "sow"])), &grown(json!(["dig", "sow", "reap"]))]);
    let results = of(&run, "TOOL_CALL_RESULT").map(|result| &result["content"]);
    assert_eq!(results.collect::<Vec<_>>(), ["2", "3"], "a later call sees the change");
    // Each run begins with what its request says.
    let run = app.frames("/ag-ui", &input("[plan]", json!(null))).await;
    let snapshot = of(&run, "STATE_SNAPSHOT").next().expect("a state");
    assert_eq!(snapshot["snapshot"], json!({"steps": ["sow"]}));
}

/// Also in the conversation of a front end that shares its state.
#[tokio::test]
async fn other_protocols_have_null_state() {
    let app = app();
    app.frames("/ag-ui", &input("[plan]", json!({"steps": []}))).await;
    let path = "/api/conversations/thread-t";
    let last = app.get(path).await.1["last_event"].as_str().expect("events are stored").to_owned();
    let mut events = app.view(path, Some(&last)).await;
    app.prompt(path, "[plan]").await;
    let run = events.run().await;
    let result = run.iter().find(|event| event.data["data"]["type"] == "tool_call_complete");
    assert_eq!(result.expect("a result").data["data"]["result"], 1, "it knows of no other step");
}

#[tokio::test]
async fn all_front_ends_see_sub_agents() {
    let app = app();
    let run = app.frames("/ag-ui", &input("[help]", json!({}))).await;
    let shown = of(&run, "ACTIVITY_SNAPSHOT").last().expect("an activity");
    assert_eq!(shown["activityType"], "agent");
    assert_eq!(shown["content"]["agent"], "helper");
    let said = json!([{"type": "text", "text": "You said: inner"}]);
    assert_eq!(shown["content"]["parts"], said);
    assert_eq!(shown["content"]["isDone"], true);
    assert!(of(&run, "CUSTOM").any(|event| event["name"] == "agent_event"));

    let parts = json!([{"type": "text", "text": "[help]"}]);
    let messages = json!([{"id": "u", "role": "user", "parts": parts}]);
    let run = app.frames("/api/chat", &json!({"id": "c", "messages": messages})).await;
    let shown = of(&run, "data-agent").last().expect("a part");
    assert_eq!(shown["id"], of(&run, "tool-input-available").next().expect("a call")["toolCallId"]);
    assert_eq!(shown["data"]["parts"], said);
    assert!(of(&run, "data-agent-event").all(|event| event["transient"] == true));

    // They are loaded with the conversation.
    let (_, now) = app.get("/api/conversations/chat-c").await;
    let agent = &now["agents"][0];
    assert_eq!((&agent["agent"], &agent["parts"]), (&json!("helper"), &said));
    assert_eq!(agent["call_id"], now["messages"][1]["content"][0]["id"]);
}

/// Those that are loaded with a conversation are not sent again as events.
#[tokio::test]
async fn sub_agents_outlive_the_server() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let first = serving(|server| server.session_store(Arc::clone(&store)));
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    for _ in 0..2 {
        first.prompt(&path, "[help]").await;
        events.run().await;
    }
    let (_, before) = first.get(&path).await;
    let second = serving(|server| server.session_store(store));
    let (_, after) = second.get(&path).await;
    assert_eq!(after["agents"], before["agents"]);
    assert_eq!(before["agents"][0]["is_done"], true);
    let last = before["last_event"].as_str().expect("events are stored");
    assert_eq!(last, events_end(&first, &path, last).await, "what is loaded does not come again");
}

/// Returns the id of the last event after one, or this one.
async fn events_end(app: &App, path: &str, after: &str) -> String {
    let mut events = app.view(path, Some(after)).await;
    let next = tokio::time::timeout(std::time::Duration::from_millis(200), events.next()).await;
    next.ok().flatten().map_or_else(|| after.to_owned(), |event| event.id)
}

/// Sub-agents are only shown: if the metadata has no room for them, the messages are stored all the same.
#[tokio::test]
async fn full_metadata_does_not_stop_saves() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = serving(|server| server.session_store(Arc::clone(&store)));
    let path = app.create().await;
    let id = path.rsplit('/').next().expect("an id");
    let id = SessionId::new(id).unwrap_or_else(|error| panic!("{error}"));
    let notes = json!("x".repeat((64 << 10) - 60));
    let notes = Map::from_iter([("notes".to_owned(), notes)]);
    store.set_metadata(&id, notes, Timestamp::now()).await.expect("it fits");
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[help]").await;
    events.run().await;
    let stored = store.load(&id).await.expect("it is stored");
    assert_eq!(stored.messages.len(), 4, "{:?}", stored.messages);

    let long = json!({"title": "x".repeat(401)});
    let (status, _) = app.call(Method::PATCH, &path, long).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}
