//! Conversations of front ends in the store: their ids, and what is stored beside their messages.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use oa_event_log::{CallAnswer, SubAgent};
use oa_session::{Pending, Session, SessionId, SessionInfo};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The member of a session's metadata that holds a [`FrontMark`].
const FRONT: &str = "front";
/// The member of a session's metadata that holds answers to calls while others of the same turn still wait.
const ANSWERS: &str = "answers";

/// The member of a pending turn that holds the servers that have claimed calls, by the ids of the calls.
const CLAIMED: &str = "claimed";
/// The member of a session's metadata that holds its sub-agents.
const AGENTS: &str = "agents";
/// The member of a session's metadata that holds the hashes of answers that hooks have refused.
const REFUSED: &str = "refused";
/// The number of refused answers whose hashes are kept.
const MOST_REFUSED: usize = 64;

/// A protocol in which the front end names its conversations.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FrontProtocol {
    AgUi,
    AiSdk,
}

/// Returns the id under which a conversation of a front end is stored. Different names have different ids.
pub(crate) fn session_id(protocol: FrontProtocol, name: &str) -> Option<SessionId> {
    let prefix = match protocol {
        FrontProtocol::AgUi => "thread",
        FrontProtocol::AiSdk => "chat",
    };
    let plain = SessionId::new(format!("{prefix}-{name}")).ok();
    // The `=` keeps hashed ids apart from plain ones, which have a hyphen at this place.
    plain.or_else(|| {
        // The name is too long for the store or has characters that it does not accept.
        let hash = hex(&Sha256::digest(name.as_bytes())[..24]);
        SessionId::new(format!("{prefix}={hash}")).ok()
    })
}

/// The last run of a front end. After a restart, it identifies answers to the run's approval requests.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct FrontMark {
    pub(crate) run: u64,
    pub(crate) message_id: String,
}

impl FrontMark {
    pub(crate) fn of(info: &SessionInfo) -> Option<Self> {
        serde_json::from_value(info.metadata.get(FRONT)?.clone()).ok()
    }
}

/// The identifiers of a run for the front end that requested it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Front {
    /// The id of the assistant message.
    pub(crate) message_id: String,
    /// True if the run continues a message that an earlier run has begun.
    pub(crate) is_continued: bool,
    /// The tools that the front end runs.
    pub(crate) external: Arc<HashSet<String>>,
    /// Calls that the user denied before the run.
    pub(crate) denied: Vec<String>,
    /// The number of the run's first event.
    pub(crate) first: u64,
}

impl Front {
    /// Returns the front of a run of another process.
    pub(crate) fn of_mark(mark: FrontMark) -> Self {
        Self { message_id: mark.message_id, ..Self::default() }
    }
}

/// A run for a front end.
#[derive(Debug)]
pub(crate) struct BeginFront {
    /// The id of the message that the run continues.
    pub(crate) continues: Option<String>,
    /// The calls that the user denied.
    pub(crate) denied: Vec<String>,
    /// The tools that the front end runs.
    pub(crate) external: HashSet<String>,
}

impl BeginFront {
    /// Returns the front of the run with this number, whose first event has the number `first`.
    pub(crate) fn begun(self, run: u64, first: u64) -> Front {
        Front {
            is_continued: self.continues.is_some(),
            message_id: self.continues.unwrap_or_else(|| format!("msg-{run}")),
            external: Arc::new(self.external),
            denied: self.denied,
            first,
        }
    }
}

/// Returns the members to store before a run saves anything: the mark of the front end's run, if any, and the answers
/// to calls while others of the turn still wait. They replace those of the previous turn.
pub(crate) fn run_members(front: Option<&FrontMark>, early: &[EarlyAnswer]) -> Map<String, Value> {
    let answers = if early.is_empty() { Value::Null } else { json!(early) };
    Map::from_iter([(FRONT.to_owned(), json!(front)), (ANSWERS.to_owned(), answers)])
}

/// Returns true if the metadata has members that a run without a front end must remove.
pub(crate) fn has_members(info: &SessionInfo) -> bool {
    info.metadata.contains_key(FRONT) || info.metadata.contains_key(ANSWERS)
}

/// An answer to a call while others of its turn still wait.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct EarlyAnswer {
    pub(crate) call_id: String,
    #[serde(flatten)]
    pub(crate) answer: CallAnswer,
}

/// Returns the members that store answers.
pub(crate) fn answer_members(answers: &[EarlyAnswer]) -> Map<String, Value> {
    Map::from_iter([(ANSWERS.to_owned(), json!(answers))])
}

/// Returns the stored answers.
pub(crate) fn early_answers(info: &SessionInfo) -> Vec<EarlyAnswer> {
    let answers = info.metadata.get(ANSWERS).cloned();
    answers.and_then(|answers| serde_json::from_value(answers).ok()).unwrap_or_default()
}

/// Returns the pending turn with these calls claimed by a server, which answers them.
pub(crate) fn with_claims(mut pending: Pending, server: &str, calls: &[String]) -> Pending {
    let mut claims = claims_of(&pending);
    claims.extend(calls.iter().map(|call| (call.clone(), server.to_owned())));
    pending.extra.insert(CLAIMED.to_owned(), json!(claims));
    pending
}

/// Returns the pending turn without the claim of a call.
pub(crate) fn without_claim(mut pending: Pending, call: &str) -> Pending {
    let mut claims = claims_of(&pending);
    claims.remove(call);
    pending.extra.insert(CLAIMED.to_owned(), json!(claims));
    pending
}

/// Returns the calls that servers other than this one have claimed.
///
/// A server's own claim says nothing: its agent knows which calls have an answer. A claim may even be stored although
/// the store reported an error, and the call must then still accept an answer.
pub(crate) fn claimed_by_others(session: &Session, server: &str) -> Vec<String> {
    let claims = session.pending.as_ref().map(claims_of).unwrap_or_default();
    claims.into_iter().filter(|(_, by)| by != server).map(|(call, _)| call).collect()
}

/// Returns the servers that have claimed calls, by the ids of the calls.
fn claims_of(pending: &Pending) -> BTreeMap<String, String> {
    let claims = pending.extra.get(CLAIMED).cloned();
    claims.and_then(|claims| serde_json::from_value(claims).ok()).unwrap_or_default()
}

/// Returns the members that store sub-agents, which messages do not contain.
pub(crate) fn agent_members(agents: &[SubAgent]) -> Map<String, Value> {
    Map::from_iter([(AGENTS.to_owned(), json!(agents))])
}

/// Makes the members remove the stored sub-agents instead of replacing them. Returns false if they do not replace any.
pub(crate) fn remove_agents(members: &mut Map<String, Value>) -> bool {
    members.get_mut(AGENTS).is_some_and(|agents| !agents.take().is_null())
}

/// Returns the stored sub-agents.
pub(crate) fn stored_agents(info: &SessionInfo) -> Vec<SubAgent> {
    let agents = info.metadata.get(AGENTS).cloned();
    agents.and_then(|agents| serde_json::from_value(agents).ok()).unwrap_or_default()
}

/// Returns the hashes of the answers that hooks have refused.
pub(crate) fn refused_answers(info: &SessionInfo) -> Vec<String> {
    let refused = info.metadata.get(REFUSED).cloned();
    refused.and_then(|refused| serde_json::from_value(refused).ok()).unwrap_or_default()
}

/// Adds an answer that a hook has refused, and returns the members that store all of them.
pub(crate) fn refuse_answer(refused: &mut Vec<String>, text: &str) -> Map<String, Value> {
    refused.push(answer_hash(text));
    // A front end sends an answer back with the next prompt, so old ones matter least.
    refused.drain(..refused.len().saturating_sub(MOST_REFUSED));
    Map::from_iter([(REFUSED.to_owned(), json!(refused))])
}

/// Returns the hash of an answer's text.
pub(crate) fn answer_hash(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes())[..12])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
