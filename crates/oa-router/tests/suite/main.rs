//! The router through its public interface: servers in memory on paused time, and a few on sockets.

mod agents;
mod balance;
mod breaker;
mod caps;
mod errors;
mod failover;
mod health;
mod interrupts;
mod laws;
mod options;
mod sockets;
mod sticky;
mod storm;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use oa_chat::{Endpoint, RetryConfig};
use oa_client::{AgentOptions, Client, Result};
use oa_router::{Router, RouterBuilder, Server};
use oa_testkit::{MemoryServer, Reply, Script};
use oa_types::ContentBlock;
use tokio::task::JoinHandle;

/// A server with this script.
fn server(script: impl Into<Script>) -> MemoryServer {
    MemoryServer::new(script)
}

/// A server that always answers with these words.
fn saying(words: &str) -> MemoryServer {
    server(Script::new().otherwise(Reply::text(words)))
}

/// A server that always fails with this reply.
fn down(reply: Reply) -> MemoryServer {
    server(Script::new().otherwise(reply))
}

/// An answer that starts immediately and ends after this many milliseconds.
fn lasting(milliseconds: u64, words: &str) -> Reply {
    let chunk = serde_json::json!({ "choices": [{ "delta": { "content": words } }] });
    let reply = Reply::sse(format!("data: {chunk}\n\ndata: [DONE]\n\n"));
    reply.delay(Duration::from_millis(milliseconds)).delay_first(Duration::ZERO)
}

/// A server whose answers take this many milliseconds.
fn slow(milliseconds: u64, words: &str) -> MemoryServer {
    server(Script::new().otherwise(lasting(milliseconds, words)))
}

fn endpoint(server: &MemoryServer) -> Endpoint {
    let endpoint = Endpoint::builder().base_url("http://gpu:8000/v1").transport(server.clone());
    endpoint.build().expect("it can work")
}

/// A builder with servers named a, b, c, and so on.
fn over<'a>(servers: impl IntoIterator<Item = &'a MemoryServer>) -> RouterBuilder {
    let names = ('a'..='z').map(String::from);
    let servers = servers.into_iter().zip(names);
    let servers = servers.map(|(server, name)| Server::new(endpoint(server)).name(name));
    Router::builder().endpoints(servers)
}

fn client(router: &Router) -> Client {
    client_with(router, RetryConfig::none())
}

fn client_with(router: &Router, retry: RetryConfig) -> Client {
    let options = AgentOptions::builder().model("any").retry(retry).chat_service(router.clone());
    Client::new(options.build().expect("these can work")).expect("there is a model")
}

/// Asks in a new conversation.
async fn ask(router: &Router) -> Result<String> {
    Ok(client(router).ask("Go.").await?.text)
}

/// Asks in a new task.
fn ask_meanwhile(router: &Router) -> JoinHandle<Result<String>> {
    let router = router.clone();
    tokio::spawn(async move { ask(&router).await })
}

/// Lets other tasks run without letting time pass.
async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

async fn pause(milliseconds: u64) {
    tokio::time::sleep(Duration::from_millis(milliseconds)).await;
}

/// The number of requests of each server.
fn counts<const N: usize>(servers: [&MemoryServer; N]) -> [usize; N] {
    servers.map(|server| server.requests().len())
}

/// The number of answers in progress at each server.
fn in_use(router: &Router) -> Vec<usize> {
    router.status().iter().map(|status| status.in_use).collect()
}

/// Occupies the only place of the first server.
async fn occupy(router: &Router) -> JoinHandle<Result<String>> {
    for _ in 0..100 {
        let task = ask_meanwhile(router);
        settle().await;
        if in_use(router)[0] == 1 {
            return task;
        }
    }
    panic!("nobody is sent to the first server: {router:?}");
}

/// Reads the first piece of an answer.
async fn first_piece(client: &mut Client) -> String {
    match client.receive().await.expect("it has begun") {
        Some(ContentBlock::Text(text)) => text.text,
        other => panic!("{other:?}"),
    }
}

/// A shared counter.
#[derive(Clone, Debug, Default)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn add(&self) -> usize {
        self.0.fetch_add(1, Ordering::SeqCst) + 1
    }

    fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}
