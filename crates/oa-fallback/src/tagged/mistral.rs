//! `[TOOL_CALLS] [{"name": .., "arguments": {..}}]` and `[TOOL_CALLS]name[ARGS]{..}`

use crate::bodies::{Arguments, Objects};
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal("[TOOL_CALLS]")?;
    head.spaces()?;
    if let Some('{' | '[') = head.peek()? {
        return Ok(Match::Call(Box::new(Objects::new(tools))));
    }
    let name = head.name()?;
    if head.maybe("[CALL_ID]")? {
        head.take_while(|c| c.is_ascii_alphanumeric())?;
    }
    head.maybe("[ARGS]")?;
    head.spaces()?;
    match head.peek()? {
        Some('{') => Ok(Match::Call(Box::new(Arguments::new(name)))),
        _ => Err(NoMatch::Mismatch),
    }
}
