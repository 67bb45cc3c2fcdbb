//! `<|python_tag|>{"name": .., "parameters": {..}}`

use super::code;
use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    // The tag of Llama 4 begins like the other one.
    head.literal("<|python_")?;
    if !head.maybe("tag|>")? {
        head.literal("start|>")?;
    }
    head.spaces()?;
    match head.peek()? {
        Some('{' | '[') => Ok(Match::Call(Box::new(Objects::new(tools)))),
        _ => code::call(head, tools),
    }
}
