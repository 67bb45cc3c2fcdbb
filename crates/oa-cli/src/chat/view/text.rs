//! Calls, results and remarks as one line.

use oa_markdown::{Span, Style, excerpt};
use open_agent::{AgentEvent, ToolUseError, Value};

/// The maximum number of characters of one argument, of all arguments, and of a result.
const ARGUMENT: usize = 60;
const CALL: usize = 300;
const RESULT: usize = 300;

/// `add(a: 25, b: 17)`
pub(crate) fn call_text(name: &str, input: &Value) -> String {
    let arguments: Vec<_> = match input {
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| format!("{name}: {}", excerpt(&value.to_string(), ARGUMENT)))
            .collect(),
        Value::Null => vec![],
        other => vec![excerpt(&other.to_string(), ARGUMENT).into_owned()],
    };
    excerpt(&format!("{name}({})", arguments.join(", ")), CALL).into_owned()
}

/// Returns a result on one line.
pub(crate) fn result_text(result: &Value) -> String {
    let text = match result {
        Value::String(text) => text.clone(),
        other => match other["error"].as_str() {
            Some(error) => error.to_owned(),
            None => other.to_string(),
        },
    };
    one_line(&text, RESULT)
}

/// Returns the reason of a denied call on one line.
pub(crate) fn denied_text(reason: &str) -> String {
    format!("denied: {}", one_line(reason, RESULT))
}

/// Returns the beginning of a text on one line.
pub(crate) fn one_line(text: &str, characters: usize) -> String {
    let words: Vec<_> = text.split_whitespace().take(characters).collect();
    excerpt(&words.join(" "), characters).into_owned()
}

/// Returns the user's own text on one line: line breaks show as `⏎`, and everything else as it was typed. Only in
/// calls are characters escaped that languages and emoji need, such as joiners.
pub(crate) fn typed(text: &str, style: Style) -> Span {
    Span::new(&text.replace('\n', "⏎"), style)
}

/// Returns a call that could not be read, and why.
pub(crate) fn failed_text(error: &ToolUseError) -> String {
    format!("{}: {}", error.name.as_deref().unwrap_or("a call"), error.error)
}

/// Returns what the user must know about an event that is not a part of the answer; `None` if there is nothing.
pub(crate) fn remark(event: &AgentEvent) -> Option<String> {
    let text = match event {
        AgentEvent::AnswerRetry(reason) => {
            return Some(format!("the answer was refused: {reason}"));
        }
        AgentEvent::ContextShortened(_) => "older parts of the conversation were left out",
        AgentEvent::Problem(problem) => return Some(format!("problem in the stream: {problem}")),
        AgentEvent::PromptCut(_) => {
            "the server seems to have truncated the prompt: its context is too small"
        }
        AgentEvent::ThinkingRefused(_) => "the amount of thinking cannot be set for this model",
        AgentEvent::ToolsRefused(_) => {
            "the model lacks function calling: calls are written as text"
        }
        _ => return None,
    };
    Some(text.to_owned())
}
