//! The time of a call over standard input and output: one after the other, and 64 at once.
//!
//! The server is the tests' own, a process beside this one, so both halves are in the time.
//! `cargo bench -p oa-mcp --features __tests` prints the table.
#![expect(clippy::print_stdout, reason = "a bench prints its table")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use oa_mcp::{Limits, McpServer, Servers};
use oa_tools::{Tool, ToolContext};
use serde_json::json;
use tokio::runtime;
use tokio::task::JoinSet;

const CALLS: u32 = 20_000;
const ROUNDS: usize = 5;

fn main() {
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("{error}"));
    runtime.block_on(async {
        let mut limits = Limits::default();
        limits.calls = 64;
        let server = McpServer::stdio("s", env!("CARGO_BIN_EXE_oa-mcp-scripted")).limits(limits);
        let connected = Servers::new().add(server.required()).connect().await;
        let connected = connected.unwrap_or_else(|error| panic!("{error}"));
        let tools = connected.tools();
        let echo = tools.iter().find(|tool| tool.name() == "s__echo");
        let Some(echo) = echo else { panic!("the server has the tool echo") };
        println!("| calls at once | us a call, median of {ROUNDS} rounds | best round |");
        println!("| --- | --- | --- |");
        for at_once in [1, 64] {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push(round(echo, at_once).await / CALLS);
            }
            rounds.sort();
            let micros = |time: Duration| time.as_nanos() as f64 / 1_000.0;
            println!(
                "| {at_once} | {:.1} | {:.1} |",
                micros(rounds[ROUNDS / 2]),
                micros(rounds[0])
            );
        }
        connected.close().await;
    });
}

async fn round(echo: &Arc<dyn Tool>, at_once: u32) -> Duration {
    let start = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..at_once {
        let echo = Arc::clone(echo);
        callers.spawn(async move {
            for _ in 0..CALLS / at_once {
                let said = echo.call(json!({ "text": "hello" }), ToolContext::new("c", "t")).await;
                assert_eq!(said.ok(), Some(json!("hello")));
            }
        });
    }
    while let Some(joined) = callers.join_next().await {
        joined.unwrap_or_else(|error| panic!("{error}"));
    }
    start.elapsed()
}
