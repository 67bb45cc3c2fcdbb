//! Calls in Python between fences: ```` ```tool_code ````

use super::python::{self, Calls};
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal("```tool_code")?;
    head.spaces()?;
    call(head, tools)
}

/// Matches a call such as `name(a="b")`, and calls in the lines below it. Other code is text.
pub(super) fn call(head: &mut CallHead<'_>, tools: &Tools) -> Result<Match, NoMatch> {
    let start = head.at();
    let name = head.name()?;
    head.literal("(")?;
    if !tools.knows(python::tool(name, tools)) {
        return Err(NoMatch::Mismatch);
    }
    head.go_back(start);
    Ok(Match::Call(Box::new(Calls::code(tools))))
}
