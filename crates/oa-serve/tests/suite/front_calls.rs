//! Calls of tools that run in a front end, and histories as front ends leave them when a turn was cut off.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use oa_client::{AgentOptions, AgentOptionsBuilder};
use oa_hooks::{HookDecision, Hooks, PreToolUseEvent, ToolRule};
use oa_serve::ServeLimits;
use oa_session::{JsonlStore, SessionStore};
use oa_testkit::{MemoryServer, Reply};
use oa_tools::tool;
use serde_json::{Value, json};

use crate::app::{App, agent, model};

fn of<'a>(frames: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame["type"] == kind)
}

/// Joins a member of the frames of a type.
fn words(frames: &[Value], kind: &str, member: &str) -> String {
    of(frames, kind).filter_map(|frame| frame[member].as_str()).collect()
}

/// Returns a chat with messages of the user and, in between, one of the assistant with these parts.
fn chat(first: &str, parts: Value, last: Option<&str>) -> Value {
    let user =
        |text: &str| json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]});
    let mut messages = vec![user(first)];
    if parts != json!([]) {
        messages.push(json!({"id": "a", "role": "assistant", "parts": parts}));
    }
    messages.extend(last.map(user));
    json!({"id": "c", "messages": messages})
}

fn thread(messages: Value) -> Value {
    let tools =
        json!([{"name": "pick_color", "description": "Picks", "parameters": {"type": "object"}}]);
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0", "messages": messages, "tools": tools,
    })
}

fn user(text: &str) -> Value {
    json!({"id": "u", "role": "user", "content": text})
}

fn deciding(decision: fn() -> HookDecision<PreToolUseEvent>) -> AgentOptionsBuilder {
    let hooks = Hooks::new().add_pre_tool_use(move |_| async move { Some(decision()) });
    agent().hooks(hooks.for_tools(["pick_*"]))
}

/// It would run what the model wrote before a hook or a person has seen it.
#[tokio::test]
async fn front_tools_get_the_decided_input() {
    let cold = || HookDecision::modify_input(json!({"palette": "cold"}), "it is winter");
    let app = App::of(deciding(cold), |server| server);
    let run = app.frames("/api/chat", &chat("[pick]", json!([]), None)).await;
    let inputs: Vec<_> = of(&run, "tool-input-available").map(|chunk| &chunk["input"]).collect();
    assert_eq!(inputs, [&json!({"palette": "cold"})]);
    assert_eq!(of(&run, "tool-input-delta").count(), 0, "{run:?}");

    let run = app.frames("/ag-ui", &thread(json!([user("[pick]")]))).await;
    assert_eq!(words(&run, "TOOL_CALL_ARGS", "delta"), json!({"palette": "cold"}).to_string());
    assert_eq!(of(&run, "TOOL_CALL_END").count(), 1);
}

/// The client of the AI SDK runs what has an input.
#[tokio::test]
async fn blocked_calls_do_not_reach_front_tools() {
    let app = App::of(deciding(|| HookDecision::block("no colors")), |server| server);
    let run = app.frames("/api/chat", &chat("[pick]", json!([]), None)).await;
    assert_eq!(of(&run, "tool-input-available").count(), 0, "{run:?}");
    let error = words(&run, "tool-output-error", "errorText");
    assert!(error.contains("no colors"), "{run:?}");

    let run = app.frames("/ag-ui", &thread(json!([user("[pick]")]))).await;
    let result = of(&run, "TOOL_CALL_RESULT").next().expect("a result");
    assert!(result["content"].as_str().is_some_and(|text| text.contains("no colors")), "{result}");
}

#[tokio::test]
async fn front_tools_run_once_approved() {
    let app = App::of(agent().tool_rule(ToolRule::ask("pick_color")), |server| server);
    let run = app.frames("/api/chat", &chat("[pick]", json!([]), None)).await;
    assert_eq!(of(&run, "tool-input-available").count(), 0, "{run:?}");
    assert_eq!(
        words(&run, "tool-input-delta", "inputTextDelta"),
        json!({"palette": "warm"}).to_string()
    );
    let asked = of(&run, "tool-approval-request").next().expect("a question");
    let part = json!({
        "type": "tool-pick_color", "toolCallId": asked["toolCallId"], "state": "approval-responded",
        "input": {"palette": "warm"}, "approval": {"id": asked["approvalId"], "approved": true},
    });
    let mut answer = chat("[pick]", json!([{"type": "step-start"}, part]), None);
    answer["messages"][1]["id"] = of(&run, "start").next().expect("a start")["messageId"].clone();
    let run = app.frames("/api/chat", &answer).await;
    let inputs: Vec<_> = of(&run, "tool-input-available").map(|chunk| &chunk["input"]).collect();
    assert_eq!(inputs, [&json!({"palette": "warm"})], "{run:?}");
}

/// Rules are about the tool that the agent declares.
#[tokio::test]
async fn declared_tools_keep_their_category() {
    let server =
        MemoryServer::new([Reply::new().call("pick_color", json!({})), Reply::text("No.")]);
    let pick = tool("pick_color", "Picks a color").category("colors").external();
    let agent = AgentOptions::builder().model("any").transport(server).tool(pick);
    let agent = agent.tool_rule(ToolRule::deny_category("colors")).auto_execute_tools(true);
    let app = App::of(agent, |server| server);
    let run = app.frames("/ag-ui", &thread(json!([user("Pick.")]))).await;
    let end = of(&run, "RUN_FINISHED").next().expect("an end");
    assert_eq!(end["outcome"]["pendingToolCallIds"], json!([]), "{run:?}");
    assert_eq!(of(&run, "TOOL_CALL_RESULT").count(), 1);
}

/// The client would replace the message by its continuation.
#[tokio::test(start_paused = true)]
async fn continued_messages_are_not_resumed() {
    let app = App::of(agent().tool_rule(ToolRule::ask("wait")), |server| server);
    let run = app.frames("/api/chat", &chat("[wait]", json!([]), None)).await;
    let asked = of(&run, "tool-approval-request").next().expect("a question");
    let call = asked["toolCallId"].clone();
    let part = json!({
        "type": "tool-wait", "toolCallId": call, "state": "approval-responded", "input": {},
        "approval": {"id": asked["approvalId"], "approved": true},
    });
    let mut answer = chat("[wait]", json!([{"type": "step-start"}, part]), None);
    answer["messages"][1]["id"] = of(&run, "start").next().expect("a start")["messageId"].clone();
    let resume = async {
        while app.conversations.running() == 0 {
            tokio::task::yield_now().await;
        }
        app.get("/api/chat/c/stream").await.0
    };
    let (run, resumed) = tokio::join!(app.frames("/api/chat", &answer), resume);
    assert_eq!(resumed, StatusCode::NO_CONTENT);
    assert_eq!(of(&run, "tool-output-available").count(), 1, "{run:?}");
}

/// The turn was stopped while the model wrote the call, so the server does not have it.
#[tokio::test]
async fn half_written_calls_are_left_out() {
    let app = App::new(|server| server);
    let part = json!({
        "type": "tool-delete_file", "toolCallId": "x", "state": "input-streaming", "input": {"path": "no"},
    });
    let parts = json!([{"type": "step-start"}, {"type": "text", "text": "Well."}, part]);
    let run = app.frames("/api/chat", &chat("Go.", parts, Some("[body]"))).await;
    let chat = words(&run, "text-delta", "delta");
    let function = json!({"name": "delete_file", "arguments": "{\"path\": \"no"});
    let call = json!({"id": "x", "type": "function", "function": function});
    let cut = json!({"id": "a", "role": "assistant", "content": "Well.", "toolCalls": [call]});
    let run = app.frames("/ag-ui", &thread(json!([user("Go."), cut, user("[body]")]))).await;
    for sent in [chat, words(&run, "TEXT_MESSAGE_CONTENT", "delta")] {
        let sent: Value = serde_json::from_str(&sent).unwrap_or_else(|error| panic!("{error}"));
        let roles: Vec<_> = sent["messages"].as_array().into_iter().flatten().collect();
        let roles: Vec<_> = roles.iter().map(|message| &message["role"]).collect();
        assert_eq!(roles, ["user", "assistant", "user"], "{sent}");
        assert!(sent["messages"][1].get("tool_calls").is_none(), "{sent}");
    }
}

/// Clients keep them and send them again with each prompt.
#[tokio::test]
async fn empty_user_messages_are_skipped() {
    let app = App::new(|server| server);
    for empty in [json!(""), json!(null), json!([])] {
        let nothing = json!({"id": "n", "role": "user", "content": empty});
        for (path, body) in [
            ("/ag-ui", thread(json!([nothing, user("Hello")]))),
            (
                "/v1/chat/completions",
                json!({"model": "agent", "messages": [nothing, user("Hello")]}),
            ),
        ] {
            assert_eq!(app.post(path, body).await.0, StatusCode::OK, "{path}: {empty}");
        }
        for (path, body) in [
            ("/ag-ui", thread(json!([nothing]))),
            ("/v1/chat/completions", json!({"model": "agent", "messages": [nothing]})),
        ] {
            assert_eq!(app.post(path, body).await.0, StatusCode::BAD_REQUEST, "{path}: {empty}");
        }
    }
}

/// Front ends append instructions.
#[tokio::test]
async fn prompt_before_instructions_is_a_prompt() {
    let hooks = Hooks::new().add_user_prompt_submit(|event| async move {
        event.prompt.contains("password").then(|| HookDecision::block("no passwords"))
    });
    let app = App::of(agent().hooks(hooks), |server| server);
    let be = json!({"id": "s", "role": "system", "content": "Be brief."});
    let run = app.frames("/ag-ui", &thread(json!([user("My password"), be]))).await;
    assert!(words(&run, "RUN_ERROR", "message").contains("no passwords"), "{run:?}");
    let run = app.frames("/ag-ui", &thread(json!([user("[body]"), be]))).await;
    assert!(words(&run, "TEXT_MESSAGE_CONTENT", "delta").contains("Be brief."), "{run:?}");
}

/// A prompt that comes with an answer is shown once: when the model reads it.
#[tokio::test]
async fn prompt_after_answers_is_shown_once() {
    let app = App::new(|server| server);
    let run = app.frames("/ag-ui", &thread(json!([user("[delete]")]))).await;
    let interrupt = &of(&run, "RUN_FINISHED").next().expect("an end")["outcome"]["interrupts"][0];
    let path = "/api/conversations/thread-t";
    let last = app.get(path).await.1["last_event"].as_str().expect("events").to_owned();
    let mut events = app.view(path, Some(&last)).await;
    let call = json!({
        "id": interrupt["toolCallId"], "type": "function",
        "function": {"name": "delete_file", "arguments": json!({"path": "notes.txt"}).to_string()},
    });
    let asked = json!({"id": "a", "role": "assistant", "content": "", "toolCalls": [call]});
    let mut body = thread(json!([user("[delete]"), asked, user("And now?")]));
    body["resume"] = json!([{
        "interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true},
    }]);
    app.frames("/ag-ui", &body).await;
    let run = events.run().await;
    let shown = run.iter().filter(|event| event.data.to_string().contains("And now?"));
    let shown = shown.filter(|event| event.kind == "prompt" || event.data["type"] == "steered");
    assert_eq!(shown.count(), 1, "{run:?}");
}

/// As if it had stopped by itself, the client would keep half an answer.
#[tokio::test(start_paused = true)]
async fn stopped_completions_fail() {
    for stream in [false, true] {
        let mut limits = ServeLimits::default();
        limits.shutdown = Duration::from_secs(1);
        let app = App::new(|server| server.limits(limits));
        let body = json!({"model": "agent", "messages": [user("[long]")], "stream": stream});
        let post = Request::post("/v1/chat/completions").header("content-type", "application/json");
        let request = post.body(Body::from(body.to_string())).expect("it is valid");
        let stop = async {
            while app.conversations.running() == 0 {
                tokio::task::yield_now().await;
            }
            app.conversations.shutdown().await;
        };
        let ask = async {
            let response = app.request(request).await;
            let status = response.status();
            let body = response.into_body().collect().await.expect("the body ends").to_bytes();
            (status, String::from_utf8_lossy(&body).into_owned())
        };
        let ((status, body), ()) = tokio::join!(ask, stop);
        let expected = if stream { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        assert_eq!(status, expected, "{body}");
        assert!(body.contains("the answer was stopped before its end"), "{body}");
        assert!(!body.contains("[DONE]") && !body.contains("\"finish_reason\":\"stop\""), "{body}");
    }
}

/// The agent's tools have run in the completion before, and a retry knows nothing of them.
#[tokio::test]
async fn continued_completions_are_not_retried() {
    let note = tool("note", "Notes").build(|_| async { Ok(json!("noted")) });
    let calls = Reply::new().call("note", json!({})).call("pick", json!({}));
    let server = MemoryServer::new([calls, Reply::error(503, "model loading")]);
    let agent = AgentOptions::builder().model("any").transport(server).tool(note);
    let agent = agent.retry(oa_chat::RetryConfig::none()).auto_execute_tools(true);
    let app = App::of(agent, |server| server);
    let tools = json!([{"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}]);
    let mut body = json!({"model": "agent", "messages": [user("Go.")], "tools": tools});
    let (_, answer) = app.post("/v1/chat/completions", body.clone()).await;
    let message = &answer["choices"][0]["message"];
    let id = &message["tool_calls"][0]["id"];
    let result = json!({"role": "tool", "tool_call_id": id, "content": "blue"});
    body["messages"] = json!([user("Go."), message, result]);
    let post = Request::post("/v1/chat/completions").header("content-type", "application/json");
    let request = post.body(Body::from(body.to_string())).expect("it is valid");
    let response = app.request(request).await;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.headers()["x-should-retry"], "false");
}

/// A payment that was approved again after a crash can be told from another one.
#[tokio::test]
async fn approved_calls_keep_their_keys() {
    let pay =
        tool("add_step", "Pays").param("step", "string").build_with_context(|_, cx| async move {
            Ok(json!(cx.idempotency_key().map(ToString::to_string)))
        });
    let pay = || {
        let agent = AgentOptions::builder().model("scripted").transport(model());
        agent.tool(pay.clone()).tool_rule(ToolRule::ask("add_step")).auto_execute_tools(true)
    };
    let folder = tempfile::tempdir().expect("a folder");
    let open = |path: &std::path::Path| -> Arc<dyn SessionStore> {
        Arc::new(JsonlStore::open(path).expect("it opens"))
    };
    let app = App::of(pay(), |server| server.session_store(open(folder.path())));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[plan]").await;
    let end = events.run().await.pop().expect("a run ends");
    let call = end.data["waiting"][0]["call_id"].as_str().expect("an id").to_owned();
    // The state before the approval, as after a crash.
    let copy = tempfile::tempdir().expect("a folder");
    for file in std::fs::read_dir(folder.path()).expect("a folder") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), copy.path().join(file.file_name())).expect("it is copied");
    }
    let restarted = App::of(pay(), |server| server.session_store(open(copy.path())));
    let mut keys = Vec::new();
    for (app, seen) in [(app, Some(&*end.id)), (restarted, None)] {
        let mut events = app.view(&path, seen).await;
        let approve = format!("{path}/calls/{call}/approve");
        assert_eq!(app.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
        let run = events.run().await;
        let done = run.iter().find(|event| event.data["data"]["type"] == "tool_call_complete");
        keys.push(done.expect("the call runs").data["data"]["result"].clone());
    }
    assert!(keys[0].is_string() && keys[0] == keys[1], "{keys:?}");
}

/// The server knows the waiting call, and the protocol does not say that the history comes along.
#[tokio::test]
async fn interrupts_are_answered_without_history() {
    for (status, payload, expected) in
        [("resolved", json!({"approved": true}), "deleted"), ("cancelled", json!(null), "said no")]
    {
        let app = App::new(|server| server);
        let run = app.frames("/ag-ui", &thread(json!([user("[delete]")]))).await;
        let end = of(&run, "RUN_FINISHED").next().expect("an end");
        let id = &end["outcome"]["interrupts"][0]["id"];
        let mut answer = thread(json!([]));
        answer["resume"] = json!([{"interruptId": id, "status": status, "payload": payload}]);
        let run = app.frames("/ag-ui", &answer).await;
        assert!(words(&run, "TOOL_CALL_RESULT", "content").contains(expected), "{run:?}");
        assert!(words(&run, "TEXT_MESSAGE_CONTENT", "delta").starts_with("Result: "), "{run:?}");
        // Nothing waits any more, and there is nothing to continue.
        assert_eq!(app.post("/ag-ui", answer).await.0, StatusCode::BAD_REQUEST);
    }
}

/// CopilotKit adds a result of its own for a call that it has asked about.
#[tokio::test]
async fn made_up_results_are_not_taken() {
    let app = App::new(|server| server);
    let run = app.frames("/ag-ui", &thread(json!([user("[delete]")]))).await;
    let waits = &of(&run, "RUN_FINISHED").next().expect("an end")["outcome"]["interrupts"][0];
    let call = json!({
        "id": waits["toolCallId"], "type": "function",
        "function": {"name": "delete_file", "arguments": "{\"path\":\"notes.txt\"}"},
    });
    let made_up = json!({"id": "m", "role": "tool", "toolCallId": waits["toolCallId"], "content": "{\"approved\":true}"});
    let mut messages = vec![
        user("[delete]"),
        json!({"id": "a", "role": "assistant", "toolCalls": [call]}),
        made_up,
    ];
    let mut answer = thread(json!(messages));
    answer["resume"] =
        json!([{"interruptId": waits["id"], "status": "resolved", "payload": {"approved": true}}]);
    let run = app.frames("/ag-ui", &answer).await;
    assert!(words(&run, "TOOL_CALL_RESULT", "content").contains("notes.txt"), "{run:?}");
    let real = json!({"id": "r", "role": "tool", "toolCallId": waits["toolCallId"], "content": "{\"deleted\":\"notes.txt\"}"});
    messages.extend([
        real,
        json!({"id": "b", "role": "assistant", "content": "x"}),
        user("[body]"),
    ]);
    let run = app.frames("/ag-ui", &thread(json!(messages))).await;
    let body = words(&run, "TEXT_MESSAGE_CONTENT", "delta");
    assert!(body.contains("deleted") && !body.contains("approved"), "{body}");
}

/// Users write the address of the agent either way.
#[tokio::test]
async fn address_may_end_with_a_slash() {
    let app = App::new(|server| server);
    let run = app.frames("/ag-ui/", &thread(json!([user("Hello")]))).await;
    assert_eq!(words(&run, "TEXT_MESSAGE_CONTENT", "delta"), "You said: Hello");
    let nested = App { router: axum::Router::new().nest("/agent", app.router), ..app };
    for path in ["/agent/ag-ui", "/agent/ag-ui/"] {
        let run = nested.frames(path, &thread(json!([user("Hello")]))).await;
        assert_eq!(words(&run, "TEXT_MESSAGE_CONTENT", "delta"), "You said: Hello");
    }
    assert_eq!(nested.post("/agent/ag-ui/x", json!({})).await.0, StatusCode::NOT_FOUND);
}

/// As CopilotKit and Microsoft's Agent Framework write histories: calls before the results of others, and text between a call and
/// its result.
#[tokio::test]
async fn results_need_not_follow_their_calls() {
    let app = App::new(|server| server);
    let call = |id: &str| json!({"id": id, "role": "assistant", "toolCalls": [{"id": id, "type": "function", "function": {"name": "look", "arguments": "{}"}}]});
    let result = |id: &str| json!({"id": format!("r{id}"), "role": "tool", "toolCallId": id, "content": format!("seen {id}")});
    let said = json!({"id": "s", "role": "assistant", "content": "Here."});
    let prompt = json!({"id": "p", "role": "user", "content": "[body]"});
    let messages = json!([call("c1"), call("c2"), result("c1"), said, result("c2"), prompt]);
    let body = json!({"threadId": "t", "runId": "r", "messages": messages, "tools": [], "context": [], "state": {}});
    let frames = app.frames("/ag-ui", &body).await;
    let deltas = frames.iter().filter_map(|frame| frame["delta"].as_str());
    let sent: Value = serde_json::from_str(&deltas.collect::<String>()).expect("it is the request");
    let told: Vec<_> =
        sent["messages"].as_array().unwrap().iter().map(|it| &it["content"]).collect();
    assert_eq!(told[1..], ["", "seen c1", "", "seen c2", "Here.", "[body]"]);
}
