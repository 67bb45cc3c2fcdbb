use std::fmt;
use std::sync::Arc;

use oa_types::ToolUseBlock;

use crate::result::ExecutionResult;

/// A policy that skips calls.
#[derive(Clone)]
pub struct SkipPolicy(Arc<Reason>);

type Reason = dyn Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync;

impl SkipPolicy {
    /// Creates a policy from a closure that returns the reason for skipping a call, given the call with its
    /// final arguments and the results so far, in order of completion.
    #[must_use]
    pub fn new<F>(reason: F) -> Self
    where
        F: Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync + 'static,
    {
        Self(Arc::new(reason))
    }

    /// Returns the reason for skipping a call; `None` if it is not skipped.
    #[must_use]
    pub fn reason(&self, call: &ToolUseBlock, ended: &[Arc<ExecutionResult>]) -> Option<String> {
        (self.0)(call, ended)
    }
}

impl fmt::Debug for SkipPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkipPolicy").finish_non_exhaustive()
    }
}
