//! A call in Python between fences: ```` ```tool_code ````

use crate::bodies::Named;
use crate::grammar::{Found, Place, Stop};
use crate::head::Head;
use crate::tools::Tools;

pub(super) fn begin(head: &mut Head<'_>, _: Place, tools: &Tools) -> Result<Found, Stop> {
    head.literal("```tool_code")?;
    head.spaces()?;
    call(head, tools)
}

/// `name(a="b")`. Other code is text: nobody asked for a call.
pub(super) fn call(head: &mut Head<'_>, tools: &Tools) -> Result<Found, Stop> {
    let name = head.name()?;
    head.literal("(")?;
    if !tools.knows(name) {
        return Err(Stop::No);
    }
    Ok(Found::Call(Box::new(Named::new(name, tools))))
}
