//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::settings::SETTINGS;

/// Chat with local models, give them tools, look at their servers.
#[derive(Debug, Parser)]
#[command(name = "oa", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  oa chat --stand-in                try everything without a model server
  oa chat                           talk with the model of a server on this machine
  oa chat --tools files:.           with tools that read the files here
  git diff | oa chat \"Review this\"  in a pipe: plain text, and an exit status
  oa doctor                         what the server and the model can do
  oa config                         what is set, and where

Each setting is a flag, a variable of the environment, or a line of the configuration file; \
the first of these decides. `oa config` lists all.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Talk with a model.
    #[command(after_help = CHAT_EXAMPLES)]
    Chat(ChatArgs),
    /// List the models of all servers that answer.
    Models(ModelsArgs),
    /// Find out what a server and a model can do, by about a dozen short requests.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Answer many prompts, from a file into a file.
    #[command(after_help = BATCH_EXAMPLES)]
    Batch(BatchArgs),
    /// Serve an agent over HTTP, with a page to chat with it.
    #[cfg(feature = "serve")]
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Offer tools to programs that speak the Model Context Protocol, over standard input and output.
    #[cfg(feature = "mcp")]
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(McpArgs),
    /// Show what is set, and where; secrets are masked.
    Config(ConfigArgs),
    /// Write completions for a shell to standard output.
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Write a manual page to standard output.
    #[command(after_help = MAN_EXAMPLES)]
    Man {
        /// The command that it is about; none for the program.
        command: Option<String>,
    },
}

const CHAT_EXAMPLES: &str = "\
At the prompt:
  /help lists the commands and the keys.
  Ctrl-C stops the answer. A line sent meanwhile reaches the model before its next step.

Examples:
  oa chat --session trip                a conversation that is kept, and goes on next time
  oa chat --mcp servers.json            with the tools of MCP servers
  oa chat --tools files:src --mode ask  with tools that read files, each call asked about
  echo \"Why is the sky blue?\" | oa chat > answer.md";

const DOCTOR_EXAMPLES: &str = "\
Exit status: 0 if everything works, 1 if something does not.

Examples:
  oa doctor --stand-in          see a report without a model server
  oa doctor --model qwen3:8b
  oa doctor --json > report.json";

const BATCH_EXAMPLES: &str = "\
Each line of the input is a prompt: a JSON text, or an object with \"prompt\" and, if you like, \"id\". \
Each line of the output is an object with \"index\", \"id\", and \"text\" or \"error\", in the order of the input.

Replies are kept in a log beside the output. If the program stops, run the same command again: \
only what is missing is asked.

Examples:
  oa batch reviews.jsonl -o answers.jsonl --system \"Is it positive or negative? One word.\"
  oa batch reviews.jsonl -o answers.jsonl --at-once 32";

#[cfg(feature = "serve")]
const SERVE_EXAMPLES: &str = "\
Only this machine is served, unless a token is set: `token` in the configuration file, or OPEN_AGENT_TOKEN.

Examples:
  oa serve --stand-in                     look at it without a model server
  oa serve --tools files:.                an agent that reads the files here
  oa serve --listen 9000                  on another port
  OPEN_AGENT_TOKEN=$(openssl rand -hex 16) oa serve --listen 0.0.0.0:8787";

#[cfg(feature = "mcp")]
const MCP_EXAMPLES: &str = "\
The tools are those of --tools and of the servers of --mcp; --stand-in has two to try. Nobody is asked here: the \
program on the other side asks.

In the configuration of an editor, or for `oa chat --mcp`:
  { \"mcpServers\": { \"notes\": {
    \"command\": \"oa\", \"args\": [\"mcp\", \"--tools\", \"files:/path/to/notes\"] } } }";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oa completions bash > ~/.local/share/bash-completion/completions/oa
  oa completions zsh > ~/.zfunc/_oa
  oa completions fish > ~/.config/fish/completions/oa.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  oa man | man -l -
  oa man chat > ~/.local/share/man/man1/oa-chat.1";

/// The port of `oa serve` without one.
#[cfg(feature = "serve")]
pub(crate) const PORT: u16 = 8787;

/// The settings that act on a command. The others are flags of it as well, since a configuration file has them for all
/// commands, but its help leaves them out.
const USED: &[(&str, &[&str])] = &[
    (
        "doctor",
        &["model", "base_url", "servers", "provider", "temperature", "max_tokens", "stand_in"],
    ),
    ("mcp", &["tools", "mcp", "stand_in"]),
    ("models", &["base_url", "servers", "provider"]),
];

/// Returns the command line, with help that has what acts.
pub(crate) fn command() -> clap::Command {
    USED.iter().fold(Cli::command(), |cli, (name, used)| {
        if cli.find_subcommand(name).is_none() {
            return cli;
        }
        cli.mut_subcommand(name, |command| {
            command.mut_args(|arg| {
                let is_other = SETTINGS
                    .iter()
                    .any(|setting| arg.get_id() == setting.key && !used.contains(&setting.key));
                arg.hide(is_other)
            })
        })
    })
}

/// Flags that are settings; see [`SETTINGS`](crate::settings::SETTINGS).
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingArgs {
    /// The model.
    #[arg(long, short)]
    model: Option<String>,
    /// The address of the server, up to and with /v1.
    #[arg(long, value_hint = ValueHint::Url)]
    base_url: Option<String>,
    /// The addresses to look for a server at, such as http://host:1234/v1; may be repeated.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    servers: Vec<String>,
    /// The kind of server: "LM Studio", Ollama, llama.cpp, vLLM, ...
    #[arg(long)]
    provider: Option<String>,
    /// The system prompt.
    #[arg(long, short)]
    system: Option<String>,
    /// The sampling temperature, from 0 to 2.
    #[arg(long)]
    temperature: Option<String>,
    /// The longest answer, in tokens.
    #[arg(long)]
    max_tokens: Option<String>,
    /// The amount of thinking: on, off, low, medium, high.
    #[arg(long)]
    thinking: Option<String>,
    /// The size of the model's context, in tokens; what grows beyond it is shortened.
    #[arg(long)]
    context: Option<String>,
    /// The tool calls that run without a question: none (ask), reads, all; plan runs none at all.
    #[arg(long)]
    mode: Option<String>,
    /// Built-in tools, such as files:DIR; may be repeated.
    #[arg(long, value_name = "TOOLS")]
    tools: Vec<String>,
    /// A JSON file with mcpServers: their tools.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    mcp: Option<String>,
    /// The number of rounds of tool calls one prompt may take.
    #[arg(long)]
    max_rounds: Option<String>,
    /// Where sessions are kept: a folder, or a file that ends in .sqlite.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    sessions: Option<String>,
    /// Colors and other styles: auto, always, never.
    #[arg(long)]
    color: Option<String>,
    /// Use a scripted model inside the program: no server is needed.
    #[arg(long)]
    stand_in: bool,
    /// The configuration file; the default is named by `oa config --path`.
    #[arg(long, value_name = "FILE", env = "OPEN_AGENT_CONFIG", value_hint = ValueHint::FilePath)]
    pub(crate) config: Option<PathBuf>,
}

impl SettingArgs {
    /// Returns the flags that were given.
    pub(crate) fn told(&self) -> Vec<(&'static str, Vec<String>)> {
        let one = |key, value: &Option<String>| value.clone().map(|value| (key, vec![value]));
        [
            one("model", &self.model),
            one("base_url", &self.base_url),
            (!self.servers.is_empty()).then(|| ("servers", self.servers.clone())),
            one("provider", &self.provider),
            one("system", &self.system),
            one("temperature", &self.temperature),
            one("max_tokens", &self.max_tokens),
            one("thinking", &self.thinking),
            one("context", &self.context),
            one("mode", &self.mode),
            (!self.tools.is_empty()).then(|| ("tools", self.tools.clone())),
            one("mcp", &self.mcp),
            one("max_rounds", &self.max_rounds),
            one("sessions", &self.sessions),
            one("color", &self.color),
            self.stand_in.then(|| ("stand_in", vec!["true".to_owned()])),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[derive(Args, Debug)]
pub(crate) struct ChatArgs {
    /// Ask this, print the answer, and stop. Standard input follows it, unless that is a terminal.
    pub(crate) prompt: Vec<String>,
    /// Keep the conversation under this name, and go on with it next time.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ModelsArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write what was learned about the server and the model to a file, for programs that use open-agent.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BatchArgs {
    /// The prompts, one a line: {"prompt": "Why?", "id": 7}, or "Why?".
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// The replies, one a line. Their log is beside it, with `.log` at the end.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The number of conversations in progress at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    pub(crate) at_once: usize,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(feature = "serve")]
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on, or a port of this machine alone; port 0 is any that is free.
    #[arg(long, value_name = "ADDRESS", default_value_t = format!("127.0.0.1:{PORT}"), aliases = ["port", "address", "bind", "host"])]
    pub(crate) listen: String,
    /// The name of the agent, as front ends show it.
    #[arg(long, default_value = "oa")]
    pub(crate) name: String,
    /// Allow pages of another origin, such as https://app.example.com; may be repeated.
    #[arg(long, value_name = "ORIGIN", value_hint = ValueHint::Url)]
    pub(crate) allow_origin: Vec<String>,
    /// Keep conversations in memory alone, not among the sessions.
    #[arg(long)]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(feature = "mcp")]
#[derive(Args, Debug)]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Print the path of the configuration file, and nothing else.
    #[arg(long)]
    pub(crate) path: bool,
    /// Print a configuration file with every setting, as comments.
    #[arg(long, conflicts_with = "path")]
    pub(crate) example: bool,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(test)]
mod tests;
