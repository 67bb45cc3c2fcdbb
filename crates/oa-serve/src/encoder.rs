//! Encoding of a conversation's events as response bytes: the part that all protocols share.

use oa_events::AgentEvent;
use oa_executor::{ExecutionResult, ToolEvent};
use oa_sse::Frame;
use oa_types::{Outcome, ToolResultBlock};
use serde::Serialize;
use serde_json::Value;

use crate::conversation::View;

/// A protocol that turns events into frames. It has no I/O and no clock, so equal events give equal bytes.
pub(crate) trait Encoder: Send + 'static {
    /// Appends the frames for an item that a viewer has read.
    fn write(&mut self, view: View, out: &mut Vec<u8>);

    /// Returns true once the stream is complete.
    fn is_over(&self) -> bool;

    /// Appends a keep-alive for proxies while there are no events.
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

/// Returns the id with which a front end approves or denies a call that waited at the end of a run. If the call is
/// asked about again, it has another id, so an answer counts once.
pub(crate) fn approval_id(run: u64, call_id: &str) -> String {
    format!("{run}-{call_id}")
}

/// The result of a call, as shown by front ends.
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

    /// Returns the error message.
    pub(crate) fn error(&self) -> String {
        let word = |name| self.result.get(name).and_then(Value::as_str);
        match (word("error"), word("reason"), self.result) {
            (Some(error), Some(reason), _) => format!("{error}: {reason}"),
            (Some(error), None, _) => error.to_owned(),
            (None, _, Value::String(error)) => error.clone(),
            (None, _, other) => other.to_string(),
        }
    }

    /// Returns the result as text: a string unchanged, anything else as JSON.
    pub(crate) fn text(&self) -> String {
        match self.result {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }
}

/// Returns a notice about the turn, which is neither text nor an error: its kind and a message.
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

/// Returns the members that a tool sets in the state shared with the front end.
pub(crate) fn state_change(event: &AgentEvent) -> Option<&Value> {
    match event {
        AgentEvent::Tool(ToolEvent::Custom(event)) if event.name() == "state" => {
            Some(&event.data).filter(|data| data.is_object())
        }
        _ => None,
    }
}

/// Returns the kind and data of a tool's activity, for protocols that can send JSON about a call.
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
