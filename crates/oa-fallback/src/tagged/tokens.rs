//! Calls between the special tokens of Kimi, DeepSeek, Step and Solar Open.
//!
//! ```text
//! <|tool_call_begin|>functions.name:0<|tool_call_argument_begin|>{..}<|tool_call_end|>
//! <｜tool▁call▁begin｜>name<｜tool▁sep｜>{..}<｜tool▁call▁end｜>
//! <｜tool▁call▁begin｜>function<｜tool▁sep｜>name
//! <|tool_call:begin|>0<|tool_call:name|>name<|tool_call:args|>{..}<|tool_call:end|>
//! ```

use super::invoke;
use crate::bodies::Arguments;
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

/// The tokens before and after a name, as DeepSeek, its copies in ASCII, and Step spell them.
const DEEPSEEK: [(&str, &str); 3] = [
    ("<｜tool▁call▁begin｜>", "<｜tool▁sep｜>"),
    ("<|tool▁call▁begin|>", "<|tool▁sep|>"),
    ("<｜tool_call_begin｜>", "<｜tool_sep｜>"),
];

pub(super) fn begin(
    head: &mut CallHead<'_>,
    at: Position,
    tools: &Tools,
) -> Result<Match, NoMatch> {
    if head.maybe("<|tool_call_begin|>")? {
        head.spaces()?;
        let name = head.name()?;
        if head.maybe(":")? {
            head.take_while(|c| c.is_ascii_digit())?;
        }
        head.spaces()?;
        head.literal("<|tool_call_argument_begin|>")?;
        return arguments(head, name);
    }
    if head.maybe("<|tool_call:begin|>")? {
        head.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))?;
        head.literal("<|tool_call:name|>")?;
        let name = head.name()?;
        head.literal("<|tool_call:args|>")?;
        return arguments(head, name);
    }
    for (open, separator) in DEEPSEEK {
        if head.maybe(open)? {
            head.spaces()?;
            if head.peek()? == Some('<') {
                return invoke::marked(head, at, tools);
            }
            // The name, or the kind of call, with the name behind it.
            let mut name = head.name()?;
            head.spaces()?;
            head.literal(separator)?;
            head.spaces()?;
            match head.peek()? {
                Some('<') => return invoke::marked(head, at, tools),
                Some('{') => {}
                _ => name = head.name()?,
            }
            return arguments(head, name);
        }
    }
    Err(NoMatch::Mismatch)
}

/// Matches the start of the arguments. A name may have the namespace of functions.
pub(super) fn arguments(head: &mut CallHead<'_>, name: &str) -> Result<Match, NoMatch> {
    head.spaces()?;
    head.fence()?;
    match head.peek()? {
        Some('{') => {
            let name = name.strip_prefix("functions.").unwrap_or(name);
            Ok(Match::Call(Box::new(Arguments::new(name))))
        }
        _ => Err(NoMatch::Mismatch),
    }
}
