//! Detects that a server's prompt cache collapsed: tells the detector of `oa-context` what was sent.

use std::sync::Arc;

use oa_context::{CacheMiss, CacheMissDetector, SentPrefix};
use oa_turn::{Action, StepPlan};
use oa_types::Usage;

use crate::driver::Driver;
use crate::settings::Settings;

/// Compares the requests of one conversation, once a server has reported cached tokens.
pub(crate) type CacheMissCheck = CacheMissDetector<Prefix>;

/// What stands before the messages.
pub(crate) struct Prefix {
    settings: Arc<Settings>,
    tools: bool,
    plan: Option<StepPlan>,
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

impl Driver {
    /// Returns the miss if the server had far fewer tokens of the request in its cache than of the one before.
    pub(crate) fn check_cache(&mut self, usage: &Usage) -> Option<CacheMiss> {
        if usage.cached_tokens.is_none() && self.cache.is_none() {
            return None;
        }
        let plan = self.turn.step_plan().cloned();
        let model = plan.as_ref().and_then(|plan| plan.model.clone());
        let tools = matches!(self.turn.pending_action(), Some(Action::Request { tools: true }));
        let settings = Arc::clone(&self.settings);
        let model = model.unwrap_or_else(|| settings.chat.parameters.model.clone());
        let sent = SentPrefix::new(&model, Prefix { settings, tools, plan }, self.turn.revisions());
        self.cache.get_or_insert_default().check(sent, usage)
    }
}
