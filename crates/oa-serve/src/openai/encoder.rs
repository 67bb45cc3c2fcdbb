//! A completion, whole or in chunks.

use std::mem;

use oa_event_log::{ConversationEvent, FailureKind, RunEvent, RunState, WaitingCall, WaitingKind};
use oa_events::{AgentEvent, TurnText};
use oa_executor::ToolEvent;
use oa_sse::Frame;
use oa_types::{AssistantMessage, ContentBlock, FinishReason, Usage};
use serde_json::{Map, Value, json};

use crate::conversation::View;
use crate::conversations::unguessable_id;
use crate::encoder::data;
use crate::run_stream::{Kind, RunWriter};

/// The members that all chunks of a completion share.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) model: String,
    /// The time in seconds since 1970.
    pub(crate) created: u64,
    pub(crate) calls: CallIds,
}

/// The ids that a client gets for its calls, distinct among all completions.
///
/// A client has no name for its conversation: its results are told apart by the ids of their calls. Some model servers
/// number the calls of each answer anew, and then the same prompt, sent twice, would have the same ids.
#[derive(Clone, Debug)]
pub(crate) struct CallIds(String);

impl CallIds {
    pub(crate) fn new() -> Self {
        let mut suffix = unguessable_id();
        // Model servers accept ids of 64 characters, and the longest ones of their own have 46.
        suffix.truncate(16);
        Self(suffix)
    }

    /// Returns the id of a call for the client.
    pub(crate) fn shown(&self, call_id: &str) -> String {
        format!("{call_id}-{}", self.0)
    }

    /// Returns the id of a call in the conversation for one that the client got.
    pub(crate) fn known(shown: &str) -> &str {
        shown.rsplit_once('-').map_or(shown, |(call_id, _)| call_id)
    }
}

/// The error of a completion that was stopped while its client waited for it, such as by the server's shutdown.
const STOPPED: &str = "the answer was stopped before its end";

/// A run as chunks of a completion. The agent's own calls do not appear in it: a client would try to answer them.
#[derive(Debug)]
pub(crate) struct Chunks {
    head: Head,
    includes_usage: bool,
    usage: Usage,
    joined: Joined,
    /// The text of the answer that a hook may still refuse; `None` if there is no such hook.
    held: Option<Vec<(Kind, String)>>,
}

/// Joins the texts of the rounds. A completion has no other way to show where a round ends.
#[derive(Clone, Copy, Debug, Default)]
struct Joined {
    content: TurnText,
    reasoning: TurnText,
}

impl Joined {
    fn begin_answer(&mut self) {
        self.content.begin_answer();
        self.reasoning.begin_answer();
    }
}

impl Chunks {
    /// Creates a writer. If hooks review answers, each one is sent once it is accepted: a client keeps what it has read,
    /// and sends it back with the next prompt.
    pub(crate) fn new(head: Head, includes_usage: bool, reviews_answers: bool) -> Self {
        let (usage, joined) = (Usage::default(), Joined::default());
        Self { head, includes_usage, usage, joined, held: reviews_answers.then(Vec::new) }
    }

    fn release(&mut self, out: &mut Vec<u8>) {
        if let Some(held) = self.held.take() {
            held.iter().for_each(|(kind, text)| self.text(*kind, text, out));
            self.held = Some(Vec::new());
        }
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>, out: &mut Vec<u8>) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish_reason});
        self.send(json!([choice]), None, out);
    }

    fn comment(&self, text: &str, out: &mut Vec<u8>) {
        Frame::write_comment(text, out);
        self.keep_alive(out);
    }

    fn send(&self, choices: Value, usage: Option<Value>, out: &mut Vec<u8>) {
        let mut chunk = json!({
            "id": self.head.id, "object": "chat.completion.chunk", "created": self.head.created,
            "model": self.head.model, "choices": choices,
        });
        if let Some(usage) = usage {
            chunk["usage"] = usage;
        }
        data(&chunk, out);
    }
}

impl RunWriter for Chunks {
    const GAP: &'static str = "the client read too slowly: part of the answer is missing";

    fn start(&mut self, _: &RunEvent, out: &mut Vec<u8>) {
        self.chunk(json!({"role": "assistant", "content": ""}), None, out);
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        if let Some(held) = &mut self.held {
            held.push((kind, text.to_owned()));
            return;
        }
        let (name, joined) = match kind {
            Kind::Reasoning => ("reasoning_content", &mut self.joined.reasoning),
            Kind::Text => ("content", &mut self.joined.content),
        };
        let before = joined.before(text);
        self.chunk(json!({name: format!("{before}{text}")}), None, out);
    }

    fn answer_starts(&mut self, out: &mut Vec<u8>) {
        self.release(out);
        self.joined.begin_answer();
    }

    fn notice(&mut self, kind: &'static str, _: &str, _: &mut Vec<u8>) {
        if let (Some(held), "answer_retry") = (&mut self.held, kind) {
            held.clear();
        }
    }

    fn answer_ends(&mut self, answer: &AssistantMessage, _: &mut Vec<u8>) {
        if let Some(usage) = &answer.usage {
            self.usage.add(usage);
        }
    }

    // Clients parse every event as a chunk, so the activity of tools is sent as comments.
    fn call_runs(&mut self, name: &str, out: &mut Vec<u8>) {
        self.comment(name, out);
    }

    fn activity(&mut self, kind: &'static str, _: &str, data: Value, out: &mut Vec<u8>) {
        if kind == "progress" {
            let total = data.get("total").map(|total| format!(" of {total}")).unwrap_or_default();
            let name = data["toolName"].as_str().unwrap_or_default();
            self.comment(&format!("{name} {}{total}", data["done"]), out);
        }
    }

    /// Some clients give up on a stream without chunks, whatever else comes: LangChain after two minutes.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.chunk(json!({"content": ""}), None, out);
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        let reason = run.finish_reason.unwrap_or_default();
        if reason == FinishReason::Interrupted {
            return self.fail(STOPPED, FailureKind::Passing, out);
        }
        self.release(out);
        // Whole calls at the end, because only the end of the run says which of them the client must answer.
        let calls: Vec<_> = client_calls(&run.waiting, &self.head.calls)
            .enumerate()
            .map(|(index, mut call)| {
                call["index"] = index.into();
                call
            })
            .collect();
        let has_calls = !calls.is_empty();
        if has_calls {
            self.chunk(json!({"tool_calls": calls}), None, out);
        }
        self.chunk(json!({}), Some(finish_reason(&reason, has_calls)), out);
        if self.includes_usage {
            self.send(json!([]), Some(usage(&self.usage)), out);
        }
        let written = Frame::new("[DONE]").write_to(out);
        debug_assert!(written.is_ok(), "an event without fields is valid");
    }

    fn fail(&mut self, message: &str, kind: FailureKind, out: &mut Vec<u8>) {
        // No `[DONE]`: the client libraries raise an error when they read this object.
        data(&failure(message, kind), out);
    }
}

/// A run as one completion.
#[derive(Debug)]
pub(crate) struct Whole {
    head: Head,
    content: String,
    reasoning: String,
    joined: Joined,
    usage: Usage,
    has_run_tools: bool,
}

/// A completion that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    /// The error status of the model's server, if it sent one.
    pub(crate) status: Option<u16>,
    pub(crate) kind: FailureKind,
    /// False if the request would fail again, and once tools have run, because a retry would run them again.
    pub(crate) may_be_retried: bool,
}

impl Whole {
    /// Creates a completion. `has_run_tools` is true if it goes on after tools have run.
    pub(crate) fn new(head: Head, has_run_tools: bool) -> Self {
        Self {
            head,
            content: String::new(),
            reasoning: String::new(),
            joined: Joined::default(),
            usage: Usage::default(),
            has_run_tools,
        }
    }

    /// Reads an item, and returns the completion once it is complete.
    pub(crate) fn read(&mut self, view: View) -> Option<Result<Value, Failure>> {
        match view {
            View::Gap => {
                let message = "the answer is too long: part of it is missing".to_owned();
                Some(Err(self.failed(message, None, FailureKind::Passing)))
            }
            View::Event(_, ConversationEvent::Agent(event)) => {
                self.agent(event);
                None
            }
            View::Event(_, ConversationEvent::Run(run)) => match run.state {
                RunState::Started => None,
                RunState::Failed => {
                    let message = run.error.unwrap_or_else(|| "the run failed".to_owned());
                    Some(Err(self.failed(message, run.status, run.failure)))
                }
                RunState::Ended if run.finish_reason == Some(FinishReason::Interrupted) => {
                    Some(Err(self.failed(STOPPED.to_owned(), Some(503), FailureKind::Passing)))
                }
                RunState::Ended => Some(Ok(self.completion(&run))),
            },
            View::Event(..) => None,
        }
    }

    fn agent(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::AnswerEnd(answer) => {
                if let Some(usage) = &answer.usage {
                    self.usage.add(usage);
                }
            }
            // A refused answer is taken back. `Chunks` cannot do this: its client already has the text.
            AgentEvent::AnswerRetry(_) => {
                self.joined.content.discard_answer(&mut self.content);
                self.joined.reasoning.discard_answer(&mut self.reasoning);
            }
            AgentEvent::AnswerStart => self.joined.begin_answer(),
            AgentEvent::Block(ContentBlock::Text(block)) => {
                self.joined.content.push(&mut self.content, &block.text);
            }
            AgentEvent::Block(ContentBlock::Thinking(block)) => {
                self.joined.reasoning.push(&mut self.reasoning, &block.thinking);
            }
            AgentEvent::Tool(ToolEvent::CallStart(_)) => self.has_run_tools = true,
            _ => {}
        }
    }

    fn completion(&mut self, run: &RunEvent) -> Value {
        let calls: Vec<_> = client_calls(&run.waiting, &self.head.calls).collect();
        let reason = run.finish_reason.clone().unwrap_or_default();
        let finish_reason = finish_reason(&reason, !calls.is_empty());
        let content = mem::take(&mut self.content);
        let has_content = !content.is_empty() || calls.is_empty();
        let mut message = json!({"role": "assistant", "content": has_content.then_some(content)});
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = mem::take(&mut self.reasoning).into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        json!({
            "id": self.head.id, "object": "chat.completion", "created": self.head.created,
            "model": self.head.model,
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": usage(&self.usage),
        })
    }

    fn failed(&self, message: String, status: Option<u16>, kind: FailureKind) -> Failure {
        let may_be_retried = kind == FailureKind::Passing && !self.has_run_tools;
        Failure { message, status, kind, may_be_retried }
    }
}

/// Returns the error of a run that failed, with the codes of OpenAI's own servers.
pub(crate) fn failure(message: &str, kind: FailureKind) -> Value {
    let refused = |param, code| error(message, "invalid_request_error", param, Some(code));
    match kind {
        FailureKind::Blocked => refused(None, "content_filter"),
        FailureKind::ContextOverflow => refused(Some("messages"), "context_length_exceeded"),
        FailureKind::Lasting | FailureKind::Passing => error(message, "server_error", None, None),
    }
}

/// Returns an error in OpenAI's format.
pub(crate) fn error(message: &str, kind: &str, param: Option<&str>, code: Option<&str>) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}

/// Returns the calls that the client must answer.
fn client_calls(waiting: &[WaitingCall], ids: &CallIds) -> impl Iterator<Item = Value> {
    let calls = waiting.iter().filter(|call| call.kind == WaitingKind::Result);
    calls.map(|call| {
        let function = json!({"name": call.name, "arguments": call.input.to_string()});
        json!({"id": ids.shown(&call.call_id), "type": "function", "function": function})
    })
}

/// Returns OpenAI's name for a reason. Clients accept no other names.
fn finish_reason(reason: &FinishReason, has_calls: bool) -> &'static str {
    match reason {
        _ if has_calls => "tool_calls",
        FinishReason::Refusal => "content_filter",
        reason if reason.is_filtered() => "content_filter",
        // The model's server gave no reason, so the answer may be incomplete.
        FinishReason::Unspecified => "length",
        reason if reason.is_length() || reason.is_limit() => "length",
        _ => "stop",
    }
}

fn usage(usage: &Usage) -> Value {
    let (prompt, completion) =
        (usage.prompt_tokens.unwrap_or_default(), usage.completion_tokens.unwrap_or_default());
    // A model server may report any number, so nothing is added here.
    let total = usage.total().unwrap_or_default();
    let mut counts = Map::new();
    counts.insert("prompt_tokens".to_owned(), prompt.into());
    counts.insert("completion_tokens".to_owned(), completion.into());
    counts.insert("total_tokens".to_owned(), total.into());
    if let Some(cached) = usage.cached_tokens {
        counts.insert("prompt_tokens_details".to_owned(), json!({"cached_tokens": cached}));
    }
    if let Some(reasoning) = usage.reasoning_tokens {
        let details = json!({"reasoning_tokens": reasoning});
        counts.insert("completion_tokens_details".to_owned(), details);
    }
    Value::Object(counts)
}

#[cfg(test)]
mod tests;
