use std::sync::Arc;

use oa_context::{CacheMiss, SentPrefix};
use oa_turn::Action;
use oa_types::Usage;

use super::Driver;
use crate::cache_miss::Prefix;

impl Driver {
    /// Returns the miss if the server had far fewer tokens of this request in its cache than of the previous one.
    pub(crate) fn check_cache(&mut self, usage: &Usage) -> Option<CacheMiss> {
        if usage.cached_tokens.is_none() && self.cache.is_none() {
            return None;
        }
        let plan = self.turn.step_plan().cloned();
        let model = plan.as_ref().and_then(|plan| plan.model.clone());
        let tools = matches!(self.turn.pending_action(), Some(Action::Request { tools: true }));
        let reader = self.results.as_ref().is_some_and(|results| !results.is_empty());
        let (settings, tools) = (Arc::clone(&self.settings), [tools, reader]);
        let model = model.unwrap_or_else(|| settings.chat.parameters.model.clone());
        let sent = SentPrefix::new(&model, Prefix { settings, tools, plan }, self.turn.revisions());
        self.cache.get_or_insert_default().check(sent, usage)
    }
}
