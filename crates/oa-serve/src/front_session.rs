//! Conversations of front ends in the store: their ids, their last run, and the stored history.

use std::collections::BTreeMap;

use oa_session::{Pending, Session, SessionId, SessionInfo};
use oa_types::{ContentBlock, Message, MessageRole, ToolResultBlock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::log::CallAnswer;
use crate::sub_agents::SubAgent;

/// The member of a session's metadata that holds a [`FrontMark`].
const FRONT: &str = "front";
/// The member of a session's metadata that holds answers to calls while others of the same turn still wait.
const ANSWERS: &str = "answers";

/// The member of a pending turn that holds the servers that have claimed calls, by the ids of the calls.
const CLAIMED: &str = "claimed";
/// The member of a session's metadata that holds its sub-agents.
const AGENTS: &str = "agents";

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
        let hash = Sha256::digest(name.as_bytes());
        let hash: String = hash.iter().take(24).map(|byte| format!("{byte:02x}")).collect();
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

/// Returns the history that a front end has sent, with equivalent messages at its start replaced by the stored ones.
/// Stored messages have parts that the front end lacks, such as thinking, images from tools, and changes by hooks.
pub(crate) fn with_kept(kept: &[Message], sent: &[Message]) -> Vec<Message> {
    // Only a common beginning is kept: after the first difference, the front end has changed or removed
    // messages, and what it sends is what the user sees.
    let same = kept.iter().zip(sent).take_while(|(kept, sent)| tells_the_same(kept, sent)).count();
    kept[..same].iter().chain(&sent[same..]).cloned().collect()
}

/// Returns true if `sent` may be the stored message as a front end sends it back.
fn tells_the_same(kept: &Message, sent: &Message) -> bool {
    if kept.role != sent.role {
        return false;
    }
    match kept.role {
        // Inputs are not compared: hooks and users may have changed those that are stored.
        MessageRole::Assistant => kept.text() == sent.text() && calls(kept).eq(calls(sent)),
        MessageRole::Tool => {
            let (kept, sent): (Vec<_>, Vec<_>) = (results(kept).collect(), results(sent).collect());
            kept.len() == sent.len()
                && kept.iter().zip(&sent).all(|(kept, sent)| is_same_result(kept, sent))
        }
        _ => kept.content == sent.content,
    }
}

fn calls(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolUse(call) => Some((&*call.id, &*call.name)),
        _ => None,
    })
}

fn results(message: &Message) -> impl Iterator<Item = &ToolResultBlock> {
    message.content.iter().filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(result),
        _ => None,
    })
}

/// Returns true for results of the same call that have equal text or are both errors: front ends show errors with other
/// text, and not every protocol marks a result as an error.
fn is_same_result(kept: &ToolResultBlock, sent: &ToolResultBlock) -> bool {
    let text = |result: &ToolResultBlock| match &result.content {
        Value::String(text) => text.clone(),
        content => content.to_string(),
    };
    kept.tool_use_id == sent.tool_use_id
        && (kept.is_error && sent.is_error || text(kept) == text(sent))
}

#[cfg(test)]
mod tests;
