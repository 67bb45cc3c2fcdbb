mod approval;
mod brought;
mod correct;
mod failure;
mod fill;
mod limits;
mod lost;

use std::collections::VecDeque;
use std::mem;

use oa_types::{
    ContentBlock, Cost, FinishReason, History, Message, MessageRole, Outcome, TextBlock,
    ToolUseError,
};
use serde_json::{Value, json};

use self::lost::lost_call;
use crate::action::{Action, Decision};
use crate::answer::{Answer, Recorded, has_text, recorded, unfinished};
use crate::call::{Call, CallState};
use crate::conversation::Conversation;
use crate::error::{Error, ErrorKind};
use crate::guard::Guard;
use crate::options::{Mode, Options};
use crate::round::Round;

use self::failure::Failure;

/// One conversation and the turn in progress.
///
/// [`submit`](Self::submit) or [`continue_turn`](Self::continue_turn) begins; then perform what
/// [`next_action`](Self::next_action) says until it answers `None`, which means "tell me what came of
/// it". [`Action::End`] is the last. At every moment each call in [`history`](Self::history) is either
/// answered by exactly one result or among the open [`calls`](Self::calls).
#[derive(Debug)]
pub struct Turn {
    options: Options,
    conversation: Conversation,
    phase: Phase,
    /// The calls of the last answer.
    round: Round,
    /// What the caller is shown next.
    out: VecDeque<ContentBlock>,
    /// The text that is shown when the turn ends, if no other is.
    final_text: Box<str>,
    /// The prompt's place in history, as long as no answer to it has begun.
    prompt: Option<usize>,
    /// The place of the last prompt, as long as the conversation only grows.
    asked: Option<usize>,
    /// That prompt as the caller gave it, if it stands otherwise in history.
    given: Option<Box<Message>>,
    /// The last turn, if it failed and no answer has begun since.
    failure: Option<Box<Failure>>,
    /// Whether the turn in progress counts as one.
    counts: bool,
    /// Go on once the last open call is answered.
    continues: bool,
    /// The turn has ended because calls wait for somebody's permission.
    waits: bool,
    budget: Budget,
    guard: Guard,
    /// This is the last round.
    last: Option<Last>,
    turns: u32,
}

/// What was used since the turn began.
#[derive(Debug, Default)]
struct Budget {
    rounds: u32,
    calls: u32,
    tokens: u64,
    cost: Cost,
}

/// A limit is reached.
#[derive(Debug)]
struct Last {
    reason: FinishReason,
    /// Whether one more answer, without tools, was asked for.
    asked: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum Phase {
    /// Nothing is in progress; in manual mode calls may be open.
    Idle,
    /// Results are looked at, then a request follows.
    Continuing,
    Requesting {
        sent: bool,
    },
    /// The calls of an answer are decided, run and looked at.
    Calling {
        started: bool,
        reason: FinishReason,
    },
    /// To be told.
    Ending(FinishReason),
}

impl Turn {
    /// Begins an empty conversation.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self {
            options,
            conversation: Conversation::default(),
            phase: Phase::Idle,
            round: Round::default(),
            out: VecDeque::new(),
            final_text: Box::default(),
            prompt: None,
            asked: None,
            given: None,
            failure: None,
            counts: false,
            continues: false,
            waits: false,
            budget: Budget::default(),
            guard: Guard::default(),
            last: None,
            turns: 0,
        }
    }

    /// Finds out whether a prompt would be taken if nothing were in progress.
    ///
    /// # Errors
    ///
    /// `InvalidPrompt` if it says nothing, or is no user's message of text and images; `InvalidHistory`, as
    /// [`check_history`](Self::check_history); `MaxTurns` if no further one is taken.
    pub fn check_prompt(&self, prompt: &Message) -> Result<(), Error> {
        let refuse = |why: &str| Err(Error::new(ErrorKind::InvalidPrompt, why));
        if prompt.role != MessageRole::User {
            return refuse("the prompt is no message of the user");
        }
        let mut is_blank = true;
        for block in &prompt.content {
            match block {
                ContentBlock::Image(_) => is_blank = false,
                ContentBlock::Text(block) => {
                    is_blank &= block.text.chars().all(char::is_whitespace);
                }
                _ => return refuse("the prompt holds more than text and images"),
            }
        }
        if is_blank {
            return refuse("the prompt is empty");
        }
        self.check_history()?;
        if let Some(max) = self.options.max_turns.filter(|max| self.turns >= *max) {
            let message = format!("the limit of {max} turns is reached");
            return Err(Error::new(ErrorKind::MaxTurns, message));
        }
        Ok(())
    }

    /// Takes a prompt. Calls that are still open are answered with "not run".
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress, and as [`check_prompt`](Self::check_prompt).
    pub fn submit(&mut self, prompt: Message) -> Result<(), Error> {
        self.must_be_idle()?;
        self.check_prompt(&prompt)?;
        self.answer_open_calls("not run: the user went on without it", Outcome::NotRun);
        self.record_broken();
        (self.prompt, self.given) = (Some(self.history().len()), None);
        self.asked = self.prompt;
        self.conversation.push(prompt);
        self.begin();
        self.turns += 1;
        self.counts = true;
        Ok(())
    }

    /// Goes on from the conversation as it stands, with a fresh budget of rounds.
    ///
    /// # Errors
    ///
    /// `Busy`, `OpenCalls` naming their ids, `NothingToContinue` unless a user's message or results stand
    /// last, since nothing is ever prefilled, and `InvalidHistory`.
    pub fn continue_turn(&mut self) -> Result<(), Error> {
        let open = self.round.open_ids();
        let answered = match self.phase {
            Phase::Calling { .. } => !self.has_unshown(),
            // The last result has set it going, as was wished.
            Phase::Continuing => self.prompt.is_none() && self.round.handed.is_none(),
            _ => false,
        };
        if self.options.mode == Mode::Auto || !answered {
            self.must_be_idle()?;
        }
        if self.waits {
            return self.go_on_with_calls();
        }
        if !open.is_empty() {
            let message = format!("calls have no result yet: {}", open.join(", "));
            return Err(Error::new(ErrorKind::OpenCalls, message));
        }
        let last = self.history().last();
        if !last.is_some_and(|last| matches!(last.role, MessageRole::Tool | MessageRole::User)) {
            return Err(Error::nothing_to_continue(last));
        }
        self.check_history()?;
        self.begin();
        Ok(())
    }

    /// As [`continue_turn`](Self::continue_turn), but while calls are still being shown it only marks
    /// the wish: the turn goes on once the last open call is answered. Returns whether it goes on now.
    ///
    /// # Errors
    ///
    /// As [`continue_turn`](Self::continue_turn).
    pub fn continue_when_answered(&mut self) -> Result<bool, Error> {
        if self.options.mode == Mode::Manual && self.is_busy() && self.has_unshown() {
            self.continues = true;
            return Ok(false);
        }
        self.continue_turn().map(|()| true)
    }

    /// Takes note that the answer has begun: from now on its prompt stays, whatever comes.
    pub fn begin_answer(&mut self) {
        if matches!(self.phase, Phase::Requesting { .. }) {
            (self.prompt, self.failure) = (None, None);
        }
    }

    /// Takes what came of the request: the message is recorded, and its calls are next.
    pub fn answer(&mut self, answer: Answer) {
        if !matches!(self.phase, Phase::Requesting { .. }) {
            return;
        }
        (self.prompt, self.failure) = (None, None);
        let Answer { blocks, finish_reason, extra, tokens, cost } = answer;
        self.budget.tokens = self.budget.tokens.saturating_add(tokens);
        self.budget.cost += cost;
        let lost = lost_call(&blocks, &finish_reason);
        let Recorded { blocks, pieces, malformed } = recorded(blocks, self.options.mode);
        let mut message = Message::assistant(blocks);
        message.extra = extra;
        let calls = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(Call::new(call.clone())),
            _ => None,
        });
        let calls: Vec<Call> = calls.collect();
        if self.options.final_text_only {
            self.final_text = message.text().into();
        }
        if !calls.is_empty() || has_text(&message) {
            self.conversation.push(message);
        }
        self.round = Round::new(calls, pieces, self.history().len());
        if self.options.final_text_only {
            self.round.hide();
        }
        for (place, ToolUseError { error, raw_data, .. }) in malformed {
            let name = &self.round.calls[place].block.name;
            let content = json!({ "error": error, "tool": name, "arguments": raw_data });
            let outcome = Outcome::Malformed;
            self.round.calls[place].state = CallState::Refused { content, outcome };
        }
        if self.options.mode == Mode::Auto || self.round.calls.is_empty() {
            self.round.show_calls(&mut self.out);
        } else {
            self.round.show_decided(&mut self.out);
        }
        self.round.record_refused(&mut self.conversation);
        if self.round.calls.is_empty() {
            let reason = self.last.take().map_or(finish_reason, |last| last.reason);
            self.phase = Phase::Ending(reason);
            if let (Mode::Auto, Some(error)) = (self.options.mode, lost) {
                self.tell_lost_call(&error);
            }
            return;
        }
        self.phase = Phase::Calling { started: false, reason: finish_reason };
        self.guard.begin_round();
        if self.options.mode == Mode::Auto {
            self.hold_to_limits();
        }
    }

    /// Takes a decision about a call that was handed out.
    pub fn decide(&mut self, call: usize, decision: Decision) {
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
            Decision::Wait(input) => {
                let waits = self.options.mode == Mode::Auto;
                let call = &mut self.round.calls[call];
                call.input = input;
                call.state =
                    if waits { CallState::Waiting { decided: true } } else { CallState::Allowed };
            }
        }
        if self.options.mode == Mode::Manual {
            self.round.show_decided(&mut self.out);
        }
        self.round.record_refused(&mut self.conversation);
    }

    /// Takes the result of a call that was run. A second one is not taken: false.
    pub fn finish_call(&mut self, call: usize, content: Value, outcome: Outcome) -> bool {
        let running = matches!(self.phase, Phase::Calling { started: true, .. })
            && self.round.calls.get(call).is_some_and(Call::is_open);
        if running {
            self.record(call, content, outcome);
        }
        running
    }

    /// Takes the result of a call as it is to stand, after it was looked at.
    pub fn review(&mut self, call: usize, content: Value) {
        let handed = self.round.handed == Some(call);
        if !handed || !self.round.calls[call].awaits_review() {
            return;
        }
        self.round.handed = None;
        let content = self.guarded(call, content);
        self.round.reviewed(&mut self.conversation, call, content);
        if matches!(self.phase, Phase::Calling { .. }) {
            self.round.show_results(&mut self.out);
        }
    }

    /// Answers a call from outside, in manual mode.
    ///
    /// # Errors
    ///
    /// `UnknownCall` if no call of the last answer has this id, `AlreadyAnswered` if it has a result.
    pub fn add_result(&mut self, id: &str, content: Value, outcome: Outcome) -> Result<(), Error> {
        let Some(call) = self.round.calls.iter().position(|call| call.block.id == id) else {
            let message = format!("no call of the last answer has the id {id:?}");
            return Err(Error::new(ErrorKind::UnknownCall, message));
        };
        if self.options.mode == Mode::Auto || !self.round.calls[call].is_open() {
            let message = format!("the call {id:?} is answered already");
            return Err(Error::new(ErrorKind::AlreadyAnswered, message));
        }
        self.record(call, content, outcome);
        self.round.record_refused(&mut self.conversation);
        if self.continues && self.phase == Phase::Idle && !self.round.has_open() {
            self.begin();
        }
        Ok(())
    }

    /// Ends the turn because the user wants it so. What had arrived of an answer stays as text.
    pub fn interrupt(&mut self, partial: Vec<ContentBlock>) {
        let reason = Some(FinishReason::Interrupted);
        self.cut(partial, "cancelled: the user interrupted", Outcome::Cancelled, reason);
    }

    /// Ends the turn because a budget that the driver keeps (time) is used up. What had arrived of an
    /// answer stays as text.
    pub fn stop(&mut self, reason: FinishReason, partial: Vec<ContentBlock>) {
        self.cut(partial, "not run: the budget is used up", Outcome::NotRun, Some(reason));
    }

    /// Ends the turn because the user goes on without it; nobody is told of its end. What had arrived
    /// of an answer stays as text.
    pub fn abandon(&mut self, partial: Vec<ContentBlock>) {
        self.cut(partial, "not run: the user went on without it", Outcome::NotRun, None);
    }

    /// Returns what is to be done next, once; `None` when something that was handed out is to be told
    /// first, or nothing is in progress.
    pub fn next_action(&mut self) -> Option<Action> {
        loop {
            if let Some(block) = self.out.pop_front() {
                return Some(Action::Show { block });
            }
            if self.round.handed.is_some() {
                return None;
            }
            match &mut self.phase {
                Phase::Idle | Phase::Requesting { sent: true } => return None,
                Phase::Ending(reason) => {
                    if !self.final_text.is_empty() {
                        let text = mem::take(&mut self.final_text);
                        return Some(Action::Show { block: TextBlock::new(text).into() });
                    }
                    let reason = reason.clone();
                    self.phase = Phase::Idle;
                    return Some(Action::End { reason });
                }
                Phase::Requesting { sent } => {
                    *sent = true;
                    let last = self.last.as_mut().map(|last| last.asked = true);
                    return Some(Action::Request { tools: last.is_none() });
                }
                Phase::Continuing => match self.round.next_review() {
                    Some(call) => return Some(Action::Review { call }),
                    None => self.phase = Phase::Requesting { sent: false },
                },
                Phase::Calling { started, reason } => {
                    if let Some(call) = self.round.next_undecided() {
                        return Some(Action::Decide { call });
                    }
                    if self.options.mode == Mode::Manual {
                        // Results are looked at together, when the turn goes on.
                        let reason = reason.clone();
                        if self.continues && !self.round.has_open() {
                            self.begin();
                        } else {
                            self.phase = Phase::Ending(reason);
                        }
                    } else if self.round.has_waiting() {
                        self.waits = true;
                        self.phase = Phase::Ending(FinishReason::ApprovalPending);
                    } else if !mem::replace(started, true) && self.round.has_open() {
                        let calls = self.round.open();
                        self.budget.calls = self.budget.calls.saturating_add(calls.len() as u32);
                        return Some(Action::Run { calls });
                    } else if let Some(call) = self.round.next_review() {
                        return Some(Action::Review { call });
                    } else if self.round.has_open() {
                        return None;
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

    /// Returns a number for each message of the conversation: as long as it is the same number, it is
    /// the same message.
    #[must_use]
    pub fn revisions(&self) -> &[u64] {
        self.conversation.revisions()
    }

    /// Returns the calls of the last answer.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.round.calls
    }

    /// Returns how many rounds of calls this turn has had; one beyond a limit does not count.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.budget.rounds
    }

    /// Returns how many prompts were taken; those of turns that failed do not count.
    #[must_use]
    pub fn turns(&self) -> u32 {
        self.turns
    }

    /// Whether a turn is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Whether text is to be shown as it is generated, rather than by [`Action::Show`] at the end.
    #[must_use]
    pub fn shows_text(&self) -> bool {
        !self.options.final_text_only
    }

    /// Whether text behind a call is to be held back, because it is shown by [`Action::Show`] once the call
    /// has its result.
    #[must_use]
    pub fn fills_in(&self) -> bool {
        self.options.fill_in && self.options.mode == Mode::Auto
    }

    fn must_be_idle(&self) -> Result<(), Error> {
        match self.phase {
            Phase::Idle => Ok(()),
            _ => Err(Error::new(ErrorKind::Busy, "a turn is in progress")),
        }
    }

    /// Whether the caller has more of the last answer's calls to see.
    fn has_unshown(&self) -> bool {
        !self.out.is_empty() || self.round.has_unshown()
    }

    fn begin(&mut self) {
        self.phase = Phase::Continuing;
        self.counts = false;
        self.continues = false;
        self.waits = false;
        self.budget = Budget::default();
        self.last = None;
        self.guard.reset();
    }

    /// Ends what is in progress, in the middle of whatever it is.
    fn cut(
        &mut self,
        partial: Vec<ContentBlock>,
        error: &str,
        outcome: Outcome,
        told: Option<FinishReason>,
    ) {
        match self.phase {
            Phase::Idle => return,
            Phase::Requesting { .. } => {
                if let Some(message) = unfinished(partial) {
                    self.conversation.push(message);
                }
            }
            _ => self.answer_open_calls(error, outcome),
        }
        (self.prompt, self.failure) = (None, None);
        self.rest();
        self.phase = told.map_or(Phase::Idle, Phase::Ending);
    }

    /// Nothing is in progress any more; what nobody has looked at is looked at before the next
    /// request.
    fn rest(&mut self) {
        self.round.take_back();
        self.round.hide();
        self.out.clear();
        self.final_text = Box::default();
        self.phase = Phase::Idle;
        self.continues = false;
        self.last = None;
    }

    /// After a round of calls: another request, or the end.
    fn end_round(&mut self) {
        self.budget.rounds += u32::from(!self.round.over_limit);
        if self.fill_in() {
            self.phase = Phase::Ending(FinishReason::Stop);
            return;
        }
        self.phase = match &self.last {
            Some(last) if !self.may_ask(last) => Phase::Ending(last.reason.clone()),
            _ => Phase::Requesting { sent: false },
        };
    }

    /// Writes a result into history.
    fn record(&mut self, call: usize, content: Value, outcome: Outcome) {
        self.round.record(&mut self.conversation, call, content, outcome);
    }

    fn answer_open_calls(&mut self, error: &str, outcome: Outcome) {
        self.round.answer_open(&mut self.conversation, error, outcome);
    }
}
