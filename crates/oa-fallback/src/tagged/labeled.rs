//! Calls of known tools in JSON behind a label, or between tags that also other text may have.
//!
//! ```text
//! Action: [{"tool_name": .., "parameters": {..}}]
//! <tools>{"name": .., "arguments": {..}}</tools>
//! ```

use super::bare;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

/// Tags that models of the style of Hermes write instead of `<tool_call>`.
const TAGS: [&str; 5] = ["<tools>", "<tool>", "<response>", "<json>", "<xml>"];

/// Matches a call between tags.
pub(super) fn between_tags(
    head: &mut CallHead<'_>,
    _: Position,
    tools: &Tools,
) -> Result<Match, NoMatch> {
    for tag in TAGS {
        if head.maybe(tag)? {
            return call(head, tools);
        }
    }
    Err(NoMatch::Mismatch)
}

/// Matches the action of Command R, whose JSON is in a fence.
pub(super) fn action(
    head: &mut CallHead<'_>,
    at: Position,
    tools: &Tools,
) -> Result<Match, NoMatch> {
    if !at.at_line_start {
        return Err(NoMatch::Mismatch);
    }
    head.literal("Action:")?;
    call(head, tools)
}

fn call(head: &mut CallHead<'_>, tools: &Tools) -> Result<Match, NoMatch> {
    head.spaces()?;
    head.fence()?;
    let start = head.at();
    if head.maybe("[")? {
        head.spaces()?;
    }
    bare::whole(head, tools)?;
    head.go_back(start);
    Ok(Match::Call(Box::new(Objects::new(tools))))
}
