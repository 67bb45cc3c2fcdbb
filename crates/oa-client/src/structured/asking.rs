//! How a server is asked for an answer of a form, where it does not take a schema.

use std::sync::Arc;

use oa_types::wire::RequestOptions as Wire;
use serde_json::{Value, json};

/// The ways, from the one that holds a model to most on.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Asking {
    /// By `response_format` as the request has it.
    #[default]
    Schema,
    /// By `response_format` for any object, with the schema in words.
    Object,
    /// In words alone.
    Words,
}

/// What may be put in words.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    /// How it is tried first.
    pub(crate) first: Asking,
    pub(crate) words: Arc<str>,
}

impl Asking {
    /// What is tried once this was refused.
    pub(crate) fn next(self) -> Option<Self> {
        match self {
            Self::Schema => Some(Self::Object),
            Self::Object => Some(Self::Words),
            Self::Words => None,
        }
    }

    /// Puts it into a request, but for the words.
    pub(crate) fn put(self, request: &mut Wire) {
        match self {
            Self::Schema => {}
            Self::Object => request.response_format = Some(json!({ "type": "json_object" })),
            Self::Words => request.response_format = None,
        }
    }
}

/// What a model is told that is to answer in a form.
pub(crate) fn words(schema: &Value) -> String {
    format!(
        "Answer with one JSON object and nothing else. It has to fit this JSON Schema: {schema}"
    )
}

/// Whether a server says that it, or its model, does not know this form of answers.
///
/// What is wrong with a schema in particular is another matter, of which the caller wants to know.
pub(crate) fn refuses_form(status: u16, message: &str) -> bool {
    // 500: llama.cpp before it knew schemas; 405: a gateway.
    if !matches!(status, 400 | 404 | 405 | 422 | 500 | 501) {
        return false;
    }
    let message = message.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    says(&["response_format", "response format", "json_schema", "json_object", "structured output"])
        && !says(&["invalid schema", "schema error", "invalid_json_schema"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_servers_say_of_forms_and_what_they_say_of_schemas() {
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
            // Gateways (truefoundry/models #913), and whoever takes no unknown member.
            (405, "json_object response format is not supported for model: step-3.5-flash"),
            (422, "body.response_format: Extra inputs are not permitted"),
        ] {
            assert!(refuses_form(status, message), "{message}");
        }
        for (status, message) in [
            (
                400,
                "Invalid schema for response_format 'Place': In context=(), 'additionalProperties' is \
                 required to be supplied and to be false.",
            ),
            (400, "JSON schema error at #: unrecognized type no-such-type"),
            (400, "the prompt is too long"),
            (503, "response_format: loading"),
            (401, "response_format"),
        ] {
            assert!(!refuses_form(status, message), "{message}");
        }
    }

    #[test]
    fn each_way_is_followed_by_a_lesser_one() {
        let mut way = Asking::default();
        let mut seen = vec![way];
        while let Some(next) = way.next() {
            assert!(next > way);
            (way, seen) = (next, [seen, vec![next]].concat());
        }
        assert_eq!(seen, [Asking::Schema, Asking::Object, Asking::Words]);
    }
}
