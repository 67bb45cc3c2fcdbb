//! The UI message stream of the AI SDK.

use std::collections::{HashMap, HashSet};

use oa_event_log::{FailureKind, RunEvent, ShownResult, SubAgent, WaitingKind};
use oa_sse::Frame;
use oa_types::{FinishReason, Outcome, ToolUseBlock, ToolUseError};
use serde_json::{Value, json};

use crate::ai_sdk::keys::without_forbidden_keys;
use crate::encoder::{approval_id, data};
use crate::run_stream::{Kind, RunWriter};

/// A run as one assistant message of a `useChat` front end.
#[derive(Debug)]
pub(crate) struct MessageWriter {
    message_id: String,
    /// Calls that the user has denied; their results are sent as denials.
    denied: HashSet<String>,
    /// The number of text parts so far, used for their ids.
    parts: u64,
    is_in_step: bool,
    /// True if the last step has completed calls: a front end would resend a message that ends with such a step.
    has_done_calls: bool,
    calls: HashMap<String, Call>,
}

/// The state of a call as sent to the front end.
#[derive(Debug, Default)]
struct Call {
    input: Option<Value>,
    is_done: bool,
}

impl MessageWriter {
    /// Creates a writer for a run whose message has this id; `denied` are calls that the user has just denied.
    pub(crate) fn new(message_id: String, denied: impl IntoIterator<Item = String>) -> Self {
        Self {
            message_id,
            denied: denied.into_iter().collect(),
            parts: 0,
            is_in_step: false,
            has_done_calls: false,
            calls: HashMap::new(),
        }
    }

    fn part_id(&self, kind: Kind) -> String {
        format!("{}-{}", kind.word(), self.parts)
    }

    fn start_step(&mut self, out: &mut Vec<u8>) {
        self.end_step(out);
        chunk(json!({"type": "start-step"}), out);
        self.is_in_step = true;
        self.has_done_calls = false;
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        if self.is_in_step {
            chunk(json!({"type": "finish-step"}), out);
            self.is_in_step = false;
        }
    }

    /// Sends the input of a call, unless it has been sent.
    fn input(&mut self, id: &str, name: &str, input: Value, out: &mut Vec<u8>) {
        let call = self.calls.entry(id.to_owned()).or_default();
        if call.is_done || call.input.as_ref() == Some(&input) {
            return;
        }
        call.input = Some(input.clone());
        chunk(
            json!({
                "type": "tool-input-available", "toolCallId": id, "toolName": name, "input": input,
            }),
            out,
        );
    }
}

impl RunWriter for MessageWriter {
    const GAP: &'static str = "part of this answer is no longer available: reload the conversation";

    fn start(&mut self, _: &RunEvent, out: &mut Vec<u8>) {
        chunk(json!({"type": "start", "messageId": self.message_id}), out);
    }

    fn open(&mut self, kind: Kind, out: &mut Vec<u8>) {
        self.parts += 1;
        let kind_start = format!("{}-start", kind.word());
        chunk(json!({"type": kind_start, "id": self.part_id(kind)}), out);
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        let kind_delta = format!("{}-delta", kind.word());
        chunk(json!({"type": kind_delta, "id": self.part_id(kind), "delta": text}), out);
    }

    fn close(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let kind_end = format!("{}-end", kind.word());
        chunk(json!({"type": kind_end, "id": self.part_id(kind)}), out);
    }

    fn answer_starts(&mut self, out: &mut Vec<u8>) {
        self.start_step(out);
    }

    fn call_begins(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.calls.entry(id.to_owned()).or_default();
        chunk(json!({"type": "tool-input-start", "toolCallId": id, "toolName": name}), out);
    }

    fn arguments(&mut self, id: &str, piece: &str, out: &mut Vec<u8>) {
        chunk(json!({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": piece}), out);
    }

    fn call(&mut self, call: ToolUseBlock, out: &mut Vec<u8>) {
        self.input(&call.id, &call.name, call.input, out);
    }

    /// Sends the input as if the model still wrote it: for a complete input, the client calls `onToolCall`.
    fn barred_call(&mut self, call: ToolUseBlock, out: &mut Vec<u8>) {
        if self.calls.get(&call.id).is_some_and(|sent| sent.is_done) {
            return;
        }
        if !self.calls.contains_key(&call.id) {
            self.call_begins(&call.id, &call.name, out);
        }
        let shown = without_forbidden_keys(call.input.clone()).to_string();
        self.arguments(&call.id, &shown, out);
        self.calls.entry(call.id).or_default().input = Some(call.input);
    }

    /// Sends a call that cannot run. For a call that was sent complete, the error comes with its result.
    fn broken_call(&mut self, error: ToolUseError, out: &mut Vec<u8>) {
        let ToolUseError { error, raw_data, id: Some(id), name, .. } = error else {
            return;
        };
        let call = self.calls.entry(id.clone()).or_default();
        if call.is_done || call.input.is_some() || self.denied.contains(&id) {
            return;
        }
        // The client accepts no output after `tool-input-error`, so the result is not sent.
        call.is_done = true;
        self.has_done_calls = true;
        chunk(
            json!({
                "type": "tool-input-error", "toolCallId": id,
                "toolName": name.unwrap_or_else(|| "unknown".to_owned()),
                "input": raw_data, "errorText": error,
            }),
            out,
        );
    }

    fn activity(&mut self, kind: &'static str, call_id: &str, data: Value, out: &mut Vec<u8>) {
        chunk(json!({"type": format!("data-tool-{kind}"), "id": call_id, "data": data}), out);
    }

    fn state(&mut self, members: &Value, out: &mut Vec<u8>) {
        // A part with the same id replaces the previous one.
        chunk(json!({"type": "data-state", "id": "state", "data": members}), out);
    }

    fn custom(&mut self, name: &str, data: &Value, out: &mut Vec<u8>) {
        chunk(json!({"type": format!("data-{name}"), "data": data}), out);
    }

    /// Sends a result once. A call of an earlier run is not in `calls`: this run continues its message.
    fn result(&mut self, result: &ShownResult<'_>, out: &mut Vec<u8>) {
        let id = result.call_id;
        let call = self.calls.entry(id.to_owned()).or_default();
        if call.is_done {
            return;
        }
        call.is_done = true;
        self.has_done_calls = true;
        chunk(
            match result.outcome {
                Outcome::Ok => json!({
                    "type": "tool-output-available", "toolCallId": id, "output": result.result,
                }),
                _ if self.denied.contains(id) => {
                    json!({"type": "tool-output-denied", "toolCallId": id})
                }
                _ => json!({
                    "type": "tool-output-error", "toolCallId": id, "errorText": result.error(),
                }),
            },
            out,
        );
    }

    fn agent_event(&mut self, event: Value, out: &mut Vec<u8>) {
        chunk(json!({"type": "data-agent-event", "data": event, "transient": true}), out);
    }

    fn agent(&mut self, agent: &SubAgent, out: &mut Vec<u8>) {
        // Replaces the previous part of this sub-agent.
        chunk(json!({"type": "data-agent", "id": agent.id(), "data": agent.for_front_ends()}), out);
    }

    fn prompt_progress(&mut self, data: Value, out: &mut Vec<u8>) {
        chunk(json!({"type": "data-prompt-progress", "data": data, "transient": true}), out);
    }

    fn notice(&mut self, kind: &'static str, message: &str, out: &mut Vec<u8>) {
        let data = json!({"kind": kind, "message": message});
        chunk(json!({"type": "data-notice", "data": data, "transient": true}), out);
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        let reason = run.finish_reason.unwrap_or_default();
        let waits = !run.waiting.is_empty();
        for call in run.waiting {
            let approval = approval_id(run.run, &call.call_id);
            // Send the input that will run, in case it differs from the one that was sent.
            self.input(&call.call_id, &call.name, call.input, out);
            if call.kind == WaitingKind::Approval {
                chunk(
                    json!({
                        "type": "tool-approval-request", "approvalId": approval,
                        "toolCallId": call.call_id,
                    }),
                    out,
                );
            }
        }
        if self.has_done_calls && !waits {
            // `useChat` would resend a message whose last step has only completed calls, in an endless loop.
            self.start_step(out);
        }
        self.end_step(out);
        if reason == FinishReason::Interrupted {
            chunk(json!({"type": "abort", "reason": "stopped"}), out);
        }
        chunk(json!({"type": "finish", "finishReason": finish_reason(&reason, waits)}), out);
        let written = Frame::new("[DONE]").write_to(out);
        debug_assert!(written.is_ok(), "an event without fields is valid");
    }

    fn fail(&mut self, error: &str, _: FailureKind, out: &mut Vec<u8>) {
        chunk(json!({"type": "error", "errorText": error}), out);
    }
}

/// Appends a chunk, renaming keys that the client does not accept.
fn chunk(chunk: Value, out: &mut Vec<u8>) {
    data(&without_forbidden_keys(chunk), out);
}

/// Returns the client's name for a reason. Clients accept no other names, and `interrupted` only since version 7.
fn finish_reason(reason: &FinishReason, waits: bool) -> &'static str {
    match reason {
        _ if waits => "tool-calls",
        FinishReason::Refusal => "content-filter",
        reason if reason.is_filtered() => "content-filter",
        reason if reason.is_length() => "length",
        reason if reason.is_complete() => "stop",
        _ => "other",
    }
}

#[cfg(test)]
mod tests;
