//! Runs each command of this program that the README, manual and help show.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use oa_testkit::{Reply, Script};

use crate::program::{Home, PROGRAM, text};
use crate::server::Server;

/// Parts of commands in the pages that are replaced here, with their replacements.
const ELSEWHERE: [(&str, &str); 3] = [
    // A pager has no terminal here; the page before it is written all the same.
    (" | man -l -", ""),
    ("$(openssl rand -hex 16)", "0123456789abcdef0123456789abcdef"),
    ("--listen 0.0.0.0:8787", "--listen 127.0.0.1:0"),
];

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns true if a line of a shell runs the program.
fn runs_it(line: &str) -> bool {
    let is_it = |part: &str| {
        let mut words = part.split_whitespace();
        let is_variable = |word: &&str| word.contains('=') && !word.starts_with('-');
        words.find(|word| !is_variable(word)) == Some("oa")
    };
    line.split('|').any(is_it)
}

/// Returns the lines in blocks of shell that run the program.
fn of_page(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let lines = blocks.flat_map(str::lines).filter_map(|line| line.split("  #").next());
    lines.map(str::trim).filter(|line| runs_it(line)).map(str::to_owned).collect()
}

/// Returns the examples of a help text, without what it says of them.
fn of_help(help: &str) -> Vec<String> {
    let Some((_, examples)) = help.split_once("Examples:") else { return Vec::new() };
    let lines = examples.lines().filter_map(|line| line.trim().split("  ").next());
    lines.filter(|line| runs_it(line)).map(str::to_owned).collect()
}

/// Returns all of them, each once.
fn commands(home: &Home) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = root.join("crates/open-agent/src/guide");
    let mut pages = vec![root.join("README.md"), root.join("crates/oa-cli/README.md")];
    for entry in std::fs::read_dir(guide).expect("the manual is there") {
        pages.push(entry.expect("it can be read").path());
    }
    let mut commands: Vec<String> = pages.iter().flat_map(|page| of_page(&read(page))).collect();
    for command in
        ["", "chat", "models", "doctor", "batch", "serve", "mcp", "config", "completions", "man"]
    {
        let arguments: Vec<&str> =
            [command, "--help"].into_iter().filter(|word| !word.is_empty()).collect();
        commands.extend(of_help(&text(&home.run(&arguments, "").stdout)));
    }
    commands.sort();
    commands.dedup();
    commands
}

/// A home with the files that the commands name, and a server of models.
struct Place {
    home: Home,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let (home, server) = (
            Home::new(),
            Server::start(Script::new().models(["qwen3:8b"]).otherwise(Reply::text("Positive."))),
        );
        let write = |path: &str, text: &str| {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("reviews.jsonl", "\"Good.\"\n\"Bad.\"\n");
        write("notes/one.txt", "A note.\n");
        write("notes.txt", "A note.\n");
        write("photo.png", "Any text is a file that can be attached.");
        write("recording.wav", "So is this one.");
        write("src/lib.rs", "\n");
        write(
            "servers.json",
            r#"{ "mcpServers": { "notes": { "command": "oa", "args": ["mcp", "--tools", "files:${HOME}/notes"] } } }"#,
        );
        for folder in [
            ".local/share/bash-completion/completions",
            ".local/share/man/man1",
            ".config/fish/completions",
            ".zfunc",
        ] {
            std::fs::create_dir_all(home.path().join(folder)).expect("a folder");
        }
        Self { home, server }
    }

    fn shell(&self, line: &str) -> Child {
        let elsewhere =
            ELSEWHERE.iter().fold(line.to_owned(), |line, (said, here)| line.replace(said, here));
        let line = elsewhere.replace("http://gpu:8000/v1", &self.server.url());
        let folder = Path::new(PROGRAM).parent().expect("a folder").to_string_lossy().into_owned();
        let mut command = Command::new("sh");
        command.args(["-c", &line]).env_clear().envs(self.home.variables());
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{folder}:{path}")).current_dir(self.home.path());
        command.env("OPEN_AGENT_SERVERS", self.server.url());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("there is a shell")
    }

    /// Runs a command to its end.
    fn run(&self, line: &str) -> Output {
        let mut child = self.shell(line);
        // A program that reads nothing may have ended.
        let _ = child.stdin.take().expect("its input is ours").write_all(b"Hello\n");
        child.wait_with_output().expect("it ends")
    }

    /// Runs a command that serves until it is stopped, and returns what it says first.
    fn serve(&self, line: &str) -> String {
        let listen = if line.contains("--listen") { "" } else { " --listen 127.0.0.1:0" };
        let mut child =
            self.shell(&format!("{}{listen}", line.replace("oa serve", "exec oa serve")));
        let mut said = String::new();
        let errors = child.stderr.take().expect("its errors are ours");
        BufReader::new(errors).read_line(&mut said).expect("it says where it is");
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        said
    }
}

#[test]
fn every_command_of_the_pages_runs() {
    let place = Place::new();
    let commands = commands(&place.home);
    let mut wrong = Vec::new();
    for line in &commands {
        if line.contains("oa serve") {
            let said = place.serve(line);
            if !said.contains(": http://127.0.0.1:") {
                wrong.push(format!("{line}: {said}"));
            }
            continue;
        }
        let output = place.run(line);
        // The doctor says with 1 that this model calls no tools.
        let is_doctor = line.starts_with("oa doctor") && output.status.code() == Some(1);
        if !(output.status.success() || is_doctor) {
            wrong.push(format!("{line}: {output:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(commands.len() >= 20, "{commands:#?}");
    let has = |command: &str| commands.iter().any(|line| line.contains(command));
    for command in ["chat", "models", "doctor", "batch", "serve", "man", "completions"] {
        assert!(has(&format!("oa {command}")), "{command}: {commands:#?}");
    }
    let answers = read(&place.home.path().join("answers.jsonl"));
    assert_eq!(answers.matches("Positive.").count(), 2, "{answers}");
    assert_eq!(read(&place.home.path().join("message.txt")), "Positive.\n");
}

#[test]
fn wrong_commands_do_not_run() {
    let place = Place::new();
    for line in ["oa dance", "oa chat --sesion trip", "oa batch nothing.jsonl -o out.jsonl"] {
        assert!(runs_it(line) && !place.run(line).status.success(), "{line}");
    }
    assert!(!place.serve("oa serve --tols files:.").contains("http://"));
    assert!(!runs_it("cargo run -p oa-cli -- chat") && runs_it("A=b git diff | oa chat"));
}
