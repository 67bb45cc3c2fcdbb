//! The changes that servers ask for when they reject the form of a request.

use serde_json::Value;

use super::inlined::inline;
use super::message::{EmptyContent, MessageFormat, ResultNames, ThinkingReplay};
use super::plain_schema::make_plain;
use super::rejected::REJECTED;
use super::request::{ChatParameters, TokenLimit};
use super::single_types::give_types;
use super::thinking::Thinking;
use super::thinking_refusal::ThinkingRefusal;

/// Changes to the form of requests that a server has asked for in its errors. None of them loses anything that the
/// model needs, so a client can make them and send the request again.
///
/// ```
/// use oa_types::wire::Demands;
///
/// let mut demands = Demands::default();
/// let message = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2";
/// assert!(demands.add(400, message), "the request is changed");
/// assert!(!demands.add(400, message), "it has been changed already");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Demands {
    /// Answers with calls and without text have no content (QUIRKS row 84).
    pub absent_content: bool,
    /// Thinking is not turned off, because the model always thinks (QUIRKS row 147).
    pub always_thinks: bool,
    /// Results have no name (QUIRKS row 92).
    pub nameless_results: bool,
    /// No amount of thinking is requested, because the model has none (QUIRKS row 147).
    pub never_thinks: bool,
    /// The token limit has the other name (QUIRKS row 77).
    pub other_token_limit: bool,
    /// Schemas have no patterns, formats, ranges and lengths; their descriptions do (QUIRKS row 133). They have no booleans
    /// as schemas either, and no references, unless they are recursive (row 138).
    pub plain_schemas: bool,
    /// Each parameter of a tool has one type, and no references (QUIRKS row 137).
    pub single_types: bool,
    /// Answers with calls go back with their thinking (QUIRKS row 94).
    pub thinking: bool,
    /// Answers are not streamed (QUIRKS row 143).
    pub whole_answers: bool,
}

impl Demands {
    /// Adds what an error with this status and message asks for; returns false if it asks for nothing new.
    #[must_use]
    pub fn add(&mut self, status: u16, message: &str) -> bool {
        let message = message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        // llama.cpp reports rejections as failures (QUIRKS row 103), and servers without streaming as not implemented.
        let is_rejection = matches!(status, 400 | 422 | 500 | 501);
        let demand = if is_rejection && says(&UNCOMPILED) {
            &mut self.plain_schemas
        } else if is_rejection && says(&UNTYPED) {
            &mut self.single_types
        } else if is_rejection && says(&UNSTREAMED) {
            &mut self.whole_answers
        } else if !matches!(status, 400 | 422) {
            return false;
        } else if says(&["max_completion_tokens"]) && says(&REJECTED) {
            &mut self.other_token_limit
        } else if says(&["reasoning_content"]) && says(&["is missing", "must be passed back"]) {
            &mut self.thinking
        } else if says(&EMPTY) {
            &mut self.absent_content
        } else if says(&NAME) && says(&REJECTED) && !says(&["tools", "required"]) {
            &mut self.nameless_results
        } else {
            return false;
        };
        !std::mem::replace(demand, true)
    }

    /// Adds what an error with this status and message says about the amount of thinking, which the request had; returns
    /// false if it says nothing new about it.
    ///
    /// ```
    /// use oa_types::wire::{Demands, Thinking};
    ///
    /// let mut demands = Demands::default();
    /// assert!(demands.add_thinking(400, "\"llama3.2:3b\" does not support thinking", &Thinking::On));
    /// assert!(!demands.allow(&Thinking::On));
    /// ```
    #[must_use]
    pub fn add_thinking(&mut self, status: u16, message: &str, thinking: &Thinking) -> bool {
        if !matches!(status, 400 | 422) || !self.allow(thinking) {
            return false;
        }
        match ThinkingRefusal::read(&message.to_lowercase(), thinking) {
            Some(ThinkingRefusal::Any) => self.never_thinks = true,
            Some(ThinkingRefusal::Off) => self.always_thinks = true,
            None => return false,
        }
        true
    }

    /// Returns true if this amount of thinking may be requested.
    #[must_use]
    pub fn allow(self, thinking: &Thinking) -> bool {
        !(self.never_thinks || self.always_thinks && *thinking == Thinking::Off)
    }

    /// Returns the demands on parameters, without those on the format of messages.
    #[must_use]
    pub fn of_parameters(self) -> Self {
        Self { absent_content: false, nameless_results: false, thinking: false, ..self }
    }

    /// Changes a message format.
    pub fn apply(self, format: &mut MessageFormat) {
        if self.absent_content {
            format.empty_content = EmptyContent::Absent;
        }
        if self.nameless_results {
            format.result_names = ResultNames::Absent;
        }
        if self.thinking {
            format.thinking = ThinkingReplay::RequiredReasoningContent;
        }
    }

    /// Changes the parameters: the schemas of tools and of the response format, and whether the answer is streamed.
    pub fn apply_to_parameters(self, parameters: &mut ChatParameters) {
        let Self { plain_schemas, single_types, whole_answers, .. } = self;
        if whole_answers {
            parameters.extra_body.insert("stream".to_owned(), false.into());
        }
        let change = |schema: &mut Value, single_types| {
            if plain_schemas || single_types {
                inline(schema);
            }
            if single_types {
                give_types(schema);
            }
            if plain_schemas {
                make_plain(schema);
            }
        };
        parameters.tools.iter_mut().for_each(|tool| change(&mut tool.parameters, single_types));
        let format = parameters.response_format.as_mut();
        if let Some(schema) = format.and_then(|format| format.pointer_mut("/json_schema/schema")) {
            // No template reads it, and the answer may be null.
            change(schema, false);
        }
    }

    /// Returns the name of the token limit, where this one would be sent.
    #[must_use]
    pub fn token_limit(self, usual: TokenLimit) -> TokenLimit {
        match usual {
            _ if !self.other_token_limit => usual,
            TokenLimit::MaxCompletionTokens => TokenLimit::MaxTokens,
            TokenLimit::MaxTokens => TokenLimit::MaxCompletionTokens,
        }
    }
}

/// Words with which Anthropic's models, directly and on Bedrock, and Moonshot reject empty text.
const EMPTY: [&str; 4] = [
    "must be non-empty",
    "must contain non-whitespace text",
    "is blank. add text to the text field",
    "text content is empty",
];

/// Words with which servers refer to the name in a message, and not to names of other things.
const NAME: [&str; 6] =
    ["\"name\"", "'name'", ".name", "message name", "message_name", "property=name"];

/// Words with which llama.cpp, servers built on it, and vLLM say that they cannot compile a schema.
const UNCOMPILED: [&str; 8] = [
    "cannot resolve $ref #",
    "error parsing grammar",
    "failed to parse grammar",
    "json schema conversion failed",
    "json-schema-to-grammar",
    "not supported by xgrammar",
    "schema must be an object",
    "unsupported $ref #",
];

/// Words with which servers say that Gemma's template needs one type, and with which Gemini's endpoint rejects a list of
/// types, or a reference.
const UNTYPED: [&str; 8] = [
    "cannot start list",
    "filter 'upper'",
    "filter \"upper\"",
    "filter \\\"upper\\\"",
    "schema.ref ",
    "unknown name \"$defs\"",
    "unknown name \"$ref\"",
    "upper filter",
];

/// Words with which servers say that a model streams no answers, or none with calls: Bedrock, OpenAI, Azure, Hugging Face,
/// llama.cpp until May 2025, and gateways.
const UNSTREAMED: [&str; 14] = [
    "'stream' does not support",
    "'stream' is not supported",
    "`stream` is not supported",
    "does not support stream mode",
    "does not support streaming",
    "doesn't support streaming",
    "stream is not supported",
    "streaming completion is not support",
    "streaming is not supported",
    "streaming not supported",
    "to stream this model",
    "tool use in streaming mode",
    "tools with stream",
    "unsupported for streaming",
];
