//! Ways to request structured output, from the strictest to the one that every server accepts.

use std::sync::Arc;

use oa_types::wire::ChatParameters;
use serde_json::{Value, json};

/// A way to request structured output.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum FormatRequest {
    /// The JSON Schema as the response format.
    #[default]
    Schema,
    /// The response format `json_object`, with instructions in the prompt.
    Object,
    /// Instructions in the prompt only.
    Prompt,
}

/// The fallback for servers that reject a response format: `json_object` first, then instructions in the prompt.
///
/// The caller remembers the first rejection for the model, so that later requests start with the way that worked.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct FormatFallback {
    /// The way to try first.
    pub first: FormatRequest,
    /// The instructions appended to the system prompt when the server does not enforce the schema.
    pub instructions: Arc<str>,
}

impl FormatFallback {
    /// Creates a fallback for a JSON Schema, which the instructions include.
    #[must_use]
    pub fn new(first: FormatRequest, schema: &Value) -> Self {
        Self { first, instructions: Self::instructions_for(schema).into() }
    }

    /// Returns instructions to answer with a JSON object that matches a schema.
    #[must_use]
    pub fn instructions_for(schema: &Value) -> String {
        format!(
            "Answer with one JSON object and nothing else. It must match this JSON Schema: {schema}"
        )
    }
}

impl FormatRequest {
    /// Returns the way to try after a rejection of this one; `None` after the last.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Object),
            Self::Object => Some(Self::Prompt),
            Self::Prompt => None,
        }
    }

    /// Changes a request to use this way.
    pub fn apply(self, parameters: &mut ChatParameters) {
        match self {
            Self::Schema => {}
            Self::Object => parameters.response_format = Some(json!({ "type": "json_object" })),
            Self::Prompt => parameters.response_format = None,
        }
    }
}

/// Returns true if an error response says that the server or the model does not support the response format. Errors
/// about the schema itself return false.
#[must_use]
pub fn refuses_format(status: u16, message: &str) -> bool {
    // 500: llama.cpp before it knew schemas; 405: a gateway.
    if !matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
        return false;
    }
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    says(&[
        "response_format",
        "response format",
        "response mime type",
        "json_schema",
        "json_object",
        "structured output",
    ]) && !says(&["invalid schema", "invalid json schema", "schema error", "invalid_json_schema"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schema_errors_do_not_reject_the_format() {
        for (status, message) in [
            // DeepSeek (llm-exe/llm-exe #662, dzhng/deep-research #22).
            (400, "This response_format type is unavailable now"),
            (
                422,
                "Failed to deserialize the JSON body into the target type: response_format: \
                 response_format.type `json_schema` is unavailable now at line 1 column 20",
            ),
            // OpenAI and Azure (langchain-ai/langchain #31490, BerriAI/litellm #5295, langgenius/dify #8994).
            (
                400,
                "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
            ),
            (400, "Invalid parameter: 'response_format' must be one of 'json_object', 'text'."),
            (
                400,
                "response_format value as json_schema is enabled only for api versions 2024-08-01-preview \
                 and later",
            ),
            // LM Studio (lmstudio-ai/lmstudio-bug-tracker #189).
            (400, "'response_format.type' must be 'json_schema'"),
            // Groq (testomatio/explorbot #58).
            (400, "This model does not support response format `json_schema`."),
            // llama.cpp, versions that know no schema here.
            (
                500,
                "response_format type must be one of \"text\" or \"json_object\", but got: json_schema",
            ),
            // Gemini's OpenAI endpoint, for a format beside tools (openai/openai-agents-python #656).
            (400, "Function calling with a response mime type: 'application/json' is unsupported"),
            // Gateways (truefoundry/models #913), and servers that reject unknown members.
            (405, "json_object response format is not supported for model: step-3.5-flash"),
            (422, "body.response_format: Extra inputs are not permitted"),
        ] {
            assert!(refuses_format(status, message), "{message}");
        }
        for (status, message) in [
            (
                400,
                "Invalid schema for response_format 'Place': In context=(), 'additionalProperties' is \
                 required to be supplied and to be false.",
            ),
            (400, "JSON schema error at #: unrecognized type no-such-type"),
            // Groq (i-am-bee/beeai-framework #1215, Meridiona/meridian #811).
            (
                400,
                "invalid JSON schema for response_format: 'answer': additionalProperties:false must be \
                 set on every object",
            ),
            (
                400,
                "invalid schema for response format: response_format/json_schema/next_step: minItems is \
                 not supported",
            ),
            (400, "the prompt is too long"),
            (503, "response_format: loading"),
            (401, "response_format"),
        ] {
            assert!(!refuses_format(status, message), "{message}");
        }
    }

    #[test]
    fn each_way_is_followed_by_a_weaker_one() {
        let mut way = FormatRequest::default();
        let mut seen = vec![way];
        while let Some(next) = way.next() {
            assert!(next > way);
            (way, seen) = (next, [seen, vec![next]].concat());
        }
        assert_eq!(seen, [FormatRequest::Schema, FormatRequest::Object, FormatRequest::Prompt]);
    }
}
