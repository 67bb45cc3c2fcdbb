use oa_types::{ContentBlock, FinishReason, Message, MessageRole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::answer::read_integer;
use crate::message::{blocks_of, read_block};

/// The maximum number of stop sequences and of model names that are read.
const NAMES: usize = 16;

/// A server's request to a model, made while one of its tools runs.
///
/// Everything in it comes from the server, including the system prompt.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Sampling {
    /// The name under which hooks and permissions see the request: `<prefix>__sampling`.
    pub name: String,
    /// The name of the server.
    pub server: String,
    /// The system prompt that the server suggests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// The conversation: texts and images of the user and of the assistant.
    pub messages: Vec<Message>,
    /// The maximum tokens of the answer: the server's number, or the client's limit if that is lower.
    pub max_tokens: u32,
    /// The temperature that the server suggests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f32>,
    /// The stop sequences.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub stop: Vec<String>,
    /// The models that the server prefers, best first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub models: Vec<String>,
}

/// A model's answer to a [`Sampling`] request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sampled {
    /// The model that answered.
    pub model: String,
    /// The text.
    pub text: String,
    /// The reason why the answer ended.
    pub finish_reason: FinishReason,
}

impl Sampled {
    /// Creates a complete answer.
    #[must_use]
    pub fn new(model: impl Into<String>, text: impl Into<String>) -> Self {
        Self { model: model.into(), text: text.into(), finish_reason: FinishReason::Stop }
    }

    /// Returns the answer in the protocol's form.
    #[must_use]
    pub fn to_result(&self) -> Value {
        let reason = match &self.finish_reason {
            FinishReason::Length => "maxTokens",
            FinishReason::Stop => "endTurn",
            other => other.as_str(),
        };
        json!({
            "role": "assistant",
            "content": { "type": "text", "text": self.text },
            "model": self.model,
            "stopReason": reason,
        })
    }
}

impl Sampling {
    /// Reads a request from the server, for an answer of at most `tokens`.
    ///
    /// # Errors
    ///
    /// Describes the problem with the request.
    pub fn read(params: &Value, server: &str, name: String, tokens: u32) -> Result<Self, String> {
        // Refused instead of ignored: the server expects calls of these tools in the answer.
        if params.get("tools").is_some_and(|tools| !tools.is_null()) {
            return Err("this client's model has no tools".to_owned());
        }
        let Some(Value::Array(list)) = params.get("messages") else {
            return Err("it has no messages".to_owned());
        };
        let mut messages = Vec::new();
        for said in list {
            messages.push(read_message(said)?);
        }
        if messages.is_empty() {
            return Err("it has no messages".to_owned());
        }
        let wanted = params.get("maxTokens").and_then(read_integer).ok_or("it has no maxTokens")?;
        let wanted = u32::try_from(wanted.max(1)).unwrap_or(u32::MAX);
        let texts = |value: Option<&Value>| -> Vec<String> {
            let texts = value.and_then(Value::as_array).into_iter().flatten();
            texts.filter_map(Value::as_str).take(NAMES).map(str::to_owned).collect()
        };
        let hints = params.pointer("/modelPreferences/hints").and_then(Value::as_array);
        let hints = hints.into_iter().flatten().filter_map(|hint| hint["name"].as_str());
        Ok(Self {
            name,
            server: server.to_owned(),
            system_prompt: params
                .get("systemPrompt")
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned),
            messages,
            max_tokens: wanted.min(tokens),
            temperature: params
                .get("temperature")
                .and_then(Value::as_f64)
                .map(|temperature| temperature as f32),
            stop: texts(params.get("stopSequences")),
            models: hints.take(NAMES).map(str::to_owned).collect(),
        })
    }
}

fn read_message(said: &Value) -> Result<Message, String> {
    let role = match said.get("role").and_then(Value::as_str) {
        Some("user") => MessageRole::User,
        Some("assistant") => MessageRole::Assistant,
        _ => return Err("the role of a message is neither user nor assistant".to_owned()),
    };
    let content = said.get("content").unwrap_or(&Value::Null);
    let is_allowed =
        |block: &&Value| block.is_string() || block["type"] == "image" || block["type"] == "text";
    let blocks: Vec<ContentBlock> = blocks_of(content)
        .iter()
        .map(|block| Some(block).filter(is_allowed).and_then(read_block))
        .collect::<Option<_>>()
        .ok_or("a message has content that is not text, an image or audio")?;
    Ok(Message::new(role, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(params: &Value) -> Result<Sampling, String> {
        Sampling::read(params, "s", "s__sampling".to_owned(), 100)
    }

    fn said(text: &str) -> Value {
        json!([{ "role": "user", "content": { "type": "text", "text": text } }])
    }

    #[test]
    fn tokens_are_capped_and_settings_kept() {
        let request = read(&json!({
            "messages": [
                { "role": "user", "content": [
                    { "type": "text", "text": "Look." },
                    { "type": "image", "mimeType": "image/png", "data": "QUJD" },
                ] },
                { "role": "assistant", "content": { "type": "text", "text": "I see." } },
            ],
            "systemPrompt": "Be brief.",
            "maxTokens": 5_000,
            "temperature": 0.5,
            "stopSequences": ["END"],
            "modelPreferences": { "hints": [{ "name": "small" }, {}], "costPriority": 1 },
            "includeContext": "allServers",
        }))
        .unwrap();
        assert_eq!(request.max_tokens, 100);
        assert_eq!(request.system_prompt.as_deref(), Some("Be brief."));
        assert_eq!((request.temperature, &*request.stop), (Some(0.5), &["END".to_owned()][..]));
        assert_eq!(request.models, ["small"]);
        assert_eq!(request.messages[0].content.len(), 2);
        assert_eq!(
            request.messages[1],
            Message::assistant(vec![ContentBlock::Text(oa_types::TextBlock::new("I see."))])
        );
        let data = serde_json::to_value(&request).unwrap();
        assert_eq!(serde_json::from_value::<Sampling>(data).unwrap(), request);
        for (wanted, expected) in
            [(json!(7), 7), (json!(7.0), 7), (json!(-7), 1), (json!(1e300), 0)]
        {
            let few = read(&json!({ "messages": said("a"), "maxTokens": wanted }));
            assert_eq!(few.map_or(0, |few| few.max_tokens), expected, "{wanted}");
        }
    }

    #[test]
    fn content_may_be_a_text() {
        let messages = json!([{ "role": "user", "content": "Look." }]);
        let request = read(&json!({ "messages": messages, "maxTokens": 9 })).unwrap();
        assert_eq!(request.messages, [Message::user("Look.")]);
    }

    #[test]
    fn unsupported_requests_are_refused() {
        let of = |params: Value| read(&params).unwrap_err();
        assert_eq!(of(json!({})), "it has no messages");
        assert_eq!(of(json!({ "messages": [], "maxTokens": 1 })), "it has no messages");
        assert_eq!(of(json!({ "messages": said("a") })), "it has no maxTokens");
        assert_eq!(
            of(json!({ "messages": said("a"), "maxTokens": 1, "tools": [] })),
            "this client's model has no tools"
        );
        let audio = json!([{ "role": "user", "content": { "type": "audio", "data": "QUJD" } }]);
        assert_eq!(
            of(json!({ "messages": audio, "maxTokens": 1 })),
            "a message has content that is not text, an image or audio"
        );
        let system = json!([{ "role": "system", "content": { "type": "text", "text": "a" } }]);
        assert_eq!(
            of(json!({ "messages": system, "maxTokens": 1 })),
            "the role of a message is neither user nor assistant"
        );
    }

    #[test]
    fn stop_reasons_are_mapped() {
        let mut sampled = Sampled::new("small", "Hi.");
        assert_eq!(sampled.to_result()["stopReason"], "endTurn");
        assert_eq!(sampled.to_result()["content"], json!({ "type": "text", "text": "Hi." }));
        sampled.finish_reason = FinishReason::Length;
        assert_eq!(sampled.to_result()["stopReason"], "maxTokens");
    }
}
