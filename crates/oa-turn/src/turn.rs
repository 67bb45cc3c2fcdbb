mod answered;
mod approval;
mod brought;
mod checkpoint;
mod continued;
mod correct;
mod cut;
mod external;
mod failed;
mod failure;
mod inline;
mod keys;
mod limits;
mod lost;
mod output;
mod output_state;
mod phase;
mod plan;
mod progress;
mod prompt;
mod shared;
mod shorten;
mod shorten_state;
mod snapshot;
mod steer;
mod steps;
mod stop;

use std::collections::VecDeque;
use std::mem;
use std::ops::Range;
use std::sync::Arc;

use oa_types::{
    ContentBlock, Cost, FinishReason, History, ImageBlock, Message, Outcome, TextBlock,
    ToolUseError,
};
use serde_json::{Value, json};

pub use self::checkpoint::Checkpoint;
use self::failed::{Failure, SubmittedPrompt};
use self::output_state::OutputState;
use self::phase::{Phase, Rest};
use self::progress::Progress;
use self::shorten_state::ShortenState;
pub use self::snapshot::TurnSnapshot;
use crate::action::{Action, Decision};
use crate::answer::{Answer, Recorded, lost_call, recorded};
use crate::budget::Spent;
use crate::call::{Call, CallState};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind};
use crate::options::{Mode, Options};
use crate::plan::StepPlan;
use crate::repair::{LOST, calls_of, has_text, unanswered};
use crate::round::Round;

/// A conversation and the turn in progress.
///
/// Begin a turn with [`submit`](Self::submit) or [`continue_turn`](Self::continue_turn). Then perform the actions that
/// [`next_action`](Self::next_action) returns; `None` means that the outcome of an earlier action is needed first.
/// [`Action::End`] is the last action. At all times, each call in [`history`](Self::history) either has exactly one
/// result or is among the open [`calls`](Self::calls).
#[derive(Debug)]
pub struct Turn {
    options: Options,
    conversation: Conversation,
    phase: Phase,
    /// The calls of the last answer.
    round: Round,
    /// The blocks to show next.
    out: VecDeque<ContentBlock>,
    /// The text to show at the end of the turn, if no other text is shown.
    final_text: Box<str>,
    /// The counters of the turn in progress, or of the last one.
    progress: Progress,
    /// The last prompt, as long as the conversation only grows.
    asked: Option<SubmittedPrompt>,
    /// The last turn, if it failed and no answer has begun since.
    failure: Option<Box<Failure>>,
    turns: u32,
    /// The number of answers with calls since the key seed was set.
    answers: u64,
    /// The number of requests handed out.
    requests: u64,
    key_seed: Arc<str>,
    /// Present while structured output is requested.
    output: Option<Box<OutputState>>,
    /// The tools whose results come from outside.
    external_tools: Box<[String]>,
    /// The messages that enter before the next request.
    steered: VecDeque<Message>,
    /// The plan of the request in progress, if it was planned, or the plan that ended the turn.
    plan: Option<Box<StepPlan>>,
    /// Present while conversations are shortened.
    shortening: Option<Box<ShortenState>>,
    /// The refused answers of this turn, each with the reply to it, as index ranges in history.
    refused: Vec<Range<usize>>,
}

impl Turn {
    /// Creates an empty conversation.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            conversation: Conversation::default(),
            phase: Phase::IDLE,
            round: Round::default(),
            out: VecDeque::new(),
            final_text: Box::default(),
            progress: Progress::default(),
            asked: None,
            failure: None,
            turns: 0,
            answers: 0,
            requests: 0,
            key_seed: Arc::default(),
            output: None,
            external_tools: Box::default(),
            steered: VecDeque::new(),
            plan: None,
            shortening: None,
            refused: Vec::new(),
        }
    }

    /// Records that the answer has begun. From now on, a failure does not remove its prompt from history.
    pub fn begin_answer(&mut self) {
        if let Phase::Requesting { prompt, .. } = &mut self.phase {
            (*prompt, self.failure) = (None, None);
            self.forget_unshortened();
        }
    }

    /// Records the answer to a request. Its calls are processed next.
    pub fn answer(&mut self, answer: Answer) {
        if !matches!(self.phase, Phase::Requesting { .. }) {
            return;
        }
        self.failure = None;
        self.forget_unshortened();
        let Answer { blocks, finish_reason, extra, tokens, context_tokens, cost } = answer;
        self.spend(Spent::new(0, tokens, cost));
        // Read before `recorded`, which drops calls without a name.
        let lost = lost_call(&blocks, &finish_reason);
        let Recorded { blocks, pieces, malformed } = recorded(blocks, self.options.mode);
        let mut message = Message::assistant(blocks);
        message.extra = extra;
        let calls: Vec<Call> = calls_of(&message).map(|call| self.new_call(call.clone())).collect();
        if self.options.final_text_only {
            self.final_text = message.text().into();
        }
        // The index of the answer; the length of history if it is blank and not recorded.
        let place = self.history().len();
        if !calls.is_empty() || has_text(&message) {
            self.conversation.push(message);
        }
        self.note_reported(context_tokens);
        self.answers = self.answers.saturating_add(u64::from(!calls.is_empty()));
        self.round = Round::new(calls, pieces, self.history().len(), self.answers);
        if self.options.final_text_only {
            self.round.hide();
        }
        for (place, ToolUseError { error, raw_data, .. }) in malformed {
            let name = &self.round.calls[place].block.name;
            let content = json!({ "error": error, "tool": name, "arguments": raw_data });
            let outcome = Outcome::Malformed;
            self.round.calls[place].state = CallState::Refused { content, outcome };
        }
        // Before anything is shown: in manual mode a refused call is shown as an error, not as a call.
        self.refuse_tools_not_offered();
        if self.options.mode == Mode::Auto || self.round.calls.is_empty() {
            self.round.show_calls(&mut self.out);
        } else {
            self.round.show_decided(&mut self.out);
        }
        self.round.record_refused(&mut self.conversation);
        if self.round.calls.is_empty() {
            let last = self.progress.last.take();
            // The last answer was requested without tools, so the model is not asked for its lost call again.
            let lost = lost.filter(|_| last.is_none() && self.options.mode == Mode::Auto);
            self.end_answered(last.map_or(finish_reason, |last| last.reason), place);
            // After `end_answered`, because `correct` continues only a turn that is about to end.
            if let Some(error) = lost {
                self.tell_lost_call(&error);
            }
            return;
        }
        self.phase = Phase::calling(finish_reason);
        self.progress.guard.begin_round();
        if self.options.mode == Mode::Auto {
            self.hold_to_limits();
        }
    }

    /// Records the decision on a call, after [`Action::Decide`].
    pub fn decide(&mut self, call: usize, decision: Decision) {
        // A late decision, such as one on a call that the caller has answered, changes nothing.
        if self.round.handed != Some(call) || !self.round.calls[call].is_undecided() {
            return;
        }
        self.round.handed = None;
        match decision {
            Decision::Run(input) => {
                let call = &mut self.round.calls[call];
                (call.input, call.state) = (input, CallState::Allowed);
            }
            Decision::Refuse(content) => {
                let outcome = Outcome::Blocked;
                self.round.calls[call].state = CallState::Refused { content, outcome };
            }
            // The caller runs the calls, so it also decides when.
            Decision::Ask(input) | Decision::Wait(input) if self.options.mode == Mode::Manual => {
                let call = &mut self.round.calls[call];
                (call.input, call.state) = (input, CallState::Allowed);
            }
            Decision::Ask(input) => {
                let call = &mut self.round.calls[call];
                (call.input, call.state) = (input, CallState::Asked);
            }
            Decision::Wait(input) => {
                let call = &mut self.round.calls[call];
                (call.input, call.state) = (input, CallState::Waiting { decided: true });
            }
        }
        if self.options.mode == Mode::Manual {
            self.round.show_decided(&mut self.out);
        }
        self.round.record_refused(&mut self.conversation);
    }

    /// Records the result of a call, after [`Action::Run`]. Returns false, and changes nothing, if the call already
    /// has a result or is not running.
    pub fn finish_call(&mut self, call: usize, content: Value, outcome: Outcome) -> bool {
        self.finish_call_with_images(call, content, Vec::new(), outcome)
    }

    /// Records the result of a call with images that the model sees with it; otherwise like
    /// [`finish_call`](Self::finish_call).
    pub fn finish_call_with_images(
        &mut self,
        call: usize,
        content: Value,
        images: Vec<ImageBlock>,
        outcome: Outcome,
    ) -> bool {
        let runs = self.runs(call);
        if runs {
            self.record(call, content, images, outcome);
        }
        runs
    }

    /// Answers a running call whose result was lost, for example because the process that ran it ended. The model
    /// reads that the call may have taken effect. Returns false if the call already has a result or has not started.
    pub fn lose_call(&mut self, call: usize) -> bool {
        let name = self.calls().get(call).map(|call| &*call.block.name);
        let content = unanswered(name.unwrap_or_default(), LOST);
        self.finish_call(call, content, Outcome::Unknown)
    }

    /// Sets the final result of a call, after [`Action::Review`]. Its images stay.
    pub fn review(&mut self, call: usize, content: Value) {
        self.review_with(call, content, None);
    }

    /// Sets the final result of a call and its images, after [`Action::Review`].
    pub fn review_with_images(&mut self, call: usize, content: Value, images: Vec<ImageBlock>) {
        self.review_with(call, content, Some(images));
    }

    fn review_with(&mut self, call: usize, content: Value, images: Option<Vec<ImageBlock>>) {
        let handed = self.round.handed == Some(call);
        if !handed || !self.round.calls[call].awaits_review() {
            return;
        }
        self.round.handed = None;
        // The note of the repeat guard becomes part of the result, for history and for the caller.
        let content = self.guarded(call, content, images.as_deref());
        self.round.reviewed(&mut self.conversation, call, content, images);
        // In other phases, these are the caller's own results or those of a turn that is over.
        if matches!(self.phase, Phase::Calling { .. }) {
            self.round.show_results(&mut self.out);
        }
    }

    /// Answers a call on behalf of the caller: any open call in manual mode, and in auto mode a call of an
    /// [external tool](Self::set_external_tools) once it was [handed out](Self::await_result).
    ///
    /// # Errors
    ///
    /// `UnknownCall` if no call of the last answer has this id, `AlreadyAnswered` if it does not wait for a result.
    pub fn add_result(&mut self, id: &str, content: Value, outcome: Outcome) -> Result<(), Error> {
        self.add_result_with_images(id, content, Vec::new(), outcome)
    }

    /// Answers a call on behalf of the caller, with images that the model sees with the result; otherwise like
    /// [`add_result`](Self::add_result).
    ///
    /// # Errors
    ///
    /// As [`add_result`](Self::add_result).
    pub fn add_result_with_images(
        &mut self,
        id: &str,
        content: Value,
        images: Vec<ImageBlock>,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let Some(call) = self.round.calls.iter().position(|call| call.block.id == id) else {
            let message = format!("no call of the last answer has the id {id:?}");
            return Err(Error::new(ErrorKind::UnknownCall, message));
        };
        let waits = match self.options.mode {
            Mode::Auto => self.round.calls[call].waits_for_result(),
            Mode::Manual => self.round.calls[call].is_open(),
        };
        if !waits {
            let message = match self.round.calls[call].is_open() {
                true => format!("the call {id:?} does not wait for a result"),
                false => format!("the call {id:?} already has a result"),
            };
            return Err(Error::new(ErrorKind::AlreadyAnswered, message));
        }
        if self.round.handed == Some(call) {
            // The call no longer needs a decision.
            self.round.handed = None;
        }
        self.record(call, content, images, outcome);
        if self.options.mode == Mode::Manual {
            // The pieces behind the call may have waited for its decision.
            self.round.show_decided(&mut self.out);
        }
        self.round.record_refused(&mut self.conversation);
        // `continue_when_answered` asked for this before the turn ended.
        if self.phase == (Phase::Idle { rest: Rest::Results }) && !self.round.has_open() {
            self.begin(None);
        }
        Ok(())
    }

    /// Returns the next action. Each action is returned once. `None` means that the outcome of an earlier action is
    /// needed first, or that no turn is in progress.
    pub fn next_action(&mut self) -> Option<Action> {
        // Blocks to show come first, so the caller sees them before the action that follows. A call that was
        // handed out holds up everything else. Then the phase returns its action once (`handed`, `sent`,
        // `started` and `hands_out` remember that), or the next phase begins and the loop goes on.
        loop {
            if let Some(block) = self.out.pop_front() {
                return Some(Action::Show { block });
            }
            if self.round.handed.is_some() {
                return None;
            }
            // Here, not where the turn ends: a message may be steered in after the last answer.
            if self.goes_on_with_steered() {
                continue;
            }
            match &mut self.phase {
                Phase::Idle { .. } | Phase::Requesting { sent: true, .. } => return None,
                Phase::Answered { handed, .. }
                | Phase::Checking { handed }
                | Phase::Planning { handed, .. }
                | Phase::Prompting { handed, .. }
                | Phase::Shortening { handed, .. }
                | Phase::Steering { handed, .. } => {
                    // From now on, it is pending.
                    return if mem::replace(handed, true) { None } else { self.pending_action() };
                }
                Phase::Ending { reason, rest } => {
                    if !self.final_text.is_empty() {
                        let text = mem::take(&mut self.final_text);
                        return Some(Action::Show { block: TextBlock::new(text).into() });
                    }
                    let (reason, rest) = (reason.clone(), *rest);
                    self.phase = Phase::Idle { rest };
                    return Some(Action::End { reason });
                }
                Phase::Requesting { sent, .. } => {
                    *sent = true;
                    // An overflow takes its step back, but not its request, so `requests` numbers each
                    // request differently.
                    self.progress.budget.steps = self.progress.budget.steps.saturating_add(1);
                    self.requests = self.requests.saturating_add(1);
                    // After a limit, `asked` makes this the only further request.
                    if let Some(last) = &mut self.progress.last {
                        last.asked = true;
                        self.offer_output_only();
                    }
                    return Some(Action::Request { tools: self.offers_tools() });
                }
                Phase::Continuing { prompt } => {
                    let prompt = *prompt;
                    if let Some(call) = self.next_review() {
                        return Some(Action::Review { call });
                    }
                    self.request(prompt);
                }
                Phase::Calling { started, hands_out, continues, reason } => {
                    // Every call is decided before any runs: one that waits for permission may end the turn,
                    // and no other may be running then.
                    if let Some(call) = self.round.next_undecided() {
                        return Some(Action::Decide { call });
                    }
                    if self.options.mode == Mode::Manual {
                        // Results are reviewed together, when the turn continues.
                        let (reason, continues) = (reason.clone(), *continues);
                        if continues && !self.round.has_open() {
                            self.begin(None);
                        } else {
                            let rest = if continues { Rest::Results } else { Rest::Done };
                            self.end(reason, rest);
                        }
                    } else if self.round.has_asked() {
                        return None;
                    } else if self.round.has_waiting() {
                        // The caller can answer these while it waits for the others' permission.
                        let calls = self.round.to_hand_out();
                        if calls.is_empty() {
                            self.end(FinishReason::ApprovalPending, Rest::Approval);
                        } else if mem::replace(hands_out, true) {
                            return None;
                        } else {
                            return Some(Action::Run { calls });
                        }
                    } else if !mem::replace(started, true) {
                        // External calls count against the limit, although they do not run.
                        self.spend(Spent::new(self.round.open_count(), 0, Cost::ZERO));
                        let calls = self.round.to_run();
                        if !calls.is_empty() {
                            return Some(Action::Run { calls });
                        }
                    } else if let Some(call) = self.next_review() {
                        return Some(Action::Review { call });
                    } else if !self.out.is_empty() {
                        // First show the results that needed no review.
                    } else if !self.round.to_run().is_empty() {
                        return None;
                    } else if self.round.has_open() {
                        self.wait_for_results();
                    } else {
                        self.end_round();
                    }
                }
            }
        }
    }

    /// Returns the conversation.
    #[must_use]
    pub fn history(&self) -> &History {
        self.conversation.messages()
    }

    /// Returns the revision of each message in the conversation. Equal revisions mean equal messages.
    #[must_use]
    pub fn revisions(&self) -> &[u64] {
        self.conversation.revisions()
    }

    /// Returns the calls of the last answer.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.round.calls
    }

    /// Returns the number of rounds of calls in this turn. A round rejected by a limit does not count.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.progress.budget.rounds
    }

    /// Returns the number of prompts taken. Prompts of failed turns do not count.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Returns true if a turn is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        !self.phase.is_idle()
    }

    /// Returns true if the driver should show text as it is generated, and false if [`Action::Show`] shows it at the
    /// end.
    #[must_use]
    pub fn shows_text(&self) -> bool {
        !self.options.final_text_only
    }

    /// Begins a request: the step before it may end the turn, then steered messages enter, and the conversation may be
    /// shortened and the request planned.
    fn request(&mut self, prompt: Option<usize>) {
        self.plan = None;
        // After the check, `take_stop` comes back here with `None`. No prompt is lost: `begin` marks the
        // round before a prompt as checked, so a check never stands between a prompt and its request.
        if self.is_used_up_by_others() || self.begins_check() {
            return;
        }
        if self.steered.is_empty() {
            self.before_request(prompt);
        } else {
            self.phase = Phase::Steering { handed: false, prompt, ended: None };
        }
    }

    fn must_be_idle(&self) -> Result<(), Error> {
        if self.phase.is_idle() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Busy, "a turn is in progress"))
        }
    }

    /// Returns true if blocks or calls of the last answer remain to be shown.
    fn has_unshown(&self) -> bool {
        !self.out.is_empty() || self.round.has_unshown()
    }

    /// Begins a turn. `prompt` is the index of the prompt, if one was just added to history.
    fn begin(&mut self, prompt: Option<usize>) {
        self.phase = Phase::Continuing { prompt };
        // The calls before a prompt do not belong to a step of this turn.
        self.round.is_checked |= prompt.is_some();
        // Budgets start anew, also when a turn is continued. What is shared with other turns stays.
        self.progress = self.progress.next(prompt.is_some());
        self.note_prompt();
    }

    /// Returns the next call whose result needs a review.
    fn next_review(&mut self) -> Option<usize> {
        loop {
            let call = self.round.next_review()?;
            let call_made = &self.round.calls[call];
            if !self.is_output_tool(&call_made.block.name) {
                return Some(call);
            }
            // Results of the output tool are not reviewed: their own content marks them as final.
            let content = call_made.content().cloned().unwrap_or_default();
            self.review(call, content);
        }
    }

    /// Ends a round of calls: sends another request or ends the turn.
    fn end_round(&mut self) {
        let is_round = !self.round.over_limit && !self.is_attempt();
        let rounds = &mut self.progress.budget.rounds;
        *rounds = rounds.saturating_add(u32::from(is_round));
        // `put_inline` adds its text at this index, or nothing if the text is blank.
        let place = self.history().len();
        if self.put_inline() {
            // The turn ends with this text anyway.
            self.round.is_checked = true;
            self.end_answered(FinishReason::Stop, place);
            return;
        }
        match &self.progress.last {
            Some(last) if !self.may_ask(last) => self.end(last.reason.clone(), Rest::Done),
            _ => self.request(None),
        }
    }

    /// Records a result in history.
    fn record(&mut self, call: usize, content: Value, images: Vec<ImageBlock>, outcome: Outcome) {
        self.round.record(&mut self.conversation, call, content, images, outcome);
    }

    fn answer_open_calls(&mut self, error: &str, outcome: Outcome) {
        self.round.answer_open(&mut self.conversation, error, outcome, |_| true);
    }
}
