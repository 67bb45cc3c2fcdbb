use std::sync::Arc;

use oa_tools::{ArgumentError, Tool, ToolContext, ToolError, ToolFuture, check_arguments};
use serde_json::Value;

use crate::connection::Connection;
use crate::description::Description;
use crate::error::ErrorKind;
use crate::result;

/// A tool of a server, which an agent uses like any other.
pub(crate) struct McpTool {
    pub(crate) description: Arc<Description>,
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
        // The form for the model server may allow more or less than the server of the tool does.
        check_arguments(&self.description.checked, input)
    }

    fn category(&self) -> Option<&str> {
        Some(self.description.category)
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        Box::pin(async move {
            let called = self.connection.call(&self.description.raw_name, input, &cx).await;
            match called {
                Ok(answer) => result::read(&answer, &cx, self.connection.secrets()),
                Err(error) => {
                    let message = match (error.kind(), error.code()) {
                        (ErrorKind::Rejected, Some(-32602)) => format!("wrong arguments: {error}"),
                        (ErrorKind::Rejected, Some(code)) => format!("{error} (code {code})"),
                        _ => format!("{}: {error}", self.connection.name()),
                    };
                    // A call that may have run is not repeated by a policy for retries.
                    Err(ToolError::new(message).retryable(false))
                }
            }
        })
    }
}
