//! Commands at the prompt: lines that begin with `/`.

use oa_markdown::excerpt;

use crate::likeness::closest;

/// A line of the prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Entered {
    /// A command.
    Command(Command),
    /// Nothing.
    Nothing,
    /// A prompt for the model.
    Prompt(String),
    /// An unknown or malformed command, with a message for the user.
    Unknown(String),
}

/// A command.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// List the files that go with the next prompt, or add some; `none` removes them.
    Attach(Option<String>),
    /// Empty the conversation.
    Clear,
    /// Show how full the context is.
    Context,
    /// List all commands.
    Help,
    /// Show the conversation.
    History,
    /// List the saved conversations, or continue one.
    Load(Option<String>),
    /// Show the MCP servers.
    Mcp,
    /// Show or set the permission mode.
    Mode(Option<String>),
    /// List the models, or switch to one.
    Model(Option<String>),
    /// End the program.
    Quit,
    /// Send the last prompt again.
    Retry,
    /// Save the conversation under a name.
    Save(String),
    /// Show or set the system prompt; `none` removes it.
    System(Option<String>),
    /// Show or set how much the model thinks.
    Thinking(Option<String>),
    /// List the tools.
    Tools,
    /// Remove the last prompt and its answer.
    Undo,
}

/// The commands: name, argument, and description.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("attach", "[FILE]", "list or add files for the next prompt; `/attach none` removes them"),
    ("clear", "", "empty the conversation"),
    ("context", "", "show how much of the context is used"),
    ("help", "", "list the commands and the keys"),
    ("history", "", "show the conversation"),
    ("load", "[NAME]", "list the saved conversations, or continue one"),
    ("mcp", "", "show the MCP servers and what they offer"),
    ("mode", "[MODE]", "show or set which tool calls run without asking: ask, reads, all, plan"),
    ("model", "[NAME]", "list the server's models, or switch to one"),
    ("quit", "", "end the program; also Ctrl-D, or Ctrl-C twice"),
    ("retry", "", "send the last prompt again, in place of its answer"),
    ("save", "NAME", "save the conversation, now and after every answer"),
    ("system", "[TEXT]", "show or set the system prompt; `/system none` removes it"),
    (
        "thinking",
        "[AMOUNT]",
        "show or set how much the model thinks: on, off, low, medium, high, ...",
    ),
    ("tools", "", "list the tools that the model may call"),
    ("undo", "", "remove the last prompt and its answer from the conversation"),
];

/// The keys and their descriptions.
pub const KEYS: &[(&str, &str)] = &[
    ("Alt-Enter", "begins a new line; pasted text may have several lines"),
    ("Up, Ctrl-R", "go back in the history of prompts, and search it"),
    ("Tab", "completes a command, and after `/attach` the name of a file"),
    ("Ctrl-C", "stops the answer or the command; twice at an empty prompt, ends the program"),
    ("Ctrl-Z", "suspends the program, and `fg` continues it (not on Windows)"),
    ("typing", "while the model works, sends it a message before its next step; commands wait"),
];

/// Returns the reference of commands and keys as Markdown tables.
#[must_use]
pub fn reference() -> String {
    let mut tables = String::from("| command | does |\n| --- | --- |\n");
    for (name, argument, about) in COMMANDS {
        let command = format!("/{name} {argument}");
        tables.push_str(&format!("| `{}` | {about} |\n", command.trim_end()));
    }
    tables.push_str("\n| key | does |\n| --- | --- |\n");
    for (key, about) in KEYS {
        tables.push_str(&format!("| {key} | {about} |\n"));
    }
    tables
}

/// Parses a line. It is a command if it begins with `/` and letters or digits, so a path or the comment of a program is
/// a prompt. Behind a space, only known words are commands.
#[must_use]
pub fn parse(line: &str) -> Entered {
    let text = line.trim();
    if text.is_empty() {
        return Entered::Nothing;
    }
    let Some(command) = text.strip_prefix('/') else {
        return Entered::Prompt(line.trim_end().to_owned());
    };
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let is_word = |name: &str| name == "?" || name.chars().all(char::is_alphanumeric);
    if name.is_empty() || !is_word(name) {
        return Entered::Prompt(line.trim_end().to_owned());
    }
    let rest = rest.trim();
    let some = (!rest.is_empty()).then(|| rest.to_owned());
    let wants = |make: fn(String) -> Command| match &some {
        Some(rest) => Entered::Command(make(rest.clone())),
        None => Entered::Unknown(format!("/{name} needs a name: /{name} NAME")),
    };
    let alone = |command: Command| match &some {
        None => Entered::Command(command),
        Some(_) => Entered::Unknown(format!("/{name} takes no argument")),
    };
    match name {
        "attach" => Entered::Command(Command::Attach(some)),
        "clear" => alone(Command::Clear),
        "context" => alone(Command::Context),
        "help" | "?" => alone(Command::Help),
        "history" => alone(Command::History),
        "load" => Entered::Command(Command::Load(some)),
        "mcp" => alone(Command::Mcp),
        "mode" => Entered::Command(Command::Mode(some)),
        "model" => Entered::Command(Command::Model(some)),
        "quit" | "exit" | "q" => alone(Command::Quit),
        "retry" => alone(Command::Retry),
        "save" => wants(Command::Save),
        "system" => Entered::Command(Command::System(some)),
        "thinking" => Entered::Command(Command::Thinking(some)),
        "tools" => alone(Command::Tools),
        "undo" => alone(Command::Undo),
        _ if line.starts_with(' ') => Entered::Prompt(line.trim_end().to_owned()),
        other if some.is_some() => Entered::Unknown(format!("{}{SPACE}", unknown(other))),
        other => Entered::Unknown(unknown(other)),
    }
}

/// The way to send what looks like a command.
const SPACE: &str = "; begin with a space to send the line to the model";

fn unknown(name: &str) -> String {
    let shown = excerpt(name, 40);
    match closest(name, COMMANDS.iter().map(|(name, _, _)| *name)) {
        Some(closest) => format!("unknown command /{shown}; did you mean /{closest}?"),
        None => format!("unknown command /{shown}; /help lists all"),
    }
}

#[cfg(test)]
mod tests;
