use std::fmt;
use std::sync::Arc;

use oa_tools::Registry;
use oa_types::Error;

use crate::options::ExecutorOptions;

/// Runs batches of tool calls. Cheap to clone; clones share everything.
///
/// Does not check permissions: it runs every call that it is given.
///
/// ```
/// use oa_executor::{Batch, ToolEvent, ToolExecutor};
/// use oa_tools::{Registry, tool};
/// use oa_types::ToolUseBlock;
/// use serde_json::json;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut tools = Registry::new();
/// tools.add(tool("double", "Double a number").param("n", "integer").build_with_context(
///     |args, cx| async move {
///         cx.emit_status("doubling");
///         Ok(json!(args["n"].as_i64().unwrap_or_default() * 2))
///     },
/// ))?;
///
/// let calls = vec![ToolUseBlock::new("c1", "double", json!({ "n": 21 }))];
/// let mut events = ToolExecutor::new(tools).execute_batch_streaming(calls, Batch::new());
/// let mut types = Vec::new();
/// while let Some(event) = events.next().await {
///     types.push(event.event_type().to_owned());
///     if let ToolEvent::End(end) = event {
///         assert_eq!(end.execution_results[0].result, json!(42));
///         assert_eq!(end.tool_messages.len(), 1); // ready for the conversation
///     }
/// }
/// assert_eq!(types, ["tool_call_start", "tool_status", "tool_call_complete", "tools_end"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct ToolExecutor(Arc<Inner>);

struct Inner {
    tools: Registry,
    options: ExecutorOptions,
}

impl ToolExecutor {
    /// Creates an executor for these tools with default options.
    #[must_use]
    pub fn new(tools: Registry) -> Self {
        Self(Arc::new(Inner { tools, options: ExecutorOptions::new() }))
    }

    /// Creates an executor for these tools.
    ///
    /// # Errors
    ///
    /// `Config` if an option is invalid: see [`ExecutorOptions::check`].
    pub fn with_options(tools: Registry, options: ExecutorOptions) -> Result<Self, Error> {
        options.check()?;
        Ok(Self(Arc::new(Inner { tools, options })))
    }

    /// Returns the tools.
    #[must_use]
    pub fn tools(&self) -> &Registry {
        &self.0.tools
    }

    /// Returns the options.
    #[must_use]
    pub fn options(&self) -> &ExecutorOptions {
        &self.0.options
    }
}

impl fmt::Debug for ToolExecutor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolExecutor")
            .field("tools", &self.0.tools)
            .field("options", &self.0.options)
            .finish()
    }
}
