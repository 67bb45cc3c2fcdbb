//! ```text
//! <invoke name="name">
//! <parameter name="key">value</parameter>
//! </invoke>
//! ```
//!
//! DeepSeek, GigaChat, Step and Muse write a prefix in each tag, and MiniCPM writes `<function>` and `<param>`.

use super::function::{Attributes, Function, Tags};
use crate::grammar::{Match, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::Tools;

macro_rules! tags {
    ($prefix:literal) => {
        (
            concat!("<", $prefix, "invoke"),
            Tags {
                close: concat!("</", $prefix, "invoke>"),
                parameter: concat!("<", $prefix, "parameter "),
                parameter_close: concat!("</", $prefix, "parameter>"),
                attributes: Attributes::Name,
            },
        )
    };
}

const STYLES: [(&str, Tags); 11] = [
    tags!(""),
    tags!("｜DSML｜"),
    tags!("｜｜DSML｜｜"),
    tags!("｜｜DSML｜｜ "),
    tags!("‖DSML‖"),
    tags!("|DSML|"),
    tags!("||DSML||"),
    tags!("｜GCML｜"),
    tags!("steptml:"),
    tags!("atem:"),
    (
        "<function ",
        Tags {
            close: "</function>",
            parameter: "<param ",
            parameter_close: "</param>",
            attributes: Attributes::NameOfXml,
        },
    ),
];

/// Matches the opening tag of a call. Without a mark before it, only that of a known tool is one.
pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    call(head, tools, false)
}

/// Matches the opening tag of a call of any tool, after a mark.
pub(super) fn marked(
    head: &mut CallHead<'_>,
    _: Position,
    tools: &Tools,
) -> Result<Match, NoMatch> {
    call(head, tools, true)
}

fn call(head: &mut CallHead<'_>, tools: &Tools, is_marked: bool) -> Result<Match, NoMatch> {
    for (open, tags) in &STYLES {
        if !head.maybe(open)? {
            continue;
        }
        head.spaces()?;
        head.literal("name=\"")?;
        let name = head.name()?;
        head.literal("\"")?;
        head.spaces()?;
        head.literal(">")?;
        if !is_marked && !tools.knows(name) {
            return Err(NoMatch::Mismatch);
        }
        return Ok(Match::Call(Box::new(Function::new(name, tags, tools))));
    }
    Err(NoMatch::Mismatch)
}
