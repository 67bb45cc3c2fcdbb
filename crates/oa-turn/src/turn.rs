use std::collections::VecDeque;

use oa_types::{
    ContentBlock, FinishReason, Message, MessageRole, TextBlock, ThinkingBlock, ToolUseBlock,
    ToolUseError,
};
use serde_json::{Map, Value, json};

use crate::action::{Action, Answer, Decision};
use crate::call::{Call, CallState};
use crate::error::{Error, ErrorKind};
use crate::guard::Guard;
use crate::history::{History, not_run, result_message};
use crate::options::{Mode, Options};

/// One conversation and the turn in progress.
///
/// [`submit`](Self::submit) or [`continue_turn`](Self::continue_turn) begins; then perform what
/// [`next_action`](Self::next_action) says until it answers `None`, which means "tell me what came of
/// it". [`Action::End`] is the last. At every moment each call in [`history`](Self::history) is either
/// answered by exactly one result or among the open [`calls`](Self::calls).
#[derive(Debug)]
pub struct Turn {
    options: Options,
    history: History,
    phase: Phase,
    /// The calls of the last answer, and where their results begin in history.
    calls: Vec<Call>,
    results_at: usize,
    /// The call that was handed out to be decided or reviewed.
    handed: Option<usize>,
    /// Results that nobody has looked at, in order of completion.
    reviews: VecDeque<usize>,
    /// The prompt's place in history, as long as no answer to it has come.
    prompt: Option<usize>,
    /// Go on once the last open call is answered.
    continues: bool,
    rounds: u32,
    run: u32,
    guard: Guard,
    /// Why this is the last round.
    last: Option<FinishReason>,
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
        Self::with_history(options, History::default())
    }

    /// Goes on with a conversation.
    #[must_use]
    pub fn with_history(options: Options, history: History) -> Self {
        Self {
            options,
            history,
            phase: Phase::Idle,
            calls: Vec::new(),
            results_at: 0,
            handed: None,
            reviews: VecDeque::new(),
            prompt: None,
            continues: false,
            rounds: 0,
            run: 0,
            guard: Guard::default(),
            last: None,
        }
    }

    /// Takes a prompt. Calls that are still open are answered with "not run".
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress, `EmptyPrompt` if it says nothing.
    pub fn submit(&mut self, prompt: Message) -> Result<(), Error> {
        self.must_be_idle()?;
        let says = |block: &ContentBlock| match block {
            ContentBlock::Image(_) => true,
            other => other.as_text().is_some_and(|text| !text.trim().is_empty()),
        };
        if !prompt.content.iter().any(says) {
            return Err(Error::new(ErrorKind::EmptyPrompt, "the prompt is empty"));
        }
        self.answer_open_calls("not run: the user went on without it");
        self.prompt = Some(self.history.len());
        self.history.push(prompt);
        self.begin();
        Ok(())
    }

    /// Goes on from the conversation as it stands, with a fresh budget of rounds.
    ///
    /// # Errors
    ///
    /// `Busy`, `OpenCalls` naming their ids, and `NothingToContinue` unless a user's message or
    /// results stand last: nothing is ever prefilled.
    pub fn continue_turn(&mut self) -> Result<(), Error> {
        self.must_be_idle()?;
        let open = self.open_ids();
        if !open.is_empty() {
            let message = format!("calls have no result yet: {}", open.join(", "));
            return Err(Error::new(ErrorKind::OpenCalls, message));
        }
        match self.history.last().map(|message| message.role) {
            Some(MessageRole::Tool | MessageRole::User) => {}
            _ => {
                let message = "there is nothing to continue: the last message is an answer";
                return Err(Error::new(ErrorKind::NothingToContinue, message));
            }
        }
        self.begin();
        Ok(())
    }

    /// As [`continue_turn`](Self::continue_turn), but waits until the last open call is answered.
    ///
    /// # Errors
    ///
    /// As [`continue_turn`](Self::continue_turn), but for `OpenCalls`.
    pub fn continue_when_answered(&mut self) -> Result<(), Error> {
        let manual = self.options.mode == Mode::Manual;
        if manual && !self.calls.is_empty() && self.calls.iter().any(Call::is_open) {
            self.continues = true;
            return Ok(());
        }
        self.continue_turn()
    }

    /// Takes what came of the request: the message is recorded, and its calls are next.
    pub fn answer(&mut self, answer: Answer) {
        if !matches!(self.phase, Phase::Requesting { .. }) {
            return;
        }
        self.prompt = None;
        let Answer { blocks, finish_reason, extra } = answer;
        let (blocks, malformed) = self.recorded(blocks);
        let mut message = Message::assistant(blocks);
        message.extra = extra;
        let calls = message.content.iter().filter_map(|block| match block {
            ContentBlock::ToolUse(call) => Some(Call::new(call.clone())),
            _ => None,
        });
        self.calls = calls.collect();
        if !self.calls.is_empty() || !message.text().is_empty() {
            self.history.push(message);
        }
        self.results_at = self.history.len();
        self.reviews.clear();
        self.handed = None;
        for (place, error) in malformed {
            let ToolUseError { error, raw_data, .. } = error;
            let name = &self.calls[place].block.name;
            let content = json!({ "error": error, "tool": name, "arguments": raw_data });
            self.record(place, content, true);
        }
        if self.calls.is_empty() {
            let reason = self.last.take().unwrap_or(finish_reason);
            self.phase = Phase::Ending(reason);
            return;
        }
        self.phase = Phase::Calling { started: false, reason: finish_reason };
        if self.options.mode == Mode::Auto {
            self.hold_to_limits();
        }
    }

    /// Takes a decision about a call that was handed out.
    pub fn decide(&mut self, call: usize, decision: Decision) {
        let undecided = |call: &Call| call.state == CallState::Undecided;
        if self.handed != Some(call) || !self.calls.get(call).is_some_and(undecided) {
            return;
        }
        self.handed = None;
        match decision {
            Decision::Run(input) => self.calls[call].state = CallState::Allowed(input),
            Decision::Refuse(error) => self.record(call, error, true),
        }
    }

    /// Takes the result of a call that was run. A second one is not taken: false.
    pub fn finish_call(&mut self, call: usize, content: Value, is_error: bool) -> bool {
        let running = matches!(self.phase, Phase::Calling { started: true, .. })
            && self.calls.get(call).is_some_and(Call::is_open);
        if running {
            self.record(call, content, is_error);
        }
        running
    }

    /// Takes the result of a call as it is to stand, after it was looked at.
    pub fn review(&mut self, call: usize, content: Value) {
        if self.handed != Some(call) || !self.calls.get(call).is_some_and(Call::awaits_review) {
            return;
        }
        self.handed = None;
        let content = self.guarded(call, content);
        let Call { block, state } = &mut self.calls[call];
        let CallState::Answered { content: old, is_error, reviewed } = state else { return };
        *reviewed = true;
        if *old != content {
            old.clone_from(&content);
            let message = result_message(block, content, *is_error);
            let place = self.place_of(call);
            self.history.replace(place, message);
        }
    }

    /// Answers a call from outside, in manual mode.
    ///
    /// # Errors
    ///
    /// `UnknownCall` if no call of the last answer has this id, `AlreadyAnswered` if it has a result.
    pub fn add_result(&mut self, id: &str, content: Value, is_error: bool) -> Result<(), Error> {
        let Some(call) = self.calls.iter().position(|call| call.block.id == id) else {
            let message = format!("no call of the last answer has the id {id:?}");
            return Err(Error::new(ErrorKind::UnknownCall, message));
        };
        if self.options.mode == Mode::Auto || !self.calls[call].is_open() {
            let message = format!("the call {id:?} is answered already");
            return Err(Error::new(ErrorKind::AlreadyAnswered, message));
        }
        self.record(call, content, is_error);
        if self.continues && self.phase == Phase::Idle && self.open_ids().is_empty() {
            self.begin();
        }
        Ok(())
    }

    /// Ends the turn because a request, a hook or the driver failed. An answer that had not ended is
    /// not recorded; a prompt that nothing was answered to is taken back.
    pub fn fail(&mut self) {
        if self.phase == Phase::Idle {
            return;
        }
        if let Some(prompt) = self.prompt.take()
            && prompt + 1 == self.history.len()
        {
            self.history.pop();
        }
        self.answer_open_calls("not run: the turn failed");
        self.rest();
    }

    /// Ends the turn because the user wants it so. What had arrived of an answer stays as text.
    pub fn interrupt(&mut self, partial: Vec<ContentBlock>) {
        match self.phase {
            Phase::Idle => return,
            Phase::Requesting { .. } => {
                let is_words = |block: &ContentBlock| {
                    matches!(block, ContentBlock::Text(_) | ContentBlock::Thinking(_))
                };
                let words = partial.into_iter().filter(is_words).collect();
                let mut message = Message::assistant(merged(words));
                message.interrupted = true;
                if !message.text().is_empty() {
                    self.history.push(message);
                }
            }
            _ => self.answer_open_calls("cancelled: the user interrupted"),
        }
        self.prompt = None;
        self.rest();
        self.phase = Phase::Ending(FinishReason::Interrupted);
    }

    /// Ends the turn because a budget that the driver keeps (time, tokens) is used up.
    pub fn stop(&mut self, reason: FinishReason) {
        if self.phase == Phase::Idle {
            return;
        }
        self.answer_open_calls("not run: the budget is used up");
        self.prompt = None;
        self.rest();
        self.phase = Phase::Ending(reason);
    }

    /// Returns what is to be done next, once; `None` when something that was handed out is to be told
    /// first, or nothing is in progress.
    pub fn next_action(&mut self) -> Option<Action> {
        loop {
            match &mut self.phase {
                Phase::Idle => return None,
                Phase::Ending(reason) => {
                    let reason = reason.clone();
                    self.phase = Phase::Idle;
                    // Results may have come before the end was told.
                    if self.continues && self.open_ids().is_empty() {
                        self.begin();
                        continue;
                    }
                    return Some(Action::End { reason });
                }
                Phase::Requesting { sent: true } => return None,
                Phase::Requesting { sent } => {
                    *sent = true;
                    return Some(Action::Request { tools: self.last.is_none() });
                }
                Phase::Continuing => {
                    if self.handed.is_some() {
                        return None;
                    }
                    if let Some(review) = self.next_review() {
                        return Some(review);
                    }
                    self.phase = Phase::Requesting { sent: false };
                }
                Phase::Calling { started, reason } => {
                    if self.handed.is_some() {
                        return None;
                    }
                    let undecided =
                        self.calls.iter().position(|call| call.state == CallState::Undecided);
                    if let Some(call) = undecided {
                        self.handed = Some(call);
                        return Some(Action::Decide { call });
                    }
                    let auto = self.options.mode == Mode::Auto;
                    if auto && !*started {
                        *started = true;
                        let open = self.calls.iter().enumerate().filter(|(_, call)| call.is_open());
                        let calls: Vec<usize> = open.map(|(place, _)| place).collect();
                        if !calls.is_empty() {
                            self.run = self.run.saturating_add(calls.len() as u32);
                            return Some(Action::Run { calls });
                        }
                    }
                    if !auto {
                        // Results are looked at together, when the turn goes on.
                        self.phase = Phase::Ending(reason.clone());
                        continue;
                    }
                    if let Some(review) = self.next_review() {
                        return Some(review);
                    }
                    if self.calls.iter().any(Call::is_open) {
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
        &self.history
    }

    /// Replaces the conversation by a valid one made of these messages.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress.
    pub fn set_history(&mut self, messages: Vec<Message>) -> Result<(), Error> {
        self.must_be_idle()?;
        self.history = History::new(messages);
        self.calls.clear();
        self.reviews.clear();
        self.prompt = None;
        self.continues = false;
        Ok(())
    }

    /// Forgets the conversation.
    ///
    /// # Errors
    ///
    /// `Busy` while a turn is in progress.
    pub fn clear_history(&mut self) -> Result<(), Error> {
        self.must_be_idle()?;
        self.history.clear();
        self.set_history(Vec::new())
    }

    /// Returns the calls of the last answer.
    #[must_use]
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// Returns how many rounds of calls this turn has had.
    #[must_use]
    pub fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether a turn is in progress.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.phase != Phase::Idle
    }

    fn must_be_idle(&self) -> Result<(), Error> {
        match self.phase {
            Phase::Idle => Ok(()),
            _ => Err(Error::new(ErrorKind::Busy, "a turn is in progress")),
        }
    }

    fn begin(&mut self) {
        self.phase = Phase::Continuing;
        self.continues = false;
        self.rounds = 0;
        self.run = 0;
        self.last = None;
        self.guard.reset();
    }

    /// Nothing is in progress any more; what nobody has looked at is looked at before the next
    /// request.
    fn rest(&mut self) {
        if let Some(call) = self.handed.take()
            && self.calls[call].awaits_review()
        {
            self.reviews.push_front(call);
        }
        self.phase = Phase::Idle;
        self.continues = false;
        self.last = None;
    }

    /// After a round of calls: another request, or the end.
    fn end_round(&mut self) {
        self.rounds += 1;
        self.phase = match self.last.clone() {
            Some(reason) if !self.options.last_answer_without_tools => Phase::Ending(reason),
            _ => Phase::Requesting { sent: false },
        };
    }

    /// Answers all calls with "not run" if a limit is reached.
    fn hold_to_limits(&mut self) {
        let wanted = self.calls.iter().filter(|call| call.is_open()).count() as u32;
        let too_many = |limit: u32| self.run.saturating_add(wanted) > limit;
        let (reason, error) = if let Some(reason) = self.last.clone() {
            // The last answer was asked for without tools, and has calls all the same.
            (reason, "not run: this was the last answer")
        } else if self.rounds >= self.options.max_rounds {
            (FinishReason::MaxToolIterations, "not run: iteration limit")
        } else if self.options.max_calls.is_some_and(too_many) {
            (FinishReason::MaxToolCalls, "not run: limit of tool calls")
        } else {
            return;
        };
        self.answer_open_calls(error);
        if self.last.replace(reason.clone()).is_some() {
            // There is no second last answer.
            self.last = None;
            self.phase = Phase::Ending(reason);
        }
    }

    /// The result as it is to stand: the third identical one in a row tells the model.
    fn guarded(&mut self, call: usize, content: Value) -> Value {
        let Call { block: ToolUseBlock { name, input, .. }, state } = &self.calls[call];
        let ran = self.options.mode == Mode::Auto && self.last.is_none();
        let (Some(limit), true, CallState::Answered { .. }) =
            (self.options.repeat_guard, ran, state)
        else {
            return content;
        };
        let count = self.guard.count(name, input, &content);
        if count > limit {
            self.last = Some(FinishReason::RepeatedToolCall);
        }
        if count != limit {
            return content;
        }
        let note = format!(
            "This is the {count}. time in a row that {name} was called with these arguments and gave this \
             result. It will not change: go on without it, or try something else."
        );
        match content {
            Value::String(text) => format!("{text}\n\n{note}").into(),
            Value::Object(mut object) => {
                object.entry("note").or_insert_with(|| note.into());
                object.into()
            }
            other => json!({ "result": other, "note": note }),
        }
    }

    /// The blocks that are recorded of an answer, and the malformed calls among them: by their place
    /// among the calls.
    fn recorded(
        &self,
        blocks: Vec<ContentBlock>,
    ) -> (Vec<ContentBlock>, Vec<(usize, ToolUseError)>) {
        let mut malformed = Vec::new();
        let mut kept: Vec<ContentBlock> = Vec::with_capacity(blocks.len());
        let mut ids: Vec<String> = Vec::new();
        for block in blocks {
            match block {
                ContentBlock::ToolUse(call) if !ids.contains(&call.id) => {
                    ids.push(call.id.clone());
                    kept.push(call.into());
                }
                // In auto mode the model is told what was wrong; without a name there is no call.
                ContentBlock::ToolUseError(error) if self.options.mode == Mode::Auto => {
                    if let (Some(name), Some(id)) = (&error.name, &error.id)
                        && !ids.contains(id)
                    {
                        let call = ToolUseBlock::new(id, name, Value::Object(Map::new()));
                        malformed.push((ids.len(), error.clone()));
                        ids.push(id.clone());
                        kept.push(call.into());
                    }
                }
                ContentBlock::Text(_) | ContentBlock::Thinking(_) => kept.push(block),
                _ => {}
            }
        }
        (merged(kept), malformed)
    }

    /// Writes a result into history, at its place in call order.
    fn record(&mut self, call: usize, content: Value, is_error: bool) {
        let place = self.place_of(call);
        let message = result_message(&self.calls[call].block, content.clone(), is_error);
        self.history.insert(place, message);
        self.calls[call].state = CallState::Answered { content, is_error, reviewed: false };
        self.reviews.push_back(call);
    }

    fn place_of(&self, call: usize) -> usize {
        self.results_at + self.calls[..call].iter().filter(|call| !call.is_open()).count()
    }

    fn answer_open_calls(&mut self, error: &str) {
        for call in 0..self.calls.len() {
            if self.calls[call].is_open() {
                let content = not_run(&self.calls[call].block.name, error);
                self.record(call, content, true);
            }
        }
        self.handed = self.handed.filter(|&call| self.calls[call].awaits_review());
    }

    fn open_ids(&self) -> Vec<&str> {
        let open = self.calls.iter().filter(|call| call.is_open());
        open.map(|call| &*call.block.id).collect()
    }

    fn next_review(&mut self) -> Option<Action> {
        while let Some(call) = self.reviews.pop_front() {
            if self.calls.get(call).is_some_and(Call::awaits_review) {
                self.handed = Some(call);
                return Some(Action::Review { call });
            }
        }
        None
    }
}

/// Neighbouring runs of text, or of thinking, become one; empty ones go.
fn merged(blocks: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut merged: Vec<ContentBlock> = Vec::with_capacity(blocks.len());
    for block in blocks {
        match (merged.last_mut(), block) {
            (_, ContentBlock::Text(TextBlock { text, .. })) if text.is_empty() => {}
            (_, ContentBlock::Thinking(ThinkingBlock { thinking, .. })) if thinking.is_empty() => {}
            (Some(ContentBlock::Text(last)), ContentBlock::Text(next)) => {
                last.text.push_str(&next.text);
            }
            (Some(ContentBlock::Thinking(last)), ContentBlock::Thinking(next)) => {
                last.thinking.push_str(&next.thinking);
            }
            (_, block) => merged.push(block),
        }
    }
    merged
}
