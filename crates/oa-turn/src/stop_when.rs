//! Conditions that end a turn after the calls of a step, for an agent's `stop_when`.

use crate::step_context::StepContext;

/// Returns a condition that stops the turn once the model has called this tool.
pub fn has_call(tool: impl Into<String>) -> impl Fn(&StepContext) -> bool + Send + Sync + 'static {
    let tool = tool.into();
    move |step| step.last_calls().iter().any(|call| call.block.name == tool)
}

/// Returns a condition that stops the turn after this number of steps.
pub fn steps(most: u32) -> impl Fn(&StepContext) -> bool + Send + Sync + 'static {
    move |step| step.number() >= most
}

/// Returns a condition that stops the turn once it has used this number of tokens, as the server reports them.
pub fn tokens(most: u64) -> impl Fn(&StepContext) -> bool + Send + Sync + 'static {
    move |step| step.usage().total().is_some_and(|tokens| tokens >= most)
}
