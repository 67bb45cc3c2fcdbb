//! `<|python_tag|>{"name": .., "parameters": {..}}`, and `<|python_start|>[name(key="value")]<|python_end|>`

use super::{code, python};
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
    let start = head.at();
    match head.peek()? {
        // Other lists are JSON: of numbers, they are no calls in Python either.
        Some('[') if python::list_name(head)?.is_some() => {
            head.go_back(start);
            Ok(Match::Call(Box::new(python::Calls::list(tools))))
        }
        Some('{' | '[') => {
            head.go_back(start);
            Ok(Match::Call(Box::new(Objects::new(tools))))
        }
        _ => code::call(head, tools),
    }
}
