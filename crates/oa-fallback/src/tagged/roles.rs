//! Calls in a message of their own, as GigaChat and Inkling write them.
//!
//! ```text
//! <|message_sep|>function call<|role_sep|>{"name": .., "arguments": {..}}
//! <|message_model|>name<|content_invoke_tool_json|>{"name": .., "args": {..}}<|end_message|>
//! ```

use crate::bodies::Objects;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    if head.maybe("<|message_model|>")? {
        head.spaces()?;
        // The object repeats the name.
        head.name()?;
        head.spaces()?;
        head.literal("<|content_invoke_tool_json|>")?;
    } else {
        if head.maybe("<|message_sep|>")? {
            head.spaces()?;
        }
        if !head.maybe("<|function_call|>")? {
            head.literal("function call<|role_sep|>")?;
        }
    }
    head.spaces()?;
    match head.peek()? {
        Some('{') => Ok(Match::Call(Box::new(Objects::new(tools)))),
        _ => Err(NoMatch::Mismatch),
    }
}
