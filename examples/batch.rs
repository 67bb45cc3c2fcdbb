//! Many prompts through one agent on two servers, one of which dies. The batch is stopped and resumed from its log.
//!
//!     cargo run --example batch

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use examples::{Arguments, Chat, Terminal};
use oa_testkit::{Reply, Request, Script, SocketServer};
use open_agent::router::{Router, Server};
use open_agent::{AgentOptions, BatchLog, BatchOptions, Endpoint, run_batch};

const REVIEWS: usize = 40;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("batch.rs"))?;
    let mut terminal = Terminal::new();
    // A real program would name two machines; these are stand-ins over real sockets. The second one dies.
    let one = stand_in(usize::MAX).await?;
    let other = stand_in(14).await?;
    let desk = Endpoint::builder().base_url(one.base_url()).model("qwen3-32b").build()?;
    let spare = Endpoint::builder().base_url(other.base_url()).model("qwen3-8b").build()?;
    let router = Router::builder()
        .endpoint(Server::new(desk).name("desk").cap(2))
        .endpoint(Server::new(spare).name("spare").cap(2))
        .build()?;
    let agent = AgentOptions::builder()
        .model("qwen3")
        .system_prompt("Say whether the review is positive or negative.")
        .chat_service(router.clone())
        .build()?;

    let reviews = || (0..REVIEWS).map(|number| format!("Review {number}: it works well."));
    let folder = std::env::temp_dir().join(format!("open-agent-batch-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("reviews.jsonl");

    // The first run is stopped in the middle: a Ctrl-C, a crash, a power failure.
    let options = BatchOptions::new(agent.clone()).concurrency(4).in_input_order(true);
    let mut batch = run_batch(reviews(), options.log(BatchLog::open(&path).await?))?;
    while let Some((index, reply)) = batch.next().await {
        terminal.line(&format!("{index}: {}", reply?.text));
        if batch.progress().done >= 12 {
            break;
        }
    }
    let progress = batch.progress();
    terminal.note(&format!("stopped after {} replies, {} failed", progress.done, progress.failed));
    drop(batch);

    // The second run asks only for the rest.
    let log = BatchLog::open(&path).await?;
    terminal.note(&format!("{} replies from the log", log.replies()));
    let options = BatchOptions::new(agent).concurrency(4).in_input_order(true).log(log);
    let mut batch = run_batch(reviews(), options)?;
    while let Some((index, reply)) = batch.next().await {
        reply?;
        let progress = batch.progress();
        if index % 10 == 9 {
            let left = progress.remaining.unwrap_or_default();
            terminal.line(&format!("{} done, {left} to come", progress.done));
        }
    }
    let progress = batch.progress();
    terminal.note(&format!("{} replies, {} failed", progress.done, progress.failed));
    for server in router.status() {
        let (name, answered, failed) = (server.name, server.answered, server.failed);
        terminal.note(&format!("{name}: {answered} answered, {failed} failed"));
    }
    // Windows removes no open files.
    drop(batch);
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Starts a server that dies after this many answers.
async fn stand_in(answers: usize) -> Result<SocketServer, Box<dyn Error>> {
    let count = Arc::new(AtomicUsize::new(0));
    let answer = move |request: &Request| {
        if count.fetch_add(1, Ordering::Relaxed) >= answers {
            return Reply::hang_up();
        }
        let is_good = Chat::of(request).prompt().contains("works well");
        Reply::text(if is_good { "positive" } else { "negative" })
    };
    Ok(SocketServer::start(Script::new().strict().otherwise(Reply::by(answer))).await?)
}
