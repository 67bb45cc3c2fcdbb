//! The agent of a conversation and its stored session.

use oa_client::{AgentOptions, Client};
use oa_event_log::{CallAnswer, SubAgent, WaitingCall, WaitingKind};
use oa_session::{SavedSession, SessionId};
use oa_types::{Message, MessageRole};
use serde_json::{Map, Value};

use crate::error::Refusal;
use crate::front_session::{
    EarlyAnswer, FrontMark, claimed_by_others, early_answers, has_members, refused_answers,
    run_members, stored_agents,
};
use crate::front_state::FrontState;

/// The maximum size in bytes of the answers stored while other calls wait.
const MOST_EARLY: usize = 16 << 10;

/// The agent of a conversation. Only its holder may change the history.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) client: Client,
    /// The id under which the conversation is stored; `None` if it is never stored.
    pub(crate) id: Option<SessionId>,
    /// The stored session, once it exists.
    pub(crate) saved: Option<SavedSession>,
    /// Answers to calls while others of the turn still wait.
    pub(crate) early: Vec<EarlyAnswer>,
    /// The hashes of answers that hooks have refused.
    pub(crate) refused: Vec<String>,
    /// Metadata members that must be stored before the history.
    pub(crate) members: Map<String, Value>,
    /// True if the metadata has members that the next run must replace.
    has_members: bool,
    /// The state shared between tools and the front end of this run.
    pub(crate) state: Option<FrontState>,
    /// True until a run begins, if the client was restored from the store.
    pub(crate) is_restored: bool,
    /// True until a run begins, if the store lacked the answer of another server to a call that it has claimed.
    pub(crate) is_behind: bool,
}

impl Seat {
    /// Creates the agent of a new conversation. If it has an id, it is stored when its first run begins.
    pub(crate) fn new(client: Client, id: Option<SessionId>) -> Self {
        Self {
            client,
            id,
            saved: None,
            early: Vec::new(),
            refused: Vec::new(),
            members: Map::new(),
            has_members: false,
            state: None,
            is_restored: false,
            is_behind: false,
        }
    }

    /// Opens a stored conversation.
    pub(crate) fn stored(agent: &AgentOptions, saved: SavedSession) -> Result<Self, Refusal> {
        let client = Client::new(agent.clone())?;
        let mut seat = Self::new(client, Some(saved.session().info.id.clone()));
        seat.saved = Some(saved);
        seat.restore(agent)?;
        Ok(seat)
    }

    /// Restores the agent from the stored session, including early answers. Waiting calls are checked against the tools
    /// of these options.
    pub(crate) fn restore(&mut self, agent: &AgentOptions) -> Result<(), Refusal> {
        let Some(saved) = &self.saved else { return Ok(()) };
        let mut client = Client::resume(agent.clone(), saved.session().conversation())?;
        self.early = early_answers(&saved.session().info);
        self.refused = refused_answers(&saved.session().info);
        // `resume` has opened all calls without a result, including those that were decided on before.
        // Answers that no longer fit are dropped: their calls wait again.
        self.early.retain(|early| give(&mut client, &early.call_id, &early.answer).is_ok());
        self.client = client;
        self.has_members |= has_members(&saved.session().info);
        self.is_restored = true;
        Ok(())
    }

    /// Returns the prefix that gives the calls of the last answer the same idempotency keys in every process. The same
    /// question asked again, by another run of a front end, has another one.
    pub(crate) fn key_prefix(&self) -> Option<String> {
        let (id, run) = (self.id.as_ref()?, self.mark().map_or(0, |mark| mark.run));
        let is_answer = |message: &Message| message.role == MessageRole::Assistant;
        let place = self.client.history().iter().rposition(is_answer)?;
        Some(format!("{id}@{run}.{place}"))
    }

    /// Returns the front end's run recorded in the stored session.
    pub(crate) fn mark(&self) -> Option<FrontMark> {
        FrontMark::of(&self.saved.as_ref()?.session().info)
    }

    /// Returns the calls that servers other than this one have claimed, if the session has just been loaded.
    pub(crate) fn claimed_by_others(&self, server: &str) -> Vec<String> {
        let saved = self.saved.as_ref();
        saved.map_or_else(Vec::new, |saved| claimed_by_others(saved.session(), server))
    }

    /// Returns the sub-agents of the stored session.
    pub(crate) fn agents(&self) -> Vec<SubAgent> {
        self.saved.as_ref().map_or_else(Vec::new, |saved| stored_agents(&saved.session().info))
    }

    /// Prepares the metadata for a new run. Discards early answers unless calls still wait.
    pub(crate) fn begin(&mut self, front: Option<&FrontMark>, waits: bool) {
        if !waits {
            self.early.clear();
        }
        (self.is_restored, self.is_behind) = (false, false);
        // A run without a front end has members only to remove those of an earlier run.
        if front.is_some() || self.has_members {
            self.members = run_members(front, &self.early);
        }
        self.has_members = front.is_some() || !self.early.is_empty();
    }

    /// Shares the front end's state with the tools of the next run; without one, it is null.
    pub(crate) fn share_state(&mut self, state: Option<Value>) {
        let had_state = self.state.take().is_some();
        self.state = state.map(FrontState::new);
        // The agent begins with an empty state, so only the state of an earlier run has to be replaced by
        // one.
        if self.state.is_some() || had_state {
            let state = self.state.clone().unwrap_or_default();
            self.client.set_state(state);
        }
    }

    /// Records an answer that must survive a restart, because other calls of the turn still wait. Returns false if it
    /// is too long to be stored.
    pub(crate) fn answered_early(&mut self, call_id: &str, answer: &CallAnswer) -> bool {
        // Results are stored in the history.
        if !matches!(answer, CallAnswer::Result { .. }) {
            let early = EarlyAnswer { call_id: call_id.to_owned(), answer: answer.clone() };
            // Answers beyond the limit are not stored: after a restart, their calls wait again.
            let bytes =
                |early: &EarlyAnswer| serde_json::to_vec(early).map_or(0, |json| json.len());
            let all: usize = self.early.iter().chain([&early]).map(bytes).sum();
            if all > MOST_EARLY {
                return false;
            }
            self.early.push(early);
            self.has_members = true;
        }
        true
    }

    pub(crate) fn waiting(&self) -> Vec<WaitingCall> {
        let approvals = self.client.pending_approvals().into_iter();
        let results = self.client.pending_calls().into_iter();
        let mut waiting: Vec<_> = approvals
            .map(|call| WaitingCall::new(call, WaitingKind::Approval))
            .chain(results.map(|call| WaitingCall::new(call, WaitingKind::Result)))
            .collect();
        for call in &mut waiting {
            let tool = self.client.get_tool(&call.name);
            let description = tool.map(|tool| tool.description().to_owned());
            call.prompt = description.filter(|description| !description.is_empty());
        }
        waiting
    }
}

/// Passes the agent an answer to a call.
pub(crate) fn give(
    client: &mut Client,
    call_id: &str,
    answer: &CallAnswer,
) -> Result<(), oa_client::Error> {
    match answer {
        CallAnswer::Approved { input: None } => client.approve(call_id),
        CallAnswer::Approved { input: Some(input) } => client.approve_with(call_id, input.clone()),
        CallAnswer::Denied { reason } => {
            client.deny(call_id, reason.as_deref().unwrap_or("the user said no"))
        }
        CallAnswer::Result { content, is_error: false } => {
            client.add_tool_result(call_id, content.clone())
        }
        CallAnswer::Result { content: Value::String(error), is_error: true } => {
            client.add_tool_error(call_id, error)
        }
        CallAnswer::Result { content, is_error: true } => {
            client.add_tool_error(call_id, content.to_string())
        }
    }
}
