//! The example `mcp_server`, and the official client of the protocol. That needs npm; in CI on Linux it must be there.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::example;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/oa-mcp/tests");
const ASK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ask-agent.mjs");
const FOLDER: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/everything");

/// Installs the client once; false, after one line on standard error, where that cannot be and it is not required.
fn is_installed() -> bool {
    static INSTALLED: OnceLock<Result<(), String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(|| {
        let mut install = Command::new(format!("{TESTS}/start-everything.sh"));
        install.args([FOLDER, "install"]);
        // Without the registry, npm would try for six minutes.
        install.env("npm_config_fetch_retries", "1").env("npm_config_fetch_timeout", "20000");
        match install.output() {
            Ok(output) if output.status.success() => Ok(()),
            _ => Err("the official client of MCP needs Node, npm and its registry".to_owned()),
        }
    });
    services::or_skip(installed.clone().map_err(services::Unavailable::Missing)).is_some()
}

/// The example at a URL; it ends with this.
struct Listening {
    child: Child,
    url: String,
}

impl Listening {
    fn start() -> Self {
        let mut program = example("mcp_server");
        program.args(["--http", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = program.spawn().expect("it is built");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("a line");
        Self { child, url: line.trim().to_owned() }
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn node(program: &mut Command, expected: &str) {
    let output = program.output().expect("node was there for npm");
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(expected), "{said}{errors}");
}

#[test]
fn the_official_client_over_stdio() {
    if !is_installed() {
        return;
    }
    let example = example("mcp_server");
    let program = example.get_program();
    let check = format!("{TESTS}/check-server.mjs");
    let mut scenarios = Command::new("node");
    scenarios.args([&*check, "--sdk", FOLDER, "--"]).arg(program);
    node(&mut scenarios, "16 ok, 0 failed, 0 skipped");
    let mut asks = Command::new("node");
    asks.args([ASK, FOLDER, "--"]).arg(program);
    node(&mut asks, "the agent answers, tells its progress and stops");
}

#[test]
fn the_official_client_over_http() {
    if !is_installed() {
        return;
    }
    let listening = Listening::start();
    let check = format!("{TESTS}/check-server.mjs");
    let mut scenarios = Command::new("node");
    scenarios.args([&*check, "--sdk", FOLDER, "--url", &listening.url]);
    node(&mut scenarios, "16 ok, 0 failed, 0 skipped");
    let mut asks = Command::new("node");
    asks.args([ASK, FOLDER, &listening.url]);
    node(&mut asks, "the agent answers, tells its progress and stops");
}
