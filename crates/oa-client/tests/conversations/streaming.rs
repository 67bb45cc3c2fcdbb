//! The guarantees of `query`: text as it arrives, calls at the end, a stream that can be dropped.

use std::time::Duration;

use oa_client::{AgentOptions, BlockStream, Client, query};
use oa_testkit::{MemoryServer, Reply, Request, Script, SocketServer};
use oa_tools::tool;
use oa_types::{ContentBlock, FinishReason};
use serde_json::json;
use tokio::time::Instant;

fn options(server: MemoryServer) -> AgentOptions {
    AgentOptions::builder().model("any").transport(server).build().expect("these can work")
}

#[test]
fn query_and_its_stream_are_send() {
    fn is_send<T: Send>(_: &T) {}
    fn is_send_and_sync<T: Send + Sync>() {}
    fn stream_is_send(stream: &BlockStream) {
        is_send(stream);
    }
    is_send_and_sync::<AgentOptions>();
    is_send_and_sync::<oa_client::Error>();
    let options = options(MemoryServer::new(Script::new()));
    is_send(&query("x", &options));
    let _ = stream_is_send;
}

#[tokio::test(start_paused = true)]
async fn text_arrives_as_it_is_generated() {
    let reply = Reply::text("one two three").delay(Duration::from_secs(1));
    let mut answer = query("Count.", &options(MemoryServer::new(reply))).await.unwrap();
    let start = Instant::now();
    let mut times = Vec::new();
    while let Some(block) = answer.next().await {
        let ContentBlock::Text(block) = block.unwrap() else { panic!("only text was said") };
        times.push((block.text, start.elapsed().as_secs()));
    }
    // The first second is that of a chunk with only a role.
    let seen: Vec<(&str, u64)> = times.iter().map(|(text, time)| (&**text, *time)).collect();
    assert_eq!(seen, [("one", 2), (" two", 3), (" three", 4)]);
}

#[tokio::test]
async fn calls_arrive_complete_after_the_text() {
    let reply = Reply::new()
        .think("hm")
        .say("I'll look.")
        .call_with_id("call_1", "add", json!({"a": 1}))
        .call("now", "{broken")
        .usage(7, 9);
    let mut answer = query("Add.", &options(MemoryServer::new(reply))).await.unwrap();
    assert_eq!(answer.finish_reason(), None);
    let mut kinds = Vec::new();
    while let Some(block) = answer.next().await {
        kinds.push(match block.unwrap() {
            ContentBlock::Text(_) => "text",
            ContentBlock::Thinking(_) => "thinking",
            ContentBlock::ToolUse(call) => {
                assert_eq!(
                    (&*call.id, &*call.name, &call.input),
                    ("call_1", "add", &json!({"a": 1}))
                );
                "call"
            }
            ContentBlock::ToolUseError(error) => {
                assert_eq!((error.name.as_deref(), &*error.raw_data), (Some("now"), "{broken"));
                "broken call"
            }
            _ => "other",
        });
    }
    kinds.dedup();
    assert_eq!(kinds, ["thinking", "text", "call", "broken call"]);
    let message = answer.message().unwrap();
    assert_eq!(message.text(), "I'll look.");
    assert_eq!(message.content.len(), 4);
    assert_eq!(answer.finish_reason(), Some(&FinishReason::ToolCalls));
    assert_eq!(answer.usage().unwrap().prompt_tokens, Some(7));
}

#[tokio::test]
async fn dropping_the_stream_stops_the_server() {
    let server = SocketServer::start(Reply::text("one two three").stall_after(400)).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    let mut answer = query("Count.", &options).await.unwrap();
    assert!(answer.next().await.is_some());
    drop(answer);
    assert!(server.wait_for_abort(Duration::from_secs(5)).await.aborted());
    server.wait_for_close(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn dropping_a_pending_next_loses_nothing() {
    let reply = Reply::text("one two three four").delay(Duration::from_millis(5));
    let server = SocketServer::start(reply).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    let mut answer = query("Count.", &options).await.unwrap();
    let mut text = String::new();
    loop {
        match tokio::time::timeout(Duration::from_millis(1), answer.next()).await {
            Err(_) => {}
            Ok(None) => break,
            Ok(Some(block)) => text.push_str(block.unwrap().as_text().unwrap_or_default()),
        }
    }
    assert_eq!(text, "one two three four");
}

#[tokio::test]
async fn clones_of_options_share_their_connections() {
    let script =
        (0..20).fold(Script::new(), |script, number| script.reply(Reply::text(number.to_string())));
    let server = SocketServer::start(script).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    for number in 0..20 {
        let text = query("Next.", &options.clone()).await.unwrap().text().await.unwrap();
        assert_eq!(text, number.to_string());
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn closed_connections_are_replaced() {
    let script =
        (0..50).fold(Script::new(), |script, _| script.reply(Reply::text("ok").close_when_done()));
    let server = SocketServer::start(script).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    for _ in 0..50 {
        assert_eq!(query("Next.", &options).await.unwrap().text().await.unwrap(), "ok");
    }
}

#[tokio::test]
async fn done_ends_an_open_stream() {
    let body = b"data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\ndata: [DONE]\n\n";
    let reply = Reply::sse(&body[..]).stall_after(body.len());
    let server = SocketServer::start(reply).await.unwrap();
    let options = AgentOptions::builder().model("any").base_url(server.base_url()).build().unwrap();
    let mut answer = query("Hello?", &options).await.unwrap();
    let text = tokio::time::timeout(Duration::from_secs(5), answer.text()).await.unwrap();
    assert_eq!(text.unwrap(), "Hello");
}

#[tokio::test]
async fn requests_contain_only_what_options_set() {
    let script = Script::new().reply(Reply::text("ok")).reply(Reply::text("ok"));
    let server = MemoryServer::new(script);
    let plain = options(server.clone());
    query("Hi", &plain).await.unwrap().text().await.unwrap();
    let full = AgentOptions::builder()
        .model("qwen3:8b")
        .system_prompt("Be brief.")
        .api_key("secret-key")
        .header("X-Title", "tests")
        .header("user-agent", "mine")
        .max_tokens(100)
        .temperature(0.7)
        .top_p(0.9)
        .seed(7)
        .stop("END")
        .response_format(json!({"type": "json_object"}))
        .extra_body(json!({"num_ctx": 8192, "temperature": 0.1}))
        .transport(server.clone())
        .build()
        .unwrap();
    query("Hi", &full).await.unwrap().text().await.unwrap();
    let requests = server.requests();
    let body = |request: &Request| String::from_utf8(request.body().to_vec()).unwrap();
    insta::assert_snapshot!(body(&requests[0]), @r#"{"model":"any","messages":[{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true}}"#);
    insta::assert_snapshot!(body(&requests[1]), @r#"{"model":"qwen3:8b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":100,"top_p":0.9,"stop":["END"],"seed":7,"response_format":{"type":"json_object"},"num_ctx":8192,"temperature":0.1}"#);
    let headers = requests[1].headers();
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    assert_eq!(header("authorization"), Some("Bearer secret-key"));
    assert_eq!((header("x-title"), header("user-agent")), (Some("tests"), Some("mine")));
    assert_eq!(requests[0].headers().get("authorization"), None);
}

/// Some servers lose or damage calls only when they stream (QUIRKS row 141).
#[tokio::test]
async fn answers_in_one_piece_are_read_like_others() {
    let replies = [
        Reply::text("Let me see.").think("Hm.").call("add", json!({"a": 1})).usage(5, 7),
        Reply::text("Two."),
    ];
    let server = MemoryServer::new(replies.into_iter().fold(Script::new().strict(), Script::reply));
    let add = tool("add", "Adds one").param("a", "integer").build(|_| async { Ok(json!(2)) });
    let options = AgentOptions::builder().model("any").transport(server.clone()).tool(add);
    let options = options.auto_execute_tools(true).extra_body(json!({"stream": false}));
    let mut client = Client::new(options.build().unwrap()).unwrap();
    let reply = client.ask("Add.").await.unwrap();
    assert_eq!(reply.text, "Let me see.\n\nTwo.");
    server.verify();
    for request in server.requests() {
        assert_eq!(request.json()["stream"], false);
        assert_eq!(request.json().get("stream_options"), None);
    }
    let error = |members| AgentOptions::builder().model("any").extra_body(members).build();
    for members in [json!({"stream": true}), json!({"stream": 0}), json!({"messages": false})] {
        assert!(error(members).unwrap_err().to_string().starts_with("extra_body may not set"));
    }
}

/// Some models stream nothing, or no calls (QUIRKS row 143).
#[tokio::test(start_paused = true)]
async fn answers_that_are_not_streamed_come_whole() {
    let words = "This model doesn't support tool use in streaming mode.";
    let in_answer = json!({ "error": { "message": words, "code": 400 } });
    for refusal in [
        Reply::error(400, words),
        Reply::error(500, "Cannot use tools with stream"),
        Reply::sse(format!("data: {in_answer}\n\n")),
    ] {
        let call = Reply::text("Let me see.").call("add", json!({"a": 1})).usage(5, 7);
        let replies = [refusal, call, Reply::text("Two.")];
        let script = replies.into_iter().fold(Script::new().strict(), Script::reply);
        let server = MemoryServer::new(script);
        let add = tool("add", "Adds one").param("a", "integer").build(|_| async { Ok(json!(2)) });
        let options = AgentOptions::builder().model("any").transport(server.clone()).tool(add);
        let mut client = Client::new(options.auto_execute_tools(true).build().unwrap()).unwrap();
        let reply = client.ask("Add.").await.unwrap();
        assert_eq!(reply.text, "Let me see.\n\nTwo.");
        server.verify();
        let requests = server.requests();
        let requests: Vec<_> = requests.iter().map(Request::json).collect();
        let streams: Vec<_> = requests.iter().map(|request| request["stream"].clone()).collect();
        assert_eq!(streams, [true, false, false], "the refusal is remembered");
        assert_eq!(requests[1].get("stream_options"), None);
        let as_native = requests.iter().all(|request| request["tools"].is_array());
        assert!(as_native, "the model still gets its tools");
    }
}

#[tokio::test]
async fn keys_are_masked_in_errors_and_debug() {
    const KEY: &str = "sk-very-secret-key";
    let server = SocketServer::start(Reply::error(401, "no")).await.unwrap();
    let builder = AgentOptions::builder().model("any").base_url(server.base_url());
    let builder = builder.api_key(KEY).header("x-other-key", KEY);
    let mut shown = format!("{builder:?}");
    let options = builder.build().unwrap();
    shown += &format!("{options:?}{:?}", options.api_key());
    let error = query("Hi", &options).await.unwrap_err();
    shown += &format!("{error}{error:?}");
    let refused =
        AgentOptions::builder().model("any").api_key(format!("{KEY}\n")).build().unwrap_err();
    shown += &format!("{refused}{refused:?}");
    assert!(!shown.contains(KEY), "{shown}");
    assert!(shown.contains("****"));
}
