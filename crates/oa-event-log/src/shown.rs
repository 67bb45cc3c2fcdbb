//! Events as front ends show them: the part that does not depend on a protocol.

use oa_events::AgentEvent;
use oa_executor::{ExecutionResult, ToolEvent};
use oa_types::{Outcome, ToolResultBlock};
use serde_json::{Value, json};

/// The result of a call, as front ends show it.
///
/// ```
/// use oa_event_log::ShownResult;
/// use oa_types::ToolResultBlock;
/// use serde_json::json;
///
/// let mut block = ToolResultBlock::new("call_1", json!({"error": "not run", "reason": "the user said no"}));
/// block.is_error = true;
/// assert_eq!(ShownResult::of_block(&block).error(), "not run: the user said no");
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ShownResult<'a> {
    /// The id of the call.
    pub call_id: &'a str,
    /// The outcome of the call.
    pub outcome: Outcome,
    /// The result, for the model.
    pub result: &'a Value,
}

impl<'a> ShownResult<'a> {
    /// Returns the result of a call that has just run.
    #[must_use]
    pub fn of_execution(result: &'a ExecutionResult) -> Self {
        Self { call_id: &result.call_id, outcome: result.outcome, result: &result.result }
    }

    /// Returns the result of a call in a history.
    #[must_use]
    pub fn of_block(block: &'a ToolResultBlock) -> Self {
        let outcome = if block.is_error { Outcome::Failed } else { Outcome::Ok };
        Self { call_id: &block.tool_use_id, outcome, result: &block.content }
    }

    /// Returns the error message.
    #[must_use]
    pub fn error(&self) -> String {
        let word = |name| self.result.get(name).and_then(Value::as_str);
        match (word("error"), word("reason"), self.result) {
            (Some(error), Some(reason), _) => format!("{error}: {reason}"),
            (Some(error), None, _) => error.to_owned(),
            (None, _, Value::String(error)) => error.clone(),
            (None, _, other) => other.to_string(),
        }
    }

    /// Returns the result as text: a string unchanged, anything else as JSON.
    #[must_use]
    pub fn text(&self) -> String {
        match self.result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns a notice about the turn, which is neither text nor an error: its kind and a message.
#[must_use]
pub fn notice(event: &AgentEvent) -> Option<(&'static str, String)> {
    Some(match event {
        AgentEvent::AnswerRetry(reason) => ("answer_retry", reason.clone()),
        AgentEvent::FormatRefused(message) => ("format_refused", message.clone()),
        AgentEvent::Problem(problem) => ("problem", problem.to_string()),
        AgentEvent::PromptCut(cut) => (
            "prompt_cut",
            format!("the server read {} of about {} tokens", cut.reported, cut.estimated),
        ),
        AgentEvent::SteerBlocked(reason) => ("steer_blocked", reason.clone()),
        AgentEvent::ThinkingRefused(message) => ("thinking_refused", message.clone()),
        AgentEvent::ToolsRefused(message) => ("tools_refused", message.clone()),
        AgentEvent::ContextShortened(shortened) => (
            "context_shortened",
            format!("from about {} to {} tokens", shortened.before, shortened.after),
        ),
        _ => return None,
    })
}

/// Returns the members that a tool sets in the state shared with the front end.
#[must_use]
pub fn state_change(event: &AgentEvent) -> Option<&Value> {
    match event {
        AgentEvent::Tool(ToolEvent::Custom(event)) if event.name() == "state" => {
            Some(&event.data).filter(|data| data.is_object())
        }
        _ => None,
    }
}

/// Returns the kind and data of a tool's activity, for protocols that can send JSON about a call.
#[must_use]
pub fn activity(event: &ToolEvent) -> Option<(&'static str, Value)> {
    Some(match event {
        ToolEvent::Progress(event) => {
            let mut value = json!({
                "toolCallId": event.call_id, "toolName": event.tool_name, "done": event.progress.done,
            });
            if let Some(total) = event.progress.total {
                value["total"] = total.into();
            }
            if let Some(message) = &event.progress.message {
                value["message"] = message.as_str().into();
            }
            ("progress", value)
        }
        ToolEvent::Status(event) => (
            "status",
            json!({
                "toolCallId": event.call_id, "toolName": event.tool_name, "status": event.status,
            }),
        ),
        ToolEvent::Retry(event) => (
            "retry",
            json!({
                "toolCallId": event.call_id, "toolName": event.tool_name, "attempt": event.attempt,
                "error": event.error,
            }),
        ),
        _ => return None,
    })
}
