//! Endings after a finish reason: usage and `[DONE]`, silence, a reset, or a connection that just closes. The
//! answer is complete in all cases.

use std::time::Duration;

use oa_aggregate::{Problem, UncleanEnd};
use oa_chat::RetryConfig;
use oa_client::{AgentEvent, AgentOptions, Client, ErrorKind};
use oa_testkit::{MemoryServer, Reply, SocketServer};
use oa_types::{ContentBlock, FinishReason, Usage};
use serde_json::json;
use tokio::time::Instant;

use suite::talk::{adder, auto, client, manual, read, strict};

/// A call with its finish reason, but neither usage nor `[DONE]`.
const CALL: &str = include_str!("../../../../tests/fixtures/own/relay-never-closes.sse");

/// Returns the blocks of a turn, its problems, and its duration.
async fn turn(client: &mut Client) -> (Vec<ContentBlock>, Vec<Problem>, Duration) {
    let began = Instant::now();
    client.send("Go.").await.expect("nothing fails here");
    let (mut blocks, mut problems) = (Vec::new(), Vec::new());
    while let Some(event) = client.next_event().await.expect("nothing fails here") {
        match event {
            AgentEvent::Block(block) => blocks.push(block),
            AgentEvent::Problem(problem) => problems.push(problem),
            _ => {}
        }
    }
    (blocks, problems, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn silence_after_a_finish_reason_is_bounded() {
    let server = strict([Reply::sse(CALL).stall_after(CALL.len()), Reply::text("It is 3.")]);
    let mut client = client(auto(&server).tool(adder()));
    let (blocks, problems, took) = turn(&mut client).await;
    assert!(matches!(&blocks[0], ContentBlock::ToolUse(call) if call.name == "add"), "{blocks:?}");
    assert!(matches!(&blocks[1], ContentBlock::ToolResult(result) if result.content == json!(3.0)));
    assert_eq!(problems, [Problem::UncleanEnd(UncleanEnd::Silent)]);
    assert_eq!(took, Duration::from_secs(5));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
    assert!(server.requests()[0].aborted(), "the server's connection is closed");
}

#[tokio::test(start_paused = true)]
async fn breaks_after_a_finish_lose_nothing() {
    for broken in
        [Reply::sse(CALL).reset_after(CALL.len()), Reply::sse(CALL).close_after(CALL.len())]
    {
        let server = strict([broken, Reply::text("It is 3.")]);
        let mut client = client(auto(&server).tool(adder()));
        let (blocks, problems, _) = turn(&mut client).await;
        assert_eq!(blocks.len(), 5, "a call, its result and three words more: {blocks:?}");
        assert_eq!(problems, [Problem::UncleanEnd(UncleanEnd::Broken)]);
    }
}

#[tokio::test]
async fn socket_breaks_after_finish_lose_nothing() {
    for broken in
        [Reply::sse(CALL).reset_after(CALL.len()), Reply::sse(CALL).close_after(CALL.len())]
    {
        let server = SocketServer::start([broken, Reply::text("It is 3.")]).await.unwrap();
        let options = AgentOptions::builder().model("any").base_url(server.base_url());
        let options = options.tool(adder()).auto_execute_tools(true).retry(RetryConfig::none());
        let mut client = client(options);
        let (blocks, problems, _) = turn(&mut client).await;
        assert_eq!(blocks.len(), 5, "{blocks:?}");
        assert_eq!(problems, [Problem::UncleanEnd(UncleanEnd::Broken)]);
    }
}

#[tokio::test(start_paused = true)]
async fn breaks_before_a_finish_reason_are_errors() {
    let end = CALL.rfind("data: ").unwrap();
    for (broken, kind) in [
        (Reply::sse(CALL).reset_after(end), ErrorKind::Stream),
        (Reply::sse(CALL).close_after(end), ErrorKind::Stream),
        (Reply::sse(CALL).stall_after(end), ErrorKind::Timeout),
    ] {
        let mut client = client(auto(&strict([broken])).tool(adder()));
        assert_eq!(client.ask("Go.").await.unwrap_err().kind(), kind);
    }
}

/// A server that sends a word and a finish reason, and then 3,600 heartbeats at intervals.
fn heartbeats(every: Duration, beat: &str) -> MemoryServer {
    let words = json!({"choices": [{"index": 0, "delta": {"content": "Hello."}}]});
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let beats = beat.repeat(3600);
    strict([Reply::sse(format!("data: {words}\n\ndata: {finish}\n\n{beats}")).delay(every)])
}

#[tokio::test(start_paused = true)]
async fn heartbeats_do_not_extend_the_answer() {
    for beat in [": ping\n\n", "data: {\"choices\":[]}\n\n", "data: oops\n\n"] {
        let mut client = client(manual(&heartbeats(Duration::from_secs(1), beat)));
        let (blocks, problems, took) = turn(&mut client).await;
        assert_eq!(blocks.len(), 1, "{beat:?}");
        assert!(problems.contains(&Problem::UncleanEnd(UncleanEnd::Silent)), "{beat:?}");
        assert!(took <= Duration::from_secs(8), "{beat:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn usage_after_the_finish_reason_is_read() {
    let words = json!({"choices": [{"index": 0, "delta": {"content": "Hello."}}]});
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}});
    let body = format!("data: {words}\n\ndata: {finish}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    let server = strict([Reply::sse(body).delay(Duration::from_secs(2))]);
    let mut client = client(manual(&server));
    let (_, problems, took) = turn(&mut client).await;
    assert_eq!((problems.len(), took), (0, Duration::from_secs(8)));
    assert_eq!(client.usage().and_then(|usage: Usage| usage.prompt_tokens), Some(7));
}

/// Repeated thinking is held back, because it may be that of a cumulative stream, and so is text that may repeat it.
#[tokio::test(start_paused = true)]
async fn held_back_content_resets_its_timeout() {
    let delta = |name: &str, words: &str| {
        format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": {name: words}}]}))
    };
    let thinking = delta("reasoning_content", "x").repeat(6);
    let repeated = ["<think>", "xx", "xx", "xx", "</think>", "Done."];
    let text: String = repeated.iter().map(|words| delta("content", words)).collect();
    let server = strict([
        Reply::sse(format!("{thinking}{text}data: [DONE]\n\n")).delay(Duration::from_secs(2))
    ]);
    let mut client = client(manual(&server).content_timeout(3));
    assert_eq!(client.ask("Go.").await.unwrap().text, "Done.");
}

#[tokio::test(start_paused = true)]
async fn a_shorter_idle_timeout_is_not_an_error() {
    let server = strict([Reply::sse(CALL).stall_after(CALL.len())]);
    let mut client = client(manual(&server).tool(adder()).idle_timeout(2));
    let (blocks, problems, took) = turn(&mut client).await;
    assert_eq!((blocks.len(), took), (1, Duration::from_secs(2)));
    assert_eq!(problems, [Problem::UncleanEnd(UncleanEnd::Silent)]);
}

#[tokio::test(start_paused = true)]
async fn slow_error_bodies_are_cut_and_quoted() {
    let dripping = |status| {
        Reply::body(status, "text/plain", "out of memory, ".repeat(10_000))
            .cut(oa_testkit::Cut::Every(15))
            .delay(Duration::from_secs(7))
    };
    let began = Instant::now();
    let mut refused = client(manual(&strict([dripping(500)])).idle_timeout(30));
    let error = refused.ask("Go.").await.unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Api, Some(500)));
    assert!(error.to_string().contains("out of memory"), "{error}");
    assert!(began.elapsed() <= Duration::from_secs(38), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn interrupted_answers_keep_reported_usage() {
    let piece = json!({
        "choices": [{"index": 0, "delta": {"content": "one "}}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 1},
    });
    let said = format!("data: {piece}\n\n");
    let server = strict([
        Reply::sse(format!("{said}{said}")).stall_after(said.len()),
        Reply::text("two").usage(9, 1),
    ]);
    let mut client = client(manual(&server));
    client.send("Count.").await.unwrap();
    client.receive().await.unwrap();
    client.interrupt();
    assert_eq!(client.receive().await.unwrap(), None);
    assert_eq!(client.usage().and_then(|usage| usage.prompt_tokens), Some(7));
    assert_eq!(client.turn_metadata().total_usage.prompt_tokens, Some(7));

    let error = client.continue_turn().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("interrupted"), "{error}");
    assert!(error.to_string().contains("send a prompt instead"), "{error}");
    client.send("Go on.").await.unwrap();
    assert_eq!(read(&mut client).await, ["two"]);
    assert_eq!(client.turn_metadata().total_usage.prompt_tokens, Some(16));
}
