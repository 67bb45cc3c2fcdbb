//! An agent that reads the staged changes of a git repository, proposes a message in the style of its log, and
//! commits after you agree. Everything except reading needs permission.
//!
//!     cargo run --example git_commit_agent
//!     cargo run --example git_commit_agent -- --in ../project --yes

use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

use examples::{Arguments, Model, Terminal, stand_in};
use open_agent::{
    Client, FnTool, Permission, PermissionMode, TerminalPrompt, ToolError, json, tool,
};

const PROMPT: &str = "Commit what is staged, with a message as the others here.";
/// The longest output of git shown to the model, in bytes.
const LONGEST: usize = 8 * 1024;

/// The repository. The model cannot choose another one.
struct Repository(PathBuf);

impl Repository {
    /// Runs git and returns the start of its output. Arguments are passed directly, without a shell.
    fn git(&self, arguments: &[&str]) -> Result<String, ToolError> {
        let mut git = Command::new("git");
        let output = git.arg("-C").arg(&self.0).arg("--no-pager").args(arguments).output()?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr);
            return Err(ToolError::new(format!("git: {}", error.trim())));
        }
        let shown = output.stdout.get(..LONGEST).unwrap_or(&output.stdout);
        let more = if shown.len() < output.stdout.len() { "\n(truncated)" } else { "" };
        Ok(String::from_utf8_lossy(shown).into_owned() + more)
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = Arguments::read(include_str!("git_commit_agent.rs"));
    let folder = arguments.value("--in")?.unwrap_or_else(|| ".".to_owned());
    let yes = arguments.flag("--yes");
    let words = arguments.words()?;
    let prompt = if words.is_empty() { PROMPT } else { &words };
    let repository = Repository(folder.into());
    if repository.git(&["rev-parse", "--git-dir"]).is_err() {
        return Err(format!(
            "{} is not a git repository: name one with --in FOLDER",
            repository.0.display()
        )
        .into());
    }

    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in::commits::answer).await?;
    let person = TerminalPrompt::stdio();
    let options = model
        .options()
        .system_prompt(
            "You write commit messages. First read the status, the staged changes and the log, all at \
             once. Then call commit with a message in the style of the log: what the change does, in \
             one line, and if it needs more, why, below an empty line.",
        )
        .tools([
            reader("git_status", "What is staged, changed and new", &["status", "--short"]),
            reader("git_diff", "The staged changes", &["diff", "--cached", "--patch-with-stat", "--no-ext-diff"]),
            reader("git_log", "The last messages, newest first", &["log", "-n20", "--format=%s"]),
            commit(),
        ])
        .state(repository)
        .auto_execute_tools(true)
        .permission_mode(PermissionMode::AllowReads)
        .can_use_tool(move |request| {
            let person = person.clone();
            async move { if yes { Permission::Allow } else { person.ask(request).await } }
        })
        .build()?;

    terminal.prompt(prompt);
    let mut client = Client::new(options)?;
    client.send(prompt).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }
    terminal.gap();
    Ok(())
}

/// A tool that runs one fixed git command.
fn reader(name: &str, description: &str, arguments: &'static [&'static str]) -> FnTool {
    let builder = tool(name, description).category("read");
    builder.build_blocking_with_context(move |_, cx| {
        let repository = cx.state::<Repository>().ok_or("there is no repository")?;
        Ok(json!(repository.git(arguments)?))
    })
}

fn commit() -> FnTool {
    tool("commit", "Commits what is staged").param("message", "string").build_blocking_with_context(
        |args, cx| {
            let repository = cx.state::<Repository>().ok_or("there is no repository")?;
            let message = args["message"].as_str().unwrap_or_default();
            repository.git(&["commit", "--quiet", &format!("--message={message}")])?;
            Ok(json!(repository.git(&["log", "-n1", "--format=%h %s"])?.trim()))
        },
    )
}
