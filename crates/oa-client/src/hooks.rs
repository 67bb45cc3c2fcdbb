//! The events of hooks, and their outcomes as data.

use oa_hooks::{
    AnswerDecision, AnswerEvent, Change, ChangedResult, History, HookOutcome, PostToolUseEvent,
    UserPromptSubmitEvent,
};
use oa_turn::{
    Call, CallState, PromptOutcome, ReviewAnswerOutcome, ReviewAnswerStep, ReviewOutcome,
};
use oa_types::{ContentBlock, ErrorRecord, Message};

use crate::error::{self, Error};
use crate::settings::AgentConfig;

/// Returns the event of a prompt, with its text as it stands in the request.
pub(crate) fn prompt_event(prompt: &Message, history: &History) -> UserPromptSubmitEvent {
    let words: Vec<&str> = prompt.content.iter().filter_map(ContentBlock::as_text).collect();
    UserPromptSubmitEvent::new(words.join("\n"), history.clone())
}

/// Returns the outcome of the hooks of a prompt.
pub(crate) fn prompt_outcome(
    outcome: Result<HookOutcome<String>, oa_hooks::Error>,
) -> PromptOutcome {
    match outcome {
        Ok(HookOutcome::Allow) => PromptOutcome::Allow,
        Ok(HookOutcome::Block { reason }) => PromptOutcome::Block { reason },
        Ok(HookOutcome::Modify(change)) => PromptOutcome::Replace { text: change.value },
        Err(error) => PromptOutcome::Failed { error: record(&error) },
    }
}

/// Returns the outcome of the hooks of a result, and the error if one of them failed.
pub(crate) fn review_outcome(
    change: Result<Option<Change<ChangedResult>>, oa_hooks::Error>,
) -> (ReviewOutcome, Option<Error>) {
    match change {
        Ok(Some(Change { value: ChangedResult { content, images, .. }, .. })) => {
            (ReviewOutcome::Replace { content, images }, None)
        }
        Ok(None) => (ReviewOutcome::Keep, None),
        Err(error) => (ReviewOutcome::Failed { error: record(&error) }, Some(error::hook(error))),
    }
}

/// Returns the event of an answer.
pub(crate) fn answer_event(step: ReviewAnswerStep) -> AnswerEvent {
    let ReviewAnswerStep { answer, retries, history, .. } = step;
    AnswerEvent::new(answer, history, retries)
}

/// Returns the outcome of the hooks of an answer, and the error if one of them failed.
pub(crate) fn answer_outcome(
    decided: Result<AnswerDecision, oa_hooks::Error>,
) -> (ReviewAnswerOutcome, Option<Error>) {
    match decided {
        Ok(AnswerDecision::Block { reason }) => (ReviewAnswerOutcome::Block { reason }, None),
        Ok(AnswerDecision::Continue) => (ReviewAnswerOutcome::Keep, None),
        Ok(AnswerDecision::Retry { reason }) => (ReviewAnswerOutcome::Retry { reason }, None),
        Err(error) => {
            let outcome = ReviewAnswerOutcome::Failed { error: record(&error) };
            (outcome, Some(error::hook(error)))
        }
    }
}

/// Returns the record of a hook's failure.
pub(crate) fn record(error: &oa_hooks::Error) -> Box<ErrorRecord> {
    Box::new(ErrorRecord::new("hook", error.to_string()))
}

impl AgentConfig {
    /// Returns the event of a result; `None` if no hook is for its tool.
    pub(crate) fn result_event(&self, call: &Call, history: &History) -> Option<PostToolUseEvent> {
        let Call { block, input, state, images, .. } = call;
        let CallState::Answered { content, outcome, .. } = state else { return None };
        if !self.hooks.has_post_tool_use(&block.name) {
            return None;
        }
        let (name, id, history) = (&*block.name, &*block.id, history.clone());
        let (input, content) = (input.clone(), content.clone());
        let mut event = PostToolUseEvent::new(name, input, id, content, *outcome, history);
        event.images.clone_from(images);
        Some(event)
    }
}
