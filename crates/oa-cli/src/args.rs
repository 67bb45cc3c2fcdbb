//! The command line.

use std::path::PathBuf;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueHint};
use clap_complete::Shell;

use crate::settings::SETTINGS;

/// Chat with local models, give them tools, and inspect their servers.
#[derive(Debug, Parser)]
#[command(name = "oa", bin_name = "oa", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const EXAMPLES: &str = "\
Examples:
  oa chat --stand-in                try everything without a model server
  oa chat                           chat with a model on this machine
  oa chat --tools files:.           with tools that read files in this folder
  git diff | oa chat \"Review this\"  in a pipe: plain text, and an exit status
  oa doctor                         what the server and the model can do
  oa config                         the settings in effect, and their sources

Each setting can be a flag, an environment variable, or a line in the configuration file, \
in this order of precedence. `oa config` lists all settings.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Chat with a model.
    #[command(after_help = CHAT_EXAMPLES)]
    Chat(ChatArgs),
    /// List the models of all servers that answer.
    Models(SettingArgs),
    /// Test what a server and a model can do, with about a dozen short requests.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Answer the prompts in a file, and write the replies to another file.
    #[command(after_help = BATCH_EXAMPLES)]
    Batch(BatchArgs),
    /// Serve an agent over HTTP, with a chat page.
    #[cfg(feature = "serve")]
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(ServeArgs),
    /// Offer tools to programs that speak the Model Context Protocol, over standard input and output.
    #[cfg(feature = "mcp")]
    #[command(after_help = MCP_EXAMPLES)]
    Mcp(SettingArgs),
    /// List the saved conversations, the last used first, or delete some.
    #[command(after_help = SESSIONS_EXAMPLES)]
    Sessions(SessionsArgs),
    /// Show the settings in effect and their sources; secrets are masked.
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
        /// The command to document; if omitted, the program.
        command: Option<String>,
    },
}

const CHAT_EXAMPLES: &str = "\
At the prompt:
  /help lists the commands and the keys.
  Ctrl-C stops the answer. A line sent during it reaches the model before its next step.

Examples:
  oa chat --session trip                save the conversation, and continue it next time
  oa chat -a photo.png \"What is this?\"  with an image, for a model that sees
  oa chat --mcp servers.json            with the tools of MCP servers
  oa chat --tools files:src --mode ask  with tools that read files; ask before each call
  echo \"Why is the sky blue?\" | oa chat > answer.md";

const DOCTOR_EXAMPLES: &str = "\
Exit status: 0 if no probe fails, 1 if one does, or if the server cannot be examined.

Examples:
  oa doctor --stand-in          see a report without a model server
  oa doctor --model qwen3:8b
  oa doctor --max-tokens 2000   for a model that thinks before it answers
  oa doctor --time-limit 600    for a model that is slow, or not loaded yet
  oa doctor --json > report.json";

const BATCH_EXAMPLES: &str = "\
Each line of the input is a prompt: a JSON string, or an object with \"prompt\", and \"id\" and \"attach\" if it has them. \
Each line of the output is an object with \"index\", \"id\", and \"text\" or \"error\", in the order of the input.

Replies are logged next to the output. If the program stops, run the same command again: \
only prompts without a logged reply are sent.

Examples:
  oa batch reviews.jsonl -o answers.jsonl --system \"Is it positive or negative? One word.\"
  oa batch reviews.jsonl -o answers.jsonl --at-once 32";

#[cfg(feature = "serve")]
const SERVE_EXAMPLES: &str = "\
Listens on this machine only by default. Other addresses need a token: `token` in the configuration file, or \
OPEN_AGENT_TOKEN.

Examples:
  oa serve --stand-in                     try it without a model server
  oa serve --tools files:.                an agent that reads files in this folder
  oa serve --listen 9000                  on another port
  OPEN_AGENT_TOKEN=$(openssl rand -hex 16) oa serve --listen 0.0.0.0:8787";

#[cfg(feature = "mcp")]
const MCP_EXAMPLES: &str = "\
Offers the tools of --tools and of the --mcp servers; --stand-in adds two to try. oa does not ask for permission here: \
the client does.

In the configuration of an editor, or for `oa chat --mcp`:
  { \"mcpServers\": { \"notes\": {
    \"command\": \"oa\", \"args\": [\"mcp\", \"--tools\", \"files:/path/to/notes\"] } } }";

const SESSIONS_EXAMPLES: &str = "\
In a pipe, the list has only names.

Examples:
  oa sessions
  oa sessions --delete trip --delete notes
  oa chat --session \"$(oa sessions | head -1)\"   continue the last conversation";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oa completions bash > ~/.local/share/bash-completion/completions/oa
  oa completions zsh > ~/.zfunc/_oa
  oa completions fish > ~/.config/fish/completions/oa.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  oa man | man -l -
  oa man chat > ~/.local/share/man/man1/oa-chat.1";

/// The default port of `oa serve`.
#[cfg(feature = "serve")]
pub(crate) const PORT: u16 = 8787;

/// The settings that affect a command, or if false, those that do not. It accepts these as well, since a configuration
/// file has them for all commands, but its help omits them.
const EFFECTS: &[(&str, bool, &[&str])] = &[
    ("batch", false, &["sessions", "color"]),
    (
        "doctor",
        true,
        &[
            "model",
            "base_url",
            "servers",
            "provider",
            "temperature",
            "top_p",
            "seed",
            "extra_body",
            "max_tokens",
            "thinking",
            "stand_in",
        ],
    ),
    ("mcp", true, &["tools", "mcp", "stand_in"]),
    ("models", true, &["base_url", "servers", "provider", "stand_in"]),
    ("serve", false, &["color"]),
    ("sessions", true, &["sessions"]),
];

/// Returns the command line, with help that lists only settings that have an effect.
pub(crate) fn command() -> clap::Command {
    Cli::command().mut_subcommands(|command| {
        let name = command.get_name().to_owned();
        command.mut_args(|arg| {
            let is_other = SETTINGS
                .iter()
                .any(|setting| arg.get_id() == setting.key && !has_effect(&name, setting.key));
            arg.hide(is_other)
        })
    })
}

/// Returns true if a setting affects a command.
fn has_effect(command: &str, key: &str) -> bool {
    let mut of_command = EFFECTS.iter().filter(|(name, ..)| *name == command);
    of_command.all(|(_, affect, keys)| keys.contains(&key) == *affect)
}

/// Flags that are settings; see [`SETTINGS`](crate::settings::SETTINGS).
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Settings")]
pub(crate) struct SettingArgs {
    /// The model.
    #[arg(long, short)]
    model: Option<String>,
    /// The base URL of the server, including /v1.
    #[arg(long, value_hint = ValueHint::Url)]
    base_url: Option<String>,
    /// URLs to try, such as http://host:1234/v1; may be repeated.
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
    /// The share of likely tokens to choose from, above 0 and up to 1.
    #[arg(long)]
    top_p: Option<String>,
    /// The seed of sampling: with the same one, many servers repeat an answer.
    #[arg(long)]
    seed: Option<String>,
    /// More members of requests, for servers that know them: '{"min_p": 0.05, "top_k": 40}'.
    #[arg(long, value_name = "JSON")]
    extra_body: Option<String>,
    /// The maximum length of an answer, in tokens.
    #[arg(long)]
    max_tokens: Option<String>,
    /// The amount of thinking: on, off, or an effort such as low, high, xhigh.
    #[arg(long)]
    thinking: Option<String>,
    /// The model's context size, in tokens; longer conversations are shortened.
    #[arg(long)]
    context: Option<String>,
    /// The tool calls that run without asking: none (ask), reads, all; plan runs no calls.
    #[arg(long)]
    mode: Option<String>,
    /// Built-in tools, such as files:DIR; several with commas, or by repeating the flag.
    #[arg(long, value_name = "TOOLS")]
    tools: Vec<String>,
    /// A JSON file with mcpServers; adds the tools of these servers.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    mcp: Option<String>,
    /// The maximum number of rounds of tool calls per prompt.
    #[arg(long)]
    max_rounds: Option<String>,
    /// The location of sessions: a folder, or a file that ends in .sqlite.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    sessions: Option<String>,
    /// Colors and other styles: auto, always, never.
    #[arg(long)]
    color: Option<String>,
    /// Use a built-in scripted model; no server is needed.
    #[arg(long)]
    stand_in: bool,
    /// The configuration file, in place of OPEN_AGENT_CONFIG; `oa config --path` prints the default.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
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
            one("top_p", &self.top_p),
            one("seed", &self.seed),
            one("extra_body", &self.extra_body),
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
    /// Send this prompt, print the answer, and exit. Standard input is appended, unless it is a terminal.
    pub(crate) prompt: Vec<String>,
    /// An image, audio or text to send with the prompt, or - for standard input; may be repeated.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) attach: Vec<PathBuf>,
    /// Save the conversation under this name, and continue it next time.
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct SessionsArgs {
    /// Delete the session of this name; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) delete: Vec<String>,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct DoctorArgs {
    /// Print the report as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a profile of the server and the model to a file, for programs that use open-agent.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: Option<PathBuf>,
    /// The longest time for each request, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) time_limit: u64,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct BatchArgs {
    /// The prompts, one per line: {"prompt": "Why?", "id": 7, "attach": ["a.png"]}, or "Why?".
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) input: PathBuf,
    /// The replies, one per line. Their log is next to it, with the suffix `.log`.
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// The number of conversations in progress at once.
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..))]
    pub(crate) at_once: usize,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(feature = "serve")]
#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// The address to listen on, or a port on this machine only; port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value_t = format!("127.0.0.1:{PORT}"), aliases = ["port", "address", "bind", "host"])]
    pub(crate) listen: String,
    /// The name of the agent, shown by front ends.
    #[arg(long, default_value = "oa")]
    pub(crate) name: String,
    /// Allow pages of another origin, such as https://app.example.com; may be repeated.
    #[arg(long, value_name = "ORIGIN", value_hint = ValueHint::Url)]
    pub(crate) allow_origin: Vec<String>,
    /// Keep conversations only in memory, and do not save them as sessions.
    #[arg(long)]
    pub(crate) forget: bool,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    /// Print only the path of the configuration file.
    #[arg(long)]
    pub(crate) path: bool,
    /// Print a configuration file with every setting commented out.
    #[arg(long, conflicts_with = "path")]
    pub(crate) example: bool,
    #[command(flatten)]
    pub(crate) settings: SettingArgs,
}

#[cfg(test)]
mod tests;
