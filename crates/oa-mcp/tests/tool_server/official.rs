//! The official TypeScript client against the tools that are offered. Needs npm; in CI on Linux it must be there.

use std::process::Stdio;

use tokio::process::Command;
use tokio::sync::OnceCell;

use crate::support::{OFFERED, Served};
use crate::tools;

const INSTALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/start-everything.sh");
const CHECK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check-server.mjs");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/everything");

/// Installs the client once; false, after one line on standard error, where that cannot be and it is not required.
async fn is_installed() -> bool {
    static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();
    let installed = INSTALLED.get_or_init(install).await;
    services::or_skip(installed.clone().map_err(services::Unavailable::Missing)).is_some()
}

async fn install() -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    if !npm.status().await.is_ok_and(|status| status.success()) {
        return Err("the official client of MCP needs Node and npm, which are not installed".into());
    }
    let mut install = Command::new(INSTALL);
    install.args([FOLDER, "install"]);
    // Without the registry, npm would try for six minutes.
    install.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
    let output = install.output().await.map_err(|error| format!("{INSTALL}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let why = said.lines().find(|line| line.contains(" error ")).unwrap_or("no word of it");
    Err(format!("the official client of MCP cannot be installed from npm's registry: {why}"))
}

/// Runs the scenarios; all must be `ok`.
async fn check(target: &[&str]) {
    let output =
        Command::new("node").arg(CHECK).args(["--sdk", FOLDER]).args(target).output().await;
    let output = output.unwrap_or_else(|error| panic!("{error}"));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("16 ok, 0 failed, 0 skipped"), "{said}");
}

#[tokio::test]
async fn the_official_client_over_stdio() {
    if is_installed().await {
        check(&["--", OFFERED]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_official_client_over_http() {
    if !is_installed().await {
        return;
    }
    let served = Served::start(tools::server().unwrap().http_service()).await;
    check(&["--url", &format!("http://{}/mcp", served.address)]).await;
}
