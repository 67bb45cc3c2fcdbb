//! The driver's part of deciding about the calls of an answer, by hooks and permissions, and of starting them.

use std::collections::VecDeque;
use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::Poll;

use oa_chat::BoxFuture;
use oa_events::AgentEvent;
use oa_executor::Batch;
use oa_turn::{Call, CallState, Decision, Fit};
use oa_types::Outcome;
use serde_json::Value;

use crate::decision::{Admission, CallGate, Decided, Prepared, Refused, prepare};
use crate::driver::Driver;
use crate::error::{self, Result};
use crate::nested::RunningBatch;
use crate::work::Done;

impl Driver {
    /// Decides whether a call may run.
    #[inline(never)]
    pub(crate) fn decide(&mut self, call: usize) {
        if self.work.futures.get_mut().hooks.is_some() {
            // Its question was asked together with those of the calls before it.
            return;
        }
        let calls = self.turn.calls();
        if !self.settings.config.has_gate(&calls[call]) {
            // Without a gate, nobody has prepared a call of a tool that was added later.
            if calls[call].fit != Fit::Fits {
                let Prepared { input, fit } = self.settings.config.prepared(&calls[call]);
                self.turn.set_input(call, input, fit);
            }
            self.turn.allow(call);
            return;
        }
        let gate = |call: &Call| self.settings.config.gate(call, self.turn.history());
        if !self.settings.config.permissions.asks_at_once() {
            let gate = gate(&calls[call]);
            self.work.wait_for(async move {
                Done::Decisions(gate.decide().await.map(|decided| [(call, decided)].into()))
            });
            return;
        }
        // Include calls without a gate: the turn emits all calls, and the decisions are applied in this order.
        let calls = calls.iter().enumerate().skip(call);
        let undecided = calls.filter(|(_, call)| call.state == CallState::Undecided);
        let gates = undecided.map(|(place, call)| (place, gate(call))).collect();
        self.work.wait_for(async move { Done::Decisions(decide_at_once(gates).await) });
    }

    /// Applies the first decision, and keeps the others until the turn emits their calls.
    pub(crate) fn take_decided(
        &mut self,
        mut decided: VecDeque<(usize, Decided)>,
    ) -> Option<AgentEvent> {
        let (call, first) = decided.pop_front()?;
        if !decided.is_empty() {
            self.work.wait_for(ready(Done::Decisions(Ok(decided))));
        }
        let Decided { tool, prepared: Prepared { input, fit }, decision } = first;
        let block = &self.turn.calls()[call].block;
        let is_other = |other| tool.as_ref().is_none_or(|tool| !Arc::ptr_eq(tool, other));
        // The tools may have been replaced while permission was requested.
        let is_stale = self.settings.config.tools.get(&block.name).is_some_and(is_other);
        let (decision, denied) = decision.apply(block, &input, Decision::Wait);
        // The input first: the decision is about this input, and the turn shows the call once it is decided.
        self.turn.set_input(call, input, fit);
        self.turn.decide(call, decision);
        if is_stale {
            self.check_open_calls();
        }
        denied
    }

    /// Starts calls, except those denied by now: a rule, the mode or the input may have changed since their approval.
    #[inline(never)]
    pub(crate) fn run(&mut self, calls: &[usize]) -> Option<AgentEvent> {
        let mut batch = Batch::new();
        if let Some(run) = &mut self.run {
            batch = batch.run(run.executor());
            if let Some(interrupt) = &self.interrupt {
                batch = batch.cancel(interrupt.for_tools());
            }
        }
        let config = &self.settings.config;
        let calls = calls.iter().map(|&call| (call, &self.turn.calls()[call], self.key(call)));
        let Admission { blocks, batch, denied, external } = config.admit(batch, calls);
        for call in external {
            self.turn.await_result(call);
        }
        for Refused { place, content, event } in denied {
            self.events.push_back(event);
            self.turn.finish_call(place, content, Outcome::Blocked);
        }
        if !blocks.is_empty() {
            let left = || self.turn.left();
            let results = self.results.as_ref();
            let batch = RunningBatch::start(&self.settings, blocks, batch, results, left);
            self.work.batch = Some(Box::new(batch));
        }
        // The other denials come before the events of the batch.
        self.events.pop_front()
    }

    /// Prepares the input of calls, of an answer or left open by another program, before gates or the caller see it.
    pub(crate) fn prepare_open_calls(&mut self) {
        let tools = &self.settings.config.tools;
        self.turn.prepare_calls(|name, input| prepare(tools.get(name), input));
    }

    /// Answers the calls that the lists forbid, of those that another program left open. In auto mode, all wait.
    pub(crate) fn refuse_forbidden(&mut self) -> Result<()> {
        if self.settings.config.turn.mode == oa_turn::Mode::Auto {
            return Ok(());
        }
        for place in 0..self.turn.calls().len() {
            let call = &self.turn.calls()[place];
            let denial = call.is_open().then(|| self.settings.config.denial(call)).flatten();
            if let Some(denial) = denial {
                let (id, content) = (call.block.id.clone(), denial.to_value(&call.block.name));
                self.add_result(&id, content, Vec::new(), Outcome::Blocked)?;
            }
        }
        Ok(())
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
                let message =
                    format!("the input does not match the schema of the tool {name}: {why}");
                return Err(error::invalid_input(message));
            }
            self.turn.set_input(place, prepared.input.clone(), prepared.fit);
        }
        self.turn.approve(id, Decision::Run(prepared.input)).map_err(error::turn)
    }
}

/// Runs the hooks on one call after another, then asks all questions concurrently.
async fn decide_at_once(
    gates: Vec<(usize, CallGate)>,
) -> Result<VecDeque<(usize, Decided)>, oa_hooks::Error> {
    // Hooks run one at a time and in call order, as they do without questions at once.
    let (mut decided, mut questions) = (Vec::new(), Vec::<BoxFuture<(usize, Decided)>>::new());
    for (call, mut gate) in gates {
        match gate.before_question().await? {
            Some(decision) => decided.push((call, gate.decided(decision))),
            None => questions.push(Box::pin(async move { (call, gate.question().await) })),
        }
    }
    poll_fn(|cx| {
        questions.retain_mut(|question| match question.as_mut().poll(cx) {
            Poll::Ready(answer) => {
                decided.push(answer);
                false
            }
            Poll::Pending => true,
        });
        if questions.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    decided.sort_by_key(|(call, _)| *call);
    Ok(decided.into())
}
