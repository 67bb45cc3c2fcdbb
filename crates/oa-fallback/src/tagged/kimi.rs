//! ```text
//! <|open|>call tool="name" index="1"<|sep|>
//! <|open|>argument key="key" type="string"<|sep|>value<|close|>argument<|sep|>
//! <|close|>call<|sep|>
//! ```
//!
//! That is Kimi K3. K2 writes special tokens, see `tokens.rs`.

use super::function::{Attributes, Function, Tags};
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

const TAGS: Tags = Tags {
    close: "<|close|>call<|sep|>",
    parameter: "<|open|>argument ",
    parameter_close: "<|close|>argument<|sep|>",
    attributes: Attributes::KeyAndType,
};

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal("<|open|>call")?;
    head.spaces()?;
    head.literal("tool=\"")?;
    let name = head.name()?;
    head.literal("\"")?;
    head.take_while(|c| c != '<')?;
    head.literal("<|sep|>")?;
    Ok(Match::Call(Box::new(Function::new(name, &TAGS, tools))))
}
