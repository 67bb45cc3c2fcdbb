//! The programs of the READMEs against a scripted server.

use std::error::Error;
use std::process::Command;

use oa_testkit::{Reply, Script, SocketServer};
use serde_json::json;

use crate::{files, read};

type Result = std::result::Result<(), Box<dyn Error>>;

async fn run(program: &str, script: Script) -> std::result::Result<String, Box<dyn Error>> {
    let server = SocketServer::start(script.strict()).await?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_pages"));
    command.env("PAGES_PROGRAM", program).env("OPEN_AGENT_BASE_URL", server.base_url());
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    server.verify();
    Ok(String::from_utf8(output.stdout)?)
}

fn calculator() -> Script {
    Script::new()
        .reply(Reply::new().call("add", json!({ "a": 25, "b": 17 })))
        .expect("the tool ran", |request| {
            let last = request.messages().last();
            last.is_some_and(|message| message["content"] == r#"{"sum":42.0}"#)
        })
        .reply(Reply::text("It is 42."))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_program_of_each_page_calculates() -> Result {
    assert_eq!(run("readme_0", calculator()).await?, "It is 42.");
    assert_eq!(run("facade_0", calculator()).await?, "It is 42.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_program_of_the_readme_asks_once() -> Result {
    let said = run("readme_1", Script::new().reply(Reply::text("It scatters."))).await?;
    assert!(said.starts_with("It scatters.\nSome(Usage"), "{said}");
    Ok(())
}

/// Programs that their doctest compiles and does not run, and who runs them.
const NOT_RUN: &[(&str, usize, &str)] = &[
    ("README.md", 2, "hidden lines would be seen; run above"),
    ("crates/open-agent/README.md", 1, "the same"),
    ("crates/open-agent/src/guide/durable.md", 4, "needs a server; the example `durable` is run"),
    ("crates/open-agent/src/guide/mcp.md", 1, "starts a program of npm; the example `mcp` is run"),
    (
        "crates/open-agent/src/guide/mcp_server.md",
        2,
        "serve until they are stopped; the example `mcp_server` is run",
    ),
    (
        "crates/open-agent/src/guide/serve.md",
        1,
        "serves until it is stopped; the example `serve` is run",
    ),
    ("crates/open-agent/src/guide/sessions_postgres.md", 1, "needs a database; its example is run"),
];

#[test]
fn no_other_program_goes_unrun() {
    let guide = "crates/open-agent/src/guide";
    let mut pages = vec!["README.md".to_owned(), "MIGRATING.md".to_owned()];
    pages.extend(["README.md", "llms.txt"].map(|name| format!("crates/open-agent/{name}")));
    pages.extend(files(guide, ".md").into_iter().map(|name| format!("{guide}/{name}")));
    for page in pages {
        let text = read(&page);
        let unrun = ["no_run", "ignore", "compile_fail"].map(|word| {
            text.lines().filter(|line| line.starts_with("```") && line.contains(word)).count()
        });
        let known =
            NOT_RUN.iter().find(|(path, ..)| *path == page).map_or(0, |(_, count, _)| *count);
        assert_eq!(unrun.iter().sum::<usize>(), known, "{page}");
    }
}
