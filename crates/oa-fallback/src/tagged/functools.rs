//! `functools[{"name": .., "arguments": {..}}]`
//!
//! `functools` is also a module of Python, so the first call must be one of a known tool.

use super::bare;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal("functools")?;
    let start = head.at();
    head.literal("[")?;
    head.spaces()?;
    bare::named(head, tools)?;
    head.go_back(start);
    Ok(Match::Call(Box::new(Objects::new(tools))))
}
