use serde::{Deserialize, Serialize};

/// The way structured output is requested from the model. In JSON, `auto`, `format`, `prompt` or `tool`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::exhaustive_enums, reason = "each way is sent in its own form")]
pub enum OutputMode {
    /// [`Tool`](Self::Tool) if other tools are offered, [`Format`](Self::Format) if not, and where calls are
    /// part of such a format too.
    ///
    /// Many servers cannot do both at once: Groq rejects `response_format` with `tools` (agno-agi/agno #1065),
    /// and where a format becomes a grammar for the whole answer (llama.cpp, vLLM, Ollama) the model cannot write
    /// tool calls, and makes up their results (ollama/ollama #11185, openai/openai-agents-python #3709).
    ///
    /// If the server rejects the format by name, the client falls back to `json_object` with the schema in the
    /// prompt, then to the prompt alone, as [`Prompt`](Self::Prompt) does. All users of these options share what
    /// was learned; an event and a line in the log report it. An error about the schema itself is returned.
    #[default]
    Auto,
    /// Sends `response_format`, which many servers enforce by a grammar. A rejection is an error.
    Format,
    /// Puts the schema into the system prompt. Only the client's validation enforces it. An error together with tools
    /// in `ToolMode::Constrained`, whose calls need a response format.
    Prompt,
    /// Offers a tool whose arguments are the answer, `final_answer` unless named otherwise, beside the other
    /// tools. No hook sees its calls. `tool_choice` is `required`, unless the options say
    /// [`Auto`](oa_types::wire::ToolChoice::Auto).
    Tool,
}
