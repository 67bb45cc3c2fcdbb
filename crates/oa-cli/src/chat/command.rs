//! Commands at the prompt: lines that begin with `/`.

use crate::likeness::closest;
use crate::style::excerpt;

/// A line of the prompt.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Entered {
    /// A command.
    Command(Command),
    /// Nothing.
    Nothing,
    /// A text for the model.
    Prompt(String),
    /// A mistake, as the person reads it.
    Unknown(String),
}

/// A command.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Command {
    /// Empty the conversation.
    Clear,
    /// Show how full the context is.
    Context,
    /// List all commands.
    Help,
    /// Show the conversation.
    History,
    /// Go on with a saved conversation.
    Load(String),
    /// Show the MCP servers.
    Mcp,
    /// Show or set the mode of permissions.
    Mode(Option<String>),
    /// Show the models, or use one.
    Model(Option<String>),
    /// End the program.
    Quit,
    /// Save the conversation under a name.
    Save(String),
    /// Show or set the system prompt; an empty one is none.
    System(Option<String>),
    /// List the tools.
    Tools,
}

/// The commands, with what follows them and what they do.
pub const COMMANDS: &[(&str, &str, &str)] = &[
    ("clear", "", "empty the conversation"),
    ("context", "", "show how much of the context is used"),
    ("help", "", "show this"),
    ("history", "", "show the conversation"),
    ("load", "NAME", "go on with a saved conversation"),
    ("mcp", "", "show the MCP servers and what they offer"),
    (
        "mode",
        "[MODE]",
        "show or set which tool calls run without a question: ask, reads, all, plan",
    ),
    ("model", "[NAME]", "list the models of the server, or use one"),
    ("quit", "", "end the program; also Ctrl-D, or Ctrl-C twice"),
    ("save", "NAME", "save the conversation, now and after every answer"),
    ("system", "[TEXT]", "show or set the system prompt; `/system none` removes it"),
    ("tools", "", "list the tools that the model may call"),
];

/// Reads a line.
///
/// ```
/// use oa_cli::chat::{Command, Entered, parse};
///
/// assert_eq!(parse("/model qwen3:8b"), Entered::Command(Command::Model(Some("qwen3:8b".to_owned()))));
/// assert_eq!(parse("/modle"), Entered::Unknown("unknown command /modle; did you mean /model?".to_owned()));
/// // A path is no command.
/// assert_eq!(parse("/etc/hosts is what?"), Entered::Prompt("/etc/hosts is what?".to_owned()));
/// ```
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
    if name.contains('/') || name.is_empty() {
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
        Some(_) => Entered::Unknown(format!("/{name} takes nothing behind it")),
    };
    match name {
        "clear" => alone(Command::Clear),
        "context" => alone(Command::Context),
        "help" | "?" => alone(Command::Help),
        "history" => alone(Command::History),
        "load" => wants(Command::Load),
        "mcp" => alone(Command::Mcp),
        "mode" => Entered::Command(Command::Mode(some)),
        "model" => Entered::Command(Command::Model(some)),
        "quit" | "exit" | "q" => alone(Command::Quit),
        "save" => wants(Command::Save),
        "system" => Entered::Command(Command::System(some)),
        "tools" => alone(Command::Tools),
        other => Entered::Unknown(unknown(other)),
    }
}

fn unknown(name: &str) -> String {
    let shown = excerpt(name, 40);
    match closest(name, COMMANDS.iter().map(|(name, _, _)| *name)) {
        Some(closest) => format!("unknown command /{shown}; did you mean /{closest}?"),
        None => format!("unknown command /{shown}; /help lists all"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_command_of_the_list_is_known() {
        for (name, argument, _) in COMMANDS {
            let line = if argument.is_empty() { format!("/{name}") } else { format!("/{name} x") };
            assert!(matches!(parse(&line), Entered::Command(_)), "{line}");
        }
    }

    #[test]
    fn mistakes_are_told() {
        assert_eq!(parse("/save"), Entered::Unknown("/save needs a name: /save NAME".to_owned()));
        assert_eq!(
            parse("/clear all"),
            Entered::Unknown("/clear takes nothing behind it".to_owned())
        );
        assert_eq!(
            parse("/xyzzy"),
            Entered::Unknown("unknown command /xyzzy; /help lists all".to_owned())
        );
        assert_eq!(parse("  "), Entered::Nothing);
        assert_eq!(
            parse("  indented\n  text  \n"),
            Entered::Prompt("  indented\n  text".to_owned())
        );
    }

    proptest! {
        #[test]
        fn what_does_not_begin_with_a_slash_is_for_the_model(text in "[^/ \t\r\n].{0,40}") {
            prop_assume!(!text.trim().is_empty() && !text.trim().starts_with('/'));
            prop_assert_eq!(parse(&text), Entered::Prompt(text.trim_end().to_owned()));
        }
    }
}
