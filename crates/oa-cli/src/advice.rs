//! Advice that names servers.

use open_agent::Provider;

/// The explanation of a refused connection.
pub(crate) const NOBODY: &str =
    "No server listens there: it is not running, or the address is wrong.";

/// Advice for a server that accepts connections, but does not answer yet.
pub(crate) const LATER: &str =
    "A server listens there. If it is loading a model, try again when it is ready.";

/// Advice for a server that answers, but not with TLS.
pub(crate) const UNENCRYPTED: &str =
    "A server listens there. If it is a local one, its address begins with http://.";

/// Advice when the server of a conversation cannot be reached any more.
pub(crate) const GONE: &str = "Check that the server is running. Up restores your prompt.";

/// Advice for a server that refuses requests without its key.
pub(crate) const KEY: &str =
    "Set its key: OPEN_AGENT_API_KEY, or `api_key` in the configuration file.";

/// Advice for something that was found and refuses requests: a model server that requires a key, or another program.
pub(crate) const FORBIDDEN: &str =
    "If this is a model server, set its address and its key: --base-url and OPEN_AGENT_API_KEY.";

const ELSEWHERE: &str = "\
For a server elsewhere: --base-url http://HOST:PORT/v1. To try everything without a server: --stand-in.";

/// Servers, with their home pages and the commands that start them.
const SERVERS: [(Provider, &str, &str); 4] = [
    (Provider::LmStudio, "https://lmstudio.ai", "`lms server start`"),
    (Provider::Ollama, "https://ollama.com", "`ollama serve`, then `ollama pull qwen3:4b`"),
    (
        Provider::LlamaCpp,
        "https://llama.app",
        "`llama-server -hf ggml-org/gemma-3-4b-it-GGUF --jinja`",
    ),
    (Provider::Vllm, "https://docs.vllm.ai", "`vllm serve Qwen/Qwen3-4B`"),
];

/// Returns advice for a user without a server: how to start the given one, or any known one.
pub(crate) fn no_server(provider: Option<Provider>) -> String {
    let is_meant = |(server, ..): &&(Provider, &str, &str)| provider == Some(*server);
    let meant = SERVERS.iter().filter(is_meant).count() > 0;
    let which = if meant { "it" } else { "one of these" };
    let mut text = format!("Start {which} and load a model:");
    for (server, page, command) in SERVERS.iter().filter(|row| !meant || is_meant(row)) {
        text.push_str(&format!("\n  {:<12} {page:<28} {command}", server.name()));
    }
    format!("{text}\n{ELSEWHERE}")
}
