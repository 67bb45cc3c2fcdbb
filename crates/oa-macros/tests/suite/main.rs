//! Tools made by `#[tool]`.
//!
//! The names of the facade that an expansion uses are those of `oa-tools`, so the rest of it need not be built.

extern crate oa_tools as open_agent;

mod arguments;
mod calls;
mod errors;
mod laws;
mod names;
mod options;
mod results;

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use oa_tools::{FnTool, State, Tool, ToolContext, ToolError};
use serde_json::Value;

/// Returns the output of a future that never waits.
pub(crate) fn run<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it waits"),
    }
}

/// Runs a tool as an agent does, with shared state.
pub(crate) fn call(tool: &FnTool, input: Value, state: State) -> Result<Value, ToolError> {
    let input = tool.prepare(input).map_err(ToolError::from)?;
    run(tool.call(input, ToolContext::new("call_1", tool.name()).with_state(state)))
}

/// Runs a tool without state, and returns the message of an error.
pub(crate) fn execute(tool: &FnTool, input: Value) -> Result<Value, String> {
    call(tool, input, State::new()).map_err(|error| error.to_string())
}
