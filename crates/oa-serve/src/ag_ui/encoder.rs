//! The AG-UI events of a run.

use std::collections::HashMap;

use oa_event_log::{FailureKind, RunEvent, ShownResult, SubAgent, WaitingCall, WaitingKind};
use oa_types::{AssistantMessage, FinishReason, ToolUseBlock, ToolUseError, Usage};
use serde_json::{Map, Value, json};

use crate::encoder::{approval_id, data};
use crate::front_state::merge;
use crate::run_stream::{Kind, RunWriter};

/// The AG-UI encoding of a run.
///
/// In all cases, each message and each call that is opened is closed before `RUN_FINISHED`, and nothing follows
/// `RUN_ERROR`.
#[derive(Debug)]
pub(crate) struct RunEvents {
    thread: String,
    run: String,
    /// Earlier clients reject the outcomes of version 1.0.
    is_version_1: bool,
    /// The state shared with the front end.
    state: Value,
    /// The server's number of the run, which makes ids unique.
    number: u64,
    ids: u64,
    /// The id of the open text.
    open: String,
    /// The message of this answer, once it has one.
    message: Option<String>,
    calls: HashMap<String, Call>,
    usage: Usage,
}

/// The state of a call as sent to the front end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    /// Without arguments so far.
    Begun,
    Open,
    Closed,
    Answered,
}

impl RunEvents {
    pub(crate) fn new(thread: String, run: String, is_version_1: bool, state: Value) -> Self {
        Self {
            thread,
            run,
            is_version_1,
            state,
            number: 0,
            ids: 0,
            open: String::new(),
            message: None,
            calls: HashMap::new(),
            usage: Usage::default(),
        }
    }

    /// Returns an id that no other message has.
    fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{}-{}", self.number, self.ids)
    }

    /// Starts a call as a part of its answer's message, unless it has been started.
    fn start_call(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        if self.calls.contains_key(id) {
            return;
        }
        self.calls.insert(id.to_owned(), Call::Begun);
        // The client joins text and calls of an answer in one message only if the calls name the text as
        // their parent. Without a text, they share a new id; otherwise each call would become a message.
        let message = match &self.message {
            Some(message) => message.clone(),
            None => {
                let message = self.new_id("text");
                self.message.insert(message).clone()
            }
        };
        data(
            &json!({
                "type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name,
                "parentMessageId": message,
            }),
            out,
        );
    }

    fn end_call(&mut self, id: &str, out: &mut Vec<u8>) {
        if let Some(call @ (Call::Begun | Call::Open)) = self.calls.get_mut(id) {
            *call = Call::Closed;
            data(&json!({"type": "TOOL_CALL_END", "toolCallId": id}), out);
        }
    }
}

impl RunWriter for RunEvents {
    const GAP: &'static str = "the client read too slowly: part of the run is missing";

    fn start(&mut self, run: &RunEvent, out: &mut Vec<u8>) {
        self.number = run.run;
        data(&json!({"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run}), out);
    }

    fn open(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let id = self.new_id(kind.word());
        match kind {
            Kind::Reasoning => {
                let role = "reasoning";
                data(&json!({"type": "REASONING_START", "messageId": id}), out);
                data(
                    &json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": role}),
                    out,
                );
            }
            Kind::Text => {
                let role = "assistant";
                data(&json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": role}), out);
                self.message = Some(id.clone());
            }
        }
        self.open = id;
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        let kind = match kind {
            Kind::Reasoning => "REASONING_MESSAGE_CONTENT",
            Kind::Text => "TEXT_MESSAGE_CONTENT",
        };
        data(&json!({"type": kind, "messageId": self.open, "delta": text}), out);
    }

    fn close(&mut self, kind: Kind, out: &mut Vec<u8>) {
        let kinds: &[_] = match kind {
            Kind::Reasoning => &["REASONING_MESSAGE_END", "REASONING_END"],
            Kind::Text => &["TEXT_MESSAGE_END"],
        };
        for kind in kinds {
            data(&json!({"type": kind, "messageId": self.open}), out);
        }
    }

    fn answer_starts(&mut self, _: &mut Vec<u8>) {
        self.message = None;
    }

    fn answer_ends(&mut self, answer: &AssistantMessage, _: &mut Vec<u8>) {
        if let Some(usage) = &answer.usage {
            self.usage.add(usage);
        }
    }

    fn call_begins(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.start_call(id, name, out);
    }

    fn arguments(&mut self, id: &str, piece: &str, out: &mut Vec<u8>) {
        if let Some(call @ (Call::Begun | Call::Open)) = self.calls.get_mut(id) {
            *call = Call::Open;
            data(&json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": piece}), out);
        }
    }

    fn call(&mut self, call: ToolUseBlock, out: &mut Vec<u8>) {
        self.start_call(&call.id, &call.name, out);
        if self.calls.get(&call.id) == Some(&Call::Begun) {
            self.arguments(&call.id, &call.input.to_string(), out);
        }
        self.end_call(&call.id, out);
    }

    fn broken_call(&mut self, error: ToolUseError, out: &mut Vec<u8>) {
        // The error of a complete call comes with its result.
        if let Some(id) = error.id {
            self.start_call(&id, error.name.as_deref().unwrap_or("unknown"), out);
            self.end_call(&id, out);
        }
    }

    fn activity(&mut self, kind: &'static str, call_id: &str, content: Value, out: &mut Vec<u8>) {
        let event = if kind == "progress" {
            let id = format!("progress-{}-{call_id}", self.number);
            activity_snapshot(&id, "tool_progress", &content)
        } else {
            json!({"type": "CUSTOM", "name": format!("tool_{kind}"), "value": content})
        };
        data(&event, out);
    }

    /// A snapshot replaces the front end's state, so it contains all of it. A `STATE_DELTA` that does not
    /// apply is only a warning in the client's console.
    fn state(&mut self, members: &Value, out: &mut Vec<u8>) {
        merge(&mut self.state, members);
        data(&json!({"type": "STATE_SNAPSHOT", "snapshot": self.state}), out);
    }

    fn custom(&mut self, name: &str, value: &Value, out: &mut Vec<u8>) {
        data(&json!({"type": "CUSTOM", "name": name, "value": value}), out);
    }

    /// Sends a result once, also for a call that an earlier run announced.
    fn result(&mut self, result: &ShownResult<'_>, out: &mut Vec<u8>) {
        self.end_call(result.call_id, out);
        let before = self.calls.insert(result.call_id.to_owned(), Call::Answered);
        if before == Some(Call::Answered) {
            return;
        }
        let mut event = json!({
            "type": "TOOL_CALL_RESULT", "messageId": self.new_id("result"),
            "toolCallId": result.call_id, "content": result.text(), "role": "tool",
        });
        // The event has no member for errors, but the client copies `metadata` to the tool message.
        if result.outcome.is_error() {
            event["metadata"] = json!({"outcome": result.outcome.as_str()});
        }
        data(&event, out);
    }

    fn agent_event(&mut self, event: Value, out: &mut Vec<u8>) {
        data(&json!({"type": "CUSTOM", "name": "agent_event", "value": event}), out);
    }

    fn agent(&mut self, agent: &SubAgent, out: &mut Vec<u8>) {
        let id = format!("agent-{}-{}", self.number, agent.id());
        data(&activity_snapshot(&id, "agent", &agent.for_front_ends()), out);
    }

    fn prompt_progress(&mut self, progress: Value, out: &mut Vec<u8>) {
        data(&json!({"type": "CUSTOM", "name": "prompt_progress", "value": progress}), out);
    }

    fn notice(&mut self, kind: &'static str, message: &str, out: &mut Vec<u8>) {
        let value = json!({"kind": kind, "message": message});
        data(&json!({"type": "CUSTOM", "name": "notice", "value": value}), out);
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        let mut open: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, call)| matches!(call, Call::Begun | Call::Open))
            .map(|(id, _)| id.clone())
            .collect();
        // A map has no order, and equal events must give equal bytes.
        open.sort();
        for id in open {
            self.end_call(&id, out);
        }
        let waiting = |kind| run.waiting.iter().filter(move |call| call.kind == kind);
        let interrupts: Vec<_> =
            waiting(WaitingKind::Approval).map(|call| interrupt(run.run, call)).collect();
        let pending: Vec<_> = waiting(WaitingKind::Result).map(|call| &*call.call_id).collect();
        let reason = run.finish_reason.unwrap_or_default();
        let mut event = json!({"type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run});
        let is_stopped = reason == FinishReason::Interrupted;
        if !interrupts.is_empty() {
            event["outcome"] = json!({"type": "interrupt", "interrupts": interrupts});
        } else if is_stopped && self.is_version_1 {
            event["outcome"] = json!({"type": "cancelled"});
        } else if !is_stopped {
            event["outcome"] = json!({"type": "success"});
            if self.is_version_1 {
                event["outcome"]["pendingToolCallIds"] = json!(pending);
            }
        }
        event["metadata"] = json!({"finishReason": reason.as_str()});
        if let Some(usage) = usage(&self.usage) {
            event["usage"] = json!([usage]);
        }
        data(&event, out);
    }

    fn fail(&mut self, message: &str, _: FailureKind, out: &mut Vec<u8>) {
        data(&json!({"type": "RUN_ERROR", "message": message}), out);
    }
}

/// Returns an activity, which replaces the one with the same id.
fn activity_snapshot(id: &str, kind: &str, content: &Value) -> Value {
    json!({"type": "ACTIVITY_SNAPSHOT", "messageId": id, "activityType": kind, "content": content})
}

/// Returns the approval request for a call, with the input that will run.
fn interrupt(run: u64, call: &WaitingCall) -> Value {
    json!({
        "id": approval_id(run, &call.call_id),
        "reason": "tool_approval",
        "message": format!("May {} run with {}?", call.name, call.input),
        "toolCallId": call.call_id,
        "responseSchema": {
            "type": "object",
            "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
            "required": ["approved"],
        },
        "metadata": {"toolName": call.name, "input": call.input},
    })
}

/// The largest number that clients accept: that of JavaScript's safe integers.
const LARGEST_COUNT: u64 = (1 << 53) - 1;

/// Returns the tokens of the run, without members that were not reported. A model server may report any number, and a
/// client fails a run with one that is not an exact integer in JavaScript.
fn usage(usage: &Usage) -> Option<Value> {
    let counts = [
        ("inputTokens", usage.prompt_tokens),
        ("outputTokens", usage.completion_tokens),
        ("totalTokens", usage.total()),
        ("cachedInputTokens", usage.cached_tokens),
        ("reasoningTokens", usage.reasoning_tokens),
    ];
    let counts = counts.into_iter().filter_map(|(name, count)| {
        let count = count.filter(|count| *count <= LARGEST_COUNT)?;
        Some((name.to_owned(), count.into()))
    });
    let counts: Map<_, _> = counts.collect();
    (!counts.is_empty()).then_some(Value::Object(counts))
}

#[cfg(test)]
mod tests;
