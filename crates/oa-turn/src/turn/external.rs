//! External tools, whose calls are answered by the caller.

use oa_types::{FinishReason, Outcome, ToolUseBlock};
use serde_json::json;

use super::Turn;
use super::phase::Rest;
use crate::call::{Call, CallState, Fit};

impl Turn {
    /// Sets the names of the external tools. Their calls are decided like any others, but never run: the driver checks
    /// them once more and hands them to the caller ([`await_result`](Self::await_result)), the turn runs the other
    /// calls and ends with [`FinishReason::WaitsForResults`]. Answer them with [`add_result`](Self::add_result), then
    /// [continue](Self::continue_turn).
    ///
    /// Applies to calls of later answers, and to open calls of a conversation that is [resumed](Self::resume) later.
    pub fn set_external_tools(&mut self, names: impl IntoIterator<Item = String>) {
        self.external_tools = names.into_iter().collect();
    }

    /// Hands a call of an external tool to the caller, after [`Action::Run`](crate::Action::Run): it waits for its
    /// result. A call whose input is invalid gets an error as its result instead. Returns false if the call does not
    /// wait now, because it is invalid, not external, or not among the calls to run.
    pub fn await_result(&mut self, call: usize) -> bool {
        if !self.runs(call) || !self.round.calls[call].is_external {
            return false;
        }
        let handed = &mut self.round.calls[call];
        if let Fit::Unfit(reason) = &handed.fit {
            let tool = &handed.block.name;
            let content = json!({ "error": "invalid arguments", "tool": tool, "reason": reason });
            self.record(call, content, Vec::new(), Outcome::InvalidInput);
            return false;
        }
        handed.state = CallState::AwaitsResult;
        true
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
