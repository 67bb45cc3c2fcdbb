//! Many servers at once: the time to start and the order.

use std::time::{Duration, Instant};

use oa_mcp::{ErrorKind, Failure, McpServer, Servers};
use oa_transport::ApiKey;

use crate::support::{scripted, soak};

/// A server that takes this long to start.
fn slow(name: &str, wait: u64) -> McpServer {
    McpServer::stdio(name, env!("CARGO_BIN_EXE_oa-mcp-scripted")).args(["plain", &wait.to_string()])
}

/// One that hangs ends at its own timeout.
#[tokio::test]
async fn servers_start_in_parallel() {
    let servers = |count: u64| {
        (0..count).fold(Servers::new(), |servers, n| servers.add(slow(&format!("s{n}"), 1_000)))
    };
    let start = Instant::now();
    let connected = servers(10).connect().await.unwrap();
    let together = start.elapsed();
    assert_eq!(connected.tools().len(), 20);
    connected.close().await;

    let hangs = scripted("hang").connect_timeout(Duration::from_secs(3));
    // An entry in the failures is enough.
    let hangs = Servers::new()
        .add(McpServer::stdio("quick", env!("CARGO_BIN_EXE_oa-mcp-scripted")))
        .add(hangs);
    let start = Instant::now();
    let error = hangs.connect().await.unwrap_err();
    let hanging = start.elapsed();
    println!(
        "ten servers of 1 s: {together:?} together; one that hangs: {hanging:?}, its limit is 3 s"
    );
    assert!(together < Duration::from_secs(6), "one after the other is 10 s: {together:?}");
    assert!(error.to_string().contains("no answer to the handshake within 3s"), "{error}");
    assert!(hanging < Duration::from_secs(8), "{hanging:?}");
}

#[tokio::test]
async fn maximal_connect_timeout_never_expires() {
    let server = slow("s", 0).connect_timeout(Duration::MAX);
    let connected = Servers::new().add(server).connect().await.unwrap();
    assert_eq!(connected.tools().len(), 2);
    connected.close().await;
}

/// 20 starts by default; `OPEN_AGENT_SOAK=100` sets another number.
#[tokio::test]
async fn tool_lists_do_not_depend_on_start_order() {
    let mut first = None;
    let count = soak(20).min(1_000) as u64;
    for run in 0..count {
        // Each time another one is last.
        let wait = |n: u64| (n + run) % 3 * 15;
        let servers = (0..3)
            .fold(Servers::new(), |servers, n| servers.add(slow(&format!("s{}", 2 - n), wait(n))));
        let connected = servers.connect().await.unwrap();
        let tools: Vec<_> = connected.tools().iter().map(|tool| tool.spec()).collect();
        let bytes = serde_json::to_string(&tools).unwrap();
        assert!(bytes.contains("s2__do"), "{bytes}");
        assert_eq!(first.get_or_insert_with(|| bytes.clone()), &bytes);
        connected.close().await;
    }
    println!("{count} starts: the same {} bytes", first.unwrap_or_default().len());
}

/// Without a timer, the timeout of the handshake panics.
#[test]
fn panicking_start_is_a_failure() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    runtime.block_on(async {
        let server = McpServer::http("s", "http://127.0.0.1:9/");
        let connected = Servers::new().add(server.clone()).connect().await.unwrap();
        let failed: Vec<_> = connected.failures().iter().map(Failure::server).collect();
        assert_eq!(failed, ["s"]);
        let error = Servers::new().add(server.required()).connect().await.unwrap_err();
        assert!(error.to_string().starts_with("s: "), "{error}");
    });
}

#[tokio::test]
async fn options_that_cannot_work_are_refused() {
    let local = McpServer::stdio("s", "no-such-program").bearer(ApiKey::new("secret").unwrap());
    let remote = McpServer::http("s", "http://127.0.0.1:9/mcp").env("TOKEN", "secret").arg("-v");
    let none = || McpServer::stdio("s", "no-such-program");
    for (server, expected) in [
        (none().connect_timeout(0), "s: connect_timeout must be above 0; use None for no limit"),
        (none().call_timeout(0), "s: call_timeout must be above 0; use None for no limit"),
        (none().max_call_time(0), "s: max_call_time must be above 0; use None for no limit"),
        (local, "s: `bearer` is an option of servers at a URL, and this one is a program"),
        (remote, "s: `env` is an option of programs, and this server is at a URL"),
    ] {
        let error = Servers::new().add(server.required()).connect().await.unwrap_err();
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Config, expected));
    }
}
