//! The limits of a turn.

use oa_types::{FinishReason, ImageBlock, Outcome};
use serde_json::{Value, json};

use super::Turn;
use super::phase::Phase;
use super::progress::{Budget, Last};
use crate::options::Mode;

impl Turn {
    /// Returns true if one last answer may be requested.
    pub(super) fn may_ask(&self, last: &Last) -> bool {
        // Whatever the reason of the limit: the tokens or the cost may be used up, too.
        self.options.last_answer_without_tools && !last.asked && self.exhausted().is_none()
    }

    /// Answers all calls with "not run" if a limit is reached.
    pub(super) fn hold_to_limits(&mut self) {
        let wanted = self.round.open_count();
        let Budget { rounds, calls, .. } = self.progress.budget;
        let too_many = |limit: u32| calls.saturating_add(wanted) > limit;
        let shared = self.progress.shared.as_ref().and_then(|shared| shared.calls);
        let (reason, error) = if let Some(last) = &self.progress.last {
            // The last answer was requested without tools, but has calls anyway.
            (last.reason.clone(), "not run: this was the last answer")
        } else if rounds >= self.options.max_rounds && !self.is_attempt() {
            (FinishReason::MaxToolIterations, "not run: iteration limit")
        } else if self.options.max_calls.is_some_and(too_many)
            || shared.is_some_and(|left| wanted > left)
        {
            (FinishReason::MaxToolCalls, "not run: tool call limit")
        } else if let Some(exhausted) = self.exhausted() {
            exhausted
        } else {
            return;
        };
        self.round.over_limit = true;
        self.answer_open_calls(error, Outcome::NotRun);
        // The first limit stays the reason if the answer without tools has calls.
        self.progress.last.get_or_insert(Last { reason, asked: false });
    }

    /// Returns the budget of tokens or money that is used up, and the error that answers the calls.
    pub(super) fn exhausted(&self) -> Option<(FinishReason, &'static str)> {
        let Budget { tokens, cost, .. } = self.progress.budget;
        if self.options.max_tokens.is_some_and(|limit| tokens >= limit) {
            Some((FinishReason::MaxRunTokens, "not run: token limit"))
        } else if self.options.max_cost.is_some_and(|limit| cost >= limit) {
            Some((FinishReason::MaxRunCost, "not run: cost limit"))
        } else {
            self.exhausted_outside()
        }
    }

    /// Returns the result with a warning to the model if it has been repeated too often. An answer without the call
    /// restarts the count.
    pub(super) fn guarded(
        &mut self,
        call: usize,
        content: Value,
        images: Option<&[ImageBlock]>,
    ) -> Value {
        let asked = &self.round.calls[call];
        // Inputs are compared after defaults are filled in, so `{}` and the written-out default are the same call.
        let (name, input) = (&asked.block.name, &asked.input);
        // Calls over a limit have not run, so their equal results are no repetition. In other phases, the results
        // are those of a turn that is over.
        let ran = self.options.mode == Mode::Auto
            && self.progress.last.is_none()
            && matches!(self.phase, Phase::Calling { .. });
        // The model does not read results that are inserted into its text, so a repetition means nothing.
        let is_text = self.inlines_results() && asked.went_well();
        // The attempts of structured output have a limit of their own, and the model cannot go on without its tool.
        let is_exempt = is_text || self.is_output_tool(name);
        let (Some(limit), true) = (self.options.repeat_guard, ran && !is_exempt) else {
            return content;
        };
        // Two screenshots with the same words are not the same result.
        let images = images.unwrap_or(&asked.images);
        let count = match images.is_empty() {
            true => self.progress.guard.count(name, input, &content),
            false => self.progress.guard.count(name, input, &json!([content, images])),
        };
        if count > limit {
            self.progress.last =
                Some(Last { reason: FinishReason::RepeatedToolCall, asked: false });
        }
        if count != limit {
            return content;
        }
        let same = match count {
            1 => "a result for these arguments".to_owned(),
            _ => format!("the same result for the same arguments {count} times"),
        };
        let note = format!(
            "{name} has returned {same}. Another call will not change it: continue without it, or try something \
             else."
        );
        match content {
            Value::String(text) => format!("{text}\n\n{note}").into(),
            // Keeps a note that the tool itself set, and adds this one.
            Value::Object(mut object) if !object.contains_key("note") => {
                object.insert("note".to_owned(), note.into());
                object.into()
            }
            other => json!({ "result": other, "note": note }),
        }
    }
}
