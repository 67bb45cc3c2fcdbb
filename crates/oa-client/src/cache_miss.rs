//! Reports requests to the cache-miss detector in `oa-context`.

use std::sync::Arc;

use oa_chat::ChatOptions;
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

impl Prefix {
    /// Returns the options that a server may write before the messages. Some write the amount of thinking there.
    fn written(&self) -> impl PartialEq {
        let ChatOptions { system_prompt, thinking, parameters, .. } = self.settings.chat.options();
        (system_prompt, thinking, &parameters.tools, &parameters.extra_body)
    }
}

impl PartialEq for Prefix {
    fn eq(&self, other: &Self) -> bool {
        let planned = |prefix: &Self| {
            let plan = prefix.plan.clone().unwrap_or_default();
            (plan.instructions, plan.only_tools, plan.thinking, plan.extra_body)
        };
        let is_same =
            Arc::ptr_eq(&self.settings, &other.settings) || self.written() == other.written();
        is_same && self.tools == other.tools && planned(self) == planned(other)
    }
}
