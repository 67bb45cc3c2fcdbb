use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_types::wire::{Thinking, ToolChoice};
use oa_types::{Cost, FinishReason, Message, Usage};
use serde_json::Value;

use crate::call::Call;
use crate::plan::StepPlan;
use crate::step::PlanStep;

/// A step of a turn: one request, its answer, and the calls of the answer.
///
/// Functions that plan requests, such as an agent's `before_step`, see it before the request. Conditions that end a
/// turn, such as an agent's `stop_when`, see it after its calls.
///
/// Clones are handles to the same step. Changes apply to this step only.
#[derive(Clone)]
pub struct StepContext(Arc<Inner>);

struct Inner {
    seen: PlanStep,
    plan: Mutex<StepPlan>,
}

impl StepContext {
    /// Creates the step of [`Step::Plan`](crate::Step::Plan) or [`Step::CheckStop`](crate::Step::CheckStop), with a
    /// plan that changes nothing.
    #[must_use]
    pub fn new(seen: PlanStep) -> Self {
        Self(Arc::new(Inner { seen, plan: Mutex::default() }))
    }

    /// Returns the number of the step within its turn, from 1. For a condition it is 0 if the calls had waited, and the
    /// turn was continued with their results.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.0.seen.step
    }

    /// Returns the conversation so far, without the system prompt.
    #[must_use]
    pub fn history(&self) -> &[Message] {
        &self.0.seen.history
    }

    /// Returns the usage of this turn so far: all tokens that the server reported, and their cost.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        let PlanStep { tokens, cost, .. } = &self.0.seen;
        usage.total_tokens = Some(*tokens).filter(|tokens| *tokens > 0);
        usage.cost = Some(*cost).filter(|cost| *cost > Cost::ZERO);
        usage
    }

    /// Returns the plan so far.
    #[must_use]
    pub fn plan(&self) -> StepPlan {
        self.locked().clone()
    }

    /// Returns the calls of the last answer of this turn, with their results.
    #[must_use]
    pub fn last_calls(&self) -> &[Call] {
        &self.0.seen.last_calls
    }
}

#[expect(
    clippy::must_use_candidate,
    clippy::return_self_not_must_use,
    reason = "the change is in the step, of which a handle is returned"
)]
impl StepContext {
    /// Sets the model of this request.
    pub fn model(&self, model: impl Into<String>) -> Self {
        self.change(|plan| plan.model = Some(model.into()))
    }

    /// Offers only these tools. A call to any other tool is answered with "no such tool".
    pub fn only_tools(&self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        self.change(|plan| plan.only_tools = Some(names))
    }

    /// Sets which tools the model may or must call. A choice that names a tool that is not offered is ignored.
    pub fn tool_choice(&self, choice: impl Into<ToolChoice>) -> Self {
        self.change(|plan| plan.tool_choice = Some(choice.into()))
    }

    /// Appends instructions to the system prompt of this request. Several calls append in order.
    pub fn instructions(&self, text: impl AsRef<str>) -> Self {
        self.change(|plan| {
            let instructions = plan.instructions.get_or_insert_default();
            if !instructions.is_empty() {
                instructions.push_str("\n\n");
            }
            instructions.push_str(text.as_ref());
        })
    }

    /// Sets how much the model thinks before it answers this request: `true`, `false`, or an effort such as `"low"`.
    pub fn thinking(&self, thinking: impl Into<Thinking>) -> Self {
        self.change(|plan| plan.thinking = Some(thinking.into()))
    }

    /// Sets the sampling temperature of this request, from 0 to 2. The value is not checked.
    pub fn temperature(&self, temperature: f32) -> Self {
        self.change(|plan| plan.temperature = Some(temperature))
    }

    /// Sets the maximum length of the answer to this request, in tokens.
    pub fn max_tokens(&self, tokens: u32) -> Self {
        self.change(|plan| plan.max_tokens = Some(tokens))
    }

    /// Sets members of this request that have no method here, such as `[("top_k", 1)]`. They override members of the
    /// same name. `messages` is ignored.
    pub fn extra_body(
        &self,
        members: impl IntoIterator<Item = (impl Into<String>, impl Into<Value>)>,
    ) -> Self {
        let members = members.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.change(|plan| plan.extra_body.extend(members))
    }

    /// Ends the turn for this reason instead of sending the request. History does not change.
    pub fn end(&self, reason: impl Into<FinishReason>) -> Self {
        self.change(|plan| plan.end = Some(reason.into()))
    }

    fn change(&self, change: impl FnOnce(&mut StepPlan)) -> Self {
        change(&mut self.locked());
        self.clone()
    }

    fn locked(&self) -> MutexGuard<'_, StepPlan> {
        self.0.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for StepContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepContext")
            .field("number", &self.number())
            .field("plan", &*self.locked())
            .finish_non_exhaustive()
    }
}
