//! Marks of many models that open a call or a list of calls, in whatever style it is written.
//!
//! ```text
//! <|tool_call|>[{"name": .., "arguments": {..}}]
//! <|tools_prefix|>[{"name": {..}}]<|tools_suffix|>
//! <|tool_call_start|>[name(key="value")]<|tool_call_end|>
//! <|action_start|><|plugin|>{"name": .., "parameters": {..}}<|action_end|>
//! ```

use super::python;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

/// The mark of Apertus, whose objects have the tool's name as their key.
const KEYED: &str = "<|tools_prefix|>";

/// Other marks: tags, and tokens with narrow, double and wide bars. Models and servers spell DeepSeek's bars in many ways.
const TAGS: [&str; 9] = [
    "<tool_calls>",
    "<tool_calls:opensource>",
    "<function_call>",
    "<function_calls>",
    "<dots_function_call>",
    "<atem:function_calls>",
    "<minimax:tool_call>",
    "<seed:tool_call>",
    "<TOOLCALL>",
];
const NARROW: [&str; 15] = [
    "<|tool_call|>",
    "<|tool_calls|>",
    "<|tool_call_start|>",
    "<|START_ACTION|>",
    "<|action_start|>",
    "<|function_call|>",
    "<|tool_calls_section_begin|>",
    "<|tool_call_section_begin|>",
    "<|tool▁calls▁begin|>",
    "<|content_invoke_tool_json|>",
    "<|open|>tools<|sep|>",
    "<|DSML|function_calls>",
    "<|DSML|tool_calls>",
    "<||DSML||function_calls>",
    "<||DSML||tool_calls>",
];
const DOUBLE: [&str; 2] = ["<‖DSML‖function_calls>", "<‖DSML‖tool_calls>"];
const WIDE: [&str; 8] = [
    "<｜GCML｜tool_calls>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool_calls_begin｜>",
    "<｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>",
    "<｜｜DSML｜｜function_calls>",
    "<｜｜DSML｜｜tool_calls>",
    "<｜｜DSML｜｜ calls>",
];

/// Marks that close what a mark or a call opened, where another call may follow.
pub(super) const CLOSING: [&str; 41] = [
    "</tool_calls>",
    "</tool_call:opensource>",
    "</tool_calls:opensource>",
    "</longcat_tool_call>",
    "</dots_function_call>",
    "</function_call>",
    "</atem:function_calls>",
    "</invoke>",
    "</tools>",
    "</tool>",
    "</response>",
    "</json>",
    "</xml>",
    "]<]minimax[>[</tool_call>",
    "</minimax:tool_call>",
    "</seed:tool_call>",
    "</function_calls>",
    "</TOOLCALL>",
    "<|/tool_call|>",
    "<|tool_call_end|>",
    "<|tool_call:end|>",
    "<|action_end|>",
    "<|end_message|>",
    "<|message_sep|>",
    "<|close|>tools<|sep|>",
    "<｜tool▁call▁end｜>",
    "<|tool▁call▁end|>",
    "<｜tool_call_end｜>",
    "<|call|>",
    "</｜GCML｜tool_calls>",
    "</｜DSML｜function_calls>",
    "</｜DSML｜tool_calls>",
    "</｜｜DSML｜｜function_calls>",
    "</｜｜DSML｜｜tool_calls>",
    "</｜｜DSML｜｜ calls>",
    "</‖DSML‖function_calls>",
    "</‖DSML‖tool_calls>",
    "</|DSML|function_calls>",
    "</|DSML|tool_calls>",
    "</||DSML||function_calls>",
    "</||DSML||tool_calls>",
];

/// Reads a mark and the white space after it, if one comes next.
pub(super) fn mark(head: &mut CallHead<'_>) -> Result<bool, NoMatch> {
    let start = head.at();
    head.literal("<")?;
    let marks: &[&str] = match head.peek()? {
        Some('|') => &NARROW,
        Some('‖') => &DOUBLE,
        Some('｜') => &WIDE,
        _ => &TAGS,
    };
    head.go_back(start);
    for mark in marks {
        if head.maybe(mark)? {
            head.spaces()?;
            // The second token of InternLM.
            if head.maybe("<|plugin|>")? {
                head.spaces()?;
            }
            return Ok(true);
        }
    }
    Ok(false)
}

/// Matches JSON or Python after a mark.
pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.fence()?;
    let start = head.at();
    let is_list = head.maybe("[")?;
    if is_list {
        head.spaces()?;
    }
    let is_python = python::name(head)?.is_some();
    head.go_back(start);
    match head.peek()? {
        _ if is_python && is_list => Ok(Match::Call(Box::new(python::Calls::list(tools)))),
        _ if is_python => Ok(Match::Call(Box::new(python::Calls::lines(tools)))),
        Some('{' | '[') => Ok(Match::Call(Box::new(Objects::new(tools)))),
        _ => Err(NoMatch::Mismatch),
    }
}

/// Matches the list of Apertus.
pub(super) fn keyed(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal(KEYED)?;
    head.spaces()?;
    match head.peek()? {
        Some('{' | '[') => Ok(Match::Call(Box::new(Objects::keyed(tools)))),
        _ => Err(NoMatch::Mismatch),
    }
}
