use std::fmt;
use std::sync::Arc;

use oa_types::ToolUseBlock;

use crate::result::ExecutionResult;

/// Which calls are left out, and why.
#[derive(Clone)]
pub struct SkipPolicy(Arc<Reason>);

type Reason = dyn Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync;

impl SkipPolicy {
    /// Creates a policy of a closure that returns a reason to leave a call out, given the call with the
    /// arguments as they would run, and what has ended before, in the order of completion.
    #[must_use]
    pub fn new<F>(reason: F) -> Self
    where
        F: Fn(&ToolUseBlock, &[Arc<ExecutionResult>]) -> Option<String> + Send + Sync + 'static,
    {
        Self(Arc::new(reason))
    }

    /// Returns why a call is left out, if it is.
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
