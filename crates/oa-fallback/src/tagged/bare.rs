//! A call that is the whole answer: `{"name": .., "parameters": {..}}`, also in a list or a fence.
//!
//! Nothing but its form says that it is a call, and a model may be asked for such JSON. So the name must
//! be a tool's, it must come first, and the object must open the answer or follow another call.

use crate::bodies::Objects;
use crate::grammar::{Found, Place, Stop};
use crate::head::Head;
use crate::tools::Tools;

pub(super) fn begin(head: &mut Head<'_>, place: Place, tools: &Tools) -> Result<Found, Stop> {
    if !place.at_start && !place.after_call {
        return Err(Stop::No);
    }
    head.fence()?;
    let start = head.at();
    if head.maybe("[")? {
        head.spaces()?;
    }
    head.literal("{")?;
    head.spaces()?;
    if key(head, "type")? {
        head.literal("\"function\"")?;
        head.spaces()?;
        head.literal(",")?;
        head.spaces()?;
    }
    if !key(head, "name")? {
        return Err(Stop::No);
    }
    head.literal("\"")?;
    let name = head.name()?;
    head.literal("\"")?;
    head.spaces()?;
    head.literal(",")?;
    head.spaces()?;
    if !tools.knows(name) || !(key(head, "arguments")? || key(head, "parameters")?) {
        return Err(Stop::No);
    }
    head.go_back(start);
    Ok(Found::Call(Box::new(Objects::new())))
}

/// Reads the name of a member and the colon behind it, if it is this one.
fn key(head: &mut Head<'_>, name: &str) -> Result<bool, Stop> {
    let start = head.at();
    let mut read = || {
        head.literal("\"")?;
        head.literal(name)?;
        head.literal("\"")?;
        head.spaces()?;
        head.literal(":")?;
        head.spaces()
    };
    match read() {
        Ok(()) => Ok(true),
        Err(Stop::No) => {
            head.go_back(start);
            Ok(false)
        }
        Err(more) => Err(more),
    }
}
