use std::sync::Arc;

use oa_types::ToolSpec;

use crate::call::{Scanned, TextCall};
use crate::dialect::Dialect;
use crate::scanner::{Limits, Scanner};
use crate::tagged::TaggedJson;

/// Returns the calls at the end of a model's thinking, in the formats of [`TaggedJson`]: for an answer that has nothing
/// else, because the model did not end its thinking before them (QUIRKS row 152).
///
/// Calls that anything follows are drafts, and so are all calls if one of them is malformed or its tool does not exist.
///
/// ```
/// use std::sync::Arc;
/// use oa_fallback::{Limits, calls_in_thinking};
/// use oa_types::ToolSpec;
/// use serde_json::json;
///
/// let tools: Arc<[_]> = [ToolSpec::new("clock", "Tells the time", json!({ "type": "object" }))].into();
/// let calls = |thinking: &str| calls_in_thinking(thinking, &tools, Limits::default()).len();
/// let call = "<tool_call>{\"name\": \"clock\", \"arguments\": {}}</tool_call>";
/// assert_eq!(calls(&format!("I need the time.\n{call}\n")), 1);
/// assert_eq!(calls(&format!("I could write {call}. But why?")), 0);
/// ```
#[must_use]
pub fn calls_in_thinking(thinking: &str, tools: &Arc<[ToolSpec]>, limits: Limits) -> Vec<TextCall> {
    let mut scanner = Scanner::with_limits(TaggedJson::new().grammar(Arc::clone(tools)), limits);
    scanner.push(thinking);
    if scanner.is_done() {
        return Vec::new();
    }
    scanner.finish();
    let mut calls = Vec::new();
    while let Some(item) = scanner.next_item() {
        match item {
            Scanned::Call(call) if tools.iter().any(|tool| tool.name == call.name) => {
                calls.push(call);
            }
            Scanned::Text(_) => {}
            _ => return Vec::new(),
        }
    }
    calls
}
