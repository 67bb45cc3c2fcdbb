//! A call in Python between fences: ```` ```tool_code ````

use crate::bodies::Named;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal("```tool_code")?;
    head.spaces()?;
    call(head, tools)
}

/// Matches a call such as `name(a="b")`. Other code is text.
pub(super) fn call(head: &mut CallHead<'_>, tools: &Tools) -> Result<Match, NoMatch> {
    let name = head.name()?;
    head.literal("(")?;
    if !tools.knows(name) {
        return Err(NoMatch::Mismatch);
    }
    Ok(Match::Call(Box::new(Named::new(name, tools))))
}
