//! Several servers behind a whole agent: tools, hooks and history do not notice which one answers.

use std::time::Duration;

use oa_chat::{Endpoint, Provider, RetryConfig, ToolMode};
use oa_client::{AgentEvent, AgentOptions, AgentOptionsBuilder, Client, ErrorKind, query};
use oa_router::{BreakerConfig, Health, Policy, Router, RouterBuilder, Server};
use oa_testkit::{MemoryServer, Reply, Script, Strict};
use oa_types::FinishReason;
use serde_json::json;
use tokio::time::Instant;

use suite::talk::{client, echo, interrupt_after, read_on, stalling, talk, told};

fn endpoint(server: &MemoryServer) -> Endpoint {
    let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1").transport(server.clone());
    endpoint.build().expect("it can work")
}

fn over<const N: usize>(servers: [&MemoryServer; N]) -> RouterBuilder {
    Router::builder().endpoints(servers.map(endpoint))
}

fn served_by(router: &Router) -> AgentOptionsBuilder {
    let options = AgentOptions::builder().model("any").retry(RetryConfig::none());
    options.chat_service(router.clone())
}

fn call(id: &str) -> Reply {
    Reply::new().call_with_id(id, "echo", json!({ "say": id }))
}

fn strict<const N: usize>(replies: [Reply; N]) -> MemoryServer {
    MemoryServer::new(Script::from(replies).strict())
}

#[tokio::test(start_paused = true)]
async fn stickiness_in_every_tool_mode() {
    let text = Reply::text(r#"<tool_call>{"name": "echo", "arguments": {"say": "a"}}</tool_call>"#);
    let ways = [
        ("calls", ToolMode::Native, false, call("1")),
        ("text", ToolMode::TaggedJson, false, text.clone()),
        ("calls in text", ToolMode::Native, true, text),
        ("words", ToolMode::React, false, Reply::text("Well.")),
    ];
    for (way, mode, recognizes, first) in ways {
        let [a, b] = [(); 2].map(|()| {
            let first = first.clone();
            let rule = Reply::by(move |request| match request.messages().len() {
                1 | 2 => first.clone(),
                _ => Reply::text("Done."),
            });
            MemoryServer::new(Script::new().otherwise(rule))
        });
        let router = over([&a, &b]).policy(Policy::LeastBusy).build().unwrap();
        let options = served_by(&router).tool(echo()).auto_execute_tools(true);
        let mut client = client(options.tool_mode(mode).recognize_calls(recognizes));
        for prompt in ["Go.", "And?", "Well?", "So?"] {
            talk(&mut client, prompt).await;
        }
        assert_eq!(router.remembered(), 1, "{way}");
        let served = [&a, &b].map(|server| server.requests().len());
        assert!(served.contains(&0), "{way}: {served:?}");
    }
}

/// History stays one conversation.
#[tokio::test(start_paused = true)]
async fn tool_turn_fails_over_at_every_stage() {
    let local = strict([
        call("call_0000000001"),
        Reply::text("Lost.").close_after(0),
        Reply::error(503, "down"),
        Reply::text("Back."),
    ]);
    let strict_ids = Script::from([call("call_0002"), Reply::text("Done.")]);
    let mistral = MemoryServer::new(strict_ids.strict_by(Strict::new()));
    let spare = Endpoint::builder().provider(Provider::Mistral).base_url("http://spare/v1");
    let spare = spare.transport(mistral.clone()).build().unwrap();
    let router = Router::builder().endpoint(endpoint(&local)).endpoint(spare).build().unwrap();
    let options = served_by(&router).tool(echo()).auto_execute_tools(true).system_prompt("Brief.");
    let mut client = client(options);
    let lines = talk(&mut client, "Go.").await;
    assert_eq!(lines.last().unwrap(), "Done.");
    assert_eq!(talk(&mut client, "And?").await, ["Back."]);
    let roles: Vec<_> =
        client.history().iter().map(|message| message.role.as_str().to_owned()).collect();
    let expected =
        ["user", "assistant", "tool", "assistant", "tool", "assistant", "user", "assistant"];
    assert_eq!(roles, expected, "{:?}", told(client.history()));
    local.verify();
    mistral.verify();
}

#[tokio::test(start_paused = true)]
async fn queries_and_agents_share_caps() {
    let server = MemoryServer::new(
        Script::new().otherwise(Reply::text("Done.").delay(Duration::from_millis(100))),
    );
    let router = over([&server]).cap(1).build().unwrap();
    let options = served_by(&router).build().unwrap();
    let tasks: Vec<_> = (0..6)
        .map(|_| {
            let options = options.clone();
            tokio::spawn(async move { query("Go.", &options).await?.text().await })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap(), "Done.");
    }
    let status = &router.status()[0];
    assert_eq!((status.answered, status.in_use, router.waiting()), (6, 0, 0));
}

/// The text stays, as with a single server.
#[tokio::test(start_paused = true)]
async fn break_after_output_fails_the_turn() {
    let delta = |words: &str| {
        format!("data: {}\n\n", json!({ "choices": [{ "delta": { "content": words } }] }))
    };
    let body = delta("Half") + &delta(" of it");
    let broken = Reply::sse(body.clone()).close_after(body.len() - 5);
    let (first, second) = (strict([broken, Reply::text("Again.")]), strict([]));
    let router = over([&first, &second]).build().unwrap();
    let mut client = client(served_by(&router));
    client.send("Go.").await.unwrap();
    let (seen, error) = read_on(&mut client).await;
    assert_eq!(
        (seen, error.map(|error| error.kind())),
        (vec!["Half".to_owned()], Some(ErrorKind::Stream))
    );
    assert_eq!(talk(&mut client, "Once more.").await, ["Again."]);
    assert!(second.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn problems_before_failover_are_events() {
    let reported = Reply::sse("data: {\"error\": {\"message\": \"out of memory\"}}\n\n");
    let (first, second) = (strict([reported]), strict([Reply::text("Done.")]));
    let router = over([&first, &second]).build().unwrap();
    let mut client = client(served_by(&router));
    client.send("Go.").await.unwrap();
    let (mut problems, mut text) = (0, String::new());
    while let Some(event) = client.next_event().await.unwrap() {
        match event {
            AgentEvent::Problem(_) => problems += 1,
            AgentEvent::Block(block) => text += &suite::talk::line(&block),
            _ => {}
        }
    }
    assert_eq!((problems, text.as_str()), (1, "Done."));
    assert_eq!(client.finish_reason(), Some(&FinishReason::Stop));
}

#[tokio::test(start_paused = true)]
async fn interrupt_frees_slot_without_failure() {
    let server = strict([stalling(&["One", " two"]), Reply::text("Done.")]);
    let router = over([&server]).cap(1).policy(Policy::LeastBusy).build().unwrap();
    let mut client = client(served_by(&router));
    client.send("Go.").await.unwrap();
    client.receive().await.unwrap();
    interrupt_after(&client, Duration::from_secs(1));
    let began = Instant::now();
    while client.receive().await.unwrap().is_some() {}
    assert_eq!(began.elapsed(), Duration::from_secs(1));
    let status = &router.status()[0];
    assert_eq!((status.in_use, status.given_up, status.failed), (0, 1, 0));
    assert_eq!(status.health, Health::Healthy);
    assert_eq!(talk(&mut client, "Again.").await, ["Done."]);
}

#[tokio::test(start_paused = true)]
async fn interrupt_ends_a_retry_delay() {
    let trouble = Reply::error(503, "loading").header("retry-after", "50");
    let server = MemoryServer::new(Script::from(trouble).otherwise(Reply::text("Done.")));
    let router = Router::builder().endpoint(Server::new(endpoint(&server)).name("gpu"));
    let router = router.breaker(BreakerConfig::new(1)).build().unwrap();
    let mut client = client(served_by(&router).retry(RetryConfig::new(2)));
    interrupt_after(&client, Duration::from_secs(2));
    let began = Instant::now();
    client.send("Go.").await.unwrap();
    assert_eq!((client.receive().await.unwrap(), began.elapsed().as_secs()), (None, 2));
    // The circuit is still open, and the next prompt waits for it as retries do.
    assert_eq!(talk(&mut client, "Again.").await, ["Done."]);
    assert_eq!(began.elapsed().as_secs(), 50);
}

#[tokio::test(start_paused = true)]
async fn dropped_clients_free_slots_and_queue() {
    let server = MemoryServer::new(Script::new().otherwise(Reply::silence()));
    let router = over([&server]).cap(1).build().unwrap();
    let tasks: Vec<_> = (0..5)
        .map(|_| {
            let mut client: Client = client(served_by(&router));
            tokio::spawn(async move { client.send("Go.").await })
        })
        .collect();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!((router.status()[0].in_use, router.waiting()), (1, 4));
    for task in tasks {
        task.abort();
        let _ = task.await;
    }
    assert_eq!((router.status()[0].in_use, router.waiting()), (0, 0));
}
