//! The tool that reads full results: when it is offered, and what it can read.

use oa_chat::{AnyChat, ChatOptions, PreparedOptions};
use oa_executor::{READ_RESULT, ResultStore, TruncationPolicy, read_result};
use oa_hooks::Change;
use oa_tools::Registry;
use oa_turn::Action;
use oa_types::ToolSpec;
use serde_json::Value;

use crate::driver::Driver;
use crate::error::{Error, Result};
use crate::settings::{Settings, prepared};
use crate::shortening::ContextOptions;

impl ContextOptions {
    /// Adds the tool, if it is wanted.
    pub(crate) fn add_reader(
        &self,
        tools: &mut Registry,
        truncation: TruncationPolicy,
    ) -> Result<()> {
        if !self.keeps_results {
            return Ok(());
        }
        tools.add(read_result(truncation)).map_err(|_| {
            let message =
                "offer_full_results offers a tool read_result: rename your tool of this name";
            Error::config(message)
        })
    }

    /// Returns the tools that are offered from the start.
    pub(crate) fn specs(&self, offered: &Registry) -> Vec<ToolSpec> {
        let mut specs = offered.specs();
        specs.retain(|tool| !self.keeps_results || tool.name != READ_RESULT);
        specs
    }
}

/// Returns the options for requests once there are results to read.
pub(crate) fn reading(
    chat: &ChatOptions,
    tools: &Registry,
    context: &ContextOptions,
    service: &AnyChat,
) -> Result<Option<PreparedOptions>> {
    let Some(tool) = tools.get(READ_RESULT).filter(|_| context.keeps_results) else {
        return Ok(None);
    };
    let mut chat = chat.clone();
    chat.parameters.tools.push(tool.spec());
    prepared(chat, service).map(Some)
}

impl Settings {
    /// Returns the options for a request of a conversation with these results.
    pub(crate) fn chat_for(&self, results: Option<&ResultStore>) -> &PreparedOptions {
        let has_results = results.is_some_and(|results| !results.is_empty());
        self.reading.as_ref().filter(|_| has_results).unwrap_or(&self.chat)
    }
}

impl Driver {
    /// Forgets the full result of a call whose result a hook has replaced: it may hold what the hook removed.
    pub(crate) fn forget_replaced(&self, change: &Result<Option<Change<Value>>, oa_hooks::Error>) {
        if let (Some(results), Ok(Some(_)), Some(Action::Review { call })) =
            (&self.results, change, self.turn.pending_action())
        {
            results.forget(&self.turn.calls()[call].block.id);
        }
    }
}
