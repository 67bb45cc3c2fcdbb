//! The ReAct dialect: thought, action, observation.

mod grammar;
mod input;
mod label;

use std::sync::Arc;

use oa_types::{ToolResultBlock, ToolSpec, ToolUseBlock};

use self::grammar::ReactGrammar;
use crate::arguments;
use crate::dialect::Dialect;
use crate::grammar::Grammar;
use crate::prompt;
use crate::tools::Tools;

/// The ReAct dialect: `Action: name(arg="v", n=3)`, and the result as `Observation: ..`.
///
/// Small models know it from many examples in their training data. It also reads common variants: `Action: name` with
/// `Action Input: {..}` on the next line, `Action: name[text]`, and the call as a JSON object. The label
/// `Final Answer:` is not shown, and everything after it is text. The tool's schema decides the types of values.
///
/// ```
/// use oa_fallback::{Dialect, React};
/// use oa_types::{ToolResultBlock, ToolUseBlock};
/// use serde_json::json;
///
/// let call = ToolUseBlock::new("1", "add", json!({"a": 1, "note": "one \"and\" two"}));
/// assert_eq!(React::new().write_call(&call), r#"Action: add(a=1, note="one \"and\" two")"#);
/// let result = ToolResultBlock::new("1", json!(3));
/// assert_eq!(React::new().write_result(&result, "add"), "Observation: 3");
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct React {}

impl React {
    /// Creates the dialect.
    #[must_use]
    pub fn new() -> Self {
        Self {}
    }
}

impl Dialect for React {
    fn instructions(&self, tools: &[ToolSpec]) -> String {
        if tools.is_empty() {
            return String::new();
        }
        format!(
            "You can use tools. To use one, write what you think, then the call on a line of its own, and \
             stop:\n\n\
             Thought: what you need to find out\n\
             Action: tool_name(argument=\"text\", other=3)\n\n\
             The next message has the result, and you continue from there:\n\n\
             Observation: the result\n\n\
             Never write an observation yourself. Give every argument its name; write text in double \
             quotes, and lists and objects as in JSON. When you need no more tools, write:\n\n\
             Thought: what you have found out\n\
             Final Answer: your answer\n\n\
             Tools:\n\n{}",
            prompt::list(tools),
        )
    }

    fn grammar(&self, tools: Arc<[ToolSpec]>) -> Box<dyn Grammar> {
        Box::new(ReactGrammar::new(Tools::new(tools)))
    }

    fn write_call(&self, call: &ToolUseBlock) -> String {
        let mut action = format!("Action: {}(", call.name);
        arguments::write(&call.input, &mut action);
        action.push(')');
        action
    }

    fn write_result(&self, result: &ToolResultBlock, tool: &str) -> String {
        let text = result.text();
        match result.is_error {
            true => format!("Observation: {tool} failed: {text}"),
            false => format!("Observation: {text}"),
        }
    }

    fn stop(&self) -> Vec<String> {
        vec!["\nObservation:".to_owned()]
    }
}
