//! The memory of a client: flat over many calls, and bounded whatever a server sends. Alone in its process.
//!
//! Short by default; `OPEN_AGENT_SOAK=100000` sets the number of calls.
#![cfg(target_os = "linux")]

use std::fs;

use oa_mcp::{McpServer, Servers};
use oa_tools::{Tool, ToolContext};
use serde_json::{Value, json};

/// Returns a line of `/proc/self/status` in KiB.
fn memory(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}

async fn call(tool: &dyn Tool, input: Value) -> Result<Value, String> {
    tool.call(input, ToolContext::new("c", "t")).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn memory_stays_flat_and_bounded() {
    let mut limits = oa_mcp::Limits::default();
    limits.restarts = 100;
    limits.restart_delay = std::time::Duration::from_millis(1);
    let server = McpServer::stdio("s", env!("CARGO_BIN_EXE_oa-mcp-scripted")).limits(limits);
    let connected = Servers::new().add(server.required()).connect().await.unwrap();
    let tools = connected.tools();
    let named = |name: &str| tools.iter().find(|tool| tool.name() == name).unwrap();
    let (echo, other) = (named("s__echo"), named("s__do"));

    let count = std::env::var("OPEN_AGENT_SOAK").ok().and_then(|count| count.parse().ok());
    let count: u64 = count.unwrap_or(4_000);
    let text = "x".repeat(1_000);
    let mut warm = 0;
    for n in 0..count {
        assert_eq!(call(&**echo, json!({ "text": text })).await, Ok(json!(text)));
        if n == count / 10 {
            warm = memory("VmRSS");
        }
    }
    let after = memory("VmRSS");
    println!("{count} calls: {warm} KiB after a tenth of them, {after} KiB after all");
    assert!(after < warm + 4_096, "it grew from {warm} to {after} KiB");

    // Over the limit of 16 MiB: the call fails when the limit is reached, and the next one works.
    for _ in 0..3 {
        let huge = call(&**other, json!({ "what": "huge", "bytes": 100_000_000 })).await;
        assert!(huge.unwrap_err().contains("longer than 16777216 bytes"));
        assert_eq!(call(&**echo, json!({ "text": "back" })).await, Ok(json!("back")));
    }
    let endless = call(&**other, json!({ "what": "endless line" })).await;
    assert!(endless.unwrap_err().contains("longer than 16777216 bytes"));
    let peak = memory("VmHWM");
    println!("100 MB answers and a line without end: {peak} KiB at most");
    assert!(peak < 64 * 1_024, "{peak} KiB");
    connected.close().await;
}
