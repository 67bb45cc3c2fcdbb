//! Calls that wait for an approval, a denial, or an external result.

use std::sync::Arc;

use axum::http::StatusCode;
use oa_session::{MemoryStore, SessionStore};
use serde_json::json;

use crate::app::{App, Event, text};

fn waiting(events: &[Event]) -> Vec<String> {
    let end = events.last().expect("a run ends");
    let calls = end.data["waiting"].as_array().cloned().unwrap_or_default();
    calls.iter().filter_map(|call| Some(call["call_id"].as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn an_approved_call_runs_once() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[delete]").await;
    let run = events.run().await;
    assert_eq!(run.last().expect("a run ends").data["finish_reason"], "approval_pending");
    let [call] = &*waiting(&run) else { panic!("one call waits") };
    let (_, now) = app.get(&path).await;
    assert_eq!(now["waiting"][0]["kind"], "approval");
    assert_eq!(now["waiting"][0]["input"], json!({"path": "notes.txt"}));

    let (status, _) = app.post(&format!("{path}/calls/{call}/result"), json!({"content": 1})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let answer = format!("{path}/calls/{call}/approve");
    assert_eq!(app.post(&answer, json!({})).await.0, StatusCode::ACCEPTED);
    assert_ne!(app.post(&answer, json!({})).await.0, StatusCode::ACCEPTED);
    let answered = events.next().await.expect("viewers are told");
    assert_eq!(answered.kind, "answered");
    assert_eq!(answered.data, json!({"call_id": call, "answer": "approved"}));
    let run = events.run().await;
    let started = run.iter().filter(|event| event.data["data"]["type"] == "tool_call_start");
    assert_eq!(started.count(), 1);
    assert!(text(&run).contains("notes.txt"));
    assert_eq!(app.post(&answer, json!({})).await.0, StatusCode::NOT_FOUND);
}

/// Only by an input that matches the schema.
#[tokio::test]
async fn approval_may_replace_the_input() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[delete]").await;
    let call = waiting(&events.run().await).remove(0);
    let answer = format!("{path}/calls/{call}/approve");
    assert_eq!(app.post(&answer, json!({"input": {"path": 1}})).await.0, StatusCode::BAD_REQUEST);
    // A misspelled member must not approve the model's own input.
    let (status, body) = app.post(&answer, json!({"inputs": {"path": "b.txt"}})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let message = body["error"]["message"].as_str().expect("it says why");
    assert!(message.contains("unknown field `inputs`"), "{message}");
    let (status, _) = app.post(&answer, json!({"input": {"path": "b.txt"}})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    assert!(text(&events.run().await).contains("b.txt"));
}

#[tokio::test]
async fn a_denied_call_does_not_run() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[delete]").await;
    let call = waiting(&events.run().await).remove(0);
    let (status, _) =
        app.post(&format!("{path}/calls/{call}/deny"), json!({"reason": "keep it"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let run = events.run().await;
    assert!(!run.iter().any(|event| event.data["data"]["type"] == "tool_call_start"));
    assert!(text(&run).contains("keep it"));
}

/// Also after a restart.
#[tokio::test]
async fn last_answer_continues_the_turn() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[both]").await;
    let calls = waiting(&events.run().await);
    assert_eq!(calls.len(), 2);

    let app = App::new(|server| server.session_store(store));
    let (_, now) = app.get(&path).await;
    assert_eq!(now["waiting"].as_array().map(Vec::len), Some(2));
    let mut events = app.view(&path, None).await;
    let result = format!("{path}/calls/{}/result", calls[1]);
    assert_eq!(app.post(&result, json!({"content": "teal"})).await.0, StatusCode::ACCEPTED);
    assert_eq!(events.next().await.expect("viewers are told").kind, "answered");
    assert_eq!(app.post(&result, json!({"content": "red"})).await.0, StatusCode::CONFLICT);
    let approve = format!("{path}/calls/{}/approve", calls[0]);
    assert_eq!(app.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    let run = events.run().await;
    assert!(text(&run).contains("teal"), "{}", text(&run));
    assert_eq!(app.get(&path).await.1["waiting"], json!([]));
}

#[tokio::test]
async fn prompt_cancels_waiting_calls() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[delete]").await;
    let call = waiting(&events.run().await).remove(0);
    app.prompt(&path, "never mind").await;
    assert_eq!(text(&events.run().await), "You said: never mind");
    let (status, _) = app.post(&format!("{path}/calls/{call}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}
