//! Conversations that a front end names: kept in the store, and continued by another server.

use std::sync::Arc;
use std::task::{Context, Waker};

use axum::http::{Method, StatusCode};
use oa_hooks::ToolRule;
use oa_serve::ServeLimits;
use oa_session::{JsonlStore, MemoryStore, SessionId, SessionStore};
use serde_json::{Value, json};

use crate::app::{App, agent, text};

/// Returns the frames of a type.
fn of<'a>(frames: &'a [Value], kind: &'a str) -> impl Iterator<Item = &'a Value> {
    frames.iter().filter(move |frame| frame["type"] == kind)
}

fn one<'a>(frames: &'a [Value], kind: &'a str) -> &'a Value {
    let mut found = of(frames, kind);
    let one = found.next().unwrap_or_else(|| panic!("a {kind}: {frames:?}"));
    assert!(found.next().is_none(), "one {kind}: {frames:?}");
    one
}

fn user(text: &str) -> Value {
    json!({"id": "u", "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// A question of the AI SDK as its front end sends the answer back; its input is another one.
fn chat_answer(frames: &[Value], prompt: &str, is_approved: bool) -> Value {
    let asked = one(frames, "tool-approval-request");
    let call = one(frames, "tool-input-available");
    let part = json!({
        "type": format!("tool-{}", call["toolName"].as_str().unwrap_or_default()),
        "toolCallId": asked["toolCallId"], "state": "approval-responded",
        "input": {"path": "/etc/passwd"},
        "approval": {"id": asked["approvalId"], "approved": is_approved, "reason": "keep it"},
    });
    let id = &one(frames, "start")["messageId"];
    let parts = json!([{"type": "step-start"}, part]);
    let messages = json!([user(prompt), {"id": id, "role": "assistant", "parts": parts}]);
    json!({"id": "c1", "messages": messages})
}

async fn stored(store: &dyn SessionStore, id: &str) -> Vec<oa_types::Message> {
    let id = SessionId::new(id).expect("it is valid");
    store.load(&id).await.expect("it is stored").conversation()
}

/// A store of files, opened anew for each server.
fn files() -> (tempfile::TempDir, impl Fn() -> Arc<dyn SessionStore>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().to_owned();
    (folder, move || Arc::new(JsonlStore::open(&path).expect("it opens")))
}

/// The answer counts once, also for a third server.
#[tokio::test]
async fn chat_approval_outlives_a_restart() {
    let (_folder, store) = files();
    let app = App::new(|server| server.session_store(store()));
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let answer = chat_answer(&asked, "[delete]", true);

    let app = App::new(|server| server.session_store(store()));
    let (_, waits) = app.get("/api/conversations/chat-c1").await;
    assert_eq!(waits["waiting"][0]["kind"], "approval");
    assert_eq!(waits["waiting"][0]["prompt"], "Deletes a file");
    assert_eq!(waits["title"], "[delete]");
    let run = app.frames("/api/chat", &answer).await;
    assert_eq!(one(&run, "start")["messageId"], one(&asked, "start")["messageId"]);
    assert_eq!(one(&run, "tool-output-available")["output"], json!({"deleted": "notes.txt"}));
    let words: String =
        of(&run, "text-delta").filter_map(|delta| delta["delta"].as_str()).collect();
    assert!(words.contains("notes.txt"), "{words}");

    // The same answer counts once, also for a third server, and changes nothing.
    let before = stored(&*store(), "chat-c1").await;
    let app = App::new(|server| server.session_store(store()));
    assert_eq!(app.post("/api/chat", answer).await.0, StatusCode::CONFLICT);
    assert_eq!(stored(&*store(), "chat-c1").await, before);
}

/// Such as from a second tab, also with the other answer, or because the page has answered it.
#[tokio::test]
async fn second_answer_changes_nothing() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let path = "/api/conversations/chat-c1";
    let call = one(&asked, "tool-approval-request")["toolCallId"].as_str().expect("an id");
    let mut events = app.view(path, None).await;
    events.run().await;
    let approve = format!("{path}/calls/{call}/approve");
    assert_eq!(app.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    events.run().await;
    let before = stored(&*store, "chat-c1").await;
    for is_approved in [true, false] {
        let answer = chat_answer(&asked, "[delete]", is_approved);
        assert_eq!(app.post("/api/chat", answer).await.0, StatusCode::CONFLICT);
    }
    assert_eq!(stored(&*store, "chat-c1").await, before);
}

/// It does not stop the run that the first one continues.
#[tokio::test(start_paused = true)]
async fn second_answer_does_not_stop_the_run() {
    let app = App::of(agent().tool_rule(ToolRule::ask("wait")), |server| server);
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[wait]")]})).await;
    let answer = chat_answer(&asked, "[wait]", true);
    let (first, second) =
        tokio::join!(app.frames("/api/chat", &answer), app.post("/api/chat", answer.clone()));
    assert_eq!(second.0, StatusCode::CONFLICT);
    assert_eq!(one(&first, "tool-output-available")["output"], "done");
}

/// The server knows that the call was not run, whatever the front end makes of it.
#[tokio::test]
async fn prompt_after_a_question_says_not_run() {
    let app = App::new(|server| server);
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let part = json!({
        "type": "tool-delete_file", "toolCallId": one(&asked, "tool-approval-request")["toolCallId"],
        "state": "approval-requested", "input": {"path": "notes.txt"},
    });
    let parts = json!([{"type": "step-start"}, part]);
    let messages = json!([
        user("[delete]"), {"id": "a", "role": "assistant", "parts": parts}, user("[body]"),
    ]);
    let run = app.frames("/api/chat", &json!({"id": "c1", "messages": messages})).await;
    let words: String =
        of(&run, "text-delta").filter_map(|delta| delta["delta"].as_str()).collect();
    assert!(words.contains("not run: the user moved on without it"), "{words}");
    assert!(!words.contains("may or may not have run"), "{words}");
}

/// Of two servers with one store, the one that is asked first runs the call.
#[tokio::test]
async fn one_server_takes_an_approval() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = || {
        let agent = agent().tool_rule(ToolRule::ask("wait"));
        App::of(agent, |server| server.session_store(Arc::clone(&store)))
    };
    let (first, second) = (app(), app());
    let asked = json!({"id": "c1", "messages": [user("[wait]")]});
    let asked = first.frames("/api/chat", &asked).await;
    let path = "/api/conversations/chat-c1";
    let (_, known) = second.get(path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{call}/approve");
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(second.post(&approve, json!({})).await.0, StatusCode::CONFLICT);
    let (status, _) = second.post("/api/chat", chat_answer(&asked, "[wait]", true)).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!((first.conversations.running(), second.conversations.running()), (1, 0));
}

/// A server that has the conversation in memory, from before the other one asked.
#[tokio::test]
async fn any_server_takes_an_approval() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = || {
        let agent = agent().tool_rule(ToolRule::ask("wait"));
        App::of(agent, |server| server.session_store(Arc::clone(&store)))
    };
    let (first, second) = (app(), app());
    let path = "/api/conversations/chat-c1";
    first.frames("/api/chat", &json!({"id": "c1", "messages": [user("Hello.")]})).await;
    let (_, known) = second.get(path).await;
    assert_eq!(known["waiting"], json!([]));
    first.frames("/api/chat", &json!({"id": "c1", "messages": [user("[wait]")]})).await;
    let (_, known) = first.get(path).await;
    let call = known["waiting"][0]["call_id"].as_str().expect("a call waits");
    let approve = format!("{path}/calls/{call}/approve");
    assert_eq!(second.post(&approve, json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(first.post(&approve, json!({})).await.0, StatusCode::CONFLICT);
    assert_eq!((first.conversations.running(), second.conversations.running()), (0, 1));
    let other = format!("{path}/calls/other/approve");
    assert_eq!(second.post(&other, json!({})).await.0, StatusCode::NOT_FOUND);
}

/// An agent that asks before it adds a step; `[plans]` adds two.
fn planner() -> oa_client::AgentOptionsBuilder {
    let add = oa_tools::tool("add_step", "Adds a step")
        .param("step", "string")
        .build(|args| async move { Ok(json!({"added": args["step"]})) });
    agent().tool(add).tool_rule(ToolRule::ask("add_step"))
}

/// The call waits on all servers, because the others would lack the answer.
#[tokio::test]
async fn too_long_answers_are_not_claimed() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = || App::of(planner(), |server| server.session_store(Arc::clone(&store)));
    let (first, second) = (app(), app());
    let path = first.create().await;
    let mut events = first.view(&path, None).await;
    first.prompt(&path, "[plans]").await;
    events.run().await;
    let (_, known) = second.get(&path).await;
    let approve = |place: usize| {
        let call = known["waiting"][place]["call_id"].as_str().expect("a call waits");
        format!("{path}/calls/{call}/approve")
    };
    let input = json!({"input": {"step": "dig ".repeat(5_000)}});
    assert_eq!(first.post(&approve(0), input).await.0, StatusCode::ACCEPTED);
    let mut events = second.view(&path, None).await;
    assert_eq!(second.post(&approve(1), json!({})).await.0, StatusCode::ACCEPTED);
    assert_eq!(second.post(&approve(0), json!({})).await.0, StatusCode::ACCEPTED);
    let run = events.run().await;
    let ran = run.iter().filter(|event| event.data["data"]["type"] == "tool_call_complete");
    assert_eq!(ran.count(), 2, "{run:?}");
}

/// The front end sends it with each answer, and the model reads it after the last.
#[tokio::test]
async fn prompt_after_answers_is_steered_once() {
    let tools =
        json!([{"name": "other", "description": "Another", "parameters": {"type": "object"}}]);
    for tools in [json!([]), tools] {
        let app = App::of(planner(), |server| server);
        let prompt = json!({"id": "u", "role": "user", "content": "[plans]"});
        let input = json!({"threadId": "t", "runId": "r", "messages": [prompt], "tools": tools});
        let mut run = app.frames("/ag-ui", &input).await;
        let calls: Vec<_> = of(&run, "TOOL_CALL_START")
            .map(|call| {
                let function = json!({"name": "add_step", "arguments": "{\"step\": \"sow\"}"});
                json!({"id": call["toolCallId"], "type": "function", "function": function})
            })
            .collect();
        let asked = json!({"id": "a", "role": "assistant", "content": "", "toolCalls": calls});
        let next = json!({"id": "n", "role": "user", "content": "[body]"});
        for left in [2, 1] {
            let open = &one(&run, "RUN_FINISHED")["outcome"]["interrupts"];
            assert_eq!(open.as_array().map(Vec::len), Some(left), "{run:?}");
            let payload = json!({"approved": true});
            let resume = json!([{
                "interruptId": open[0]["id"], "status": "resolved", "payload": payload,
            }]);
            let input = json!({
                "threadId": "t", "runId": "r", "messages": [prompt, asked, next], "tools": tools,
                "resume": resume,
            });
            run = app.frames("/ag-ui", &input).await;
        }
        let words: String =
            of(&run, "TEXT_MESSAGE_CONTENT").filter_map(|text| text["delta"].as_str()).collect();
        assert_eq!(words.matches("[body]").count(), 1, "{words}");
    }
}

/// While it waits for the run before it to end.
#[tokio::test(start_paused = true)]
async fn dropped_request_that_waits_does_not_run() {
    let app = App::new(|server| server);
    let chat = |text: &str| json!({"id": "c", "messages": [user(text)]});
    app.frames("/api/chat", &chat("Hello")).await;
    let path = "/api/conversations/chat-c";
    let last = app.get(path).await.1["last_event"].as_str().expect("events").to_owned();
    let mut events = app.view(path, Some(&last)).await;
    app.prompt(path, "[long]").await;
    while !events.next().await.is_some_and(|event| event.data["type"] == "block") {}
    let next = chat("Next");
    let mut asking = Box::pin(app.frames("/api/chat", &next));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(asking.as_mut().poll(&mut cx).is_pending());
    drop(asking);
    let end = events.run().await.pop().expect("a run ends");
    assert_eq!(end.data["finish_reason"], "interrupted");
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    app.prompt(path, "Again").await;
    assert_eq!(events.run().await[0].data["text"], "Again");
}

/// Also if there is room for one only.
#[tokio::test]
async fn deleted_chats_continue_at_the_limit() {
    let mut limits = ServeLimits::default();
    limits.stored = 1;
    let app = App::new(|server| server.limits(limits));
    let chat = json!({"id": "c", "messages": [user("Hello")]});
    for _ in 0..2 {
        app.frames("/api/chat", &chat).await;
        let path = "/api/conversations/chat-c";
        assert_eq!(app.get(path).await.0, StatusCode::OK);
        let (status, _) = app.call(Method::DELETE, path, json!({})).await;
        assert_eq!(status, StatusCode::NO_CONTENT);
    }
}

/// A request that is refused for lack of room for a viewer can be repeated.
#[tokio::test]
async fn refused_answers_can_be_repeated() {
    let mut limits = ServeLimits::default();
    limits.viewers = 1;
    let app = App::new(|server| server.limits(limits));
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let answer = chat_answer(&asked, "[delete]", true);
    let viewer = app.view("/api/conversations/chat-c1", None).await;
    let (status, _) = app.post("/api/chat", answer.clone()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    drop(viewer);
    let run = app.frames("/api/chat", &answer).await;
    assert_eq!(one(&run, "tool-output-available")["output"], json!({"deleted": "notes.txt"}));
}

/// An approval of an earlier question belongs to an earlier run, and does not answer the later question.
#[tokio::test]
async fn outdated_approval_is_void_after_restart() {
    let (_folder, store) = files();
    let app = App::new(|server| server.session_store(store()));
    let first = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let answer = chat_answer(&first, "[delete]", true);
    // The question is asked again: the run has another number.
    app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let app = App::new(|server| server.session_store(store()));
    let run = app.frames("/api/chat", &answer).await;
    assert_eq!(of(&run, "tool-output-available").count(), 0, "{run:?}");
}

#[tokio::test]
async fn denied_chat_continues_after_a_restart() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let asked = app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[delete]")]})).await;
    let app = App::new(|server| server.session_store(store));
    let run = app.frames("/api/chat", &chat_answer(&asked, "[delete]", false)).await;
    one(&run, "tool-output-denied");
    let words: String =
        of(&run, "text-delta").filter_map(|delta| delta["delta"].as_str()).collect();
    assert!(words.contains("keep it"), "the model reads the reason: {words}");
}

/// So do calls of the front end's own tools.
#[tokio::test]
async fn thread_interrupts_outlive_a_restart() {
    let (_folder, store) = files();
    let tools = json!([{
        "name": "pick_color", "description": "Lets the user pick a color", "parameters": {"type": "object"},
    }]);
    let prompt = json!({"id": "u", "role": "user", "content": "[both]"});
    let app = App::new(|server| server.session_store(store()));
    let input = json!({"threadId": "t1", "runId": "r1", "messages": [prompt], "tools": tools});
    let asked = app.frames("/ag-ui", &input).await;
    let interrupt = &one(&asked, "RUN_FINISHED")["outcome"]["interrupts"][0];
    let calls: Vec<_> = of(&asked, "TOOL_CALL_START").collect();
    let call = |place: usize, input: Value| {
        let function =
            json!({"name": calls[place]["toolCallName"], "arguments": input.to_string()});
        json!({"id": calls[place]["toolCallId"], "type": "function", "function": function})
    };
    let answered = json!({
        "id": "a", "role": "assistant", "content": "",
        "toolCalls": [call(0, json!({"path": "/etc/passwd"})), call(1, json!({"palette": "warm"}))],
    });
    let color =
        json!({"id": "r", "role": "tool", "toolCallId": calls[1]["toolCallId"], "content": "teal"});

    let app = App::new(|server| server.session_store(store()));
    let resume = json!([{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": true}}]);
    let input = json!({
        "threadId": "t1", "runId": "r2", "messages": [prompt, answered, color], "tools": tools, "resume": resume,
    });
    let run = app.frames("/ag-ui", &input).await;
    let result = of(&run, "TOOL_CALL_RESULT").next().expect("a result");
    assert_eq!(result["content"], json!({"deleted": "notes.txt"}).to_string());
    let words: String =
        of(&run, "TEXT_MESSAGE_CONTENT").filter_map(|text| text["delta"].as_str()).collect();
    assert!(words.contains("teal"), "{words}");
    assert_eq!(stored(&*store(), "thread-t1").await.len(), 5);
}

/// The front end has run its own tool, and has asked whom it had to: its result is taken though the server, which does not
/// know the conversation, would have asked.
#[tokio::test]
async fn result_in_front_end_history_is_accepted() {
    let app = App::of(agent().tool_rule(ToolRule::ask("pick_color")), |server| server);
    let function =
        json!({"name": "pick_color", "arguments": json!({"palette": "warm"}).to_string()});
    let call = json!({"id": "c", "type": "function", "function": function});
    let messages = json!([
        {"id": "u", "role": "user", "content": "[pick]"},
        {"id": "a", "role": "assistant", "content": "", "toolCalls": [call]},
        {"id": "r", "role": "tool", "toolCallId": "c", "content": "teal"},
    ]);
    let run =
        app.frames("/ag-ui", &json!({"threadId": "t", "runId": "r", "messages": messages})).await;
    let words: String =
        of(&run, "TEXT_MESSAGE_CONTENT").filter_map(|text| text["delta"].as_str()).collect();
    assert!(words.contains("teal"), "{run:?}");
}

/// A store takes values of a hundred levels, and a body may have a few more.
#[tokio::test]
async fn deeply_nested_histories_are_stored() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    let deep = (0..110).fold(json!("end"), |inner, _| json!([inner]));
    let part = json!({
        "type": "tool-pick_color", "toolCallId": "c", "state": "output-available", "input": {"palette": deep},
        "output": deep,
    });
    let answer = json!({"id": "a", "role": "assistant", "parts": [{"type": "step-start"}, part]});
    let chat = json!({"id": "c1", "messages": [user("[pick]"), answer, user("more")]});
    app.frames("/api/chat", &chat).await;
    assert_eq!(stored(&*store, "chat-c1").await.len(), 5);

    let arguments = json!({"palette": deep}).to_string();
    let function = json!({"name": "pick_color", "arguments": arguments});
    let messages = json!([
        {"id": "u", "role": "user", "content": "[pick]"},
        {"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": function}]},
        {"id": "r", "role": "tool", "toolCallId": "c", "content": {"color": deep}},
        {"id": "v", "role": "user", "content": "more"},
    ]);
    app.frames("/ag-ui", &json!({"threadId": "t1", "runId": "r", "messages": messages})).await;
    let thread = stored(&*store, "thread-t1").await;
    assert_eq!(thread.len(), 5);
    let result = thread[2].content[0].to_owned();
    let oa_types::ContentBlock::ToolResult(result) = result else { panic!("a result: {result:?}") };
    assert!(result.content.as_str().is_some_and(|text| text.contains("end")), "as a text");
}

#[tokio::test]
async fn parts_unknown_to_front_ends_are_kept() {
    let store: Arc<dyn SessionStore> = Arc::new(MemoryStore::new());
    let app = App::new(|server| server.session_store(Arc::clone(&store)));
    app.frames("/api/chat", &json!({"id": "c1", "messages": [user("[think]")]})).await;
    let first = stored(&*store, "chat-c1").await;
    let answer = |text: &str| {
        let parts = json!([{"type": "step-start"}, {"type": "text", "text": text}]);
        json!({"id": "a", "role": "assistant", "parts": parts})
    };
    let messages = json!([user("[think]"), answer("Thought done."), user("more")]);
    app.frames("/api/chat", &json!({"id": "c1", "messages": messages})).await;
    let second = stored(&*store, "chat-c1").await;
    assert_eq!((&second[..2], second.len()), (&first[..], 4), "thinking included");
    // A front end that has changed an answer is believed.
    let messages = json!([user("[think]"), answer("Changed."), user("more")]);
    app.frames("/api/chat", &json!({"id": "c1", "messages": messages})).await;
    let third = stored(&*store, "chat-c1").await;
    assert_eq!((third[1].text(), third.len()), ("Changed.".to_owned(), 4));
}

#[tokio::test]
async fn front_end_chats_are_conversations() {
    let app = App::new(|server| server);
    app.frames("/api/chat", &json!({"id": "c1", "messages": [user("Hello")]})).await;
    let path = "/api/conversations/chat-c1";
    let (_, list) = app.get("/api/conversations").await;
    assert_eq!(list["conversations"][0]["id"], "chat-c1");
    let mut events = app.view(path, None).await;
    let run = events.run().await;
    assert_eq!((run[0].kind.as_str(), &run[0].data["text"]), ("prompt", &json!("Hello")));
    assert_eq!(text(&run), "You said: Hello");
    app.prompt(path, "Again").await;
    assert_eq!(text(&events.run().await), "You said: Again");
    let (status, _) = app.call(Method::DELETE, path, json!({})).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    // The front end brings its history along, so it goes on.
    app.frames("/api/chat", &json!({"id": "c1", "messages": [user("Hello")]})).await;
    assert_eq!(app.get(path).await.1["messages"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn early_answers_outlive_a_restart() {
    let (_folder, store) = files();
    for early in ["approve", "result"] {
        let app = App::new(|server| server.session_store(store()));
        let path = app.create().await;
        let mut events = app.view(&path, None).await;
        app.prompt(&path, "[both]").await;
        let end = events.run().await.pop().expect("a run ends");
        let call = |place: usize| end.data["waiting"][place]["call_id"].as_str().expect("an id");
        let approve =
            (format!("{path}/calls/{}/approve", call(0)), json!({"input": {"path": "b.txt"}}));
        let result = (format!("{path}/calls/{}/result", call(1)), json!({"content": "teal"}));
        let (first, then) = if early == "approve" { (approve, result) } else { (result, approve) };
        assert_eq!(app.post(&first.0, first.1.clone()).await.0, StatusCode::ACCEPTED);

        let app = App::new(|server| server.session_store(store()));
        let (_, now) = app.get(&path).await;
        assert_eq!(now["waiting"].as_array().map(Vec::len), Some(1), "{early}: {now}");
        assert_eq!(app.post(&first.0, first.1).await.0, StatusCode::NOT_FOUND);
        let mut events = app.view(&path, None).await;
        assert_eq!(app.post(&then.0, then.1).await.0, StatusCode::ACCEPTED);
        let run = events.run().await;
        assert!(text(&run).contains("teal"), "{early}: {}", text(&run));
        let ran = run.iter().find(|event| event.data["data"]["type"] == "tool_call_complete");
        let ran = ran.expect("the approved call runs");
        assert!(ran.data.to_string().contains("b.txt"), "{early}: {}", ran.data);
    }
}

/// Each turn of the loop it hangs up a little later. An answer that has arrived counts, so a repetition is a conflict.
#[tokio::test]
async fn dropped_answer_counts_or_is_repeatable() {
    let (_folder, store) = files();
    let app = App::new(|server| server.session_store(store()));
    for polls in 1..4 {
        let path = app.create().await;
        let mut events = app.view(&path, None).await;
        app.prompt(&path, "[both]").await;
        let end = events.run().await.pop().expect("a run ends");
        let call = end.data["waiting"][0]["call_id"].as_str().expect("an id");
        let approve = format!("{path}/calls/{call}/approve");
        let mut answering = Box::pin(app.post(&approve, json!({})));
        let mut cx = Context::from_waker(Waker::noop());
        let _ = (0..polls).any(|_| answering.as_mut().poll(&mut cx).is_ready());
        drop(answering);
        let (status, _) = app.post(&approve, json!({})).await;
        let expected = [StatusCode::ACCEPTED, StatusCode::CONFLICT];
        assert!(expected.contains(&status), "after {polls} polls: {status}");
        let (_, now) = app.get(&path).await;
        let mut waiting = now["waiting"].as_array().expect("a list").iter();
        assert!(!waiting.any(|it| it["call_id"] == call), "after {polls} polls: {now}");
    }
}

#[tokio::test]
async fn prompt_voids_early_answers() {
    let (_folder, store) = files();
    let app = App::new(|server| server.session_store(store()));
    let path = app.create().await;
    let mut events = app.view(&path, None).await;
    app.prompt(&path, "[both]").await;
    let end = events.run().await.pop().expect("a run ends");
    let call = end.data["waiting"][0]["call_id"].as_str().expect("an id");
    app.post(&format!("{path}/calls/{call}/approve"), json!({})).await;
    events.next().await;
    app.prompt(&path, "[both]").await;
    events.run().await;
    let app = App::new(|server| server.session_store(store()));
    assert_eq!(app.get(&path).await.1["waiting"].as_array().map(Vec::len), Some(2));
}

/// Completions are not stored at all.
#[tokio::test]
async fn sessions_in_memory_are_bounded() {
    let mut limits = ServeLimits::default();
    limits.stored = 3;
    let app = App::new(|server| server.limits(limits));
    let messages = json!([{"role": "user", "content": "Hello"}]);
    let (status, _) =
        app.post("/v1/chat/completions", json!({"model": "agent", "messages": messages})).await;
    assert_eq!(status, StatusCode::OK);
    let count = async || app.get("/api/conversations").await.1["conversations"].clone();
    assert_eq!(count().await, json!([]));
    for chat in 0..5 {
        app.frames("/api/chat", &json!({"id": chat.to_string(), "messages": [user("Hi")]})).await;
    }
    let kept = count().await;
    let ids = kept.as_array().into_iter().flatten().filter_map(|one| one["id"].as_str());
    let ids: std::collections::BTreeSet<_> = ids.collect();
    assert_eq!(ids, ["chat-2", "chat-3", "chat-4"].into());
}

/// A request ends what runs in its conversation, so of several at once one is answered, and all of them end.
#[tokio::test]
async fn one_of_concurrent_requests_is_answered() {
    let app = App::new(|server| server);
    let chat = json!({"id": "c", "messages": [user("[slow]")]});
    let message = json!({"id": "u", "role": "user", "content": "[slow]"});
    let run = json!({"threadId": "t", "runId": "r", "messages": [message]});
    for (path, body, end, id) in
        [("/api/chat", &chat, "finish", "chat-c"), ("/ag-ui", &run, "RUN_FINISHED", "thread-t")]
    {
        let (first, second, third) =
            tokio::join!(app.frames(path, body), app.frames(path, body), app.frames(path, body));
        let is_answer = |frames: &&Vec<Value>| {
            let reason = of(frames, end).last().map(|end| match path {
                "/api/chat" => end["finishReason"].clone(),
                _ => end["metadata"]["finishReason"].clone(),
            });
            reason.is_some_and(|reason| reason == "stop")
        };
        let all = [first, second, third];
        let answered: Vec<_> = all.iter().filter(is_answer).collect();
        assert_eq!(answered.len(), 1, "{path}: {all:?}");
        let words = answered[0].iter().filter_map(|it| it["delta"].as_str());
        assert_eq!(words.collect::<String>(), "one two three four");
        let path = format!("/api/conversations/{id}");
        let (_, now) = app.get(&path).await;
        assert_eq!(now["running"], false);
        let messages = now["messages"].as_array().map_or(&[][..], Vec::as_slice);
        let [prompt, answer] = messages else { panic!("one exchange: {now}") };
        assert_eq!((&prompt["role"], &answer["role"]), (&json!("user"), &json!("assistant")));
        assert_eq!(answer["content"][0]["text"], "one two three four");
    }
}
