//! ```text
//! <function=name>
//! <parameter=key>
//! value
//! </parameter>
//! </function>
//! ```
//!
//! The arguments between the tags may also be JSON.

use oa_json::LenientValue;
use serde_json::{Map, Value};

use super::hermes;
use crate::bare::whole;
use crate::bodies::left_open;
use crate::closing::Closing;
use crate::convert;
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
    let name = head.name()?;
    head.literal(">")?;
    Ok(Match::Call(Box::new(Function::new(name, &TAGS, tools))))
}

/// The tags of a call, after its opening tag.
#[derive(Debug)]
pub(super) struct Tags {
    pub(super) close: &'static str,
    /// The start of a parameter's tag. Its name follows, or its attributes.
    pub(super) parameter: &'static str,
    pub(super) parameter_close: &'static str,
}

const TAGS: Tags =
    Tags { close: "</function>", parameter: "<parameter=", parameter_close: "</parameter>" };

#[derive(Debug)]
pub(super) struct Function {
    name: String,
    tags: &'static Tags,
    tools: Tools,
    closing: Closing,
}

impl Function {
    pub(super) fn new(name: &str, tags: &'static Tags, tools: &Tools) -> Self {
        let closing = Closing::new(tags.close);
        Self { name: name.to_owned(), tags, tools: tools.clone(), closing }
    }

    fn parameters(&self, text: &str) -> Result<Map<String, Value>, String> {
        let schema = self.tools.schema(&self.name);
        let Tags { parameter: open, parameter_close: close, .. } = *self.tags;
        let mut arguments = Map::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (parameter, behind) = super::glm::between(rest, open, close)?;
            let unclosed = || format!("`{open}` has no `>`");
            let (tag, value) = parameter.split_once('>').ok_or_else(unclosed)?;
            let key = match open.ends_with('=') {
                true => tag,
                false => attribute(tag, "name").ok_or("a parameter has no name")?,
            };
            if value.contains(open) {
                return Err(format!("{} is not closed", quote(key)));
            }
            let value = convert(key, value, attribute(tag, "string"), schema)?;
            if arguments.insert(key.to_owned(), value).is_some() {
                return Err(format!("{} appears twice", quote(key)));
            }
            rest = behind.trim_start();
        }
        Ok(arguments)
    }
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
                    false => self.parameters(text),
                };
                ParsedCall::of(&self.name, input)
            }
            BodyEnd::Open => left_open(&self.name),
        }]
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!("{name}=\""))?;
    value.split_once('"').map(|(value, _)| value)
}

/// Converts the text of a parameter. With `string="true"`, it is text to the last byte, and with `string="false"` JSON.
fn convert(
    key: &str,
    text: &str,
    is_string: Option<&str>,
    parameters: Option<Parameters<'_>>,
) -> Result<Value, String> {
    let schema = || parameters.and_then(|parameters| parameters.get(key));
    match is_string {
        Some("true") => convert::convert(LenientValue::Quoted(text.to_owned()), schema(), key),
        Some("false") => convert::convert(whole(text)?, schema(), key),
        _ => {
            // The line breaks next to the tags belong to them.
            let text = text.strip_prefix('\n').unwrap_or(text);
            let text = text.strip_suffix('\n').unwrap_or(text);
            convert::convert_text(text, parameters, key)
        }
    }
}
