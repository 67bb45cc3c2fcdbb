//! The encoding of a run for front ends: the part that their protocols share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use oa_event_log::{
    ConversationEvent, FailureKind, RunEvent, RunState, ShownResult, SubAgent, SubAgents,
    WaitingCall, WaitingKind, activity, notice, state_change,
};
use oa_events::AgentEvent;
use oa_executor::ToolEvent;
use oa_sse::Frame;
use oa_types::{AssistantMessage, ContentBlock, ToolUseBlock, ToolUseError};
use serde_json::{Value, json};

use crate::conversation::View;
use crate::encoder::Encoder;

/// A kind of text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Reasoning,
    Text,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::Text => "text",
        }
    }
}

/// The encoding of a run's events in one protocol. [`RunStream`] calls the methods in a valid order: `start` first,
/// each text between `open` and `close`, one text at a time, and nothing after `end` or `fail`. Events that a protocol
/// cannot express are left out.
#[expect(unused_variables, reason = "a method of a protocol without a word for it does nothing")]
pub(crate) trait RunWriter: Send + 'static {
    /// The error message for a client that read too slowly.
    const GAP: &'static str;

    fn start(&mut self, run: &RunEvent, out: &mut Vec<u8>);

    fn open(&mut self, kind: Kind, out: &mut Vec<u8>) {}

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>);

    fn close(&mut self, kind: Kind, out: &mut Vec<u8>) {}

    fn answer_starts(&mut self, out: &mut Vec<u8>) {}

    fn answer_ends(&mut self, answer: &AssistantMessage, out: &mut Vec<u8>) {}

    /// The model starts a call.
    fn call_begins(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {}

    /// A piece of a call's arguments arrives.
    fn arguments(&mut self, id: &str, piece: &str, out: &mut Vec<u8>) {}

    fn call(&mut self, call: ToolUseBlock, out: &mut Vec<u8>) {}

    /// A call of a front end's tool that the front end must not run: it waits for approval, or was refused.
    fn barred_call(&mut self, call: ToolUseBlock, out: &mut Vec<u8>) {
        self.call(call, out);
    }

    fn broken_call(&mut self, error: ToolUseError, out: &mut Vec<u8>) {}

    /// The tool of a call starts.
    fn call_runs(&mut self, name: &str, out: &mut Vec<u8>) {}

    /// A tool reports its activity.
    fn activity(&mut self, kind: &'static str, call_id: &str, data: Value, out: &mut Vec<u8>) {}

    /// A tool changes the state shared with the front end.
    fn state(&mut self, members: &Value, out: &mut Vec<u8>) {}

    fn custom(&mut self, name: &str, data: &Value, out: &mut Vec<u8>) {}

    fn result(&mut self, result: &ShownResult<'_>, out: &mut Vec<u8>) {}

    /// An event of a sub-agent. Later viewers do not need it: `agent` contains its effect.
    fn agent_event(&mut self, event: Value, out: &mut Vec<u8>) {}

    /// A sub-agent has completed a step.
    fn agent(&mut self, agent: &SubAgent, out: &mut Vec<u8>) {}

    fn prompt_progress(&mut self, data: Value, out: &mut Vec<u8>) {}

    fn notice(&mut self, kind: &'static str, message: &str, out: &mut Vec<u8>) {}

    /// Nothing has happened for a while.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        Frame::write_comment("alive", out);
    }

    fn end(&mut self, run: RunEvent, out: &mut Vec<u8>);

    fn fail(&mut self, error: &str, kind: FailureKind, out: &mut Vec<u8>);
}

/// A run encoded in a protocol. In all cases, each text that is opened is closed, and nothing follows the end.
#[derive(Debug)]
pub(crate) struct RunStream<W> {
    pub(crate) writer: W,
    stage: Stage,
    open: Option<Kind>,
    /// The calls of this answer, by index.
    calls: HashMap<usize, String>,
    /// The tools that the front end runs.
    external: Arc<HashSet<String>>,
    /// Calls of these tools that hooks and permissions have not decided on: a front end may run a call as soon as it has
    /// the input.
    undecided: Vec<ToolUseBlock>,
    agents: SubAgents,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    Before,
    Running,
    Over,
}

impl<W: RunWriter> RunStream<W> {
    pub(crate) fn new(writer: W) -> Self {
        let (calls, agents) = (HashMap::new(), SubAgents::default());
        let (external, undecided) = (Arc::default(), Vec::new());
        Self { writer, stage: Stage::Before, open: None, calls, external, undecided, agents }
    }

    /// Sets the tools that the front end runs.
    pub(crate) fn external(mut self, names: Arc<HashSet<String>>) -> Self {
        self.external = names;
        self
    }

    fn follow(&mut self, event: AgentEvent, out: &mut Vec<u8>) {
        // No call begins inside a text, and no text continues in the next answer.
        if ends_text(&event) {
            self.close(out);
        }
        match event {
            AgentEvent::AnswerStart => {
                // Indexes of calls start anew with each answer.
                self.calls.clear();
                self.writer.answer_starts(out);
            }
            AgentEvent::AnswerEnd(answer) => self.writer.answer_ends(&answer, out),
            AgentEvent::Block(ContentBlock::Text(block)) => self.text(Kind::Text, &block.text, out),
            AgentEvent::Block(ContentBlock::Thinking(block)) => {
                self.text(Kind::Reasoning, &block.thinking, out);
            }
            AgentEvent::Block(ContentBlock::ToolUse(call))
                if self.external.contains(&*call.name) =>
            {
                self.undecided.push(call);
            }
            AgentEvent::Block(ContentBlock::ToolUse(call)) => self.writer.call(call, out),
            AgentEvent::Block(ContentBlock::ToolUseError(error)) => {
                self.refused(error.id.as_deref().unwrap_or_default(), out);
                self.writer.broken_call(error, out);
            }
            AgentEvent::Block(ContentBlock::ToolResult(block)) => {
                self.result(&ShownResult::of_block(&block), out);
            }
            AgentEvent::ToolUseDelta(delta) => {
                // Only the first fragment has the id and the name; later ones have the index of the call.
                if let (Some(id), Some(name)) = (&delta.id, &delta.name) {
                    // A hook may change the arguments before the front end runs the call.
                    if !self.external.contains(&**name) {
                        self.calls.insert(delta.call, id.clone());
                    }
                    self.writer.call_begins(id, name, out);
                }
                if let Some(id) = self.calls.get(&delta.call)
                    && !delta.arguments.is_empty()
                {
                    self.writer.arguments(id, &delta.arguments, out);
                }
            }
            AgentEvent::Nested(nested) => {
                if let Some(event) = SubAgents::shown(&nested) {
                    self.writer.agent_event(event, out);
                }
                if let Some(agent) = self.agents.follow(&nested) {
                    self.writer.agent(agent, out);
                }
            }
            AgentEvent::PromptProgress(progress) => {
                let data = json!({"total": progress.total, "processed": progress.processed});
                self.writer.prompt_progress(data, out);
            }
            AgentEvent::Tool(ToolEvent::CallStart(call)) => {
                self.writer.call_runs(&call.tool_name, out);
            }
            AgentEvent::Tool(ToolEvent::CallComplete(result)) => {
                self.result(&ShownResult::of_execution(&result), out);
            }
            ref event @ AgentEvent::Tool(ref tool) => match (state_change(event), tool) {
                (Some(members), _) => self.writer.state(members, out),
                (None, ToolEvent::Custom(custom)) => {
                    self.writer.custom(custom.name(), &custom.data, out);
                }
                (None, tool) => {
                    if let (Some((kind, data)), Some(id)) = (activity(tool), tool.call_id()) {
                        self.writer.activity(kind, id, data, out);
                    }
                }
            },
            event => {
                if let Some((kind, message)) = notice(&event) {
                    self.writer.notice(kind, &message, out);
                }
            }
        }
    }

    fn result(&mut self, result: &ShownResult<'_>, out: &mut Vec<u8>) {
        self.refused(result.call_id, out);
        self.writer.result(result, out);
    }

    /// Sends a call of a front end's tool that was not allowed, ahead of its error.
    fn refused(&mut self, id: &str, out: &mut Vec<u8>) {
        if let Some(place) = self.undecided.iter().position(|call| call.id == id) {
            self.writer.barred_call(self.undecided.remove(place), out);
        }
    }

    /// Sends the calls whose decision the end of the run tells, with the inputs that would run.
    fn decided(&mut self, waiting: &[WaitingCall], out: &mut Vec<u8>) {
        for mut call in self.undecided.drain(..) {
            let waits = waiting.iter().find(|waiting| waiting.call_id == call.id);
            if let Some(waiting) = waits {
                call.input.clone_from(&waiting.input);
            }
            match waits.map(|waiting| waiting.kind) {
                Some(WaitingKind::Result) => self.writer.call(call, out),
                _ => self.writer.barred_call(call, out),
            }
        }
    }

    fn text(&mut self, kind: Kind, text: &str, out: &mut Vec<u8>) {
        // An empty piece must not open a text.
        if text.is_empty() {
            return;
        }
        if self.open != Some(kind) {
            self.close(out);
            self.open = Some(kind);
            self.writer.open(kind, out);
        }
        self.writer.text(kind, text, out);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if let Some(kind) = self.open.take() {
            self.writer.close(kind, out);
        }
    }

    fn run(&mut self, run: RunEvent, out: &mut Vec<u8>) {
        match (run.state, self.stage) {
            (RunState::Started, Stage::Before) => {
                self.stage = Stage::Running;
                self.writer.start(&run, out);
            }
            (RunState::Started, _) => {}
            (RunState::Failed, _) => {
                let error = run.error.as_deref().unwrap_or("the run failed");
                self.fail(error, run.failure, out);
            }
            (RunState::Ended, _) => {
                self.close(out);
                self.decided(&run.waiting, out);
                self.writer.end(run, out);
                self.stage = Stage::Over;
            }
        }
    }

    fn fail(&mut self, error: &str, kind: FailureKind, out: &mut Vec<u8>) {
        self.close(out);
        self.writer.fail(error, kind, out);
        self.stage = Stage::Over;
    }
}

impl<W: RunWriter> Encoder for RunStream<W> {
    fn write(&mut self, view: View, out: &mut Vec<u8>) {
        match view {
            _ if self.stage == Stage::Over => {}
            // No protocol can leave out a part of a run, and a clean end would pass for a complete answer.
            View::Gap => self.fail(W::GAP, FailureKind::Passing, out),
            View::Event(_, ConversationEvent::Run(event)) => self.run(event, out),
            View::Event(_, ConversationEvent::Agent(event)) if self.stage == Stage::Running => {
                self.follow(event, out);
            }
            View::Event(..) => {}
        }
    }

    fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        self.writer.keep_alive(out);
    }
}

/// Returns true if this event ends the open text.
fn ends_text(event: &AgentEvent) -> bool {
    match event {
        AgentEvent::AnswerStart
        | AgentEvent::AnswerEnd(_)
        | AgentEvent::Block(ContentBlock::ToolUse(_) | ContentBlock::ToolUseError(_)) => true,
        AgentEvent::ToolUseDelta(delta) => delta.id.is_some(),
        _ => false,
    }
}
