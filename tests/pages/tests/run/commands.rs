//! The commands that pages tell people to run.
//!
//! Each is one that a test runs, or that is known to exist; a command that fits no rule fails the test.

use crate::{files, read};

/// Commands that are not ours. They are shown for people who have that program.
const FOREIGN: [&str; 14] = [
    // A message for a program that the page has the reader write.
    "'{\"jsonrpc\"",
    "apt-get install postgresql",
    "export OPEN_AGENT_POSTGRES_URL=",
    "export OPEN_AGENT_MCP_SERVER=",
    "cargo new ",
    "git clone ",
    "llama-server ",
    "lms ",
    "npx ",
    // Our own program, once it is installed; its crate tests it.
    "oa chat",
    "ollama ",
    "printf ",
    "sudo -u postgres ",
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
            if !command.is_empty() && !command.starts_with('#') {
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

/// The things in the repository that a command may name.
struct Known {
    /// The manifest of the examples, their tests, and the help of `cargo xtask`.
    examples: String,
    example_tests: String,
    xtask: String,
}

impl Known {
    fn new() -> Self {
        let tests = files("examples/tests/run", ".rs");
        let tests = tests.iter().map(|file| read(&format!("examples/tests/run/{file}")));
        Self {
            examples: read("examples/Cargo.toml"),
            example_tests: tests.collect(),
            xtask: read("xtask/src/main.rs"),
        }
    }

    fn check(&self, command: &str) -> Result<(), String> {
        // Variables before the program are its environment.
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
        let words: Vec<&str> = command.split_whitespace().skip_while(is_variable).collect();
        match words[..] {
            ["cargo", "run", "--example", name, ref rest @ ..] => self.example(name, rest),
            ["cargo", "run", "-p", ..] => packages(&words),
            ["cargo", "xtask", name, ..] => {
                let is_there = self.xtask.contains(&format!("\n  {name} "))
                    || self.xtask.contains(&format!("[\"{name}\""));
                is_there.then_some(()).ok_or_else(|| format!("no command {name} of xtask"))
            }
            ["cargo", "xtask"]
            | ["cargo", "test"]
            | ["cargo", "fmt", ..]
            | ["cargo", "doc", ..] => Ok(()),
            ["cargo", "bench" | "test" | "fuzz" | "build" | "check" | "insta", ref rest @ ..] => {
                packages(rest)
            }
            ["cargo", "install" | "publish" | "add" | "deny", ..] => Ok(()),
            _ if command.starts_with(".ci/run") => Ok(()),
            _ if FOREIGN.iter().any(|foreign| command.starts_with(foreign)) => Ok(()),
            _ => Err("no rule for it".to_owned()),
        }
    }

    fn example(&self, name: &str, rest: &[&str]) -> Result<(), String> {
        if name == "NAME" {
            return Ok(());
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
        is_run.then_some(()).ok_or_else(|| "no test runs it".to_owned())
    }
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
fn every_command_of_every_page_is_one_that_works() {
    let known = Known::new();
    let mut count = 0;
    let mut wrong = Vec::new();
    for page in pages() {
        for command in commands(&page) {
            count += 1;
            if let Err(reason) = known.check(&command) {
                wrong.push(format!("{page}: {command}: {reason}"));
            }
        }
    }
    println!("{count} commands");
    assert!(count > 30, "{count}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn wrong_commands_are_found() {
    let known = Known::new();
    for command in [
        "cargo run --example no_such_thing",
        "cargo run --example mcp",
        "cargo run --example query --features mcp",
        "cargo xtask dance",
        "cargo bench -p oa-nothing",
        "rm -r target",
    ] {
        assert!(known.check(command).is_err(), "{command}");
    }
}
