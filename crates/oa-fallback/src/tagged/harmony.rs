//! `<|channel|>commentary to=functions.name <|constrain|>json<|message|>{..}<|call|>`

use super::tokens;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, _: &Tools) -> Result<Match, NoMatch> {
    // The recipient is before the channel or behind it.
    let mut name = None;
    if head.maybe("<|start|>assistant")? {
        name = recipient(head)?;
    }
    head.literal("<|channel|>")?;
    head.take_while(|c| c.is_ascii_lowercase())?;
    let name = match name {
        Some(name) => name,
        None => recipient(head)?.ok_or(NoMatch::Mismatch)?,
    };
    head.spaces()?;
    head.maybe("<|constrain|>")?;
    head.take_while(|c| c.is_ascii_lowercase())?;
    head.spaces()?;
    head.literal("<|message|>")?;
    tokens::arguments(head, name)
}

fn recipient<'a>(head: &mut CallHead<'a>) -> Result<Option<&'a str>, NoMatch> {
    head.spaces()?;
    match head.maybe("to=")? {
        true => head.name().map(Some),
        false => Ok(None),
    }
}
