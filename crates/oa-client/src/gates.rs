//! Decides about the calls of an answer by hooks and permissions, and starts them: the driver's part of it.

use std::collections::VecDeque;
use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;

use oa_chat::BoxFuture;
use oa_executor::Batch;
use oa_tools::ArgumentError;
use oa_turn::{Call, CallState, Decision, Fit};
use oa_types::Outcome;
use serde_json::Value;

use crate::decision::{Denial, Judges, Prepared, Ruling, Word};
use crate::driver::Driver;
use crate::error::{self, Result};
use crate::event::{AgentEvent, CallDenied};
use crate::settings::AgentConfig;
use crate::work::Done;

impl Driver {
    /// Decides whether a call may run.
    #[inline(never)]
    pub(crate) fn decide(&mut self, call: usize) -> Option<AgentEvent> {
        if self.work.hooks.is_some() {
            // Its question was asked together with those of the calls before it.
            return None;
        }
        let Some(judges) = self.judges(call) else {
            let Prepared { input, fit } = self.prepared(call);
            self.turn.set_input(call, input.clone(), fit);
            self.turn.decide(call, Decision::Run(input));
            return None;
        };
        if !self.settings.config.permissions.asks_at_once() {
            self.work.hooks = Some(Box::pin(async move {
                Done::Decisions(judges.decide().await.map(|ruling| [(call, ruling)].into()))
            }));
            return None;
        }
        let calls = self.turn.calls().iter().enumerate().skip(call + 1);
        let undecided = calls.filter(|(_, call)| call.state == CallState::Undecided);
        let others = undecided.filter_map(|(place, _)| Some((place, self.judges(place)?)));
        let judges = [(call, judges)].into_iter().chain(others).collect();
        self.work.hooks =
            Some(Box::pin(async move { Done::Decisions(decide_at_once(judges).await) }));
        None
    }

    /// Applies the first ruling, and keeps the others until the turn emits their calls.
    pub(crate) fn take_rulings(
        &mut self,
        mut rulings: VecDeque<(usize, Ruling)>,
    ) -> Option<AgentEvent> {
        let (call, ruling) = rulings.pop_front()?;
        if !rulings.is_empty() {
            self.work.hooks = Some(Box::pin(ready(Done::Decisions(Ok(rulings)))));
        }
        self.rule(call, ruling)
    }

    fn rule(&mut self, call: usize, ruling: Ruling) -> Option<AgentEvent> {
        let Ruling { tool, prepared: Prepared { input, fit }, word } = ruling;
        let name = &self.turn.calls()[call].block.name;
        let is_other = |other| tool.as_ref().is_none_or(|tool| !Arc::ptr_eq(tool, other));
        // The tools may have been replaced while somebody was asked.
        let is_stale = self.settings.config.tools.get(name).is_some_and(is_other);
        let mut denied = None;
        let decision = match word {
            Word::Allow => Decision::Run(input.clone()),
            Word::Later => Decision::Wait(input.clone()),
            Word::Deny(denial) => {
                let content = denial.to_value(name);
                denied = Some(self.denied(call, input.clone(), denial));
                Decision::Refuse(content)
            }
        };
        self.turn.set_input(call, input, fit);
        self.turn.decide(call, decision);
        if is_stale {
            self.check_open_calls();
        }
        denied
    }

    /// Starts calls, except those denied by now: a rule, the mode or the input may have changed since their
    /// approval.
    #[inline(never)]
    pub(crate) fn run(&mut self, calls: &[usize]) -> Option<AgentEvent> {
        let mut batch = Batch::new().state(self.settings.config.state.clone());
        if let Some(run) = &mut self.run {
            batch = batch.cancel(self.interrupt.for_tools()).run(run.executor());
        }
        let mut blocks = Vec::with_capacity(calls.len());
        for &call in calls {
            if let Some(reason) = self.denial(call) {
                let denial = Denial::by_permission(reason);
                let Call { block, input, .. } = &self.turn.calls()[call];
                let (content, input) = (denial.to_value(&block.name), input.clone());
                let denied = self.denied(call, input, denial);
                self.events.push_back(denied);
                self.turn.finish_call(call, content, Outcome::Blocked);
                continue;
            }
            let prepared = match &self.turn.calls()[call].fit {
                Fit::Fits => Ok(()),
                Fit::Unfit(why) => Err(ArgumentError::new(why)),
                // Nothing runs that no gate has seen.
                _ => Err(ArgumentError::new("nobody has checked them")),
            };
            let block = self.turn.calls()[call].block_to_run();
            batch = batch.prepared(&*block.id, prepared);
            if let Some(key) = self.key(call) {
                batch = batch.idempotency_key(&block.id, key);
            }
            blocks.push(block);
        }
        if !blocks.is_empty() {
            let batch = self.settings.executor.execute_batch_streaming(blocks, batch);
            self.work.batch = Some(Box::new(batch));
        }
        // The others come before anything that the batch tells.
        self.events.pop_front()
    }

    /// Prepares the input of calls before anyone sees them: those of an answer, or those that another program
    /// left open.
    pub(crate) fn prepare_open_calls(&mut self) {
        for place in 0..self.turn.calls().len() {
            let Prepared { input, fit } = self.prepared(place);
            self.turn.set_input(place, input, fit);
        }
    }

    /// Checks pending calls against replaced tools. Their input stays, since the gates have seen it.
    pub(crate) fn check_open_calls(&mut self) {
        for place in 0..self.turn.calls().len() {
            let Call { block, input, fit, .. } = &self.turn.calls()[place];
            let tool = self.settings.config.tools.get(&block.name);
            if *fit == Fit::Fits
                && let fit @ Fit::Unfit(_) = Prepared::by(tool, input.clone()).fit
            {
                let input = input.clone();
                self.turn.set_input(place, input, fit);
            }
        }
    }

    /// Approves a waiting call with another input.
    pub(crate) fn approve_with(&mut self, id: &str, input: Value) -> Result<()> {
        let waits = |call: &Call| call.block.id == id && call.is_waiting();
        let place = self.turn.calls().iter().position(waits);
        let mut prepared = Prepared { input, fit: Fit::Unchecked };
        if let Some(place) = place {
            let name = &self.turn.calls()[place].block.name;
            let tool = self.settings.config.tools.get(name);
            prepared = Prepared::by(tool, prepared.input);
            if let (Fit::Unfit(why), Some(_)) = (&prepared.fit, tool) {
                let message = format!("the input does not fit the tool {name}: {why}");
                return Err(error::invalid_input(message));
            }
            self.turn.set_input(place, prepared.input.clone(), prepared.fit);
        }
        self.turn.approve(id, Decision::Run(prepared.input)).map_err(error::turn)
    }

    /// Returns the gates of a call, if it has any.
    fn judges(&self, call: usize) -> Option<Judges> {
        let Call { block, is_approved, .. } = &self.turn.calls()[call];
        let AgentConfig { hooks, permissions, tools, .. } = &self.settings.config;
        let tool = tools.get(&block.name);
        let is_hooked = hooks.has_pre_tool_use(&block.name);
        let needs_permission = tool.is_some() && !permissions.allow_everything();
        (is_hooked || needs_permission).then(|| Judges {
            hooks: is_hooked.then(|| hooks.clone()),
            permissions: needs_permission.then(|| permissions.clone()),
            is_approved: *is_approved,
            tool: tool.cloned(),
            name: block.name.clone(),
            id: block.id.clone(),
            history: self.turn.history().clone(),
            prepared: self.prepared(call),
        })
    }

    /// Returns the input of a call, prepared by its tool unless that was done.
    fn prepared(&self, call: usize) -> Prepared {
        let Call { block, input, fit, .. } = &self.turn.calls()[call];
        match fit {
            Fit::Fits => Prepared { input: input.clone(), fit: Fit::Fits },
            _ => Prepared::by(self.settings.config.tools.get(&block.name), input.clone()),
        }
    }

    /// Returns why a call must not run now, even if it was approved.
    fn denial(&self, call: usize) -> Option<String> {
        let Call { block, input, .. } = &self.turn.calls()[call];
        let AgentConfig { permissions, tools, .. } = &self.settings.config;
        let tool = tools.get(&block.name)?;
        if permissions.allow_everything() {
            return None;
        }
        permissions.denies(&block.name, input, tool.category())
    }

    fn denied(&self, call: usize, input: Value, denial: Denial) -> AgentEvent {
        let block = &self.turn.calls()[call].block;
        AgentEvent::CallDenied(Box::new(CallDenied {
            call_id: block.id.clone(),
            tool_name: block.name.clone(),
            input,
            reason: denial.reason,
        }))
    }
}

/// Runs the hooks on one call after another, then asks all questions concurrently.
async fn decide_at_once(
    judges: Vec<(usize, Judges)>,
) -> Result<VecDeque<(usize, Ruling)>, oa_hooks::Error> {
    let (mut rulings, mut questions) = (Vec::new(), Vec::new());
    for (call, mut judges) in judges {
        match judges.before_question().await? {
            Some(word) => rulings.push((call, judges.rule(word))),
            None => questions
                .push(Question::Asked(Box::pin(async move { (call, judges.question().await) }))),
        }
    }
    poll_fn(|cx| {
        let mut is_over = true;
        for question in &mut questions {
            if let Question::Asked(answer) = question {
                match answer.as_mut().poll(cx) {
                    Poll::Ready(answer) => *question = Question::Answered(answer),
                    Poll::Pending => is_over = false,
                }
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    let answers = questions.into_iter().filter_map(|question| match question {
        Question::Answered(ruling) => Some(ruling),
        Question::Asked(_) => None,
    });
    // Both are in the order of the calls, and so is what they make up.
    let mut answers = answers.peekable();
    let mut all = VecDeque::new();
    for ruling in rulings {
        while let Some(answer) = answers.next_if(|(call, _)| *call < ruling.0) {
            all.push_back(answer);
        }
        all.push_back(ruling);
    }
    all.extend(answers);
    Ok(all)
}

enum Question {
    Answered((usize, Ruling)),
    Asked(BoxFuture<(usize, Ruling)>),
}
