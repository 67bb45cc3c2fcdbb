//! Sub-agents of a run, as shown with the call that runs them.

use std::collections::BTreeMap;

use oa_events::{AgentEvent, NestedEvent};
use oa_executor::ToolEvent;
use oa_types::{ContentBlock, json_size};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The maximum numbers of sub-agents in a run, and of parts and bytes of text in a sub-agent. The rest is left out.
const MOST_AGENTS: usize = 32;
const MOST_PARTS: usize = 64;
const MOST_TEXT: usize = 32 << 10;
/// The largest input or result of a call that is kept, in bytes of JSON.
const MOST_VALUE: usize = 2 << 10;
/// The maximum size of the sub-agents stored with a conversation, in bytes of JSON. The oldest are left out, and of
/// one that is larger by itself, inputs, results and the oldest parts.
const MOST_STORED: usize = 24 << 10;

/// The progress of a sub-agent.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct SubAgent {
    /// The call that runs the sub-agent.
    call_id: String,
    /// The calls above it, from the outermost on, if its parent is a sub-agent too. Ids of calls are distinct only
    /// within one agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    above: Vec<String>,
    agent: String,
    parts: Vec<SubPart>,
    is_done: bool,
}

/// A text or a call of a sub-agent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SubPart {
    Call {
        call_id: String,
        name: String,
        state: SubCallState,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    Text {
        text: String,
    },
}

#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum SubCallState {
    Done,
    Failed,
    Running,
}

/// The sub-agents of a run.
#[derive(Clone, Debug, Default)]
pub struct SubAgents {
    /// Sub-agents by their [ids](SubAgent::id).
    agents: BTreeMap<String, SubAgent>,
    /// The same ids, in the order in which they began.
    order: Vec<String>,
    /// For each sub-agent, the number of parts before its last answer.
    before_answer: BTreeMap<String, usize>,
}

impl SubAgents {
    /// Applies an event. Returns the sub-agent if the event is a step: the start or end of an answer or a call, but not
    /// a piece of text.
    pub fn follow(&mut self, nested: &NestedEvent) -> Option<&SubAgent> {
        // An event of call `c2` within the agent of call `c1` is nested twice: `c1`, `c2`, and the event itself.
        let (mut above, mut nested) = (Vec::new(), nested);
        while let AgentEvent::Nested(inner) = &nested.event {
            above.push(nested.call_id.clone());
            nested = inner;
        }
        let agent = SubAgent {
            call_id: nested.call_id.clone(),
            above,
            agent: nested.agent.clone(),
            ..SubAgent::default()
        };
        let id = agent.id();
        if !self.agents.contains_key(&id) {
            if self.agents.len() >= MOST_AGENTS {
                return None;
            }
            self.order.push(id.clone());
        }
        let before_answer = self.before_answer.entry(id.clone()).or_default();
        let agent = self.agents.entry(id).or_insert(agent);
        agent.follow(&nested.event, before_answer).then_some(agent)
    }

    /// Returns an event as sent live to front ends. `None` for events that are not sent: logs may hold secrets, and the
    /// content of an answer's message has already been sent.
    #[must_use]
    pub fn shown(nested: &NestedEvent) -> Option<Value> {
        let mut path = vec![&*nested.call_id];
        let (mut agent, mut event) = (&nested.agent, &nested.event);
        while let AgentEvent::Nested(inner) = event {
            path.push(&inner.call_id);
            (agent, event) = (&inner.agent, &inner.event);
        }
        let is_hidden = matches!(
            event,
            AgentEvent::AnswerEnd(_)
                | AgentEvent::Tool(ToolEvent::Log(_) | ToolEvent::Metrics(_) | ToolEvent::End(_))
        );
        let mut value = json!({"toolCallId": path.pop()?, "agent": agent, "event": event});
        if let Some(parent) = path.pop() {
            value["parentToolCallId"] = parent.into();
        }
        (!is_hidden).then_some(value)
    }

    /// Returns true if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the sub-agents to store with a conversation: the earlier ones and those of this run, without the oldest
    /// if they exceed the limit. One that exceeds it by itself is kept in part.
    #[must_use]
    pub fn kept(&self, before: &[SubAgent]) -> Vec<SubAgent> {
        // Since the first checkpoint of a run, `before` also has the agents of this run, in an earlier state.
        let is_older = |agent: &&SubAgent| !self.agents.contains_key(&agent.id());
        let older = before.iter().filter(is_older);
        let own = self.order.iter().filter_map(|id| self.agents.get(id));
        let all: Vec<_> = older.chain(own).collect();
        let mut left = MOST_STORED;
        let mut kept = Vec::new();
        for agent in all.into_iter().rev() {
            let most = if kept.is_empty() { left.saturating_sub(1) } else { usize::MAX };
            let agent = agent.clone().within(most);
            // One more for the separator.
            match left.checked_sub(json_size(&agent) + 1) {
                Some(rest) => left = rest,
                None => break,
            }
            kept.push(agent);
        }
        kept.reverse();
        kept
    }
}

impl SubAgent {
    /// Returns an id that is distinct within the run: the ids of the calls down to it.
    #[must_use]
    pub fn id(&self) -> String {
        let path = self.above.iter().chain([&self.call_id]);
        // Escaped, because a model may write a slash into an id.
        let path: Vec<_> = path.map(|id| id.replace('~', "~0").replace('/', "~1")).collect();
        path.join("/")
    }

    /// Applies an event, and returns true if it is a step.
    fn follow(&mut self, event: &AgentEvent, before_answer: &mut usize) -> bool {
        match event {
            AgentEvent::Block(ContentBlock::Text(block)) => {
                self.say(&block.text, *before_answer);
                false
            }
            AgentEvent::Tool(ToolEvent::CallStart(call)) if self.parts.len() < MOST_PARTS => {
                self.parts.push(SubPart::Call {
                    call_id: call.call_id.clone(),
                    name: call.tool_name.clone(),
                    state: SubCallState::Running,
                    input: small(&call.input),
                    result: None,
                });
                true
            }
            AgentEvent::Tool(ToolEvent::CallComplete(complete)) => {
                let call = self.parts.iter_mut().rev().find_map(|part| match part {
                    SubPart::Call {
                        call_id, state: state @ SubCallState::Running, result, ..
                    } if *call_id == complete.call_id => Some((state, result)),
                    _ => None,
                });
                let Some((state, result)) = call else { return false };
                let failed = complete.outcome.is_error();
                *state = if failed { SubCallState::Failed } else { SubCallState::Done };
                *result = small(&complete.result);
                true
            }
            AgentEvent::AnswerStart => {
                *before_answer = self.parts.len();
                true
            }
            AgentEvent::AnswerEnd(_) => true,
            // A refused answer has no calls, so its parts are texts.
            AgentEvent::AnswerRetry(_) => {
                self.parts.truncate(*before_answer);
                true
            }
            AgentEvent::TurnEnd(_) => {
                self.is_done = true;
                true
            }
            _ => false,
        }
    }

    /// Adds a piece of text to the last part if that is a text of the same answer, or as a new part.
    fn say(&mut self, piece: &str, before_answer: usize) {
        let said: usize = self
            .parts
            .iter()
            .map(|part| if let SubPart::Text { text } = part { text.len() } else { 0 })
            .sum();
        let piece = oa_json::beginning(piece, MOST_TEXT.saturating_sub(said));
        if piece.is_empty() {
            return;
        }
        if let Some(SubPart::Text { text }) = self.parts[before_answer..].last_mut() {
            text.push_str(piece);
        } else if self.parts.len() < MOST_PARTS {
            self.parts.push(SubPart::Text { text: piece.to_owned() });
        }
    }

    /// Returns the sub-agent within a size in bytes of JSON, if that is possible: without the inputs and results of its
    /// first calls, and then without its first parts or the beginning of a text.
    fn within(mut self, most: usize) -> Self {
        let mut bytes = json_size(&self);
        for part in &mut self.parts {
            if bytes <= most {
                return self;
            }
            let before = json_size(part);
            if let SubPart::Call { input, result, .. } = part {
                (*input, *result) = (None, None);
            }
            bytes -= before - json_size(part);
        }
        let mut excess = bytes.saturating_sub(most);
        self.parts.retain_mut(|part| {
            if excess == 0 {
                return true;
            }
            // With its separator.
            let size = json_size(part) + 1;
            let cut = match part {
                SubPart::Text { text } if size > excess => {
                    let cut = cut_front(text, excess);
                    // Without its text, the part goes too: its frame may be more than the rest of the excess.
                    if text.is_empty() { size } else { cut }
                }
                _ => size,
            };
            excess = excess.saturating_sub(cut);
            cut < size
        });
        self
    }

    /// Returns the sub-agent's JSON for front ends.
    #[must_use]
    pub fn for_front_ends(&self) -> Value {
        let parts = self.parts.iter().map(|part| match part {
            SubPart::Text { text } => json!({"type": "text", "text": text}),
            SubPart::Call { call_id, name, state, input, result } => {
                let mut part =
                    json!({"type": "call", "toolCallId": call_id, "toolName": name, "state": state});
                for (name, value) in [("input", input), ("result", result)] {
                    if let Some(value) = value {
                        part[name] = value.clone();
                    }
                }
                part
            }
        });
        let mut agent = json!({
            "toolCallId": self.call_id, "agent": self.agent, "parts": parts.collect::<Vec<_>>(), "isDone": self.is_done,
        });
        if let Some(parent) = self.above.last() {
            agent["parentToolCallId"] = parent.as_str().into();
        }
        agent
    }
}

/// Removes the beginning of a text, at least this many bytes of its JSON if it has them, and returns how many.
fn cut_front(text: &mut String, bytes: usize) -> usize {
    let mut cut = 0;
    let end = text.char_indices().find(|(_, char)| {
        let is_enough = cut >= bytes;
        if !is_enough {
            // Without the quotes.
            cut += json_size(char) - 2;
        }
        is_enough
    });
    let end = end.map_or(text.len(), |(end, _)| end);
    text.drain(..end);
    cut
}

/// Returns a value if it is not larger than [`MOST_VALUE`].
fn small(value: &Value) -> Option<Value> {
    (json_size(value) <= MOST_VALUE).then(|| value.clone())
}

#[cfg(test)]
mod tests;
