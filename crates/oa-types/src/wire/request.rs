use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::tool::ToolSpec;

/// The tools that the model may or must call.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "type", content = "name", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No tool may be called.
    None,
    /// At least one tool must be called.
    Required,
    /// This tool must be called. Sent as an object, which some servers reject (QUIRKS row 79).
    Tool(String),
}

/// Parses `"auto"`, `"none"` and `"required"`; any other word is a tool name. To choose a tool with one of
/// these names, use [`Tool`](ToolChoice::Tool).
impl From<&str> for ToolChoice {
    fn from(word: &str) -> Self {
        match word {
            "auto" => Self::Auto,
            "none" => Self::None,
            "required" => Self::Required,
            name => Self::Tool(name.to_owned()),
        }
    }
}

/// The same as from a `&str`.
impl From<String> for ToolChoice {
    fn from(word: String) -> Self {
        Self::from(&*word)
    }
}

impl ToolChoice {
    fn to_value(&self) -> Value {
        match self {
            Self::Auto => "auto".into(),
            Self::None => "none".into(),
            Self::Required => "required".into(),
            Self::Tool(name) => json!({ "type": "function", "function": { "name": name } }),
        }
    }
}

/// The member that carries the token limit (QUIRKS row 77). Servers reject requests with both.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum TokenLimit {
    /// `max_completion_tokens`, required by reasoning models of hosted providers.
    MaxCompletionTokens,
    /// `max_tokens`, which local servers understand.
    #[default]
    MaxTokens,
}

/// The parameters of a request, without its messages. Unset parameters are not sent, so the server decides.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ChatParameters {
    /// The model's name.
    pub model: String,
    /// The offered tools. If empty, no tool settings are sent (QUIRKS row 80).
    pub tools: Vec<ToolSpec>,
    /// The tools that the model may or must call.
    pub tool_choice: Option<ToolChoice>,
    /// Allows several tool calls in one answer.
    pub parallel_tool_calls: Option<bool>,
    /// The longest answer, in tokens.
    pub max_tokens: Option<u32>,
    /// The member in which `max_tokens` is sent.
    pub token_limit: TokenLimit,
    /// The sampling temperature, from 0 to 2.
    pub temperature: Option<f32>,
    /// The nucleus sampling threshold, from 0 to 1.
    pub top_p: Option<f32>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
    /// The sampling seed, for reproducible answers.
    pub seed: Option<u64>,
    /// The response format: a JSON Schema or `{"type": "json_object"}`.
    pub response_format: Option<Value>,
    /// Requests a final chunk with usage (QUIRKS rows 74 and 75).
    pub include_usage: bool,
    /// Additional members; they replace any of the same name, except `messages`, which is ignored here.
    pub extra_body: Map<String, Value>,
}

impl ChatParameters {
    /// Creates a streaming request for this model that asks for usage.
    #[must_use]
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), include_usage: true, ..Self::default() }
    }

    /// Returns the bytes before the messages, ending with `[`.
    #[must_use]
    pub fn head(&self) -> Vec<u8> {
        // The model is before the messages, so `tail` cannot replace it.
        let model =
            self.extra_body.get("model").cloned().unwrap_or_else(|| self.model.clone().into());
        format!("{{\"model\":{model},\"messages\":[").into_bytes()
    }

    /// Returns the bytes after the messages, starting with `]`.
    #[must_use]
    pub fn tail(&self) -> Vec<u8> {
        let mut tail = Tail { bytes: b"]".to_vec(), replaced: &self.extra_body };
        tail.member("stream", Some(true));
        // Servers reject it beside an answer in one piece, which has its usage anyway.
        let asks = self.include_usage && self.extra_body.get("stream") != Some(&Value::Bool(false));
        tail.member("stream_options", asks.then(|| json!({ "include_usage": true })));
        if !self.tools.is_empty() {
            let tool = |function| Tool { kind: "function", function };
            let tools: Vec<Tool<'_>> = self.tools.iter().map(tool).collect();
            tail.member("tools", Some(tools));
            tail.member("tool_choice", self.tool_choice.as_ref().map(ToolChoice::to_value));
            tail.member("parallel_tool_calls", self.parallel_tool_calls);
        }
        let limit = match self.token_limit {
            TokenLimit::MaxCompletionTokens => "max_completion_tokens",
            TokenLimit::MaxTokens => "max_tokens",
        };
        tail.member(limit, self.max_tokens);
        tail.member("temperature", self.temperature);
        tail.member("top_p", self.top_p);
        tail.member("stop", Some(&self.stop).filter(|stop| !stop.is_empty()));
        tail.member("seed", self.seed);
        tail.member("response_format", self.response_format.as_ref());
        for (name, value) in &self.extra_body {
            if name != "model" && name != "messages" {
                tail.write(name, value);
            }
        }
        tail.bytes.push(b'}');
        tail.bytes
    }
}

struct Tail<'a> {
    bytes: Vec<u8>,
    replaced: &'a Map<String, Value>,
}

impl Tail<'_> {
    fn member(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value
            && !self.replaced.contains_key(name)
        {
            self.write(name, &value);
        }
    }

    fn write(&mut self, name: &str, value: &impl Serialize) {
        self.bytes.push(b',');
        let why = "values with text keys always serialize";
        serde_json::to_writer(&mut self.bytes, name).expect(why);
        self.bytes.push(b':');
        serde_json::to_writer(&mut self.bytes, value).expect(why);
    }
}

/// A tool in the wire format.
#[derive(Serialize)]
struct Tool<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: &'a ToolSpec,
}
