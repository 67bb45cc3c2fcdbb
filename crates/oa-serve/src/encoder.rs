//! Events of a conversation as the bytes of a response: the part that all protocols share.

use oa_events::AgentEvent;
use oa_executor::{ExecutionResult, ToolEvent};
use oa_sse::Frame;
use oa_types::{Outcome, ToolResultBlock};
use serde::Serialize;
use serde_json::Value;

use crate::conversation::View;

/// A protocol: events in, frames out. It does no I/O and has no clock, so the same events make the same bytes.
pub(crate) trait Encoder: Send + 'static {
    /// Appends the frames of what a viewer has read.
    fn write(&mut self, view: View, out: &mut Vec<u8>);

    /// Returns true once nothing may follow.
    fn is_over(&self) -> bool;

    /// Appends what keeps proxies awake while there is nothing to say.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        Frame::write_comment("alive", out);
    }
}

/// Appends an event with JSON as its data.
pub(crate) fn data(data: &impl Serialize, out: &mut Vec<u8>) {
    // JSON has no line breaks outside of strings, where they are escaped.
    if let Ok(data) = serde_json::to_string(data) {
        let written = Frame::new(&data).write_to(out);
        debug_assert!(written.is_ok(), "an event without fields is valid");
    }
}

/// The id by which a front end says yes or no to a call that waited at the end of a run. A call that is asked about
/// again has another id, so an answer counts once.
pub(crate) fn approval_id(run: u64, call_id: &str) -> String {
    format!("{run}-{call_id}")
}

/// The result of a call as front ends show it.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) result: &'a Value,
}

impl<'a> CallResult<'a> {
    pub(crate) fn of_execution(result: &'a ExecutionResult) -> Self {
        Self { call_id: &result.call_id, outcome: result.outcome, result: &result.result }
    }

    pub(crate) fn of_block(block: &'a ToolResultBlock) -> Self {
        let outcome = if block.is_error { Outcome::Failed } else { Outcome::Ok };
        Self { call_id: &block.tool_use_id, outcome, result: &block.content }
    }

    /// Returns the words of an error.
    pub(crate) fn error(&self) -> String {
        let word = |name| self.result.get(name).and_then(Value::as_str);
        match (word("error"), word("reason"), self.result) {
            (Some(error), Some(reason), _) => format!("{error}: {reason}"),
            (Some(error), None, _) => error.to_owned(),
            (None, _, Value::String(error)) => error.clone(),
            (None, _, other) => other.to_string(),
        }
    }

    /// Returns the result as text: a string as it is, anything else as JSON.
    pub(crate) fn text(&self) -> String {
        match self.result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// A remark about the turn that is neither its text nor an error: its kind and a sentence.
pub(crate) fn notice(event: &AgentEvent) -> Option<(&'static str, String)> {
    Some(match event {
        AgentEvent::AnswerRetry(reason) => ("answer_retry", reason.clone()),
        AgentEvent::FormatRefused(message) => ("format_refused", message.clone()),
        AgentEvent::Problem(problem) => ("problem", problem.to_string()),
        AgentEvent::PromptCut(cut) => (
            "prompt_cut",
            format!("the server read {} of about {} tokens", cut.reported, cut.estimated),
        ),
        AgentEvent::SteerBlocked(reason) => ("steer_blocked", reason.clone()),
        AgentEvent::ToolsRefused(message) => ("tools_refused", message.clone()),
        AgentEvent::ContextShortened(shortened) => (
            "context_shortened",
            format!("from about {} to {} tokens", shortened.before, shortened.after),
        ),
        _ => return None,
    })
}

/// Returns the members that a tool puts into the state that is shared with a front end.
pub(crate) fn state_change(event: &AgentEvent) -> Option<&Value> {
    match event {
        AgentEvent::Tool(ToolEvent::Custom(event)) if event.name() == "state" => {
            Some(&event.data).filter(|data| data.is_object())
        }
        _ => None,
    }
}

/// The activity of a tool, for protocols that have a place for JSON about a call.
pub(crate) fn activity(event: &ToolEvent) -> Option<(&'static str, Value)> {
    use serde_json::json;

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
