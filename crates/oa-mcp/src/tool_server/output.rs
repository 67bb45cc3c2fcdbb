use oa_executor::{ExecutionResult, ToolEvent};
use oa_tools::{Progress, check_arguments};
use oa_types::{ImageBlock, Outcome};
use serde_json::{Value, json};

use crate::tool_server::protocol::Call;
use oa_mcp_data::client::notice;

/// The executor's events of one call as messages to the client, in their order.
pub(crate) struct Output<'a> {
    call: &'a Call,
    /// The last progress that was told: the protocol has it grow.
    told: Option<u64>,
}

impl<'a> Output<'a> {
    pub(crate) fn new(call: &'a Call) -> Self {
        Self { call, told: None }
    }

    /// Returns the notification for an event, if there is one.
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

    /// Returns the answer to the call.
    pub(crate) fn answer(
        &self,
        result: &ExecutionResult,
        schema: Option<&Value>,
        limit: usize,
    ) -> String {
        let result = match content(result, schema) {
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

/// The result of a call that failed, for the model to read.
pub(crate) fn failure(message: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": message }], "isError": true })
}

/// Returns the result of a call as the protocol has it, or the words of its error.
fn content(result: &ExecutionResult, schema: Option<&Value>) -> Result<Value, String> {
    let value = result.full();
    if result.is_error() {
        return Err(words(result.outcome, value));
    }
    let value = match schema {
        // Clients refuse a result that breaks the promise, without a word that the model could read.
        Some(schema) => check_arguments(schema, value.clone())
            .map_err(|error| format!("the result does not match the output schema: {error}"))?,
        None => value.clone(),
    };
    let text = match &value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let mut blocks = Vec::with_capacity(1 + result.images.len());
    if !text.is_empty() || result.images.is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
    blocks.extend(result.images.iter().map(image));
    let mut content = json!({ "content": blocks });
    if value.is_object() {
        content["structuredContent"] = value;
    }
    Ok(content)
}

fn words(outcome: Outcome, body: &Value) -> String {
    let text = |name: &str| body.get(name).and_then(Value::as_str);
    let error = text("error").unwrap_or("the tool failed");
    match text("reason") {
        // What a panic says is meant for who wrote the tool.
        Some(reason) if outcome != Outcome::Panicked => format!("{error}: {reason}"),
        _ => error.to_owned(),
    }
}

fn image(image: &ImageBlock) -> Value {
    let inline = image.url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    match inline {
        Some((mime, data)) => json!({ "type": "image", "mimeType": mime, "data": data }),
        // Clients fetch nothing, and a link to a resource would be one of this server.
        None => json!({ "type": "text", "text": format!("[image {}]", image.url) }),
    }
}
