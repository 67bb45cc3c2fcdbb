//! The history that a front end has sent, joined with the stored one.

use oa_client::AgentOptions;
use oa_hooks::{HookOutcome, Hooks, UserPromptSubmitEvent};
use oa_types::{ContentBlock, History, Message, MessageRole, TextBlock, ToolResultBlock};
use serde_json::{Value, json};

use crate::error::Refusal;
use crate::front_session::answer_hash;

/// The history that a run continues.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) messages: Vec<Message>,
    /// The calls of the last answer that was sent which have a stored result.
    pub(crate) answered: Vec<String>,
}

/// Returns the history that a front end has sent, with equivalent messages at its start replaced by the stored ones.
/// Stored messages have parts that the front end lacks, such as thinking, images from tools, and changes by hooks.
///
/// User messages that are not stored pass the hooks of prompts: the front end also keeps prompts that were blocked, and
/// those that were changed as the user wrote them. Answers in `refused`, which a hook has refused, are left out.
pub(crate) async fn join(
    kept: &[Message],
    sent: &[Message],
    agent: &AgentOptions,
    refused: &[String],
) -> Result<Joined, Refusal> {
    let hooks = agent.hooks();
    // The front end sets the system message anew with each request. It may have the time, or the current page.
    let is_system = |message: &&Message| message.role == MessageRole::System;
    let kept = &kept[kept.iter().take_while(is_system).count()..];
    // Shared with the hooks, which see it before each message, and copied only for one that keeps it.
    let (mut messages, mut answered) = (History::from(Vec::new()), Vec::new());
    // Only a common beginning is kept: after the first difference, the front end has changed or removed
    // messages, and what it sends is what the user sees.
    let mut stored = kept.iter();
    for message in sent {
        let next = stored.as_slice().first();
        if let Some(next) = next.filter(|next| tells_the_same(next, message, agent)) {
            stored.next();
            if next.role == MessageRole::Assistant {
                let given = stored.as_slice().iter().take_while(|it| it.role == MessageRole::Tool);
                answered = given.flat_map(results).map(|it| it.tool_use_id.clone()).collect();
            }
            messages.make_mut().push(next.clone());
            continue;
        }
        let message = match message.role {
            MessageRole::User => reviewed(message, hooks, &messages).await?,
            MessageRole::Assistant if calls(message).next().is_none() => {
                let is_refused = refused.contains(&answer_hash(&message.text()));
                (!is_refused).then(|| message.clone())
            }
            _ => Some(message.clone()),
        };
        let Some(message) = message else { continue };
        if next == Some(&message) {
            // A hook has changed it as it did before.
            stored.next();
        } else if message.role != MessageRole::System {
            stored = [].iter();
            if message.role == MessageRole::Assistant {
                answered.clear();
            }
        }
        messages.make_mut().push(message);
    }
    Ok(Joined { messages: std::mem::take(messages.make_mut()), answered })
}

/// Returns a user message as the hooks of prompts leave it; `None` if they block it.
async fn reviewed(
    message: &Message,
    hooks: &Hooks,
    before: &History,
) -> Result<Option<Message>, Refusal> {
    if !hooks.has_user_prompt_submit() {
        return Ok(Some(message.clone()));
    }
    let words: Vec<_> = message.content.iter().filter_map(ContentBlock::as_text).collect();
    let event = UserPromptSubmitEvent::new(words.join("\n"), before.clone());
    let outcome = hooks.user_prompt_submit(event, tokio::time::sleep).await;
    let outcome = outcome.map_err(|error| Refusal::failed(error.to_string()))?;
    Ok(match outcome {
        HookOutcome::Allow => Some(message.clone()),
        HookOutcome::Block { .. } => None,
        HookOutcome::Modify(change) => {
            // As the agent changes a prompt: images and audio stay.
            let mut changed = message.clone();
            changed.content.retain(ContentBlock::is_media);
            let is_empty = changed.content.is_empty() && change.value.trim().is_empty();
            changed.content.insert(0, TextBlock::new(change.value).into());
            (!is_empty).then_some(changed)
        }
    })
}

/// Returns a stored history with results for the calls that still wait, as if the user had moved on without them.
pub(crate) fn closed(mut history: Vec<Message>) -> Vec<Message> {
    let is_answer = |message: &Message| message.role == MessageRole::Assistant;
    let Some(place) = history.iter().rposition(is_answer) else { return history };
    let mut after = history.split_off(place + 1);
    let open: Vec<_> =
        calls(&history[place]).map(|(id, name)| (id.to_owned(), name.to_owned())).collect();
    // Results are in the order of their calls.
    for (id, name) in open {
        let given =
            after.iter().position(|message| results(message).any(|it| it.tool_use_id == id));
        history.push(given.map_or_else(
            || {
                let error = json!({"error": "not run: the user moved on without it", "tool": name});
                let mut block = ToolResultBlock::new(id, error);
                (block.is_error, block.name) = (true, Some(name.into()));
                Message::tool(block)
            },
            |given| after.remove(given),
        ));
    }
    history.append(&mut after);
    history
}

/// Returns true if `sent` may be the stored message as a front end sends it back.
fn tells_the_same(kept: &Message, sent: &Message, agent: &AgentOptions) -> bool {
    if kept.role != sent.role {
        return false;
    }
    match kept.role {
        // Inputs are not compared: hooks and users may have changed those that are stored.
        MessageRole::Assistant => kept.text() == sent.text() && calls(kept).eq(calls(sent)),
        MessageRole::Tool => {
            let (kept, sent): (Vec<_>, Vec<_>) = (results(kept).collect(), results(sent).collect());
            kept.len() == sent.len()
                && kept.iter().zip(&sent).all(|(kept, sent)| is_same_result(kept, sent, agent))
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

/// Returns true for results of the same call, unless the front end may have another one: it then runs the tool itself,
/// no hook changes its results, and the two have different texts. Two errors are the same, because front ends show
/// errors with other text.
fn is_same_result(kept: &ToolResultBlock, sent: &ToolResultBlock, agent: &AgentOptions) -> bool {
    let text = |result: &ToolResultBlock| match &result.content {
        Value::String(text) => text.clone(),
        content => content.to_string(),
    };
    let name = kept.name.as_deref().unwrap_or_default();
    let is_external = agent.tool(name).is_some_and(|tool| tool.is_external());
    kept.tool_use_id == sent.tool_use_id
        && (!is_external
            || agent.hooks().has_post_tool_use(name)
            || kept.is_error && sent.is_error
            || text(kept) == text(sent))
}

#[cfg(test)]
mod tests;
