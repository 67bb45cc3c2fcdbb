//! The events of a run, as AG-UI defines them.

use std::collections::HashMap;

use oa_events::AgentEvent;
use oa_executor::ToolEvent;
use oa_types::{ContentBlock, FinishReason, Usage};
use serde_json::{Map, Value, json};

use crate::conversation::View;
use crate::encoder::{CallResult, Encoder, activity, approval_id, data, notice};
use crate::log::{ConversationEvent, RunEvent, RunState, WaitingCall, WaitingKind};

/// A run as an AG-UI front end reads it.
///
/// Whatever happens in the run, each message and each call that is opened is closed before `RUN_FINISHED`, and nothing
/// follows `RUN_ERROR`.
#[derive(Debug)]
pub(crate) struct RunEvents {
    thread: String,
    run: String,
    /// The state that the front end shares.
    state: Value,
    stage: Stage,
    /// The number of our run, for ids that are used once.
    number: u64,
    ids: u64,
    open: Option<(Kind, String)>,
    /// The message of this answer, once it has one.
    message: Option<String>,
    indices: HashMap<usize, String>,
    calls: HashMap<String, Call>,
    usage: Usage,
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

/// A call as far as the front end knows it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    Open,
    Closed,
    Answered,
}

impl RunEvents {
    pub(crate) fn new(thread: String, run: String, state: Value) -> Self {
        Self {
            thread,
            run,
            state,
            stage: Stage::Before,
            number: 0,
            ids: 0,
            open: None,
            message: None,
            indices: HashMap::new(),
            calls: HashMap::new(),
            usage: Usage::default(),
        }
    }

    /// Returns an id that no other message has.
    fn new_id(&mut self, kind: &str) -> String {
        self.ids += 1;
        format!("{kind}-{}-{}", self.number, self.ids)
    }

    fn agent(&mut self, event: AgentEvent, out: &mut Vec<u8>) {
        match event {
            AgentEvent::AnswerStart => {
                self.close(out);
                self.message = None;
                self.indices.clear();
            }
            AgentEvent::AnswerEnd(answer) => {
                self.close(out);
                if let Some(usage) = &answer.usage {
                    self.usage.add(usage);
                }
            }
            AgentEvent::Block(ContentBlock::Text(block)) => self.text(Kind::Text, &block.text, out),
            AgentEvent::Block(ContentBlock::Thinking(block)) => {
                self.text(Kind::Reasoning, &block.thinking, out);
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => {
                self.start_call(&call.id, &call.name, Some(&call.input), out);
                self.end_call(&call.id, out);
            }
            AgentEvent::Block(ContentBlock::ToolUseError(error)) => {
                // That of a complete call comes with its result.
                if let Some(id) = error.id {
                    let name = error.name.as_deref().unwrap_or("unknown");
                    self.start_call(&id, name, None, out);
                    self.end_call(&id, out);
                }
            }
            AgentEvent::Block(ContentBlock::ToolResult(block)) => {
                self.result(&CallResult::of_block(&block), out);
            }
            AgentEvent::ToolUseDelta(delta) => {
                if let (Some(id), Some(name)) = (&delta.id, &delta.name) {
                    self.indices.insert(delta.call, id.clone());
                    self.start_call(id, name, None, out);
                }
                if let Some(id) = self.indices.get(&delta.call)
                    && self.calls.get(id) == Some(&Call::Open)
                    && !delta.arguments.is_empty()
                {
                    let arguments = &delta.arguments;
                    let args =
                        json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments});
                    data(&args, out);
                }
            }
            AgentEvent::Tool(event) => self.tool(&event, out),
            event => {
                if let Some((kind, message)) = notice(&event) {
                    let value = json!({"kind": kind, "message": message});
                    data(&json!({"type": "CUSTOM", "name": "notice", "value": value}), out);
                }
            }
        }
    }

    fn tool(&mut self, event: &ToolEvent, out: &mut Vec<u8>) {
        match event {
            ToolEvent::CallComplete(result) => self.result(&CallResult::of_execution(result), out),
            ToolEvent::Custom(event) if event.name() == "state" && event.data.is_object() => {
                self.merge_state(&event.data);
                data(&json!({"type": "STATE_SNAPSHOT", "snapshot": self.state}), out);
            }
            ToolEvent::Custom(event) => {
                data(&json!({"type": "CUSTOM", "name": event.name(), "value": event.data}), out);
            }
            event => match (activity(event), event.call_id()) {
                (Some(("progress", content)), Some(id)) => data(
                    &json!({
                        "type": "ACTIVITY_SNAPSHOT",
                        "messageId": format!("progress-{}-{id}", self.number),
                        "activityType": "tool_progress",
                        "content": content,
                    }),
                    out,
                ),
                (Some((kind, value)), Some(_)) => {
                    data(
                        &json!({"type": "CUSTOM", "name": format!("tool_{kind}"), "value": value}),
                        out,
                    );
                }
                _ => {}
            },
        }
    }

    /// Puts members into the shared state, beside those that are there.
    fn merge_state(&mut self, members: &Value) {
        if !self.state.is_object() {
            self.state = Value::Object(Map::new());
        }
        for (name, value) in members.as_object().into_iter().flatten() {
            self.state[name] = value.clone();
        }
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        let id = match &self.open {
            Some((open, id)) if *open == kind => id.clone(),
            _ => {
                self.close(out);
                let id = self.new_id(kind.word());
                match kind {
                    Kind::Reasoning => {
                        data(&json!({"type": "REASONING_START", "messageId": id}), out);
                        let role = "reasoning";
                        data(
                            &json!({"type": "REASONING_MESSAGE_START", "messageId": id, "role": role}),
                            out,
                        );
                    }
                    Kind::Text => {
                        let role = "assistant";
                        data(
                            &json!({"type": "TEXT_MESSAGE_START", "messageId": id, "role": role}),
                            out,
                        );
                        self.message = Some(id.clone());
                    }
                }
                self.open = Some((kind, id.clone()));
                id
            }
        };
        let kind = match kind {
            Kind::Reasoning => "REASONING_MESSAGE_CONTENT",
            Kind::Text => "TEXT_MESSAGE_CONTENT",
        };
        data(&json!({"type": kind, "messageId": id, "delta": text}), out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        match self.open.take() {
            Some((Kind::Reasoning, id)) => {
                data(&json!({"type": "REASONING_MESSAGE_END", "messageId": id}), out);
                data(&json!({"type": "REASONING_END", "messageId": id}), out);
            }
            Some((Kind::Text, id)) => {
                data(&json!({"type": "TEXT_MESSAGE_END", "messageId": id}), out);
            }
            None => {}
        }
    }

    /// Begins a call, unless it has begun: as a part of the message of its answer.
    fn start_call(&mut self, id: &str, name: &str, input: Option<&Value>, out: &mut Vec<u8>) {
        if self.calls.contains_key(id) {
            return;
        }
        self.close(out);
        self.calls.insert(id.to_owned(), Call::Open);
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
        if let Some(input) = input {
            let input = input.to_string();
            data(&json!({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": input}), out);
        }
    }

    fn end_call(&mut self, id: &str, out: &mut Vec<u8>) {
        if let Some(call @ Call::Open) = self.calls.get_mut(id) {
            *call = Call::Closed;
            data(&json!({"type": "TOOL_CALL_END", "toolCallId": id}), out);
        }
    }

    /// Sends a result once; also of a call that an earlier run has announced.
    fn result(&mut self, result: &CallResult<'_>, out: &mut Vec<u8>) {
        self.end_call(result.call_id, out);
        let before = self.calls.insert(result.call_id.to_owned(), Call::Answered);
        if before == Some(Call::Answered) {
            return;
        }
        let mut event = json!({
            "type": "TOOL_CALL_RESULT", "messageId": self.new_id("result"),
            "toolCallId": result.call_id, "content": result.text(), "role": "tool",
        });
        if result.outcome.is_error() {
            event["metadata"] = json!({"outcome": result.outcome.as_str()});
        }
        data(&event, out);
    }

    fn run(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        match (run.state, self.stage) {
            (RunState::Started, Stage::Before) => {
                self.stage = Stage::Running;
                self.number = run.run;
                data(
                    &json!({"type": "RUN_STARTED", "threadId": self.thread, "runId": self.run}),
                    out,
                );
            }
            (RunState::Started, _) => {}
            (RunState::Failed, _) => {
                self.fail(&run.error.unwrap_or_else(|| "the run failed".to_owned()), out);
            }
            (RunState::Ended, _) => self.end(run, out),
        }
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        self.close(out);
        let mut open: Vec<_> = self
            .calls
            .iter()
            .filter(|(_, call)| **call == Call::Open)
            .map(|(id, _)| id.clone())
            .collect();
        open.sort();
        for id in open {
            self.end_call(&id, out);
        }
        let interrupts: Vec<_> = run
            .waiting
            .iter()
            .filter(|call| call.kind == WaitingKind::Approval)
            .map(|call| interrupt(run.run, call))
            .collect();
        let pending: Vec<_> = run
            .waiting
            .iter()
            .filter(|call| call.kind == WaitingKind::Result)
            .map(|call| &*call.call_id)
            .collect();
        let reason = run.finish_reason.unwrap_or_default();
        let outcome = if !interrupts.is_empty() {
            json!({"type": "interrupt", "interrupts": interrupts})
        } else if reason == FinishReason::Interrupted {
            json!({"type": "cancelled"})
        } else {
            json!({"type": "success", "pendingToolCallIds": pending})
        };
        let mut event = json!({
            "type": "RUN_FINISHED", "threadId": self.thread, "runId": self.run,
            "outcome": outcome, "metadata": {"finishReason": reason.as_str()},
        });
        if let Some(usage) = usage(&self.usage) {
            event["usage"] = json!([usage]);
        }
        data(&event, out);
        self.stage = Stage::Over;
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        data(&json!({"type": "RUN_ERROR", "message": message}), out);
        self.stage = Stage::Over;
    }
}

impl Encoder for RunEvents {
    fn write(&mut self, view: View, out: &mut Vec<u8>) {
        if self.stage == Stage::Over {
            return;
        }
        match view {
            View::Gap => self.fail("this reader was too slow: a part of the run is missing", out),
            View::Event(_, ConversationEvent::Agent(event)) if self.stage == Stage::Running => {
                self.agent(event, out);
            }
            View::Event(_, ConversationEvent::Run(event)) => self.run(event, out),
            View::Event(..) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
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

/// The question whether a call may run, with the input that will run.
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

/// Returns the tokens of the run, without members that nobody has counted.
fn usage(usage: &Usage) -> Option<Value> {
    let counts = [
        ("inputTokens", usage.prompt_tokens),
        ("outputTokens", usage.completion_tokens),
        ("totalTokens", usage.total()),
        ("cachedInputTokens", usage.cached_tokens),
        ("reasoningTokens", usage.reasoning_tokens),
    ];
    let counts =
        counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
    let counts: Map<_, _> = counts.collect();
    (!counts.is_empty()).then_some(Value::Object(counts))
}
