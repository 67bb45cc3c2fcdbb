//! Reports requests to the cache-miss detector in `oa-context`.

use std::sync::Arc;

use oa_context::CacheMissDetector;
use oa_turn::StepPlan;

use crate::settings::Settings;

/// The detector, created once a server has reported cached tokens.
pub(crate) type CacheMissCheck = CacheMissDetector<Prefix>;

/// The part of a request before its messages.
pub(crate) struct Prefix {
    pub(crate) settings: Arc<Settings>,
    /// True if tools were offered, and true if `read_result` was.
    pub(crate) tools: [bool; 2],
    pub(crate) plan: Option<StepPlan>,
}

impl PartialEq for Prefix {
    fn eq(&self, other: &Self) -> bool {
        let planned = |prefix: &Self| {
            prefix.plan.clone().map(|plan| (plan.instructions, plan.only_tools)).unwrap_or_default()
        };
        let (chat, others) = (&self.settings.chat, &other.settings.chat);
        let is_same = Arc::ptr_eq(&self.settings, &other.settings)
            || chat.system_prompt == others.system_prompt
                && chat.parameters.tools == others.parameters.tools;
        is_same && self.tools == other.tools && planned(self) == planned(other)
    }
}
