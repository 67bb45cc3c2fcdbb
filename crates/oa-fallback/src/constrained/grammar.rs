//! The syntax of answers that are one object.

use std::sync::Arc;

use oa_json::{Escape, EscapeError};
use oa_types::ToolSpec;

use crate::balance::Balance;
use crate::bodies::Objects;
use crate::dialect::Dialect as _;
use crate::grammar::{Grammar, Match, Position, TextBody};
use crate::head::{CallHead, NoMatch};
use crate::tagged::TaggedJson;
use crate::tools::Tools;

#[derive(Debug)]
pub(super) struct ConstrainedGrammar {
    tools: Tools,
    /// The syntax used if the server does not enforce the schema.
    others: Box<dyn Grammar>,
}

impl ConstrainedGrammar {
    pub(super) fn new(tools: Arc<[ToolSpec]>) -> Self {
        Self { tools: Tools::new(Arc::clone(&tools)), others: TaggedJson::new().grammar(tools) }
    }
}

impl Grammar for ConstrainedGrammar {
    fn may_begin(&self, byte: u8) -> bool {
        byte == b'{' || self.others.may_begin(byte)
    }

    fn begin(&self, head: &mut CallHead<'_>, position: Position) -> Result<Match, NoMatch> {
        match object(head, position, &self.tools) {
            Err(NoMatch::Mismatch) => {
                head.go_back(0);
                self.others.begin(head, position)
            }
            found => found,
        }
    }
}

fn object(head: &mut CallHead<'_>, position: Position, tools: &Tools) -> Result<Match, NoMatch> {
    let is_alone = position.at_start || position.after_call;
    if is_alone {
        head.fence()?;
    } else if !position.at_line_start {
        return Err(NoMatch::Mismatch);
    }
    // Only the beginning decides. At the start of an answer, `{"answer":`, `{"tool": "` and `{"calls": [` are
    // enough; in the middle, a call must show its name and its arguments.
    let start = head.at();
    head.literal("{")?;
    head.spaces()?;
    if position.at_start && head.key("answer")? {
        return match head.peek()? {
            Some('"') => {
                head.literal("\"")?;
                Ok(Match::Encoded(Box::<QuotedText>::default()))
            }
            Some('{' | '[') => Ok(Match::Encoded(Box::new(JsonText(Balance::of_value())))),
            Some(c) if c.is_ascii_alphanumeric() || c == '-' => {
                Ok(Match::Encoded(Box::new(WordText)))
            }
            _ => Err(NoMatch::Mismatch),
        };
    }
    let is_list = head.key("calls")?;
    if is_list {
        head.literal("[")?;
    }
    // In the middle of prose, the beginning alone is not enough.
    if is_list && !is_alone {
        head.spaces()?;
        head.literal("{")?;
        head.spaces()?;
    }
    if !(is_list && is_alone) {
        let is_call = head.key("tool")? && head.maybe("\"")? && (is_alone || has_arguments(head)?);
        if !is_call {
            return Err(NoMatch::Mismatch);
        }
    }
    head.go_back(start);
    Ok(Match::Call(Box::new(Objects::new(tools))))
}

/// Reads the rest of a name, up to the arguments.
fn has_arguments(head: &mut CallHead<'_>) -> Result<bool, NoMatch> {
    head.name()?;
    head.literal("\"")?;
    head.spaces()?;
    head.literal(",")?;
    head.spaces()?;
    head.key("arguments")
}

/// The rest of a JSON string, which is decoded.
#[derive(Debug, Default)]
struct QuotedText {
    /// The part of an escape that has arrived.
    escape: String,
}

/// The longest escape, in bytes: a pair of surrogates.
const LONGEST_ESCAPE: usize = 12;

impl TextBody for QuotedText {
    fn push(&mut self, text: &str, shown: &mut String) -> Option<usize> {
        let mut at = 0;
        while at < text.len() {
            let rest = &text[at..];
            if self.escape.is_empty() && !rest.starts_with('\\') {
                let end = rest.find(['"', '\\']).unwrap_or(rest.len());
                shown.push_str(&rest[..end]);
                at += end;
                if rest[end..].starts_with('"') {
                    return Some(at + 1);
                }
                continue;
            }
            let begun = self.escape.len();
            // `\ud83d` may be half of a pair, so an escape is read only with all that could belong to it.
            // With `\u00` from the last piece and `e9t` here, `escape` is `\u00e9t`, of which 6 bytes are
            // read: 2 of this piece.
            self.escape.extend(rest.chars().take(LONGEST_ESCAPE - begun));
            let length = match Escape::read(&self.escape) {
                // All of `rest` is in `escape` then: the longest escape would be complete.
                Err(EscapeError::Incomplete) => return None,
                Ok(Escape { character, length, .. }) => {
                    shown.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
                    length
                }
                // Text of a server that does not enforce JSON.
                Err(EscapeError::Unknown) => {
                    shown.push('\\');
                    1
                }
            };
            if length >= begun {
                self.escape.clear();
                at += length - begun;
                continue;
            }
            // Shorter than it could have been: the rest is text, or another escape.
            self.escape.truncate(begun);
            self.escape.drain(..length);
            let plain = self.escape.find('\\').unwrap_or(self.escape.len());
            shown.extend(self.escape.drain(..plain));
        }
        None
    }
}

/// An object or a list, the value of a structured output.
#[derive(Debug)]
struct JsonText(Balance);

impl TextBody for JsonText {
    fn push(&mut self, text: &str, shown: &mut String) -> Option<usize> {
        let end = self.0.push(text);
        shown.push_str(&text[..end.unwrap_or(text.len())]);
        end
    }
}

/// A number or a word.
#[derive(Debug)]
struct WordText;

impl TextBody for WordText {
    fn push(&mut self, text: &str, shown: &mut String) -> Option<usize> {
        let is_end = |c: char| c.is_ascii_whitespace() || matches!(c, ',' | '}');
        let end = text.find(is_end);
        shown.push_str(&text[..end.unwrap_or(text.len())]);
        end
    }
}
