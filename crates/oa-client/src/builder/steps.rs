//! Options for the steps of a turn.

use std::sync::Arc;

use oa_turn::{SteerAfterEnd, StepContext};

use super::AgentOptionsBuilder;
use crate::callback::CallbackOutput;
use crate::step::boxed;

impl AgentOptionsBuilder {
    /// Runs code before each request of a turn. It receives the [`StepContext`] and can change the request's model,
    /// tools, thinking and sampling, add instructions, or end the turn. Several functions run in order. An error or a
    /// panic ends the turn with an error of kind `Hook`.
    ///
    /// ```
    /// let options = oa_client::AgentOptions::builder().model("qwen3:30b").before_step(|step| async move {
    ///     if step.number() > 1 {
    ///         step.model("qwen3:4b").temperature(0.0).instructions("Answer in one sentence.");
    ///     }
    /// });
    /// # options.build().unwrap();
    /// ```
    pub fn before_step<F, Fut>(mut self, plan: F) -> Self
    where
        F: Fn(StepContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: CallbackOutput> + Send + 'static,
    {
        self.config.steps.before.push(boxed(plan));
        self.config.turn.plan_steps = true;
        self
    }

    /// Ends the turn with [`FinishReason::Stopped`](oa_types::FinishReason::Stopped) if the condition is true after the
    /// calls of a step, even if they waited for approval or for external results. It is checked once for each step,
    /// before [steered](crate::SteerHandle) messages enter and the conversation is shortened. With several conditions,
    /// any one is enough. [`stop_when`](crate::stop_when) has common conditions. A panic ends the turn with an error of
    /// kind `Hook`. Applies to auto mode.
    pub fn stop_when(
        mut self,
        stop: impl Fn(&StepContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.config.steps.stop.push(Arc::new(stop));
        self.config.turn.check_stop = true;
        self.auto_only("stop_when")
    }

    /// Limits how often per prompt the answer hooks ([`Hooks::add_answer`](oa_hooks::Hooks::add_answer)) may refuse an
    /// answer and let the model try again; 2 by default. A further refusal is an error of kind `Blocked`.
    pub fn max_answer_retries(mut self, retries: u32) -> Self {
        self.config.turn.max_answer_retries = retries;
        self
    }

    /// Sets what happens to messages that were [steered](crate::SteerHandle) into a turn after its last request. By
    /// default the turn continues with them.
    pub fn steer_after_end(mut self, after_end: SteerAfterEnd) -> Self {
        self.config.turn.steer_after_end = after_end;
        self
    }
}
