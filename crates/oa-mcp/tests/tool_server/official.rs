//! The official TypeScript clients against the served tools. Needs npm; CI on Linux requires it.

use services::McpPackages;
use tokio::process::Command;

use crate::support::{OFFERED, Served};
use crate::tools;

const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check-server.mjs");
/// With the client of the version 2026-07-28.
const CHECK_STATELESS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check-stateless.mjs");

/// Runs the scenarios; all must be `ok`.
async fn check(script: &str, target: &[&str], count: usize) {
    let Some(packages) = services::or_skip(McpPackages::install()) else { return };
    let mut node = Command::new("node");
    let output = node.arg(script).arg("--sdk").arg(packages.folder()).args(target).output().await;
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains(&format!("{count} ok, 0 failed")), "{said}");
}

#[tokio::test]
async fn official_client_over_stdio() {
    check(CHECK, &["--", OFFERED], 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_client_over_http() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    check(CHECK, &["--url", &format!("http://{}/mcp", served.address)], 16).await;
}

#[tokio::test]
async fn official_stateless_client_over_stdio() {
    check(CHECK_STATELESS, &["--", OFFERED], 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn official_stateless_client_over_http() {
    let served = Served::start(tools::server().unwrap().http_service()).await;
    let url = format!("http://{}/mcp", served.address);
    check(CHECK_STATELESS, &["--url", &url], 16).await;
}
