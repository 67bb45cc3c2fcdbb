//! The example `mcp_server`, and the official client of the protocol. That needs npm; in CI on Linux it must be there.

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use services::McpPackages;

use crate::example;

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/oa-mcp/tests");
const ASK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/ask-agent.mjs");

/// The folder with the client; `None`, after one line on standard error, where it cannot be had and is not required.
fn folder() -> Option<OsString> {
    services::or_skip(McpPackages::install()).map(|packages| packages.folder().into())
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
    let Some(folder) = folder() else { return };
    let example = example("mcp_server");
    let program = example.get_program();
    let check = format!("{TESTS}/check-server.mjs");
    let mut scenarios = Command::new("node");
    scenarios.args([&*check, "--sdk"]).arg(&folder).arg("--").arg(program);
    node(&mut scenarios, "16 ok, 0 failed, 0 skipped");
    let mut asks = Command::new("node");
    asks.arg(ASK).arg(&folder).arg("--").arg(program);
    node(&mut asks, "the agent answers, tells its progress and stops");
}

#[test]
fn the_official_client_over_http() {
    let Some(folder) = folder() else { return };
    let listening = Listening::start();
    let check = format!("{TESTS}/check-server.mjs");
    let mut scenarios = Command::new("node");
    scenarios.args([&*check, "--sdk"]).arg(&folder).args(["--url", &listening.url]);
    node(&mut scenarios, "16 ok, 0 failed, 0 skipped");
    let mut asks = Command::new("node");
    asks.arg(ASK).arg(&folder).arg(&listening.url);
    node(&mut asks, "the agent answers, tells its progress and stops");
}
