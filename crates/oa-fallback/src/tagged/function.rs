//! ```text
//! <function=name>
//! <parameter=key>
//! value
//! </parameter>
//! </function>
//! ```
//!
//! The arguments between the tags may also be JSON.

use serde_json::{Map, Value};

use super::hermes;
use crate::bodies::left_open;
use crate::closing::Closing;
use crate::convert::convert_text;
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::object;
use crate::quote::quote;
use crate::tools::{Parameters, Tools};

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    if head.maybe(hermes::OPEN)? {
        head.spaces()?;
    }
    head.literal("<function=")?;
    let name = head.name()?.to_owned();
    head.literal(">")?;
    let closing = Closing::new("</function>");
    Ok(Match::Call(Box::new(Function { name, tools: tools.clone(), closing })))
}

#[derive(Debug)]
struct Function {
    name: String,
    tools: Tools,
    closing: Closing,
}

impl CallBody for Function {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.closing.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        vec![match end {
            BodyEnd::Closed => {
                let text = self.closing.before(text).trim();
                let input = match text.starts_with('{') {
                    true => object::arguments(text),
                    false => parameters(text, self.tools.schema(&self.name)),
                };
                ParsedCall::of(&self.name, input)
            }
            BodyEnd::Open => left_open(&self.name),
        }]
    }
}

fn parameters(text: &str, schema: Option<Parameters<'_>>) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (parameter, behind) = super::glm::between(rest, "<parameter=", "</parameter>")?;
        let (key, value) = parameter.split_once('>').ok_or("`<parameter=` has no `>`")?;
        if value.contains("<parameter=") {
            return Err(format!("{} is not closed", quote(key)));
        }
        // The line breaks next to the tags belong to them.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let value = convert_text(value, schema.and_then(|schema| schema.get(key)), key)?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(format!("{} appears twice", quote(key)));
        }
        rest = behind.trim_start();
    }
    Ok(arguments)
}
