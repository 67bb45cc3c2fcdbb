//! Calls that wait for the caller: for a result or for approval.

use oa_turn::{Call, CallState, Decision};
use oa_types::{ImageBlock, Outcome, ToolUseBlock};
use serde_json::{Value, json};

use super::Client;
use crate::decision::Denial;
use crate::error::{self, Result};

impl Client {
    /// Adds the result of one of the [`pending_calls`](Self::pending_calls). A string reaches the model as it is,
    /// any other value as JSON.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if no call of the last answer has this id, or it does not wait for a result.
    pub fn add_tool_result(&mut self, id: &str, content: Value) -> Result<()> {
        self.add_tool_result_with_images(id, content, Vec::new())
    }

    /// Adds the result of a pending call with images that the model sees with it, such as those of
    /// [`ToolContext::take_images`](oa_tools::ToolContext::take_images); otherwise like
    /// [`add_tool_result`](Self::add_tool_result).
    ///
    /// # Errors
    ///
    /// As [`add_tool_result`](Self::add_tool_result).
    pub fn add_tool_result_with_images(
        &mut self,
        id: &str,
        content: Value,
        images: Vec<ImageBlock>,
    ) -> Result<()> {
        self.driver.add_result(id, content, images, Outcome::Ok)
    }

    /// Adds an error as the result of one of the [`pending_calls`](Self::pending_calls); the model reads it.
    ///
    /// # Errors
    ///
    /// As [`add_tool_result`](Self::add_tool_result).
    pub fn add_tool_error(&mut self, id: &str, error: impl Into<String>) -> Result<()> {
        let calls = self.driver.turn.calls();
        let call = calls.iter().find(|call| call.block.id == id);
        let name = call.map_or("", |call| &call.block.name);
        let content = json!({ "error": error.into(), "tool": name });
        self.driver.add_result(id, content, Vec::new(), Outcome::Failed)
    }

    /// Returns the calls that wait for a result from the caller, with the input to run. In manual mode, these are all
    /// open calls except those on which a hook or a list has yet to decide, which follow once the turn has returned
    /// them. In auto mode, these are the calls of [external](oa_tools::ToolBuilder::external) tools, after a turn has
    /// ended with [`FinishReason::WaitsForResults`](oa_types::FinishReason::WaitsForResults).
    #[must_use]
    pub fn pending_calls(&self) -> Vec<ToolUseBlock> {
        let is_manual = !self.options.auto_execute_tools();
        let config = &self.driver.settings.config;
        let is_decided = |call: &Call| call.state != CallState::Undecided || !config.has_gate(call);
        let waits = |call: &&Call| {
            call.waits_for_result() || is_manual && call.is_open() && is_decided(call)
        };
        self.driver.turn.calls().iter().filter(waits).map(Call::block_to_run).collect()
    }

    /// Returns the calls that wait for approval, with the input that they would run with, after a turn has ended with
    /// [`FinishReason::ApprovalPending`](oa_types::FinishReason::ApprovalPending).
    #[must_use]
    pub fn pending_approvals(&self) -> Vec<ToolUseBlock> {
        let waiting = self.driver.turn.calls().iter().filter(|call| call.is_waiting());
        waiting.map(Call::block_to_run).collect()
    }

    /// Approves a waiting call. Once no more calls wait, [`continue_turn`](Self::continue_turn) runs the approved
    /// calls, and adds those of external tools to [`pending_calls`](Self::pending_calls).
    ///
    /// Rules and the mode are checked again before the call runs: a deny rule and
    /// [`PermissionMode::Plan`](oa_hooks::PermissionMode::Plan) override an approval.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if no call of the last answer has this id, or it is not waiting.
    pub fn approve(&mut self, id: &str) -> Result<()> {
        let call = self.driver.turn.calls().iter().find(|call| call.block.id == id);
        let input = call.map(|call| call.input.clone()).unwrap_or_default();
        self.driver.turn.approve(id, Decision::Run(input)).map_err(error::turn)
    }

    /// Approves a waiting call with a different input, to which the tool's defaults are added.
    ///
    /// # Errors
    ///
    /// As [`approve`](Self::approve), and `InvalidInput` if the input violates the tool's schema: the call then still waits.
    pub fn approve_with(&mut self, id: &str, input: Value) -> Result<()> {
        self.driver.approve_with(id, input)
    }

    /// Denies a waiting call; the model reads the reason.
    ///
    /// # Errors
    ///
    /// As [`approve`](Self::approve).
    pub fn deny(&mut self, id: &str, reason: impl Into<String>) -> Result<()> {
        let call = self.driver.turn.calls().iter().find(|call| call.block.id == id);
        let name = call.map_or("", |call| &call.block.name);
        let content = Denial::by_permission(reason.into()).to_value(name);
        self.driver.turn.approve(id, Decision::Refuse(content)).map_err(error::turn)
    }
}
