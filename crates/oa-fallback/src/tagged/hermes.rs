//! `<tool_call>{"name": .., "arguments": {..}}</tool_call>`

use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) const OPEN: &str = "<tool_call>";

/// The tag of LongCat.
const LONGCAT: &str = "<longcat_tool_call>";

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    if !head.maybe(OPEN)? {
        head.literal(LONGCAT)?;
    }
    head.spaces()?;
    head.fence()?;
    match head.peek()? {
        // A closing tag after the call is skipped.
        Some('{' | '[') => Ok(Match::Call(Box::new(Objects::new(tools)))),
        _ => Err(NoMatch::Mismatch),
    }
}
