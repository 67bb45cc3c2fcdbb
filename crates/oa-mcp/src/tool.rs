use std::sync::Arc;

use oa_mcp_data::{ToolDescription, ToolOrigin, read_result};
use oa_tools::{
    ArgumentError, LogLevel, Tool, ToolContext, ToolError, ToolFuture, check_arguments,
};
use serde_json::Value;

use crate::connection::Connection;
use crate::error::ErrorKind;

/// A tool of a server, used by an agent like any other.
pub(crate) struct McpTool {
    pub(crate) description: Arc<ToolDescription>,
    pub(crate) connection: Arc<Connection>,
}

impl Tool for McpTool {
    fn name(&self) -> &str {
        &self.description.name
    }

    fn description(&self) -> &str {
        &self.description.description
    }

    fn input_schema(&self) -> &Value {
        &self.description.offered
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        // The schema offered to the model server may allow more or less than the tool's server does.
        check_arguments(&self.description.checked, input)
    }

    fn category(&self) -> Option<&str> {
        Some(self.description.category)
    }

    /// The server's questions are answered within the turn that calls the tool.
    fn is_agent(&self) -> bool {
        self.connection.server().may_ask()
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let connection = &*self.connection;
            let called = match self.description.of {
                ToolOrigin::ListResources => connection.list_for_model().await,
                ToolOrigin::ReadResource => connection.read_for_model(&input["uri"], &cx).await,
                ToolOrigin::Server => connection.call(&self.description.raw_name, input, &cx).await,
            };
            match called {
                Ok(answer) => {
                    let output = self.description.output.as_ref().filter(|_| cx.is_emitting());
                    if let Some(problem) = output.and_then(|output| output.problem(&answer)) {
                        let problem = connection.secrets().excerpt(&problem, 500);
                        let what = "the structured content does not match the output schema";
                        cx.emit_log_at(LogLevel::Warn, format_args!("{what}: {problem}"));
                    }
                    read_result(&answer, &cx, &connection.secrets())
                }
                Err(error) => {
                    let message = match (error.kind(), error.code()) {
                        (ErrorKind::Rejected, Some(-32602)) => format!("wrong arguments: {error}"),
                        (ErrorKind::Rejected, Some(code)) => format!("{error} (code {code})"),
                        _ => format!("{}: {error}", connection.name()),
                    };
                    // A retry policy must not repeat a call that may have run, unless the tool is idempotent.
                    let has_failed_on_its_way =
                        matches!(error.kind(), ErrorKind::Closed | ErrorKind::Timeout);
                    let may_repeat = has_failed_on_its_way && self.description.may_repeat;
                    Err(ToolError::new(message).retryable(may_repeat))
                }
            }
        })
    }
}
