//! Requests that are planned one by one.

use oa_types::Outcome;
use serde_json::json;

use super::Turn;
use super::phase::{Phase, Rest};
use super::progress::Budget;
use crate::call::{Call, CallState};
use crate::plan::StepPlan;
use crate::step::PlanStep;

impl Turn {
    /// Sets the plan of the next request, after [`Action::Plan`](crate::Action::Plan). If it [ends](StepPlan::end) the
    /// turn, no request is sent, and history does not change.
    ///
    /// The [output tool](Self::begin_output) is always offered: without it the model could not answer.
    pub fn plan(&mut self, mut plan: StepPlan) {
        let Phase::Planning { handed: true, prompt } = self.phase else { return };
        if let (Some(names), Some(output)) = (&mut plan.only_tools, self.output_tool())
            && !names.iter().any(|name| name == output)
        {
            names.push(output.to_owned());
        }
        let end = plan.end.clone();
        self.plan = (plan != StepPlan::default()).then(|| Box::new(plan));
        match end {
            // The plan stays until the next request, so that a steered message does not continue the turn.
            Some(reason) => self.end(reason, Rest::Done),
            None => self.phase = Phase::Requesting { sent: false, prompt },
        }
    }

    /// Returns the plan of the request in progress, if it is not the default.
    #[must_use]
    pub fn step_plan(&self) -> Option<&StepPlan> {
        self.plan.as_deref().filter(|plan| plan.end.is_none())
    }

    /// Returns the number of requests sent in this turn.
    #[must_use]
    pub fn steps(&self) -> u32 {
        self.progress.budget.steps
    }

    /// Returns the data for planning a request, after [`Action::Plan`](crate::Action::Plan).
    #[must_use]
    pub fn plan_step(&self, step: u32) -> PlanStep {
        let Budget { tokens, cost, .. } = self.progress.budget;
        let last_calls = self.last_calls().to_vec();
        PlanStep { step, last_calls, tokens, cost, history: self.history().clone() }
    }

    /// Returns the calls of the last answer, if it belongs to this turn or to the one that this turn continues.
    #[must_use]
    pub fn last_calls(&self) -> &[Call] {
        // Before the first request of a prompt, the calls are those of an earlier turn.
        if self.steps() == 0 && self.progress.counts { &[] } else { self.calls() }
    }

    /// Begins planning a request, or begins the request if plans are disabled.
    pub(super) fn plan_request(&mut self, prompt: Option<usize>) {
        self.phase = if self.options.plan_steps {
            Phase::Planning { handed: false, prompt }
        } else {
            Phase::Requesting { sent: false, prompt }
        };
    }

    /// Returns true if the next request offers tools: after a limit, it offers the output tool or none.
    pub(super) fn offers_tools(&self) -> bool {
        self.progress.last.is_none() || self.output_tool().is_some()
    }

    /// Plans a request after a limit: without the output tool the model would not know the format of its answer.
    pub(super) fn offer_output_only(&mut self) {
        if let Some(output) = self.output_tool().map(str::to_owned) {
            self.plan.get_or_insert_default().only_tools = Some(vec![output]);
        }
    }

    /// Refuses the calls of tools that the plan did not offer. After a limit, the limit refuses them.
    pub(super) fn refuse_tools_not_offered(&mut self) {
        let Some(plan) = self.plan.take().filter(|_| self.progress.last.is_none()) else { return };
        for call in self.round.calls.iter_mut().filter(|call| call.is_undecided()) {
            let name = &call.block.name;
            if !plan.offers(name) {
                let available = plan.only_tools.as_deref().unwrap_or_default();
                let error = "there is no such tool in this step";
                let content = json!({ "error": error, "tool": name, "available": available });
                call.state = CallState::Refused { content, outcome: Outcome::UnknownTool };
            }
        }
    }
}
