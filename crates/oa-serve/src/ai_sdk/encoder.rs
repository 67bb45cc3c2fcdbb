//! The UI message stream of the AI SDK.

use std::collections::{HashMap, HashSet};

use oa_events::AgentEvent;
use oa_executor::ToolEvent;
use oa_sse::Frame;
use oa_types::{ContentBlock, FinishReason, Outcome, ToolUseError};
use serde_json::{Value, json};

use crate::ai_sdk::keys::without_forbidden_keys;
use crate::conversation::View;
use crate::encoder::{self, CallResult, Encoder, activity, approval_id, notice};
use crate::log::{ConversationEvent, RunEvent, RunState, WaitingKind};

/// A run as one assistant message of a `useChat` front end.
///
/// Whatever happens in the run, each part that is opened is closed before the end, and nothing follows an error.
#[derive(Debug)]
pub(crate) struct MessageStream {
    message_id: String,
    /// Calls that the user has denied, whose results say so.
    denied: HashSet<String>,
    open: Option<(Kind, String)>,
    parts: u64,
    is_in_step: bool,
    /// True if the last step has calls that are done: a front end would send such a message again.
    has_done_calls: bool,
    /// The calls of this answer, by their number in it.
    indices: HashMap<usize, String>,
    calls: HashMap<String, Call>,
    state: Stage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    Reasoning,
    Text,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Before,
    Running,
    Over,
}

/// A call, as far as the front end knows it.
#[derive(Debug, Default)]
struct Call {
    input: Option<Value>,
    is_done: bool,
}

impl MessageStream {
    /// Creates the stream of a run whose message has this id; `denied` are calls that the user has just denied.
    pub(crate) fn new(message_id: String, denied: impl IntoIterator<Item = String>) -> Self {
        Self {
            message_id,
            denied: denied.into_iter().collect(),
            open: None,
            parts: 0,
            is_in_step: false,
            has_done_calls: false,
            indices: HashMap::new(),
            calls: HashMap::new(),
            state: Stage::Before,
        }
    }

    fn agent(&mut self, event: AgentEvent, out: &mut Vec<u8>) {
        match event {
            AgentEvent::AnswerStart => {
                self.end_step(out);
                chunk(json!({"type": "start-step"}), out);
                self.is_in_step = true;
                self.has_done_calls = false;
                self.indices.clear();
            }
            AgentEvent::AnswerEnd(_) => self.close(out),
            AgentEvent::Block(ContentBlock::Text(block)) => self.text(Kind::Text, &block.text, out),
            AgentEvent::Block(ContentBlock::Thinking(block)) => {
                self.text(Kind::Reasoning, &block.thinking, out);
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => {
                self.close(out);
                self.input(&call.id, &call.name, call.input, out);
            }
            AgentEvent::Block(ContentBlock::ToolUseError(error)) => self.input_error(error, out),
            AgentEvent::Block(ContentBlock::ToolResult(block)) => {
                self.result(&CallResult::of_block(&block), out);
            }
            AgentEvent::ToolUseDelta(delta) => {
                if let (Some(id), Some(name)) = (&delta.id, &delta.name) {
                    self.close(out);
                    self.indices.insert(delta.call, id.clone());
                    self.calls.entry(id.clone()).or_default();
                    chunk(
                        json!({"type": "tool-input-start", "toolCallId": id, "toolName": name}),
                        out,
                    );
                }
                if let Some(id) = self.indices.get(&delta.call)
                    && !delta.arguments.is_empty()
                {
                    let text = &delta.arguments;
                    chunk(
                        json!({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": text}),
                        out,
                    );
                }
            }
            AgentEvent::Tool(event) => self.tool(&event, out),
            AgentEvent::PromptProgress(progress) => {
                let data = json!({
                    "total": progress.total, "processed": progress.processed,
                });
                chunk(
                    json!({"type": "data-prompt-progress", "data": data, "transient": true}),
                    out,
                );
            }
            event => {
                if let Some((kind, message)) = notice(&event) {
                    let data = json!({"kind": kind, "message": message});
                    chunk(json!({"type": "data-notice", "data": data, "transient": true}), out);
                }
            }
        }
    }

    fn tool(&mut self, event: &ToolEvent, out: &mut Vec<u8>) {
        match event {
            ToolEvent::CallComplete(result) => self.result(&CallResult::of_execution(result), out),
            ToolEvent::Custom(event) => {
                let mut part =
                    json!({"type": format!("data-{}", event.name()), "data": event.data});
                if event.name() == "state" {
                    // The last state replaces the ones before.
                    part["id"] = "state".into();
                }
                chunk(part, out);
            }
            event => {
                if let (Some((kind, data)), Some(id)) = (activity(event), event.call_id()) {
                    chunk(
                        json!({"type": format!("data-tool-{kind}"), "id": id, "data": data}),
                        out,
                    );
                }
            }
        }
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let word = kind.word();
        let id = match &self.open {
            Some((open, id)) if *open == kind => id.clone(),
            _ => {
                self.close(out);
                self.parts += 1;
                let id = format!("{word}-{}", self.parts);
                chunk(json!({"type": format!("{word}-start"), "id": id}), out);
                self.open = Some((kind, id.clone()));
                id
            }
        };
        chunk(json!({"type": format!("{word}-delta"), "id": id, "delta": text}), out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some((kind, id)) = self.open.take() {
            chunk(json!({"type": format!("{}-end", kind.word()), "id": id}), out);
        }
    }

    fn end_step(&mut self, out: &mut Vec<u8>) {
        self.close(out);
        if self.is_in_step {
            chunk(json!({"type": "finish-step"}), out);
            self.is_in_step = false;
        }
    }

    /// Shows the input of a call, unless it is shown already.
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

    /// Shows a call that cannot be run. The error of one that was shown whole comes with its result.
    fn input_error(&mut self, error: ToolUseError, out: &mut Vec<u8>) {
        self.close(out);
        let ToolUseError { error, raw_data, id: Some(id), name, .. } = error else {
            return;
        };
        let call = self.calls.entry(id.clone()).or_default();
        if call.is_done || call.input.is_some() || self.denied.contains(&id) {
            return;
        }
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

    fn result(&mut self, result: &CallResult<'_>, out: &mut Vec<u8>) {
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

    fn run(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        match (run.state, self.state) {
            (RunState::Started, Stage::Before) => {
                self.state = Stage::Running;
                chunk(json!({"type": "start", "messageId": self.message_id}), out);
            }
            (RunState::Started, _) => {}
            (RunState::Failed, _) => {
                self.close(out);
                self.fail(&run.error.unwrap_or_else(|| "the run failed".to_owned()), out);
            }
            (RunState::Ended, _) => self.end(run, out),
        }
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        self.close(out);
        let reason = run.finish_reason.unwrap_or_default();
        let waits = !run.waiting.is_empty();
        for call in run.waiting {
            let approval = approval_id(run.run, &call.call_id);
            // The input that will run, should it not be the one that was shown.
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
        if reason == FinishReason::Interrupted {
            self.end_step(out);
            chunk(json!({"type": "abort", "reason": "stopped"}), out);
        } else {
            if self.has_done_calls && !waits {
                // A last step with nothing but finished calls would be sent again, and again.
                self.end_step(out);
                chunk(json!({"type": "start-step"}), out);
                self.is_in_step = true;
            }
            self.end_step(out);
            chunk(json!({"type": "finish", "finishReason": finish_reason(&reason, waits)}), out);
        }
        let written = Frame::new("[DONE]").write_to(out);
        debug_assert!(written.is_ok(), "an event without fields is valid");
        self.state = Stage::Over;
    }

    fn fail(&mut self, error: &str, out: &mut Vec<u8>) {
        chunk(json!({"type": "error", "errorText": error}), out);
        self.state = Stage::Over;
    }
}

impl Encoder for MessageStream {
    fn write(&mut self, view: View, out: &mut Vec<u8>) {
        if self.state == Stage::Over {
            return;
        }
        match view {
            View::Gap => {
                self.close(out);
                self.fail(
                    "a part of this answer is no longer kept: load the conversation again",
                    out,
                );
            }
            View::Event(_, ConversationEvent::Agent(event)) if self.state == Stage::Running => {
                self.agent(event, out);
            }
            View::Event(_, ConversationEvent::Run(event)) => self.run(event, out),
            View::Event(..) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.state == Stage::Over
    }
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Text => "text",
        }
    }
}

/// Appends a chunk, with the keys that the client accepts.
fn chunk(chunk: Value, out: &mut Vec<u8>) {
    encoder::data(&without_forbidden_keys(chunk), out);
}

/// Returns the word for a reason; the client knows no others.
fn finish_reason(reason: &FinishReason, waits: bool) -> &'static str {
    match reason {
        _ if waits => "tool-calls",
        FinishReason::ContentFilter | FinishReason::Refusal => "content-filter",
        FinishReason::Interrupted => "interrupted",
        reason if reason.is_length() => "length",
        reason if reason.is_complete() => "stop",
        _ => "other",
    }
}
