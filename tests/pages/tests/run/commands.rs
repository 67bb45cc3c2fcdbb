//! The commands that the pages show.
//!
//! Each is run here, or by another test or a step of the gate, or it has a reason why it is not; a command that fits no rule
//! fails the test.

use std::process::Command;

use crate::{files, read, root};

/// Commands that are not ours. They are shown for people who have that program.
const FOREIGN: [&str; 14] = [
    // A message for a program that the page has the reader write.
    "'{\"jsonrpc\"",
    "apt-get install postgresql",
    "export OPEN_AGENT_POSTGRES_URL=",
    "export OPEN_AGENT_MCP_SERVER=",
    "git clone ",
    "llama-server ",
    "lms ",
    "npx ",
    "ollama ",
    "printf ",
    // The environment of the real server that the tests use.
    "python3 -m venv ",
    "sudo -u postgres ",
    "venv/bin/",
    "vllm serve ",
];

/// Returns a page's commands: the lines of its blocks of shell, and what it quotes in its text.
fn commands(page: &str) -> Vec<String> {
    let text = read(page);
    let mut found = Vec::new();
    let (mut in_shell, mut in_block) = (false, false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        if let Some(kind) = trimmed.strip_prefix("```") {
            in_shell = !in_block && matches!(kind, "sh" | "bash" | "console");
            in_block = !in_block;
        } else if in_shell {
            let command = trimmed.split("  #").next().unwrap_or_default().trim();
            // A quotation may take several lines.
            let is_open = |last: &&mut String| last.matches('\'').count() % 2 == 1;
            if let Some(last) = found.last_mut().filter(is_open) {
                last.push(' ');
                last.push_str(command);
            } else if !command.is_empty() && !command.starts_with('#') {
                found.push(command.to_owned());
            }
        } else if !in_block {
            let quoted =
                line.split('`').skip(1).step_by(2).filter(|code| code.starts_with("cargo "));
            found.extend(quoted.map(str::to_owned));
        }
    }
    found
}

fn pages() -> Vec<String> {
    let guide = "crates/open-agent/src/guide";
    let mut pages: Vec<String> =
        ["README.md", "MIGRATING.md", "CONTRIBUTING.md", "ARCHITECTURE.md"]
            .map(str::to_owned)
            .into();
    pages.extend(files("crates", "").into_iter().map(|name| format!("crates/{name}/README.md")));
    pages.extend(files(guide, ".md").into_iter().map(|name| format!("{guide}/{name}")));
    pages
}

/// The reason to believe in a command.
#[derive(Debug, PartialEq)]
enum Held {
    /// It is run here, with these words.
    Run(Vec<String>),
    /// A test or a step of the gate runs it; the text that shows so was found.
    Tested,
    /// It is not run, for this reason.
    Unrun(&'static str),
}

/// Commands of the workspace that are not run as a whole, and why.
const UNRUN: [(&str, &str); 18] = [
    ("cargo add", "changes the reader's manifest, from a registry that has none of this yet"),
    ("cargo bench", "takes minutes; clippy compiles all benches"),
    ("cargo build --release", "takes minutes, for a program that the page has the reader write"),
    ("cargo check", "clippy does more"),
    ("cargo doc", "a step of the gate, with other words"),
    ("cargo fmt", "a step of the gate, with other words"),
    ("cargo install", "a step of the gate, with other words"),
    ("cargo insta", "asks a person"),
    ("cargo new", "makes a package for the reader"),
    ("cargo test", "the gate runs all tests"),
    ("cargo tree", "counts the reader's crates; the gate counts ours"),
    ("cargo xtask api --write", "changes the tree; the gate compares what it would write"),
    ("cargo xtask bench", "takes an hour, with release builds of other crates"),
    ("cargo xtask ci", "is the gate, which runs this test"),
    (
        "cargo xtask minimal",
        "asks the registry, and compiles everything once more; a job of the workflow runs it",
    ),
    (
        "cargo xtask publish",
        "asks the registry; the gate packs the same crates, and its rules have tests",
    ),
    ("cargo xtask services", "leaves servers running; the gate starts and stops each of them"),
    (".ci/run", "installs what is missing, and is the gate"),
];

/// The things in the repository that a command may name.
struct Known {
    /// The manifest of the examples, their tests, those of the program `oa` and of durable turns, and the gate.
    examples: String,
    example_tests: String,
    oa_tests: String,
    durable_tests: String,
    gate: String,
}

impl Known {
    fn new() -> Self {
        let all = |folder: &str| -> String {
            let tests = files(folder, ".rs");
            tests.iter().map(|file| read(&format!("{folder}/{file}"))).collect()
        };
        Self {
            examples: read("examples/Cargo.toml"),
            example_tests: all("examples/tests/run"),
            oa_tests: all("crates/oa-cli/tests/suite"),
            durable_tests: all("crates/oa-restate/tests/suite"),
            gate: read("xtask/src/ci.rs"),
        }
    }

    fn check(&self, command: &str) -> Result<Held, String> {
        // Variables before the program are its environment.
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
        let words: Vec<&str> = command.split_whitespace().skip_while(is_variable).collect();
        let found = |is_there: bool, missing: &str| {
            is_there.then_some(Held::Tested).ok_or_else(|| missing.to_owned())
        };
        let unrun = || UNRUN.iter().find(|(start, _)| words.join(" ").starts_with(start));
        match words[..] {
            ["cargo", "run", "--example", name, ref rest @ ..] => self.example(name, rest),
            ["cargo", "run", "-p", "oa-cli", "--", name, "--stand-in"]
            | ["oa", name, "--stand-in"]
            | ["oa", name] => {
                let runs = self.oa_tests.contains(&format!("\"{name}\""));
                found(runs && self.oa_tests.contains("--stand-in"), "no test of oa runs it")
            }
            // Its tests find these themselves, on the same pages.
            _ if command.split(" | ").any(|part| part.starts_with("oa ")) => {
                let name = "every_command_of_the_pages_runs";
                found(self.oa_tests.contains(&format!("fn {name}()")), "no test of oa runs it")
            }
            // The test finds these itself, on the same page.
            ["curl", address, ..] if address.starts_with("localhost:8080/Agent/") => {
                let name = "fn guide_requests_are_answered()";
                found(self.durable_tests.contains(name), "no test sends it")
            }
            // Short ones that change nothing.
            ["cargo", "xtask"] => Ok(Held::Run(Vec::new())),
            ["cargo", "xtask", "circles", "CRATE"] => Ok(xtask(&["circles", "oa-sse"])),
            ["cargo", "xtask", "semver"] => Ok(xtask(&["semver"])),
            ["cargo", "xtask", name] if self.gate.contains(&format!("step(\"{name}\", ")) => {
                Ok(Held::Tested)
            }
            _ if FOREIGN.iter().any(|foreign| command.starts_with(foreign)) => {
                Ok(Held::Unrun("a program of others"))
            }
            _ => {
                let (_, reason) = unrun().ok_or("no rule for it")?;
                packages(&words)?;
                Ok(Held::Unrun(reason))
            }
        }
    }

    fn example(&self, name: &str, rest: &[&str]) -> Result<Held, String> {
        if name == "NAME" {
            return Ok(Held::Unrun("a pattern; each example has a test"));
        }
        let section = self
            .examples
            .split("[[example]]")
            .find(|part| part.contains(&format!("name = \"{name}\"\n")));
        let section = section.ok_or("there is no such example")?;
        let needed = section
            .split_once("required-features = [\"")
            .and_then(|(_, rest)| rest.split_once('"'));
        let features =
            rest.iter().position(|word| *word == "--features").and_then(|at| rest.get(at + 1));
        if needed.map(|(name, _)| name) != features.copied() {
            return Err(format!("features {features:?}, but it needs {needed:?}"));
        }
        let is_run = self.example_tests.contains(&format!("example(\"{name}\")"));
        is_run.then_some(Held::Tested).ok_or_else(|| "no test runs it".to_owned())
    }
}

fn xtask(words: &[&str]) -> Held {
    Held::Run(words.iter().map(|word| (*word).to_owned()).collect())
}

/// Runs a command of `cargo xtask`, in the profile of this test, whose crates are built by now.
fn run(words: &[String]) -> Result<(), String> {
    let cargo = ["run", "--quiet", "--profile", "test", "-p", "xtask", "--"];
    let output = Command::new(env!("CARGO")).args(cargo).args(words).current_dir(root()).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && !said.is_empty() {
        return Ok(());
    }
    Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Checks that the packages after `-p` exist.
fn packages(words: &[&str]) -> Result<(), String> {
    let crates = files("crates", "");
    let names = words.windows(2).filter(|pair| pair[0] == "-p").map(|pair| pair[1]);
    for name in names {
        let is_other =
            ["suite", "examples", "services", "migrating", "pages", "xtask", "X", "NAME"]
                .contains(&name);
        if !is_other && !crates.iter().any(|known| known == name) {
            return Err(format!("no package {name}"));
        }
    }
    Ok(())
}

#[test]
fn documented_commands_are_run_or_explained() {
    let known = Known::new();
    let (mut runs, mut tested, mut unrun) = (Vec::new(), 0, 0);
    let mut wrong = Vec::new();
    for page in pages() {
        for command in commands(&page) {
            match known.check(&command) {
                Ok(Held::Run(words)) => runs.push(words),
                Ok(Held::Tested) => tested += 1,
                Ok(Held::Unrun(reason)) => {
                    println!("not run, {reason}: {command}");
                    unrun += 1;
                }
                Err(reason) => wrong.push(format!("{page}: {command}: {reason}")),
            }
        }
    }
    runs.sort();
    runs.dedup();
    for words in &runs {
        if let Err(said) = run(words) {
            wrong.push(format!("cargo xtask {}: {said}", words.join(" ")));
        }
    }
    println!("{} run here, {tested} by other tests, {unrun} not", runs.len());
    assert!(runs.len() >= 3 && tested >= 15, "{} and {tested}", runs.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn wrong_commands_are_found() {
    let known = Known::new();
    for command in [
        "cargo run --example no_such_thing",
        "cargo run --example mcp",
        "cargo run --example query --features mcp",
        "cargo run -p oa-cli -- dance --stand-in",
        "cargo xtask dance",
        "cargo bench -p oa-nothing",
        "oa dance",
        "rm -r target",
    ] {
        assert!(known.check(command).is_err(), "{command}");
    }
}
