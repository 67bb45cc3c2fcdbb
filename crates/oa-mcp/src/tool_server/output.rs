use oa_executor::{ExecutionResult, ToolEvent};
use oa_mcp_data::client::{failure, notice, tool_result};
use oa_tools::Progress;
use serde_json::{Value, json};

use crate::tool_server::protocol::Call;

/// Converts the executor's events of one call to messages for the client, in order.
pub(crate) struct Output<'a> {
    call: &'a Call,
    /// The last progress that was sent: the protocol requires it to increase.
    told: Option<u64>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(call: &'a Call) -> Self {
        Self { call, told: None }
    }

    /// Returns the notification for an event, if any.
    pub(crate) fn notice(&mut self, event: &ToolEvent) -> Option<String> {
        match event {
            ToolEvent::Progress(event) => self.progress(&event.progress),
            ToolEvent::Log(event) => {
                let level = self.call.level.admit(event.level)?;
                Some(self.log(level, &event.message))
            }
            ToolEvent::Status(event) => {
                let level = self.call.level.admit(oa_tools::LogLevel::Info)?;
                Some(self.log(level, &event.status))
            }
            _ => None,
        }
    }

    fn log(&self, level: &str, text: &str) -> String {
        let params = json!({ "level": level, "logger": self.call.tool, "data": text });
        notice("notifications/message", &params)
    }

    fn progress(&mut self, progress: &Progress) -> Option<String> {
        let token = self.call.token.as_ref()?;
        if self.told.is_some_and(|told| progress.done <= told) {
            return None;
        }
        self.told = Some(progress.done);
        let mut params = json!({ "progressToken": token, "progress": progress.done });
        if let Some(total) = progress.total {
            params["total"] = total.into();
        }
        if let Some(message) = &progress.message {
            params["message"] = message.as_str().into();
        }
        Some(notice("notifications/progress", &params))
    }

    pub(crate) fn answer(
        &self,
        result: &ExecutionResult,
        schema: Option<&Value>,
        limit: usize,
    ) -> String {
        let result = tool_result(result.full(), result.outcome, &result.images, schema);
        let result = match result {
            Ok(content) => content,
            Err(message) => failure(&message),
        };
        let answered = self.call.answer(result);
        if answered.len() <= limit {
            return answered;
        }
        let bytes = answered.len();
        self.call.answer(failure(&format!("the result has {bytes} bytes, more than {limit}")))
    }
}
