//! The cost of a call over stdio, from our client to our server and back, one after the other and 64 at once.
//!
//! Prints the time of a call with the load of the machine beside it. `cargo bench -p oa-mcp --features __tests,server`.

#![expect(clippy::print_stdout, reason = "figures are printed")]

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oa_mcp::{Limits, McpServer, Servers};
use oa_tools::{Tool, ToolContext};
use serde_json::json;
use tokio::task::JoinSet;

const WARM_UP: usize = 1_000;
const IN_SEQUENCE: usize = 10_000;
const AT_ONCE: usize = 64;
const EACH: usize = 400;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut limits = Limits::default();
    limits.calls = AT_ONCE;
    let server = McpServer::stdio("o", env!("CARGO_BIN_EXE_oa-mcp-offered")).limits(limits);
    let connected = Servers::new().add(server.required()).connect().await?;
    let tools = connected.tools();
    let echo = tools.iter().find(|tool| tool.name() == "o__echo").ok_or("no echo")?;
    println!("load of the machine before: {}", load());
    let process = tools.iter().find(|tool| tool.name() == "o__process").ok_or("no process")?;
    let process = process.execute(json!({})).await?.to_string();

    for _ in 0..WARM_UP {
        call(&**echo).await?;
    }
    println!("memory of the server after {WARM_UP} calls: {}", memory(&process));
    let mut times = Vec::with_capacity(IN_SEQUENCE);
    let start = Instant::now();
    for _ in 0..IN_SEQUENCE {
        let start = Instant::now();
        call(&**echo).await?;
        times.push(start.elapsed());
    }
    let mean = start.elapsed() / u32::try_from(IN_SEQUENCE)?;
    times.sort_unstable();
    let (half, most) = (times[IN_SEQUENCE / 2], times[IN_SEQUENCE * 99 / 100]);
    println!(
        "in sequence: {mean:.1?} a call on average, half in {half:.1?}, 99 of 100 in {most:.1?}"
    );

    for round in 1..=3 {
        let start = Instant::now();
        let mut callers = JoinSet::new();
        for _ in 0..AT_ONCE {
            let echo = Arc::clone(echo);
            callers.spawn(async move {
                for _ in 0..EACH {
                    call(&*echo).await?;
                }
                Ok::<(), String>(())
            });
        }
        while let Some(caller) = callers.join_next().await {
            caller??;
        }
        let each: Duration = start.elapsed() / u32::try_from(AT_ONCE * EACH)?;
        println!("{AT_ONCE} at once, round {round}: {each:.1?} a call");
    }
    let calls = WARM_UP + IN_SEQUENCE + 3 * AT_ONCE * EACH;
    println!("memory of the server after {calls} calls: {}", memory(&process));
    println!("load of the machine after: {}", load());
    connected.close().await;
    Ok(())
}

async fn call(tool: &dyn Tool) -> Result<(), String> {
    let result = tool.call(json!({ "text": "hello" }), ToolContext::new("c", "o__echo")).await;
    match result {
        Ok(said) if said == "hello" => Ok(()),
        other => Err(format!("another result: {other:?}")),
    }
}

/// The load average of the last minute, and the number of processors.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().filter(|load| !load.is_empty()).unwrap_or("unknown");
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{load} on {processors} processors")
}

fn memory(process: &str) -> String {
    let process = process.trim_matches('"');
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim().to_owned())
}
