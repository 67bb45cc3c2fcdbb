//! ```text
//! ]<]minimax[>[<tool_call>
//! ]<]minimax[>[<invoke name="name">
//! ]<]minimax[>[<key>value]<]minimax[>[</key>
//! ]<]minimax[>[</invoke>
//! ]<]minimax[>[</tool_call>
//! ```
//!
//! That is MiniMax M3: a token before each tag, a tag for each key, and tags within tags for objects and, as `<item>`,
//! for lists.

use oa_json::quoted;
use oa_types::MAX_NESTING;
use serde_json::{Map, Value};

use crate::bodies::left_open;
use crate::closing::Closing;
use crate::convert::convert_text_of;
use crate::grammar::{BodyEnd, CallBody, Match, ParsedCall, Position};
use crate::head::{CallHead, NoMatch};
use crate::schema::Schema;
use crate::tools::Tools;

/// The token before each tag.
const TOKEN: &str = "]<]minimax[>[";

pub(super) fn begin(head: &mut CallHead<'_>, _: Position, tools: &Tools) -> Result<Match, NoMatch> {
    head.literal(TOKEN)?;
    head.spaces()?;
    if head.maybe("<tool_call>")? {
        head.spaces()?;
        head.literal(TOKEN)?;
        head.spaces()?;
    }
    head.literal("<invoke name=\"")?;
    let name = head.name()?.to_owned();
    head.literal("\">")?;
    let closing = Closing::new("]<]minimax[>[</invoke>");
    Ok(Match::Call(Box::new(Invoke { name, tools: tools.clone(), closing })))
}

#[derive(Debug)]
struct Invoke {
    name: String,
    tools: Tools,
    closing: Closing,
}

impl CallBody for Invoke {
    fn push(&mut self, text: &str) -> Option<usize> {
        self.closing.push(text)
    }

    fn read(&self, text: &str, end: BodyEnd) -> Vec<ParsedCall> {
        if end == BodyEnd::Open {
            return vec![left_open(&self.name)];
        }
        let schema = self.tools.schema(&self.name).map(|parameters| parameters.whole());
        let text = self.closing.before(text);
        vec![ParsedCall::of(&self.name, members(text, schema, MAX_NESTING))]
    }
}

/// Reads the members of an object, whose values may be nested to this depth.
fn members(
    text: &str,
    schema: Option<Schema<'_>>,
    depth: usize,
) -> Result<Map<String, Value>, String> {
    let known = schema.map(Schema::members);
    let mut members = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, value, behind) = element(rest)?;
        let schema = known.as_ref().and_then(|known| known.get(key));
        let may_lack =
            known.as_ref().is_some_and(|known| !known.required().any(|needed| needed == key));
        let value = read(key, value, schema, may_lack, depth)?;
        if members.insert(key.to_owned(), value).is_some() {
            return Err(format!("{} appears twice", quoted(key)));
        }
        rest = behind.trim_start();
    }
    Ok(members)
}

/// Reads the value of a member, or of an item.
fn read(
    key: &str,
    text: &str,
    schema: Option<Schema<'_>>,
    may_lack: bool,
    depth: usize,
) -> Result<Value, String> {
    if !text.trim_start().starts_with(TOKEN) {
        let value = |text: &str| convert_text_of(text, schema, || may_lack, key);
        // Nothing between the tags is also an empty list or object.
        return match value(text) {
            Err(_) if text.trim().is_empty() => value("[]").or_else(|_| value("{}")),
            value => value,
        };
    }
    let depth = depth.checked_sub(1).ok_or("the arguments are nested too deeply")?;
    let items = |text: &str| items(key, text, schema, depth);
    match element(text.trim_start())?.0 {
        // An object may have a member of this name.
        "item" if schema.is_none_or(|schema| !schema.members().has("item")) => items(text),
        _ => members(text, schema, depth).map(Value::Object),
    }
}

fn items(key: &str, text: &str, schema: Option<Schema<'_>>, depth: usize) -> Result<Value, String> {
    let mut of = schema.map(Schema::items);
    let mut items = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (tag, value, behind) = element(rest)?;
        if tag != "item" {
            return Err(format!("{} has items, and {}", quoted(key), quoted(tag)));
        }
        let schema = of.as_mut().and_then(|of| of.next().flatten());
        items.push(read(key, value, schema, false, depth)?);
        rest = behind.trim_start();
    }
    Ok(Value::Array(items))
}

/// Returns the name of the first element, the text in it, and the text behind it.
fn element(text: &str) -> Result<(&str, &str, &str), String> {
    let expected = || format!("expected a tag before {}", quoted(text));
    let inner = text.strip_prefix(TOKEN).and_then(|text| text.trim_start().strip_prefix('<'));
    let (name, inner) = inner.and_then(|inner| inner.split_once('>')).ok_or_else(expected)?;
    let mut open = 1_usize;
    let mut at = 0;
    // An element may contain others of its name.
    while let Some(found) = inner[at..].find(TOKEN) {
        let tag = at + found;
        let behind = inner[tag + TOKEN.len()..].trim_start();
        let closes = behind.strip_prefix("</").and_then(|rest| rest.strip_prefix(name));
        let opens = behind.strip_prefix('<').and_then(|rest| rest.strip_prefix(name));
        if let Some(rest) = closes.and_then(|rest| rest.strip_prefix('>')) {
            open -= 1;
            if open == 0 {
                return Ok((name, &inner[..tag], rest));
            }
        } else if opens.is_some_and(|rest| rest.starts_with('>')) {
            open += 1;
        }
        at = tag + TOKEN.len();
    }
    Err(format!("{} is not closed", quoted(name)))
}
