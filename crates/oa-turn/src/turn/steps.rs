//! Steps and their outcomes as data. Every outcome changes the turn here, whatever performs the steps.

use oa_types::{ContentBlock, ErrorRecord, Message};

use super::Turn;
use super::phase::Phase;
use crate::action::{Action, Decision};
use crate::call::{Call, CallState};
use crate::cut_by::CutBy;
use crate::error::Error;
use crate::options::Mode;
use crate::shorten::OverflowSizes;
use crate::step::{
    ApprovalOutcome, ApprovalStep, AskOutcome, AskStep, CallResult, DecideOutcome, DecideStep,
    PlanOutcome, PromptOutcome, PromptStep, ReviewOutcome, ReviewStep, RunOutcome, RunStep, Step,
    StepCall, StepOutcome,
};

impl Turn {
    /// Returns the next step, whose outcome goes to [`take`](Self::take); `None` if no turn is in progress.
    ///
    /// A step is returned again until its outcome is reported, in this process or in another one that
    /// [restored](Self::restore) the turn: steps are performed at least once. Calls that may already have run are
    /// marked with [`may_have_run`](StepCall::may_have_run).
    pub fn next_step(&mut self) -> Option<Step> {
        if let Some(action) = self.next_action() {
            return Some(self.step(action, false));
        }
        if let Some(action) = self.pending_action() {
            return Some(self.step(action, true));
        }
        // Permissions come last: `next_action` has returned every call that is still undecided before.
        let is_asked = |(_, call): &(usize, &Call)| call.state == CallState::Asked;
        let calls = self.calls().iter().enumerate().filter(is_asked);
        let calls: Vec<StepCall> = calls.map(|(place, _)| self.step_call(place, false)).collect();
        (!calls.is_empty()).then_some(Step::Approve(ApprovalStep { calls }))
    }

    /// Returns the first action that was handed out and whose outcome has not been reported. Use it after
    /// [restoring](Self::restore) a turn or abandoning a step. It does not change the state.
    ///
    /// Calls of an [`Action::Run`] that was handed out in another process may have run there.
    #[must_use]
    pub fn pending_action(&self) -> Option<Action> {
        if let Some(call) = self.round.handed {
            let is_undecided = self.round.calls[call].is_undecided();
            return Some(if is_undecided {
                Action::Decide { call }
            } else {
                Action::Review { call }
            });
        }
        match &self.phase {
            Phase::Requesting { sent: true, .. } => {
                Some(Action::Request { tools: self.offers_tools() })
            }
            Phase::Prompting { prompt, handed: true, .. } => {
                Some(Action::Submit { prompt: Message::clone(prompt), steered: false })
            }
            Phase::Steering { handed: true, .. } => {
                let prompt = self.steered.front()?.clone();
                Some(Action::Submit { prompt, steered: true })
            }
            &Phase::Shortening { handed: true, is_overflow, .. } => {
                Some(Action::Shorten { is_overflow })
            }
            Phase::Checking { handed: true } => Some(Action::CheckStop { step: self.steps() }),
            Phase::Planning { handed: true, .. } => {
                Some(Action::Plan { step: self.steps().saturating_add(1) })
            }
            Phase::Answered { handed: true, .. } => Some(Action::ReviewAnswer),
            _ => {
                let calls = self.running();
                (!calls.is_empty()).then_some(Action::Run { calls })
            }
        }
    }

    /// Applies the outcome of the step that was returned last. The outcome of a different step changes nothing, except
    /// that a failure or a cut may end the turn, and that what was spent may count.
    ///
    /// # Errors
    ///
    /// - The failure in the outcome. The turn has then ended, as after [`fail`](Self::fail).
    /// - `blocked` if the outcome blocks a prompt or an answer, or asks for a retry when none is left.
    /// - `invalid_input` if the outcome makes a prompt invalid, decides on a call that does not wait for approval, or
    ///   shortens the conversation to an invalid one.
    pub fn take(&mut self, outcome: StepOutcome) -> Result<(), Box<ErrorRecord>> {
        match outcome {
            StepOutcome::Approve(outcome) => self.take_approval(outcome),
            StepOutcome::Ask(outcome) => self.take_answer(outcome),
            StepOutcome::CheckStop(outcome) => self.take_stop(outcome),
            StepOutcome::Decide(outcome) => self.take_decision(outcome),
            StepOutcome::Plan(outcome) => self.take_plan(outcome),
            StepOutcome::Review(outcome) => self.take_review(outcome),
            StepOutcome::ReviewAnswer(outcome) => self.take_answer_review(outcome),
            StepOutcome::Run(outcome) => self.take_results(outcome),
            StepOutcome::Shorten(outcome) => self.take_shortened(outcome),
            StepOutcome::SubmitPrompt(outcome) => self.take_prompt(outcome),
        }
    }

    fn take_prompt(&mut self, outcome: PromptOutcome) -> Result<(), Box<ErrorRecord>> {
        let is_steered = matches!(self.phase, Phase::Steering { .. });
        match outcome {
            PromptOutcome::Allow => self.accept_prompt(None).map_err(|error| invalid(&error)),
            PromptOutcome::Block { .. } if is_steered => {
                self.refuse_steered();
                Ok(())
            }
            PromptOutcome::Block { reason } => {
                let message = format!("a hook blocked the prompt: {reason}");
                self.fails(Box::new(ErrorRecord::new("blocked", message)))
            }
            PromptOutcome::Cut { by } => self.take_cut(by),
            PromptOutcome::Failed { error } => {
                self.drop_steered();
                self.fails(error)
            }
            PromptOutcome::Replace { text } => match self.accept_prompt(Some(text)) {
                // A turn continues without a steered message that was made invalid.
                Err(error) if !is_steered => Err(invalid(&error)),
                _ => Ok(()),
            },
        }
    }

    fn take_plan(&mut self, outcome: PlanOutcome) -> Result<(), Box<ErrorRecord>> {
        match outcome {
            PlanOutcome::Cut { by } => self.take_cut(by),
            PlanOutcome::Failed { error } => self.fails(error),
            PlanOutcome::Planned { plan } => {
                self.plan(*plan);
                Ok(())
            }
        }
    }

    fn take_answer(&mut self, outcome: AskOutcome) -> Result<(), Box<ErrorRecord>> {
        match outcome {
            AskOutcome::Answered { answer, correction } => {
                // An answer that comes too late corrects no other one.
                if !matches!(self.phase, Phase::Requesting { .. }) {
                    return Ok(());
                }
                let begin = self.history().len();
                // Read before `answer` takes the blocks.
                let is_malformed = self.is_malformed_output(&answer.blocks);
                self.answer(answer);
                // A lost call has its own correction by now. If a limit is reached, there is no correction, and the
                // answer remains the last message.
                let is_corrected = self.has_told_lost_call(begin)
                    || correction.is_some_and(|words| self.correct_within_limits(words));
                if is_malformed || is_corrected {
                    self.note_invalid(begin);
                }
                Ok(())
            }
            AskOutcome::Cut { by, partial, spent } => {
                self.spend(spent);
                self.take_cut_in(partial, by)
            }
            AskOutcome::Failed { error, has_begun, partial, spent } => {
                self.spend(spent);
                // Once the caller has seen a part of the answer, the request is not sent again.
                let is_refused = error.kind == CONTEXT_OVERFLOW && !has_begun;
                if is_refused && self.retry_shorter(OverflowSizes::from(&*error)) {
                    return Ok(());
                }
                if has_begun {
                    self.begin_answer();
                }
                self.fail_with(partial);
                Err(error)
            }
        }
    }

    fn take_decision(&mut self, outcome: DecideOutcome) -> Result<(), Box<ErrorRecord>> {
        match outcome {
            DecideOutcome::Cut { by } => self.take_cut(by),
            DecideOutcome::Decided { decision, refused_input, fit } => {
                if let Some(Action::Decide { call }) = self.pending_action() {
                    let input = match &decision {
                        Decision::Ask(input) | Decision::Run(input) | Decision::Wait(input) => {
                            Some(input.clone())
                        }
                        Decision::Refuse(_) => refused_input,
                    };
                    if let Some(input) = input {
                        self.set_input(call, input, fit);
                    }
                    self.decide(call, decision);
                }
                Ok(())
            }
            DecideOutcome::Failed { error } => self.fails(error),
        }
    }

    fn take_approval(&mut self, outcome: ApprovalOutcome) -> Result<(), Box<ErrorRecord>> {
        match outcome {
            ApprovalOutcome::Cut { by } => self.take_cut(by),
            ApprovalOutcome::Decided { id, decision } => {
                let approved = self.approve(&id, decision);
                approved.or_else(|error| self.fails(invalid(&error)))
            }
            ApprovalOutcome::Failed { error } => self.fails(error),
        }
    }

    fn take_results(&mut self, outcome: RunOutcome) -> Result<(), Box<ErrorRecord>> {
        self.charge(outcome.spent);
        // A call that the outcome leaves out is lost, unless it is external: the step is over, and nobody will report
        // its result.
        let calls = self.running();
        for result in outcome.results {
            let CallResult { place, content, outcome, images } = result;
            self.finish_call_with_images(place, content, images, outcome);
        }
        if let Some(by) = outcome.cut {
            return self.take_cut(by);
        }
        for call in calls {
            // An external call without a result was admitted.
            if !self.await_result(call) {
                self.lose_call(call);
            }
        }
        Ok(())
    }

    fn take_review(&mut self, outcome: ReviewOutcome) -> Result<(), Box<ErrorRecord>> {
        let Some(Action::Review { call }) = self.pending_action() else { return Ok(()) };
        let content = self.calls()[call].content().cloned().unwrap_or_default();
        match outcome {
            ReviewOutcome::Cut { by } => self.take_cut(by),
            ReviewOutcome::Failed { error } => {
                // A result is reviewed once, even if the review fails.
                self.review(call, content);
                self.fails(error)
            }
            ReviewOutcome::Keep => {
                self.review(call, content);
                Ok(())
            }
            ReviewOutcome::Replace { content, images } => {
                self.review_with_images(call, content, images);
                Ok(())
            }
        }
    }

    /// Returns the calls that [run](Self::runs).
    pub(super) fn running(&self) -> Vec<usize> {
        (0..self.round.calls.len()).filter(|&call| self.runs(call)).collect()
    }

    /// Returns true if this call was handed out to run, and has neither ended nor been handed to the caller.
    pub(super) fn runs(&self, call: usize) -> bool {
        let Some(call) = self.round.calls.get(call) else { return false };
        match self.phase {
            _ if self.options.mode == Mode::Manual => false,
            Phase::Calling { started: true, .. } => call.is_to_run(),
            Phase::Calling { hands_out: true, .. } => call.is_to_hand_out(),
            _ => false,
        }
    }

    pub(super) fn take_cut(&mut self, by: CutBy) -> Result<(), Box<ErrorRecord>> {
        self.take_cut_in(Vec::new(), by)
    }

    /// Ends the turn early, in an answer of which this part had arrived.
    fn take_cut_in(
        &mut self,
        partial: Vec<ContentBlock>,
        by: CutBy,
    ) -> Result<(), Box<ErrorRecord>> {
        match by {
            CutBy::User => self.interrupt(partial),
            CutBy::Budget { reason } => self.stop(reason, partial),
        }
        Ok(())
    }

    pub(super) fn fails(&mut self, error: Box<ErrorRecord>) -> Result<(), Box<ErrorRecord>> {
        self.fail();
        Err(error)
    }

    fn step(&self, action: Action, is_pending: bool) -> Step {
        let history = || self.history().clone();
        match action {
            Action::CheckStop { .. } => Step::CheckStop(self.stop_check()),
            Action::Decide { call } => {
                let call = self.step_call(call, false);
                Step::Decide(DecideStep { call, history: history() })
            }
            Action::End { reason } => Step::End { reason },
            Action::Request { tools } => Step::Ask(AskStep {
                number: self.requests,
                tools,
                plan: self.step_plan().cloned(),
                history: history(),
                revisions: self.revisions().to_vec(),
            }),
            Action::Plan { step } => Step::Plan(self.plan_step(step)),
            Action::Review { call } => {
                let call = self.step_call(call, false);
                Step::Review(ReviewStep { call, history: history() })
            }
            Action::ReviewAnswer => Step::ReviewAnswer(self.answer_review()),
            Action::Run { calls } => {
                // Calls that are returned again may have begun, in this process or in an earlier one.
                let calls = calls.into_iter().map(|call| self.step_call(call, is_pending));
                Step::Run(RunStep { calls: calls.collect(), left: self.left() })
            }
            Action::Shorten { .. } => Step::Shorten(self.shorten_step()),
            Action::Show { block } => Step::Show { block },
            Action::Submit { prompt, steered } => {
                Step::SubmitPrompt(PromptStep { prompt, steered, history: history() })
            }
        }
    }

    fn step_call(&self, place: usize, may_have_run: bool) -> StepCall {
        let call = self.calls()[place].clone();
        let key = self.call_key(place).unwrap_or_default();
        // A call of an external tool never runs, so it can be admitted again.
        let may_have_run = may_have_run && !call.is_external;
        StepCall { place, key, call, may_have_run }
    }
}

/// The kind of an error of a request that is too long for the model.
const CONTEXT_OVERFLOW: &str = "context_overflow";

pub(super) fn invalid(error: &Error) -> Box<ErrorRecord> {
    Box::new(ErrorRecord::new("invalid_input", error.to_string()))
}
