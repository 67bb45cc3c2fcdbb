//! ```text
//! <tool_call>name
//! <arg_key>key</arg_key>
//! <arg_value>value</arg_value>
//! </tool_call>
//! ```

use serde_json::{Map, Value};

use super::hermes;
use crate::bodies::{Arguments, left_open};
use crate::closing::Closing;
use crate::convert::convert_text;
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::quote::quote;
use crate::tools::{Parameters, Tools};

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal(hermes::OPEN)?;
    let tag = head.at();
    head.spaces()?;
    let is_adjacent = head.at() == tag;
    let name = head.name()?;
    head.spaces()?;
    let start = head.at();
    head.fence()?;
    if head.peek()? == Some('{') {
        return Ok(Match::Call(Box::new(Arguments::new(name))));
    }
    head.go_back(start);
    // A call without arguments is closed at once. Anything else after the name is not a call, and neither is
    // `between <tool_call> and </tool_call>`, unless there is a tool `and`.
    if !head.maybe("<arg_key>")? {
        head.literal("</tool_call>")?;
        if !is_adjacent && !tools.knows(name) {
            return Err(NoMatch::Mismatch);
        }
    }
    head.go_back(start);
    let closing = Closing::new("</tool_call>");
    Ok(Match::Call(Box::new(Pairs { name: name.to_owned(), tools: tools.clone(), closing })))
}

/// Keys and values between tags.
#[derive(Debug)]
struct Pairs {
    name: String,
    tools: Tools,
    closing: Closing,
}

impl CallBody for Pairs {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.closing.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        vec![match end {
            BodyEnd::Closed => {
                let text = self.closing.before(text);
                ParsedCall::of(&self.name, arguments(text, self.tools.schema(&self.name)))
            }
            BodyEnd::Open => left_open(&self.name),
        }]
    }
}

fn arguments(text: &str, schema: Option<Parameters<'_>>) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, behind) = between(rest, "<arg_key>", "</arg_key>")?;
        let (value, behind) = between(behind.trim_start(), "<arg_value>", "</arg_value>")?;
        let key = key.trim();
        let value = convert_text(value, schema, key)?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(format!("{} appears twice", quote(key)));
        }
        rest = behind.trim_start();
    }
    Ok(arguments)
}

/// Returns the text between two tags and the text after them.
pub(super) fn between<'a>(
    text: &'a str,
    open: &str,
    close: &str,
) -> Result<(&'a str, &'a str), String> {
    let inner = text.strip_prefix(open).ok_or_else(|| format!("expected `{open}`"))?;
    inner.split_once(close).ok_or_else(|| format!("`{open}` is not closed"))
}
