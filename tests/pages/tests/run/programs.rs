//! The programs of the READMEs against a scripted server.

use std::error::Error;
use std::process::Command;

use oa_testkit::{Reply, Script, SocketServer};
use serde_json::json;

use crate::{files, read, root};

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
async fn first_programs_calculate_the_sum() -> Result {
    assert_eq!(run("readme_0", calculator()).await?, "It is 42.");
    assert_eq!(run("facade_0", calculator()).await?, "It is 42.");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn second_readme_program_prints_an_answer() -> Result {
    let said = run("readme_1", Script::new().reply(Reply::text("It scatters."))).await?;
    assert!(said.starts_with("It scatters.\nSome(Usage"), "{said}");
    Ok(())
}

/// The pages whose doctests compile programs without running them: the number of those programs, and the reason.
const NOT_RUN: &[(&str, usize, &str)] = &[
    ("README.md", 2, "hidden lines would be seen; run above"),
    ("crates/open-agent/README.md", 1, "the same"),
    ("crates/oa-mcp/README.md", 1, "starts a program of npm; the example `mcp` is run"),
    ("crates/oa-restate/README.md", 1, "needs a server; the example `durable` is run"),
    ("crates/oa-serve/README.md", 1, "serves until it is stopped; the example `serve` is run"),
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

/// The same for the docs of crates.
const NOT_RUN_IN_DOCS: &[(&str, usize, &str)] = &[
    ("crates/oa-mcp/src/lib.rs", 1, "starts a program of npm"),
    ("crates/oa-mcp/src/library.rs", 1, "needs a server"),
    ("crates/oa-mcp/src/tool_server.rs", 1, "reads standard input"),
    ("crates/oa-restate/src/sessions.rs", 1, "needs a server"),
    ("crates/oa-restate/src/worker.rs", 1, "needs a server"),
    ("crates/oa-serve/src/lib.rs", 1, "serves until it is stopped"),
];

/// Returns the number of programs that doctests do not run, in a page or in the docs of a source file.
fn unrun(text: &str, words: &[&str]) -> usize {
    let fences = text.lines().map(|line| line.trim_start_matches(['/', '!', ' ']));
    let fences = fences.filter_map(|line| line.strip_prefix("```"));
    fences.filter(|kind| words.iter().any(|word| kind.contains(word))).count()
}

fn known(list: &[(&str, usize, &str)], path: &str) -> usize {
    list.iter().find(|(known, ..)| *known == path).map_or(0, |(_, count, _)| *count)
}

#[test]
fn page_programs_run_unless_listed() {
    let guide = "crates/open-agent/src/guide";
    let mut pages = vec!["README.md".to_owned(), "MIGRATING.md".to_owned()];
    pages.push("crates/open-agent/llms.txt".to_owned());
    pages.extend(files("crates", "").into_iter().map(|name| format!("crates/{name}/README.md")));
    pages.extend(files(guide, ".md").into_iter().map(|name| format!("{guide}/{name}")));
    for page in pages {
        let count = unrun(&read(&page), &["no_run", "ignore", "compile_fail"]);
        assert_eq!(count, known(NOT_RUN, &page), "{page}");
    }
}

#[test]
fn doc_programs_run_unless_listed() {
    let mut folders: Vec<String> =
        files("crates", "").into_iter().map(|name| format!("crates/{name}/src")).collect();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for name in files(&folder, "") {
            let path = format!("{folder}/{name}");
            if root().join(&path).is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") {
                seen += 1;
                // What must not compile is run by its doctest in the only way that it can be.
                let count = unrun(&read(&path), &["no_run", "ignore"]);
                assert_eq!(count, known(NOT_RUN_IN_DOCS, &path), "{path}");
            }
        }
    }
    assert!(seen > 300, "{seen} files");
}

/// The lists above have no entry that is out of date.
#[test]
fn listed_exceptions_exist() {
    for (path, count, reason) in NOT_RUN.iter().chain(NOT_RUN_IN_DOCS) {
        assert_eq!(
            unrun(&read(path), &["no_run", "ignore", "compile_fail"]),
            *count,
            "{path}: {reason}"
        );
    }
}
