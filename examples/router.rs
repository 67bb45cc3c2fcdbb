//! Two servers and one agent: one server goes down in the middle of a conversation and recovers.
//!
//!     cargo run --example router

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use examples::{Arguments, Chat, Terminal};
use oa_testkit::{Reply, Request, Script, SocketServer};
use open_agent::router::{BreakerConfig, Health, Router, Server};
use open_agent::{AgentOptions, Client, ContentBlock, Endpoint, json, tool};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("router.rs"))?;
    let mut terminal = Terminal::new();
    let is_down = Arc::new(AtomicBool::new(false));
    // A real program would name two machines; these are stand-ins over real sockets.
    let one = stand_in(Arc::clone(&is_down)).await?;
    let other = stand_in(Arc::default()).await?;

    // Each has its own address, key and model name.
    let desk = Endpoint::builder().base_url(one.base_url()).model("qwen3-32b").build()?;
    let spare = Endpoint::builder().base_url(other.base_url()).model("qwen3-8b").build()?;
    let router = Router::builder()
        .endpoint(Server::new(desk).name("desk").cap(8))
        .endpoint(Server::new(spare).name("spare").cap(1))
        // Open after one failure and retried soon, because the example is short.
        .breaker(BreakerConfig::new(1).open_for(Duration::from_secs(1)))
        .build()?;
    let options = AgentOptions::builder()
        .model("qwen3")
        .chat_service(router.clone())
        .tool(tool("stock", "How many of something are there").param("of", "string").build(
            |args| async move { Ok(json!({ "pieces": args["of"].as_str().map_or(0, str::len) })) },
        ))
        .auto_execute_tools(true)
        .build()?;
    let mut client = Client::new(options)?;

    for (prompt, goes_down, waits) in [
        ("How many apples are there?", false, 0),
        ("And plums?", true, 0),
        ("And pears?", false, 1_000),
    ] {
        tokio::time::sleep(Duration::from_millis(waits)).await;
        is_down.store(false, Ordering::Relaxed);
        terminal.prompt(prompt);
        client.send(prompt).await?;
        while let Some(block) = client.receive().await? {
            // The server goes down between the call and the answer.
            if goes_down && matches!(block, ContentBlock::ToolUse(_)) {
                is_down.store(true, Ordering::Relaxed);
            }
            terminal.block(&block);
        }
        terminal.gap();
        for server in router.status() {
            let health = match server.health {
                Health::Healthy => "healthy".to_owned(),
                Health::Open { left } => format!("circuit open for {} ms", left.as_millis()),
                _ => "ready for a trial".to_owned(),
            };
            let (name, answered, failed) = (server.name, server.answered, server.failed);
            terminal.note(&format!("{name}: {health}, {answered} answered, {failed} failed"));
        }
    }
    Ok(())
}

/// Starts a server that can use one tool, unless it is down.
async fn stand_in(is_down: Arc<AtomicBool>) -> Result<SocketServer, Box<dyn Error>> {
    let answer = move |request: &Request| {
        if is_down.load(Ordering::Relaxed) {
            return Reply::hang_up();
        }
        let chat = Chat::of(request);
        let of = chat.prompt().trim_end_matches('?').split(' ').find(|word| word.ends_with('s'));
        let of = of.unwrap_or("things");
        match chat.result("stock") {
            None => Reply::new().call("stock", json!({ "of": of })),
            Some(stock) => {
                let model = request.model().unwrap_or_default();
                Reply::text(format!("There are {} {of}, says {model}.", stock["pieces"]))
            }
        }
    };
    Ok(SocketServer::start(Script::new().strict().otherwise(Reply::by(answer))).await?)
}
