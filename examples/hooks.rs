//! Hooks around an agent that works with files: an audit log, a gate, a sandbox, redacted results, and a check
//! of prompts. Each is a separate set of hooks; `merge` combines them.
//!
//!     cargo run --example hooks

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use examples::{Arguments, Chat, Model, Terminal};
use oa_testkit::Reply;
use open_agent::{Client, ErrorKind, FnTool, HookDecision, Hooks, json, tool};

const QUESTION: &str =
    "Read settings.toml, write \"configured\" to /etc/motd, and delete settings.toml.";
const SECRET_QUESTION: &str = "My password is swordfish, please remember it.";

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    Arguments::none(include_str!("hooks.rs"))?;
    let mut terminal = Terminal::new();
    let model = Model::find(&mut terminal, stand_in).await?;
    let files = Files::default();
    files
        .lock()
        .insert("settings.toml".to_owned(), "color = \"blue\"\nkey = \"s3cr3t\"".to_owned());
    let log = Log::default();

    // Hooks run in this order, and the first decision wins. The log decides nothing, so it comes first and sees
    // every call.
    let hooks = audit(&log).merge(gate()).merge(sandbox()).merge(discretion()).merge(prompts());
    let options = model
        .options()
        .system_prompt("You work on files with the tools. Call all that you need at once.")
        .tools([read_file(), write_file(), delete_file()])
        .state(files.clone())
        .auto_execute_tools(true)
        .hooks(hooks)
        .build()?;

    let mut client = Client::new(options)?;
    terminal.prompt(QUESTION);
    client.send(QUESTION).await?;
    while let Some(block) = client.receive().await? {
        terminal.block(&block);
    }

    terminal.prompt(SECRET_QUESTION);
    match client.send(SECRET_QUESTION).await {
        Err(error) if error.kind() == ErrorKind::Blocked => {
            terminal.line(&format!("Not sent: {error}"));
        }
        other => other?,
    }

    terminal.title("Files");
    for (path, text) in files.lock().iter() {
        terminal.line(&format!("  {path:<20} {text:?}"));
    }
    terminal.title("Audit log");
    for line in log.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        terminal.line(&format!("  {line}"));
    }
    Ok(())
}

type Log = Arc<Mutex<Vec<String>>>;

/// Logs calls and their results.
fn audit(log: &Log) -> Hooks {
    fn write(log: &Log, line: String) {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    let (before, after) = (Arc::clone(log), Arc::clone(log));
    Hooks::new()
        .add_pre_tool_use(move |event| {
            write(&before, format!("{} {}", event.tool_name, event.tool_input));
            async { None }
        })
        .add_post_tool_use(move |event| {
            write(&after, format!("{} {}", event.tool_name, event.outcome));
            async { None }
        })
}

/// Blocks all deletions. The model sees the reason.
fn gate() -> Hooks {
    Hooks::new()
        .add_pre_tool_use(|_| async { Some(HookDecision::block("only people delete files")) })
        .for_tools(["delete_file"])
        .with_timeout(Duration::from_secs(1))
}

/// Redirects writes into one folder. The model does not see the change.
fn sandbox() -> Hooks {
    Hooks::new()
        .add_pre_tool_use(|event| async move {
            let path = event.tool_input["path"].as_str()?;
            if path.split('/').any(|part| part == "..") {
                return Some(HookDecision::block("a path must not contain `..`"));
            }
            let inside = format!("sandbox/{}", path.trim_start_matches('/'));
            let mut input = event.tool_input;
            input["path"] = json!(inside);
            Some(HookDecision::modify_input(input, "writes stay in the sandbox"))
        })
        .for_tools(["write_file"])
}

/// Hides the values of keys from the model.
fn discretion() -> Hooks {
    Hooks::new().add_post_tool_use(|event| async move {
        let text = event.tool_result.as_str()?;
        let hidden: Vec<_> = text
            .lines()
            .map(|line| if line.starts_with("key") { "key = \"(hidden)\"" } else { line })
            .collect();
        let hidden = hidden.join("\n");
        (hidden != text).then(|| HookDecision::modify_result(json!(hidden), "keys stay here"))
    })
}

/// Blocks prompts that contain passwords.
fn prompts() -> Hooks {
    Hooks::new().add_user_prompt_submit(|event| async move {
        event.prompt.contains("password").then(|| HookDecision::block("it contains a password"))
    })
}

/// Files in memory, so that this example changes nothing.
#[derive(Clone, Default)]
struct Files(Arc<Mutex<BTreeMap<String, String>>>);

impl Files {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read_file() -> FnTool {
    tool("read_file", "Reads a file").param("path", "string").build_with_context(
        |args, cx| async move {
            let files = cx.state::<Files>().ok_or("there are no files")?;
            let path = args["path"].as_str().unwrap_or_default();
            let text = files.lock().get(path).cloned().ok_or("there is no such file")?;
            Ok(json!(text))
        },
    )
}

fn write_file() -> FnTool {
    let builder =
        tool("write_file", "Writes a file").param("path", "string").param("text", "string");
    builder.build_with_context(|args, cx| async move {
        let files = cx.state::<Files>().ok_or("there are no files")?;
        let argument = |name: &str| args[name].as_str().unwrap_or_default().to_owned();
        files.lock().insert(argument("path"), argument("text"));
        Ok(json!("written"))
    })
}

fn delete_file() -> FnTool {
    tool("delete_file", "Deletes a file").param("path", "string").build_with_context(
        |args, cx| async move {
            let files = cx.state::<Files>().ok_or("there are no files")?;
            files.lock().remove(args["path"].as_str().unwrap_or_default());
            Ok(json!("deleted"))
        },
    )
}

/// The stand-in without a model: two rules.
fn stand_in(chat: &Chat<'_>) -> Reply {
    let calls: Vec<_> = chat.calls().collect();
    if calls.is_empty() {
        return Reply::text("Three calls at once.")
            .call("read_file", json!({ "path": "settings.toml" }))
            .call("write_file", json!({ "path": "/etc/motd", "text": "configured" }))
            .call("delete_file", json!({ "path": "settings.toml" }));
    }
    let told = calls.iter().map(|call| match &call.result {
        Ok(result) => format!("{} returned {result}.", call.name),
        Err(error) => format!("{} did not work: {error}.", call.name),
    });
    Reply::text(told.collect::<Vec<_>>().join(" "))
}
