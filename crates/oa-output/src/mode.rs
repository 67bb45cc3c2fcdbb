use serde::{Deserialize, Serialize};

/// The way to request structured output from the model. In JSON: `auto`, `format`, `prompt` or `tool`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputMode {
    /// [`Tool`](Self::Tool) if other tools are offered. [`Format`](Self::Format) if not, and if calls are part of a
    /// response format themselves.
    ///
    /// Many servers cannot do both at once. Groq rejects `response_format` with `tools` (agno-agi/agno #1065). Servers
    /// that compile the format to a grammar for the whole answer (llama.cpp, vLLM, Ollama) keep the model from writing
    /// tool calls, and it makes up their results (ollama/ollama #11185, openai/openai-agents-python #3709).
    ///
    /// If the server rejects the response format, the client falls back to `json_object` with the schema in the
    /// prompt, then to the prompt alone, as with [`Prompt`](Self::Prompt). Clients that share these options share this
    /// knowledge; an event and a log line report the fallback. An error about the schema itself is returned.
    #[default]
    Auto,
    /// Sends `response_format`, which many servers enforce with a grammar. A rejection is an error.
    Format,
    /// Puts the schema into the system prompt. Only the client's validation enforces it. Cannot be combined with tools
    /// in `ToolMode::Constrained`, whose calls need a response format.
    Prompt,
    /// Offers an additional tool whose arguments are the answer, named `final_answer` by default. Hooks do not see its
    /// calls. `tool_choice` is `required` unless the options set it to [`Auto`](oa_types::wire::ToolChoice::Auto). A
    /// model that rejects this is asked without it, unless the options or the plan of a step set it.
    Tool,
}
