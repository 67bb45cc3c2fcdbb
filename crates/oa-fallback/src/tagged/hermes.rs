//! `<tool_call>{"name": .., "arguments": {..}}</tool_call>`

use crate::bodies::Objects;
use crate::grammar::{Found, Place, Stop};
use crate::head::Head;
use crate::tools::Tools;

pub(super) const OPEN: &str = "<tool_call>";

pub(super) fn begin(head: &mut Head<'_>, _: Place, _: &Tools) -> Result<Found, Stop> {
    head.literal(OPEN)?;
    head.spaces()?;
    head.fence()?;
    match head.peek()? {
        // The closing tag is skipped behind the call, if it is there.
        Some('{' | '[') => Ok(Found::Call(Box::new(Objects::new()))),
        _ => Err(Stop::No),
    }
}
