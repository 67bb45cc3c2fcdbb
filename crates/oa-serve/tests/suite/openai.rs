//! Completions: parameters that act or are rejected, and the model for housekeeping.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use oa_client::AgentOptions;
use oa_serve::ServeLimits;
use oa_testkit::{MemoryServer, Reply, Script};
use oa_tools::{Tool, ToolSource, tool};
use serde_json::{Value, json};

use crate::app::{App, agent};

fn asking(text: &str, more: Value) -> Value {
    let mut body = json!({"model": "agent", "messages": [{"role": "user", "content": text}]});
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}

/// Returns the request that the model got for a completion.
async fn sent(app: &App, more: Value) -> Value {
    let (status, body) = app.post("/v1/chat/completions", asking("[body]", more)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let content = body["choices"][0]["message"]["content"].as_str().expect("it has text");
    serde_json::from_str(content).expect("it is JSON")
}

/// Clients and their logs tell completions apart by their ids, even those of the same millisecond.
#[tokio::test]
async fn completions_have_ids_of_their_own() {
    let app = App::of(agent(), |server| server);
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let (_, body) = app.post("/v1/chat/completions", asking("Hello.", json!({}))).await;
        let id = body["id"].as_str().expect("it has an id");
        assert!(id.starts_with("chatcmpl-"), "{id}");
        assert!(ids.insert(id.to_owned()), "{id} came twice");
    }
}

#[tokio::test]
async fn parameters_reach_the_model() {
    let app = App::of(agent().max_tokens(50).stop("END").temperature(1.5), |server| server);
    let format =
        json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    let asked = json!({
        "temperature": 0.25, "top_p": 0.5, "max_tokens": 1_000, "max_completion_tokens": 40, "stop": "stop",
        "seed": 7, "frequency_penalty": 0.5, "presence_penalty": -0.5, "response_format": format,
        "tool_choice": "none",
    });
    let request = sent(&app, asked).await;
    for (name, value) in [
        ("temperature", json!(0.25)),
        ("top_p", json!(0.5)),
        ("max_tokens", json!(40)),
        ("stop", json!(["END", "stop"])),
        ("seed", json!(7)),
        ("frequency_penalty", json!(0.5)),
        ("presence_penalty", json!(-0.5)),
        ("response_format", format),
        ("tool_choice", json!("none")),
    ] {
        assert_eq!(request[name], value, "{name}");
    }
    // Each request stands alone, and limits of the agent hold.
    let request = sent(&app, json!({"max_tokens": 1_000})).await;
    assert_eq!(request["max_tokens"], 50);
    assert_eq!(request["temperature"], 1.5);
    assert!(request.get("seed").is_none() && request.get("response_format").is_none());
    assert_eq!(sent(&app, json!({"seed": -1})).await["seed"], -1);
}

/// Also while a tool reports what this protocol cannot express. As chunks: LangChain counts nothing else, and OpenClaw fails on
/// a stream that begins with a comment.
#[tokio::test(start_paused = true)]
async fn silent_events_do_not_delay_keep_alives() {
    let mutter = tool("mutter", "Reports to itself").build_with_context(async |_, cx| {
        for second in 0..60 {
            cx.emit_status(second);
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        Ok(json!("done"))
    });
    let replies = [Reply::new().call("mutter", json!({})), Reply::text("Done.")];
    let agent = AgentOptions::builder().model("any").transport(MemoryServer::new(replies));
    let app = App::of(agent.tool(mutter).auto_execute_tools(true), |server| server);
    let body = asking("Begin.", json!({"stream": true})).to_string();
    let request = Request::post("/v1/chat/completions").header("content-type", "application/json");
    let response = app.request(request.body(Body::from(body)).expect("it is valid")).await;
    let body = response.into_body().collect().await.expect("the body ends").to_bytes();
    let body = String::from_utf8_lossy(&body);
    assert!(body.contains("Done."), "{body}");
    let chunks = body.lines().filter_map(|line| line.strip_prefix("data: {"));
    let empty = r#""delta":{"content":""},"finish_reason":null"#;
    assert!(chunks.filter(|chunk| chunk.contains(empty)).count() >= 10, "{body}");
    assert!(body.starts_with("data: "), "{body}");
}

#[tokio::test]
async fn invalid_parameters_are_named() {
    let app = App::new(|server| server);
    for (name, value) in
        [("temperature", json!(9)), ("n", json!(2)), ("stop", json!("")), ("logprobs", json!(true))]
    {
        for stream in [true, false] {
            let body = asking("hi", json!({name: value, "stream": stream}));
            let (status, body) = app.post("/v1/chat/completions", body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{name}");
            let error = &body["error"];
            assert_eq!(error["param"], name);
            assert_eq!(error["type"], "invalid_request_error");
            assert!(error["message"].as_str().is_some_and(|message| message.starts_with(name)));
        }
    }
    let (status, body) =
        app.post("/v1/chat/completions", json!({"model": "none", "messages": []})).await;
    assert_eq!((status, &body["error"]["param"]), (StatusCode::BAD_REQUEST, &json!("messages")));
    let mut body = asking("hi", json!({}));
    body["model"] = "none".into();
    let (status, body) = app.post("/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(body["error"]["code"], "model_not_found");
    let told = body["error"]["message"].as_str();
    assert_eq!(told, Some("unknown model \"none\": GET /v1/models lists the available models"));
}

/// In a chat that began before there were tools.
#[tokio::test]
async fn results_of_functions_reach_the_model() {
    let app = App::new(|server| server);
    let function = json!({"name": "add", "arguments": "{}"});
    let messages = json!([
        {"role": "user", "content": "[body]"},
        {"role": "assistant", "content": null, "function_call": function},
        {"role": "function", "name": "add", "content": "42"},
    ]);
    let body = json!({"model": "agent", "messages": messages});
    let (status, body) = app.post("/v1/chat/completions", body).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    let sent = body["choices"][0]["message"]["content"].as_str().expect("it has text");
    let sent: Value = serde_json::from_str(sent).expect("it is JSON");
    let messages = sent["messages"].as_array().expect("it has messages");
    let id = &messages[1]["tool_calls"][0]["id"];
    assert_eq!((&messages[2]["tool_call_id"], &messages[2]["content"]), (id, &json!("42")));
}

/// A client's mistake, and not a failure of the server. The run in progress goes on.
#[tokio::test]
async fn blank_prompts_are_bad_requests() {
    let app = App::new(|server| server);
    let part = json!([{"type": "text", "text": "Hello"}]);
    let user = json!([{"id": "u", "role": "user", "parts": part}]);
    app.frames("/api/chat", &json!({"id": "c", "messages": user})).await;
    app.prompt("/api/conversations/chat-c", "[long]").await;
    for text in ["", " \n"] {
        let part = json!([{"type": "text", "text": text}]);
        let user = json!([{"id": "u", "role": "user", "content": text, "parts": part}]);
        for (path, body) in [
            ("/api/chat", json!({"id": "c", "messages": user})),
            ("/ag-ui", json!({"threadId": "t", "runId": "r", "messages": user})),
            ("/v1/chat/completions", asking(text, json!({}))),
        ] {
            let (status, body) = app.post(path, body).await;
            assert_eq!(status, StatusCode::BAD_REQUEST, "{path}: {body}");
        }
    }
    assert_eq!(app.conversations.running(), 1);
}

/// A model whose answers have a format cannot write calls as text: neither the agent's nor the client's.
#[tokio::test]
async fn formats_exclude_calls_as_text() {
    let tools = json!([{"type": "function", "function": {"name": "pick"}}]);
    for (has_own, tools, status) in
        [(true, json!(null), 400), (false, tools, 400), (false, json!(null), 200)]
    {
        let server = MemoryServer::new(Script::new().otherwise(Reply::text("{}")));
        let agent = AgentOptions::builder().model("any").transport(server);
        let mut agent = agent.tool_mode(oa_chat::ToolMode::TaggedJson).auto_execute_tools(true);
        if has_own {
            agent = agent.tool(tool("note", "Notes").build(|_| async { Ok(json!(null)) }));
        }
        let app = App::of(agent, |server| server);
        let more = json!({"response_format": {"type": "json_object"}, "tools": tools});
        let (found, body) = app.post("/v1/chat/completions", asking("Begin.", more)).await;
        assert_eq!(found.as_u16(), status, "{body}");
        let param = &body["error"]["param"];
        assert_eq!(param.as_str(), (status == 400).then_some("response_format"));
    }
}

/// Nor does it have the system prompt of the agent.
#[tokio::test]
async fn housekeeping_model_has_no_tools() {
    let app = App::of(agent().system_prompt("You are a pirate."), |server| {
        server.name("pirate").housekeeping_model("pirate-titles")
    });
    let (_, models) = app.get("/v1/models").await;
    let ids = models["data"].as_array().into_iter().flatten().map(|model| &model["id"]);
    assert_eq!(ids.collect::<Vec<_>>(), ["pirate", "pirate-titles"]);
    assert_eq!(app.get("/v1/models/pirate-titles").await.1["id"], "pirate-titles");

    let request = sent(&app, json!({"model": "pirate"})).await;
    assert!(request["tools"].is_array());
    assert_eq!(request["messages"][0]["content"], "You are a pirate.");
    let request = sent(&app, json!({"model": "pirate-titles"})).await;
    assert!(request.get("tools").is_none(), "{request}");
    assert_eq!(request["messages"][0]["role"], "user");
    assert_eq!(request["model"], "scripted");
    // Without one there is no second model.
    let (_, models) = App::new(|server| server).get("/v1/models").await;
    assert_eq!(models["data"].as_array().map(Vec::len), Some(1));
}

/// A server of tools whose list changes.
struct Shelf(Arc<AtomicBool>);

impl ToolSource for Shelf {
    fn revision(&self) -> u64 {
        self.0.load(Ordering::SeqCst).into()
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let name = if self.0.load(Ordering::SeqCst) { "look_again" } else { "look" };
        vec![Arc::new(tool(name, "Looks").build(|_| async { Ok(json!("seen")) }))]
    }
}

/// Also where the front end declares tools of its own, and where the page lists them.
#[tokio::test]
async fn tool_source_is_read_for_each_request() {
    let has_changed = Arc::new(AtomicBool::new(false));
    let app = App::of(agent().tool_source(Shelf(Arc::clone(&has_changed))), |server| server);
    for (change, here, gone) in [(false, "look", "look_again"), (true, "look_again", "look")] {
        has_changed.store(change, Ordering::SeqCst);
        let tools = json!([{"type": "function", "function": {"name": "pick", "parameters": {}}}]);
        let request = sent(&app, json!({"tools": tools})).await;
        let (_, about) = app.get("/api/agent").await;
        let sent: Vec<_> = request["tools"].as_array().into_iter().flatten().collect();
        let sent: Vec<_> = sent.iter().map(|tool| &tool["function"]["name"]).collect();
        let listed: Vec<_> = about["tools"].as_array().into_iter().flatten().collect();
        let listed: Vec<_> = listed.iter().map(|tool| &tool["name"]).collect();
        assert!(sent.contains(&&json!("pick")));
        for names in [sent, listed] {
            assert!(names.contains(&&json!(here)) && !names.contains(&&json!(gone)), "{names:?}");
        }
    }
}

/// The libraries of OpenAI repeat a request that a busy server refuses.
#[tokio::test]
async fn refused_answers_can_be_repeated() {
    let note = tool("note", "Notes").build(|_| async { Ok(json!("noted down")) });
    let calls = Reply::new().call("note", json!({})).call("pick", json!({}));
    let slow = Reply::text("Not soon.").delay(Duration::from_secs(3_600));
    let echo = Reply::by(|asked| Reply::text(String::from_utf8_lossy(asked.body())));
    let server = MemoryServer::new([calls, slow, echo]);
    let agent = AgentOptions::builder()
        .model("any")
        .transport(server.clone())
        .tool(note)
        .auto_execute_tools(true);
    let mut limits = ServeLimits::default();
    limits.runs = 1;
    let app = App::of(agent, |server| server.limits(limits));
    let tools = json!([{"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}]);
    let asked = asking("Go.", json!({"tools": tools}));
    let (_, answer) = app.post("/v1/chat/completions", asked.clone()).await;
    let message = &answer["choices"][0]["message"];
    let result =
        json!({"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "blue"});
    let mut next = asked.clone();
    next["messages"] = json!([asked["messages"][0], message, result]);

    let path = app.create().await;
    app.prompt(&path, "Wait.").await;
    let (status, _) = app.post("/v1/chat/completions", next.clone()).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    while server.requests().len() < 2 {
        tokio::task::yield_now().await;
    }
    app.post(&format!("{path}/stop"), json!({})).await;
    while app.conversations.running() > 0 {
        tokio::task::yield_now().await;
    }
    let (status, answer) = app.post("/v1/chat/completions", next).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let sent = answer["choices"][0]["message"]["content"].as_str().expect("it has text");
    assert!(sent.contains("noted down") && sent.contains("blue"), "{sent}");
}

/// The libraries of OpenAI repeat a request after 5xx.
#[tokio::test]
async fn only_passing_failures_are_retried() {
    for (status, told, retry) in [(400, 502, Some("false")), (429, 429, None), (503, 503, None)] {
        let server = MemoryServer::new([Reply::error(status, "no such luck")]);
        let agent = AgentOptions::builder().model("any").transport(server);
        let app = App::of(agent.retry(oa_chat::RetryConfig::none()), |server| server);
        let post = Request::post("/v1/chat/completions").header("content-type", "application/json");
        let body = Body::from(asking("Hello.", json!({})).to_string());
        let response = app.request(post.body(body).expect("it is valid")).await;
        assert_eq!(response.status().as_u16(), told);
        let header = response.headers().get("x-should-retry");
        assert_eq!(header.map(|retry| retry.to_str().expect("it is text")), retry, "{status}");
    }
}

/// As a filter of OpenAI does.
#[tokio::test]
async fn blocked_prompts_are_not_repeated() {
    let hooks = oa_hooks::Hooks::new()
        .add_user_prompt_submit(|_| async { Some(oa_hooks::HookDecision::block("no passwords")) });
    let server = MemoryServer::new([]);
    let agent = AgentOptions::builder().model("any").transport(server).hooks(hooks);
    let app = App::of(agent, |server| server);
    let (status, body) =
        app.post("/v1/chat/completions", asking("My password is 1234.", json!({}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(body["error"]["code"], "content_filter");
    assert!(body["error"]["message"].to_string().contains("no passwords"), "{body}");
    let post = Request::post("/v1/chat/completions").header("content-type", "application/json");
    let asked = asking("My password is 1234.", json!({"stream": true}));
    let response =
        app.request(post.body(Body::from(asked.to_string())).expect("it is valid")).await;
    let told = axum::body::to_bytes(response.into_body(), 1 << 20).await.expect("it ends");
    let told = String::from_utf8_lossy(&told);
    assert!(told.contains("content_filter") && !told.contains("[DONE]"), "{told}");
}

/// As OpenAI's servers do: programs read the code and shorten what they send.
#[tokio::test]
async fn conversations_too_long_are_told_by_code() {
    let too_long = "the request exceeds the available context size, try increasing it";
    let server = MemoryServer::new([Reply::error(400, too_long), Reply::error(400, too_long)]);
    let app = App::of(AgentOptions::builder().model("any").transport(server), |server| server);
    let (status, whole) = app.post("/v1/chat/completions", asking("A log.", json!({}))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let asked = asking("A log.", json!({"stream": true}));
    let streamed = app.frames("/v1/chat/completions", &asked).await.pop();
    for told in [whole, streamed.expect("it has the error")] {
        assert_eq!(told["error"]["type"], "invalid_request_error");
        assert_eq!(told["error"]["param"], "messages");
        assert_eq!(told["error"]["code"], "context_length_exceeded");
        assert!(told["error"]["message"].to_string().contains("context size"), "{told}");
    }
}

/// Some model servers give the calls of each first answer the same ids.
#[tokio::test]
async fn equal_prompts_are_told_apart() {
    let notes = Arc::new(AtomicUsize::new(0));
    let note = tool("note", "Notes").build(move |_| {
        let number = notes.fetch_add(1, Ordering::Relaxed);
        async move { Ok(json!(format!("note {number}"))) }
    });
    let calls = |text: &str| {
        let reply = Reply::text(text).call_with_id("call_0", "note", json!({}));
        reply.call_with_id("call_1", "pick", json!({"of": text}))
    };
    let echo = || Reply::by(|asked| Reply::text(String::from_utf8_lossy(asked.body())));
    let server = MemoryServer::new([calls("One."), calls("Two."), echo(), echo()]);
    let agent =
        AgentOptions::builder().model("any").transport(server).tool(note).auto_execute_tools(true);
    let app = App::of(agent, |server| server);
    let tools = json!([{"type": "function", "function": {"name": "pick", "parameters": {"type": "object"}}}]);
    let asked = asking("Go.", json!({"tools": tools}));
    let mut messages = Vec::new();
    for _ in 0..2 {
        let (_, answer) = app.post("/v1/chat/completions", asked.clone()).await;
        messages.push(answer["choices"][0]["message"].clone());
    }
    for (message, own, other) in
        [(&messages[1], ["Two.", "note 1"], "note 0"), (&messages[0], ["One.", "note 0"], "note 1")]
    {
        let id = &message["tool_calls"][0]["id"];
        let result = json!({"role": "tool", "tool_call_id": id, "content": "blue"});
        let mut next = asked.clone();
        next["messages"] = json!([asked["messages"][0], message, result]);
        let (_, answer) = app.post("/v1/chat/completions", next).await;
        let sent = answer["choices"][0]["message"]["content"].as_str().expect("it has text");
        assert!(own.iter().all(|own| sent.contains(own)) && sent.contains("blue"), "{sent}");
        assert!(!sent.contains(other), "{sent}");
    }
}

/// The counts of a model server are only shown.
#[tokio::test]
async fn huge_token_counts_are_passed_on() {
    for stream in [false, true] {
        let reply = Reply::text("Hi.").usage(u64::MAX, u64::MAX);
        let agent = AgentOptions::builder().model("any").transport(MemoryServer::new([reply]));
        let app = App::of(agent, |server| server);
        let more = json!({"stream": stream, "stream_options": {"include_usage": true}});
        let body = asking("Hi.", more);
        let usage = if stream {
            let frames = app.frames("/v1/chat/completions", &body).await;
            frames.into_iter().rev().find_map(|mut chunk| chunk.get_mut("usage").map(Value::take))
        } else {
            let (_, body) = app.post("/v1/chat/completions", body).await;
            Some(body["usage"].clone())
        };
        let usage = usage.expect("the completion has its usage");
        assert_eq!(usage["prompt_tokens"], u64::MAX, "{usage}");
    }
}
