//! The dialect of answers that are one JSON object, constrained to a schema by the server.

mod alternatives;
mod any_of;
mod definitions;
mod grammar;
mod merged;

use std::sync::Arc;

use oa_types::wire::ChatParameters;
use oa_types::{ContentBlock, Message, ToolResultBlock, ToolSpec, ToolUseBlock};
use serde_json::{Map, Value};

use self::grammar::ConstrainedGrammar;
use crate::dialect::Dialect;
use crate::grammar::Grammar;
use crate::prompt;

/// Calls and answers as one JSON object, for servers that constrain an answer to a JSON Schema.
///
/// The model writes `{"tool": "add", "arguments": {"a": 1, "b": 2}}` or `{"answer": "It is 3."}`. The schema of these
/// alternatives is sent as the response format, so even the smallest model writes only well-formed calls of offered
/// tools. `tool_choice` limits the alternatives: `required` allows only calls, a tool name only calls of that tool, and
/// `none` only an answer. If the request has a response format, the answer is a value of its schema instead of text.
///
/// By default an answer has one call, because small models do better with one. With
/// [`with_parallel_calls`](Self::with_parallel_calls), calls are a list: `{"calls": [{"tool": .., "arguments": ..}]}`.
///
/// The text of the answer is decoded and emitted while it arrives. If the server does not enforce the schema, prose is
/// text, and calls in the formats of [`TaggedJson`](crate::TaggedJson) are read too.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Constrained, Dialect, Scanned};
/// use oa_types::ToolSpec;
/// use oa_types::wire::{ChatParameters, ToolChoice};
/// use serde_json::json;
///
/// let mut parameters = ChatParameters::new("smollm2");
/// let schema = json!({"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]});
/// parameters.tools = vec![ToolSpec::new("square", "Squares a number", schema)];
/// parameters.tool_choice = Some(ToolChoice::Required);
/// let format = Constrained::new().response_format(&parameters).expect("there are tools");
/// assert_eq!(format["json_schema"]["schema"]["properties"]["tool"], json!({"const": "square"}));
///
/// let mut scanner = Constrained::new().scanner(Arc::new([]));
/// scanner.push(r#"{"answer": "It is 9, \u00"#);
/// assert_eq!(scanner.next_item(), Some(Scanned::Text("It is 9, ")));
/// scanner.push(r#"e9t voil\u00e0."}"#);
/// assert_eq!(scanner.next_item(), Some(Scanned::Text("ét voilà.")));
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Constrained {
    is_parallel: bool,
}

impl Constrained {
    /// Creates the dialect with at most one call per answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Allows several calls in one answer if `is_parallel` is true.
    #[must_use]
    pub fn with_parallel_calls(self, is_parallel: bool) -> Self {
        Self { is_parallel }
    }
}

impl Dialect for Constrained {
    fn instructions(&self, tools: &[ToolSpec]) -> String {
        if tools.is_empty() {
            return String::new();
        }
        let call = r#"{"tool": "name", "arguments": {"argument": "value"}}"#;
        let (form, note) = match self.is_parallel {
            true => (format!("{{\"calls\": [{call}]}}"), " The list may have several calls."),
            false => (call.to_owned(), ""),
        };
        format!(
            "Answer with one JSON object. To use a tool:\n\n{form}\n\nThe next message has its result.{note} If no \
             tool fits, or you have the result: {{\"answer\": \"...\"}}\n\nTools:\n\n{}",
            prompt::list(tools),
        )
    }

    fn grammar(&self, tools: Arc<[ToolSpec]>) -> Box<dyn Grammar> {
        Box::new(ConstrainedGrammar::new(tools))
    }

    fn response_format(&self, parameters: &ChatParameters) -> Option<Value> {
        alternatives::response_format(parameters, self.is_parallel)
    }

    fn write_call(&self, call: &ToolUseBlock) -> String {
        let none = Value::Object(Map::new());
        let input = if call.input.is_object() { &call.input } else { &none };
        format!("{{\"tool\": {}, \"arguments\": {input}}}", Value::from(&*call.name))
    }

    fn write_result(&self, result: &ToolResultBlock, tool: &str) -> String {
        let kind = if result.is_error { "error" } else { "result" };
        format!("{{\"tool\": {}, \"{kind}\": {}}}", Value::from(tool), result.content)
    }

    fn write_answer(&self, answer: &Message) -> Option<String> {
        let calls = answer.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(self.write_call(call)),
            _ => None,
        });
        let calls: Vec<String> = calls.collect();
        let text = answer.text();
        let written = match &calls[..] {
            [] => String::new(),
            [call] if !self.is_parallel => call.clone(),
            calls => format!("{{\"calls\": [{}]}}", calls.join(", ")),
        };
        Some(match (&*text, &*written) {
            ("", _) => written,
            // Structured output is an object itself.
            (json, "") if is_object(json) => {
                format!("{{\"answer\": {json}}}")
            }
            (text, "") => format!("{{\"answer\": {}}}", Value::from(text)),
            (text, calls) => format!("{text}\n{calls}"),
        })
    }

    fn stop(&self) -> Vec<String> {
        Vec::new()
    }
}

/// True for the JSON of an object, and nothing around it.
fn is_object(text: &str) -> bool {
    text.starts_with('{')
        && text.ends_with('}')
        && text.parse().is_ok_and(|it: Value| it.is_object())
}
