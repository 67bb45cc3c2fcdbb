//! The tool that reads full results: its offer and its store.

use oa_chat::ChatRequest;
use oa_executor::{READ_RESULT, ResultStore, TruncationPolicy, read_result};
use oa_tools::{Registry, Tool};
use oa_turn::{Call, ReviewOutcome};

use crate::error::{Error, Result};
use crate::settings::{AgentConfig, Settings};

impl AgentConfig {
    /// Adds the tool if it is enabled. The registry may already have it, if it comes from another agent.
    pub(crate) fn with_reader(
        &self,
        mut tools: Registry,
        limit: TruncationPolicy,
    ) -> Result<Registry> {
        if !self.keeps_results {
            return Ok(tools);
        }
        let reader = read_result(limit);
        if tools.get(READ_RESULT).is_some_and(|known| known.spec() == reader.spec()) {
            tools.remove(READ_RESULT);
        }
        if tools.add(reader).is_err() {
            let why = "offer_full_results adds a tool read_result: rename your tool with that name";
            return Err(Error::config(why));
        }
        Ok(tools)
    }

    /// Forgets the stored result of a reviewed call if it may contain text that a hook has removed, or that no hook
    /// would see: hooks have seen the truncated result, and not all of them see what the tool shows.
    pub(crate) fn forget_reviewed(
        &self,
        results: Option<&ResultStore>,
        call: &Call,
        outcome: &ReviewOutcome,
    ) {
        let is_replaced = matches!(outcome, ReviewOutcome::Replace { .. });
        if let Some(results) = results
            && (is_replaced || !self.hooks.has_post_tool_use(READ_RESULT))
        {
            results.forget(&call.block.id);
        }
    }

    /// Removes the tool, which is offered only once there are results to read.
    pub(crate) fn without_reader(&self, mut tools: Registry) -> Registry {
        if self.keeps_results {
            tools.remove(READ_RESULT);
        }
        tools
    }
}

impl Settings {
    /// Creates the store for a conversation's results, if the model may read them.
    pub(crate) fn result_store(&self) -> Option<ResultStore> {
        let is_offered = self.config.keeps_results && self.executor.tools().contains(READ_RESULT);
        is_offered.then(ResultStore::new)
    }

    /// Offers the tool once there are results to read.
    pub(crate) fn offer_reader(
        &self,
        request: ChatRequest,
        results: Option<&ResultStore>,
    ) -> ChatRequest {
        let results = results.filter(|results| !results.is_empty());
        match results.and_then(|_| self.executor.tools().get(READ_RESULT)) {
            Some(tool) => {
                request.with_options(|options| options.parameters.tools.push(tool.spec()))
            }
            None => request,
        }
    }
}
