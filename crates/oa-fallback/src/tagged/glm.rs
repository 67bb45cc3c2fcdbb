//! ```text
//! <tool_call>name
//! <arg_key>key</arg_key>
//! <arg_value>value</arg_value>
//! </tool_call>
//! ```
//!
//! LongCat, Hunyuan 3 and Solar Open 2 write the same in tags of their own.

use oa_json::quoted;
use serde_json::{Map, Value};

use crate::bodies::{Arguments, left_open};
use crate::closing::CallClosing;
use crate::convert::convert_text;
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::tools::{Parameters, Tools};

#[derive(Debug)]
struct Tags {
    open: &'static str,
    close: &'static str,
    /// Behind the name; often nothing.
    separator: &'static str,
    key: (&'static str, &'static str),
    value: (&'static str, &'static str),
}

macro_rules! tags {
    ($prefix:literal, $suffix:literal) => {
        Tags {
            open: concat!("<", $prefix, "tool_call", $suffix, ">"),
            close: concat!("</", $prefix, "tool_call", $suffix, ">"),
            separator: concat!("<", $prefix, "tool_sep", $suffix, ">"),
            key: (
                concat!("<", $prefix, "arg_key", $suffix, ">"),
                concat!("</", $prefix, "arg_key", $suffix, ">"),
            ),
            value: (
                concat!("<", $prefix, "arg_value", $suffix, ">"),
                concat!("</", $prefix, "arg_value", $suffix, ">"),
            ),
        }
    };
}

const STYLES: [Tags; 4] = [
    tags!("", ""),
    tags!("longcat_", ""),
    tags!("", ":opensource"),
    Tags {
        open: "<|tool_call:start|>",
        close: "<|tool_call:end|>",
        separator: "",
        key: ("<|tool_arg:start|>", ""),
        value: ("<|tool_arg:value|>", "<|tool_arg:end|>"),
    },
];

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    for tags in &STYLES {
        if head.maybe(tags.open)? {
            return named(head, tags, tools);
        }
    }
    Err(NoMatch::Mismatch)
}

/// Matches the name and the start of the arguments, after the opening tag.
fn named(head: &mut CallHead<'_>, tags: &'static Tags, tools: &Tools) -> Result<Match, NoMatch> {
    let tag = head.at();
    head.spaces()?;
    let is_adjacent = head.at() == tag;
    let name = head.name()?;
    head.spaces()?;
    if head.maybe(tags.separator)? {
        head.spaces()?;
    }
    let start = head.at();
    head.fence()?;
    if head.peek()? == Some('{') {
        return Ok(Match::Call(Box::new(Arguments::new(name))));
    }
    head.go_back(start);
    // A call without arguments is closed at once. Anything else after the name is not a call, and neither is
    // `between <tool_call> and </tool_call>`, unless there is a tool `and`.
    if !head.maybe(tags.key.0)? {
        head.literal(tags.close)?;
        if !is_adjacent && !tools.knows(name) {
            return Err(NoMatch::Mismatch);
        }
    }
    head.go_back(start);
    let closing = CallClosing::new(tags.close, tags.value.0, tags.value.1);
    let (name, tools) = (name.to_owned(), tools.clone());
    Ok(Match::Call(Box::new(Pairs { name, tags, tools, closing })))
}

/// Keys and values between tags.
#[derive(Debug)]
struct Pairs {
    name: String,
    tags: &'static Tags,
    tools: Tools,
    closing: CallClosing,
}

impl CallBody for Pairs {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.closing.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        let schema = self.tools.schema(&self.name);
        let call = match end {
            BodyEnd::Closed => {
                let text = self.closing.before(text);
                ParsedCall::of(&self.name, arguments(text, self.tags, schema))
            }
            BodyEnd::Open => match arguments(text, self.tags, schema) {
                // The tag that is missing.
                Err(error) => ParsedCall::malformed(Some(&self.name), error),
                Ok(_) => left_open(&self.name),
            },
        };
        vec![call]
    }
}

fn arguments(
    text: &str,
    tags: &Tags,
    schema: Option<Parameters<'_>>,
) -> Result<Map<String, Value>, String> {
    let mut arguments = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, behind) = match tags.key {
            // The key ends where its value begins.
            (open, "") => {
                let (key, _) = between(rest, open, tags.value.0)?;
                (key, &rest[open.len() + key.len()..])
            }
            (open, close) => between(rest, open, close)?,
        };
        let (value, behind) = between(behind.trim_start(), tags.value.0, tags.value.1)?;
        // Not a tag in the text, but most likely a tag that is missing: the value would be that of another argument.
        if value.contains(tags.value.0) {
            return Err(format!("`{}` is not closed", tags.value.0));
        }
        let key = key.trim();
        let value = convert_text(value, schema, key)?;
        if arguments.insert(key.to_owned(), value).is_some() {
            return Err(format!("{} appears twice", quoted(key)));
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
