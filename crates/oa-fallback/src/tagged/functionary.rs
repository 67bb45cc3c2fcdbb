//! A name in a line, and the arguments below it:
//!
//! ```text
//! >>>name
//! {"key": "value"}
//! ```
//!
//! `>>>` is also the prompt of Python, so the name must be that of a tool.

use crate::bodies::Arguments;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal(">>>")?;
    let name = head.name()?;
    if !tools.knows(name) {
        return Err(NoMatch::Mismatch);
    }
    head.blanks()?;
    head.maybe("\r")?;
    head.literal("\n")?;
    head.spaces()?;
    match head.peek()? {
        Some('{') => Ok(Match::Call(Box::new(Arguments::new(name)))),
        _ => Err(NoMatch::Mismatch),
    }
}
