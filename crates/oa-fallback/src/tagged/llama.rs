//! `<|python_tag|>{"name": .., "parameters": {..}}`

use super::code;
use crate::bodies::Objects;
use crate::grammar::{Found, Place, Stop};
use crate::head::Head;
use crate::tools::Tools;

pub(super) fn begin(head: &mut Head<'_>, _: Place, tools: &Tools) -> Result<Found, Stop> {
    head.literal("<|python_tag|>")?;
    head.spaces()?;
    match head.peek()? {
        Some('{' | '[') => Ok(Found::Call(Box::new(Objects::new()))),
        _ => code::call(head, tools),
    }
}
