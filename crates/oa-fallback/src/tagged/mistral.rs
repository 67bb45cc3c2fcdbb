//! `[TOOL_CALLS] [{"name": .., "arguments": {..}}]` and `[TOOL_CALLS]name[ARGS]{..}`

use crate::bodies::{Arguments, Objects};
use crate::grammar::{Found, Place, Stop};
use crate::head::Head;
use crate::tools::Tools;

pub(super) fn begin(head: &mut Head<'_>, _: Place, _: &Tools) -> Result<Found, Stop> {
    head.literal("[TOOL_CALLS]")?;
    head.spaces()?;
    if let Some('{' | '[') = head.peek()? {
        return Ok(Found::Call(Box::new(Objects::new())));
    }
    let name = head.name()?;
    if head.maybe("[CALL_ID]")? {
        head.take_while(|c| c.is_ascii_alphanumeric())?;
    }
    head.maybe("[ARGS]")?;
    head.spaces()?;
    match head.peek()? {
        Some('{') => Ok(Found::Call(Box::new(Arguments::new(name)))),
        _ => Err(Stop::No),
    }
}
