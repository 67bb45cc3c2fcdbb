//! ```text
//! <function=name>
//! <parameter=key>
//! value
//! </parameter>
//! </function>
//! ```
//!
//! The arguments between the tags may also be JSON.

use oa_json::{LenientValue, quoted};
use serde_json::{Map, Value};

use super::hermes;
use crate::balance::Balance;
use crate::bare::whole;
use crate::bodies::left_open;
use crate::closing::CallClosing;
use crate::convert::{self, convert_text};
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::object;
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
    pub(super) attributes: Attributes,
}

/// The attributes in the tag of a parameter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Attributes {
    /// `<parameter=key>`
    None,
    /// `name="key"`, and `string="true"` or `string="false"` in some.
    Name,
    /// `name="key"`, with text that may be written as `<![CDATA[text]]>`.
    NameOfXml,
    /// `key="key" type="string"`
    KeyAndType,
}

impl Attributes {
    /// Returns the name of a parameter.
    fn key(self, tag: &str) -> Option<&str> {
        match self {
            Self::None => Some(tag),
            Self::Name | Self::NameOfXml => attribute(tag, "name"),
            Self::KeyAndType => attribute(tag, "key"),
        }
    }

    /// Returns true if a value is text, and false if it is JSON; `None` if the schema decides.
    fn is_string(self, tag: &str) -> Option<bool> {
        match self {
            Self::Name => match attribute(tag, "string") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            Self::KeyAndType => attribute(tag, "type").map(|kind| kind == "string"),
            Self::None | Self::NameOfXml => None,
        }
    }
}

const TAGS: Tags = Tags {
    close: "</function>",
    parameter: "<parameter=",
    parameter_close: "</parameter>",
    attributes: Attributes::None,
};

#[derive(Debug)]
pub(super) struct Function {
    name: String,
    tags: &'static Tags,
    tools: Tools,
    arguments: Arguments,
    closing: CallClosing,
}

/// The notation of the arguments, as far as they have arrived.
#[derive(Debug)]
enum Arguments {
    None,
    Json(Balance),
    /// Parameters between tags, or text behind JSON.
    Parameters,
}

impl Function {
    pub(super) fn new(name: &str, tags: &'static Tags, tools: &Tools) -> Self {
        let closing = CallClosing::new(tags.close, tags.parameter, tags.parameter_close);
        let (name, tools) = (name.to_owned(), tools.clone());
        Self { name, tags, tools, arguments: Arguments::None, closing }
    }

    fn parameters(&self, text: &str) -> Result<Map<String, Value>, String> {
        let schema = self.tools.schema(&self.name);
        let Tags { parameter: open, parameter_close: close, attributes, .. } = *self.tags;
        let mut arguments = Map::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (parameter, behind) = super::glm::between(rest, open, close)?;
            let unclosed = || format!("`{open}` has no `>`");
            let (tag, value) = parameter.split_once('>').ok_or_else(unclosed)?;
            let key = attributes.key(tag).ok_or("a parameter has no name")?;
            if value.contains(open) {
                return Err(format!("{} is not closed", quoted(key)));
            }
            let exact = cdata(value).filter(|_| attributes == Attributes::NameOfXml);
            let value = match exact {
                Some(text) => convert_text(text, schema, key)?,
                None => convert(key, value, attributes.is_string(tag), schema)?,
            };
            if arguments.insert(key.to_owned(), value).is_some() {
                return Err(format!("{} appears twice", quoted(key)));
            }
            rest = behind.trim_start();
        }
        Ok(arguments)
    }
}

impl CallBody for Function {
    fn push(&mut self, text: &str) -> Option<usize> {
        let mut at = 0;
        loop {
            match &mut self.arguments {
                Arguments::None => {
                    at += text[at..].find(|c: char| !c.is_ascii_whitespace())?;
                    self.arguments = match text[at..].starts_with('{') {
                        true => Arguments::Json(Balance::of_json()),
                        false => Arguments::Parameters,
                    };
                }
                Arguments::Json(balance) => {
                    at += balance.push(&text[at..])?;
                    self.arguments = Arguments::Parameters;
                }
                Arguments::Parameters => return Some(at + self.closing.push(&text[at..])?),
            }
        }
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

fn cdata(text: &str) -> Option<&str> {
    text.trim().strip_prefix("<![CDATA[")?.strip_suffix("]]>")
}

/// Converts the text of a parameter: text to the last byte, JSON, or what the schema allows.
fn convert(
    key: &str,
    text: &str,
    is_string: Option<bool>,
    parameters: Option<Parameters<'_>>,
) -> Result<Value, String> {
    let schema = || parameters.and_then(|parameters| parameters.get(key));
    match is_string {
        Some(true) => convert::convert(LenientValue::Quoted(text.to_owned()), schema(), key),
        Some(false) => convert::convert(whole(text)?, schema(), key),
        None => {
            // The line breaks next to the tags belong to them.
            let text = text.strip_prefix('\n').unwrap_or(text);
            let text = text.strip_suffix('\n').unwrap_or(text);
            convert_text(text, parameters, key)
        }
    }
}
