//! A model server that gives the first call of each answer the same id: each call is approved, answered and shown
//! separately, and an answer to a call that no longer waits does not answer the next one.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::app::{App, Event, text};

/// Returns the call that waits at the end of a run.
fn waiting(run: &[Event]) -> Value {
    let end = run.last().expect("a run ends");
    let [call] = end.data["waiting"].as_array().map_or(&[][..], Vec::as_slice) else {
        panic!("one call waits: {end:?}")
    };
    call.clone()
}

/// Returns the frames of a type.
fn of<'a>(frames: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame["type"] == kind)
}

fn one<'a>(frames: &'a [Value], kind: &'a str) -> &'a Value {
    let found: Vec<_> = of(frames, kind).collect();
    let [one] = &*found else { panic!("one {kind}: {frames:?}") };
    one
}

#[tokio::test]
async fn native_approvals_are_for_one_call() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[deletes]").await;
    let first = waiting(&events.run().await);
    assert_eq!(first["input"]["path"], "a.txt");
    let approve = |call: &Value| {
        format!("{path}/calls/{}/approve", call["call_id"].as_str().expect("a call has an id"))
    };
    assert_eq!(app.post(&approve(&first), json!({})).await.0, StatusCode::ACCEPTED);
    let run = events.run().await;
    let second = waiting(&run);
    assert_eq!(second["input"]["path"], "b.txt");
    // Another viewer was slower.
    let (status, body) = app.post(&approve(&first), json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(
        body["error"]["message"],
        "no call with this id is waiting for an answer; another viewer may have answered it"
    );
    let (_, now) = app.get(&path).await;
    assert_eq!(now["waiting"][0]["call_id"], second["call_id"]);

    assert_eq!(app.post(&approve(&second), json!({})).await.0, StatusCode::ACCEPTED);
    let last = events.run().await;
    assert!(text(&last).contains("b.txt"), "{}", text(&last));
    let ran = |run: &[Event]| {
        let started = run.iter().filter(|event| event.data["data"]["type"] == "tool_call_start");
        started.map(|event| event.data["data"]["input"]["path"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((ran(&run), ran(&last)), (vec![json!("a.txt")], vec![json!("b.txt")]));
}

#[tokio::test]
async fn native_results_are_for_one_call() {
    let app = App::new(|server| server);
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[picks]").await;
    let first = waiting(&events.run().await);
    let result = |call: &Value| {
        format!("{path}/calls/{}/result", call["call_id"].as_str().expect("a call has an id"))
    };
    let (status, _) = app.post(&result(&first), json!({"content": "red"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let second = waiting(&events.run().await);
    assert_eq!(second["input"]["palette"], "cold");
    let (status, _) = app.post(&result(&first), json!({"content": "red"})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let (status, _) = app.post(&result(&second), json!({"content": "teal"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let last = text(&events.run().await);
    assert!(last.contains("teal") && !last.contains("red"), "{last}");
}

fn user(text: &str) -> Value {
    json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// The part of a call as the AI SDK keeps it.
fn part(run: &[Value], state: &str) -> Value {
    let call = one(run, "tool-input-available");
    let mut part = json!({
        "type": format!("tool-{}", call["toolName"].as_str().expect("a call has a name")),
        "toolCallId": call["toolCallId"], "input": call["input"], "state": state,
    });
    if let Some(asked) = of(run, "tool-approval-request").next() {
        assert_eq!(asked["toolCallId"], call["toolCallId"]);
        part["approval"] = json!({"id": asked["approvalId"], "approved": true});
    }
    part
}

fn chat(prompt: &str, message: &Value, parts: &[Value]) -> Value {
    let steps = parts.iter().flat_map(|part| {
        [json!({"type": "step-start"}), json!({"type": "text", "text": "Next."}), part.clone()]
    });
    let parts: Vec<_> = steps.collect();
    let message = json!({"id": message, "role": "assistant", "parts": parts});
    json!({"id": "c", "messages": [user(prompt), message]})
}

#[tokio::test]
async fn chat_calls_are_separate_parts() {
    let app = App::new(|server| server);
    let first = json!({"id": "c", "messages": [user("[deletes]")]});
    let first = app.frames("/api/chat", &first).await;
    let message = &one(&first, "start")["messageId"];
    let mut asked = part(&first, "approval-responded");
    let yes = chat("[deletes]", message, std::slice::from_ref(&asked));
    let second = app.frames("/api/chat", &yes).await;
    let output = one(&second, "tool-output-available");
    assert_eq!(output["toolCallId"], asked["toolCallId"]);
    assert_eq!(output["output"], json!({"deleted": "a.txt"}));
    let next = part(&second, "approval-responded");
    assert_ne!(next["toolCallId"], asked["toolCallId"], "it would replace the part before");
    (asked["state"], asked["output"]) = ("output-available".into(), output["output"].clone());
    let last = app.frames("/api/chat", &chat("[deletes]", message, &[asked, next.clone()])).await;
    let output = one(&last, "tool-output-available");
    assert_eq!(output["toolCallId"], next["toolCallId"]);
    assert_eq!(output["output"], json!({"deleted": "b.txt"}));
    // The yes to the first question counts once.
    assert_eq!(app.post("/api/chat", yes).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn chat_results_are_for_one_call() {
    let app = App::new(|server| server);
    let first = json!({"id": "c", "messages": [user("[picks]")]});
    let first = app.frames("/api/chat", &first).await;
    let message = &one(&first, "start")["messageId"];
    let mut warm = part(&first, "output-available");
    warm["output"] = "red".into();
    let second =
        app.frames("/api/chat", &chat("[picks]", message, std::slice::from_ref(&warm))).await;
    let mut cold = part(&second, "output-available");
    assert_ne!(cold["toolCallId"], warm["toolCallId"]);
    cold["output"] = "teal".into();
    let last = app.frames("/api/chat", &chat("[picks]", message, &[warm, cold])).await;
    let words: String =
        of(&last, "text-delta").filter_map(|delta| delta["delta"].as_str()).collect();
    assert!(words.contains("teal") && !words.contains("red"), "{words}");
}

#[tokio::test]
async fn thread_interrupts_are_for_one_call() {
    let app = App::new(|server| server);
    let prompt = json!({"id": "u", "role": "user", "content": "[deletes]"});
    let mut messages = vec![prompt];
    let mut resume = json!([]);
    let (mut seen, mut results) = (Vec::new(), Vec::new());
    for round in 0..3 {
        let input = json!({
            "threadId": "t", "runId": format!("r{round}"), "messages": messages, "resume": resume,
        });
        let run = app.frames("/ag-ui", &input).await;
        for result in of(&run, "TOOL_CALL_RESULT") {
            results.push((result["toolCallId"].clone(), result["content"].clone()));
            let (id, call) = (&result["messageId"], &result["toolCallId"]);
            let content = &result["content"];
            messages
                .push(json!({"id": id, "role": "tool", "toolCallId": call, "content": content}));
        }
        let Some(call) = of(&run, "TOOL_CALL_START").next() else { continue };
        let arguments: String =
            of(&run, "TOOL_CALL_ARGS").filter_map(|piece| piece["delta"].as_str()).collect();
        let function = json!({"name": "delete_file", "arguments": arguments});
        messages.push(json!({
            "id": call["parentMessageId"], "role": "assistant", "content": "Next.",
            "toolCalls": [{"id": call["toolCallId"], "type": "function", "function": function}],
        }));
        let interrupt = &one(&run, "RUN_FINISHED")["outcome"]["interrupts"][0];
        assert_eq!(interrupt["toolCallId"], call["toolCallId"]);
        seen.push(call["toolCallId"].clone());
        let payload = json!({"approved": true});
        resume =
            json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": payload}]);
    }
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0], seen[1], "the client would put both results behind the same call");
    let deleted = |path: &str| json!(json!({"deleted": path}).to_string());
    let expected: Vec<_> = seen.into_iter().zip([deleted("a.txt"), deleted("b.txt")]).collect();
    assert_eq!(results, expected);
}

#[tokio::test]
async fn completion_results_are_for_one_call() {
    let app = App::new(|server| server);
    let tools = json!([{"type": "function", "function": {"name": "pick_color", "parameters": {"type": "object"}}}]);
    let mut messages = vec![json!({"role": "user", "content": "[picks]"})];
    let mut ids = Vec::new();
    for color in ["red", "teal"] {
        let body = json!({"model": "agent", "messages": messages, "tools": tools});
        let (_, answer) = app.post("/v1/chat/completions", body).await;
        let message = &answer["choices"][0]["message"];
        assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls", "{answer}");
        let id = &message["tool_calls"][0]["id"];
        ids.push(id.clone());
        messages.push(message.clone());
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": color}));
    }
    assert_ne!(ids[0], ids[1]);
    let body = json!({"model": "agent", "messages": messages, "tools": tools});
    let (_, answer) = app.post("/v1/chat/completions", body).await;
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap_or_default();
    assert!(content.contains("teal") && !content.contains("red"), "{content}");
}

/// Rounds are paragraphs, in a whole completion as in a stream.
#[tokio::test]
async fn completion_rounds_are_paragraphs() {
    // Nobody can be asked, so the calls are denied and the model goes on.
    let app = App::new(|server| server);
    let body = |stream: bool| {
        let messages = json!([{"role": "user", "content": "[deletes]"}]);
        json!({"model": "agent", "messages": messages, "stream": stream})
    };
    let (_, whole) = app.post("/v1/chat/completions", body(false)).await;
    let whole = whole["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned();
    assert!(whole.starts_with("Next.\n\nNext.\n\nResult: "), "{whole}");
    let chunks = app.frames("/v1/chat/completions", &body(true)).await;
    let deltas = chunks.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str());
    assert_eq!(deltas.collect::<String>(), whole);
}
