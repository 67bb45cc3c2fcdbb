//! The input of calls, and calls that wait for permission, in this process or a later one.

use std::collections::VecDeque;
use std::mem;

use oa_types::{ContentBlock, FinishReason, Message, MessageRole, Outcome, ToolUseBlock};
use serde_json::Value;

use super::Turn;
use super::phase::{Phase, Rest};
use crate::action::Decision;
use crate::call::{Call, CallState, Fit};
use crate::error::{Error, ErrorKind};
use crate::options::Mode;
use crate::repair::{calls_of, paired, result_of, sorted};
use crate::round::Round;

impl Turn {
    /// Sets the input that a call will run with, and the result of checking it. The caller is shown this input too,
    /// unless the call was shown already; history keeps the model's own. Calls that have a result or were refused do
    /// not change.
    pub fn set_input(&mut self, call: usize, input: Value, fit: Fit) {
        let Some(call) = self.round.calls.get_mut(call).filter(|call| call.is_open()) else {
            return;
        };
        (call.input, call.fit) = (input, fit);
        show_input(&mut self.out, call);
    }

    /// Completes and checks the inputs of the open calls that have not been checked. `prepare` gets a call's name and
    /// input, and returns the input to run with, or the reason why the call must not run.
    pub fn prepare_calls(&mut self, mut prepare: impl FnMut(&str, Value) -> Result<Value, String>) {
        for call in self.round.calls.iter_mut().filter(|call| call.is_open()) {
            if !call.fit.is_unchecked() {
                continue;
            }
            match prepare(&call.block.name, mem::take(&mut call.input)) {
                Ok(input) => (call.input, call.fit) = (input, Fit::Fits),
                Err(reason) => {
                    // `prepare` has consumed the input; the model's own takes its place.
                    (call.input, call.fit) = (call.block.input.clone(), Fit::Unfit(reason));
                }
            }
            show_input(&mut self.out, call);
        }
    }

    /// Records the decision to run a call with its current input, after [`Action::Decide`](crate::Action::Decide).
    /// Equivalent to [`decide`](Self::decide) with [`Decision::Run`], without a copy of the input.
    pub fn allow(&mut self, call: usize) {
        if self.round.handed == Some(call) && self.round.calls[call].is_undecided() {
            let input = mem::take(&mut self.round.calls[call].input);
            self.decide(call, Decision::Run(input));
        }
    }

    /// Decides on a call that waits for permission. If the turn has ended, continue it with
    /// [`continue_turn`](Self::continue_turn) once no call waits. A changed input counts as unchecked;
    /// [`set_input`](Self::set_input) sets the result of checking it.
    ///
    /// # Errors
    ///
    /// `UnknownCall` if no call of the last answer has this id, `AlreadyAnswered` if it does not wait.
    pub fn approve(&mut self, id: &str, decision: Decision) -> Result<(), Error> {
        let Some(call) = self.round.calls.iter_mut().find(|call| call.block.id == id) else {
            let message = format!("no call of the last answer has the id {id:?}");
            return Err(Error::new(ErrorKind::UnknownCall, message));
        };
        let decided = match call.state {
            CallState::Asked => true,
            CallState::Waiting { decided } => decided,
            _ => {
                let message = format!("the call {id:?} is not waiting for permission");
                return Err(Error::new(ErrorKind::AlreadyAnswered, message));
            }
        };
        match decision {
            Decision::Run(input) => {
                if call.input != input {
                    (call.input, call.fit) = (input, Fit::Unchecked);
                }
                call.is_approved = true;
                // Another process may have decided the rest under different rules, so it is decided again.
                call.state = if decided { CallState::Allowed } else { CallState::Undecided };
            }
            Decision::Refuse(content) => {
                call.state = CallState::Refused { content, outcome: Outcome::Blocked };
            }
            // There is no decision yet: a turn that waits for one continues, and ends.
            Decision::Wait(_) => call.state = CallState::Waiting { decided },
            Decision::Ask(_) => {}
        }
        // A turn that has not ended continues by itself.
        if matches!(self.phase, Phase::Calling { .. }) {
            self.round.record_refused(&mut self.conversation);
        }
        Ok(())
    }

    /// Replaces the conversation with one that may have open calls. Works like [`set_history`](Self::set_history),
    /// except that calls without a result at its end stay open. In auto mode they wait for permission, because history
    /// does not say whether they had it; [`allow_external`](Self::allow_external) lets calls of external tools wait for
    /// their results at once. In manual mode they wait for their results; [`decide_resumed`](Self::decide_resumed) has
    /// them decided again. Results at its end are reviewed before the next request, because they may not have been.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress.
    pub fn resume(&mut self, messages: Vec<Message>) -> Result<(), Error> {
        self.must_be_idle()?;
        let messages = sorted(messages);
        // `paired` answers every call. So the results at the end are noted before, and those that `paired`
        // has added are dropped after it: their calls stay open. The ids remain right, because the last call
        // with an id keeps it. For example, with the calls a and b in the last answer:
        //     given: answer, result of b
        //     paired: answer, "unknown" for a, result of b
        //     resumed: answer, result of b; a is open, and b awaits review
        let answered: Vec<String> = last_results(&messages).map(|id| id.to_owned()).collect();
        let mut messages = paired(messages);
        let is_result = |message: &Message| message.role == MessageRole::Tool;
        let results_at =
            messages.iter().rposition(|message| !is_result(message)).map_or(0, |at| at + 1);
        let is_open = |id: &str| !answered.iter().any(|answered| answered == id);
        let mut place = 0;
        messages.retain(|message| {
            place += 1;
            place <= results_at
                || result_of(message).is_some_and(|result| !is_open(&result.tool_use_id))
        });
        let state = |ToolUseBlock { id, .. }: &ToolUseBlock| {
            let mut results = messages[results_at..].iter().filter_map(result_of);
            match results.find(|result| result.tool_use_id == *id) {
                Some(result) => CallState::Answered {
                    content: result.content.clone(),
                    outcome: if result.is_error { Outcome::Failed } else { Outcome::Ok },
                    reviewed: false,
                },
                None if self.options.mode == Mode::Auto => CallState::Waiting { decided: false },
                None => CallState::Allowed,
            }
        };
        let images = |ToolUseBlock { id, .. }: &ToolUseBlock| {
            let mut results = messages[results_at..].iter().filter_map(result_of);
            let result = results.find(|result| result.tool_use_id == *id);
            result.map(|result| result.images.clone()).unwrap_or_default()
        };
        let asking = messages[..results_at].last().into_iter().flat_map(calls_of);
        let calls: Vec<Call> = asking
            .map(|block| Call {
                state: state(block),
                images: images(block),
                ..self.new_call(block.clone())
            })
            .collect();
        let is_waiting = calls.iter().any(Call::is_waiting);
        self.conversation.set(messages);
        // These calls are not those of the answer before, so their keys must differ.
        self.answers = self.answers.saturating_add(1);
        self.round = Round::restored(calls, results_at, self.answers);
        let waits = is_waiting && self.options.mode == Mode::Auto;
        self.phase = Phase::Idle { rest: if waits { Rest::Approval } else { Rest::Done } };
        self.forget_failure();
        Ok(())
    }

    /// Hands the calls of external tools for which this is true to the caller, of those that wait since the
    /// conversation was [resumed](Self::resume): they wait for their results without a further decision. It must be
    /// false for a call that anything may still refuse or change.
    pub fn allow_external(&mut self, mut may: impl FnMut(&Call) -> bool) {
        let waits = |call: &&mut Call| call.state == CallState::Waiting { decided: false };
        for call in self.round.calls.iter_mut().filter(waits) {
            if call.is_external && may(call) {
                call.state = CallState::AwaitsResult;
            }
        }
        // A call approved or denied before has yet to run or to be recorded, which `continue_turn` does in this phase
        // only.
        let calls = &self.round.calls;
        let is_settled = calls.iter().all(|call| call.is_answered() || call.waits_for_result());
        if self.phase == (Phase::Idle { rest: Rest::Approval }) && is_settled {
            self.phase = Phase::IDLE;
        }
    }

    /// Has calls decided again for which this is true, of those that wait for their results since the conversation was
    /// [resumed](Self::resume) in manual mode: history does not say what was decided. The turn shows each of them once
    /// it is decided, and then ends as it did before.
    pub fn decide_resumed(&mut self, must: impl FnMut(&Call) -> bool) {
        if self.phase == Phase::IDLE && self.round.undecide(must) {
            self.phase = Phase::calling(FinishReason::ToolCalls);
        }
    }

    /// Returns the round of the calls whose results await review, as found in other messages.
    pub(super) fn unreviewed_in(&self, messages: &[Message]) -> Round {
        let is_unreviewed = |call: &ToolUseBlock| self.round.unreviewed(&call.id).is_some();
        let asks = |message: &Message| calls_of(message).any(is_unreviewed);
        let Some(answer) = messages.iter().rposition(asks) else { return Round::default() };
        // Results directly follow the answer in call order, after repair.
        let results = messages[answer + 1..].iter().map_while(result_of);
        let calls = calls_of(&messages[answer]).zip(results).map(|(block, result)| {
            let known = self.round.unreviewed(&block.id);
            let outcome = match known.map(|call| &call.state) {
                Some(CallState::Answered { outcome, .. }) => *outcome,
                _ if result.is_error => Outcome::Failed,
                _ => Outcome::Ok,
            };
            let (content, reviewed) = (result.content.clone(), known.is_none());
            let state = CallState::Answered { content, outcome, reviewed };
            let input = known.map_or_else(|| block.input.clone(), |call| call.input.clone());
            let images = result.images.clone();
            Call { state, input, images, ..self.new_call(block.clone()) }
        });
        Round::restored(calls.collect(), answer + 1, self.answers)
    }

    /// Returns true if the turn has ended because calls wait for permission, and can be continued with them.
    #[must_use]
    pub fn waits_for_approval(&self) -> bool {
        self.phase.awaits_approval()
    }

    /// Continues with calls that waited for permission and are all decided.
    pub(super) fn go_on_with_calls(&mut self) -> Result<(), Error> {
        let waiting = self.round.waiting_ids();
        if !waiting.is_empty() {
            let message = format!("calls are waiting for permission: {}", waiting.join(", "));
            return Err(Error::new(ErrorKind::OpenCalls, message));
        }
        // Resets the budgets; the phase that it sets is replaced, because the calls come before the request.
        self.begin(None);
        self.phase = Phase::calling(FinishReason::ToolCalls);
        self.round.record_refused(&mut self.conversation);
        Ok(())
    }
}

/// Copies the input of a call into its block, if the block still waits to be shown.
fn show_input(out: &mut VecDeque<ContentBlock>, call: &Call) {
    for block in out {
        if let ContentBlock::ToolUse(shown) = block
            && shown.id == call.block.id
            && shown.input != call.input
        {
            shown.input.clone_from(&call.input);
        }
    }
}

/// Returns the call ids of the results at the end of a conversation.
fn last_results(messages: &[Message]) -> impl Iterator<Item = &str> {
    let results = messages.iter().rev().take_while(|message| message.role == MessageRole::Tool);
    let blocks = results.flat_map(|message| &message.content);
    blocks.filter_map(|block| match block {
        ContentBlock::ToolResult(result) => Some(&*result.tool_use_id),
        _ => None,
    })
}
