//! External tools, whose calls are answered by the caller.

use oa_types::{FinishReason, ToolUseBlock};

use super::Turn;
use super::phase::Rest;
use crate::call::Call;

impl Turn {
    /// Sets the names of the external tools. Their calls are decided like any others, but never run: the turn runs the
    /// other calls and ends with [`FinishReason::WaitsForResults`]. Answer them with
    /// [`add_result`](Self::add_result), then [continue](Self::continue_turn).
    ///
    /// Applies to calls of later answers, and to open calls of a conversation that is [resumed](Self::resume) later.
    pub fn set_external_tools(&mut self, names: impl IntoIterator<Item = String>) {
        self.external_tools = names.into_iter().collect();
    }

    pub(super) fn is_external(&self, name: &str) -> bool {
        self.external_tools.iter().any(|external| external == name)
    }

    pub(super) fn new_call(&self, block: ToolUseBlock) -> Call {
        let is_external = self.is_external(&block.name);
        Call { is_external, ..Call::new(block) }
    }

    /// Ends the turn until the caller has answered the open calls.
    pub(super) fn wait_for_results(&mut self) {
        self.round.show_results_so_far(&mut self.out);
        self.end(FinishReason::WaitsForResults, Rest::Done);
    }
}
