//! The thinking of a delta, which servers send under many names, and often twice.

use std::borrow::Cow;
use std::mem;

use oa_json::JsonStr;
use serde_json::Value;

use crate::chunk::Choice;
use crate::json::{Read, Reader};
use crate::template::Notes;

/// The number of names under which thinking is a plain string.
const NAMES: usize = 3;

/// The thinking of one delta, under each of its names.
#[derive(Debug, Default)]
pub(crate) struct Reasoning<'a> {
    /// In order of precedence: `reasoning_content`, `reasoning`, `reasoning_text`.
    named: [Said<'a>; NAMES],
    /// The text of `reasoning_details`.
    pub(crate) details: String,
    /// The text of `thinking_blocks`.
    pub(crate) blocks: String,
}

/// The thinking under one name.
#[derive(Debug, Default)]
enum Said<'a> {
    #[default]
    Nothing,
    String(JsonStr<'a>),
    /// An object or a list, and its text (QUIRKS row 107).
    Structure(String),
}

/// The names in order of precedence (QUIRKS rows 39 to 41 and 105).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Content,
    Plain,
    Text,
}

impl<'a> Reasoning<'a> {
    /// Reads the value of a name: a string, `{"text": ".."}`, or a list of these.
    #[inline]
    pub(crate) fn read(&mut self, name: Name, reader: &mut Reader<'a, '_>) -> Read<()> {
        self.named[name as usize] = match reader.peek() {
            Some(b'{' | b'[') => read_structure(reader)?,
            _ => reader.string_or_absent()?.map_or(Said::Nothing, Said::String),
        };
        Ok(())
    }

    /// Returns true if the delta has thinking under any name, even if it is an empty string.
    #[inline]
    pub(crate) fn is_present(&self) -> bool {
        let is_named = self.named.iter().any(|said| !matches!(said, Said::Nothing));
        is_named || !self.details.is_empty() || !self.blocks.is_empty()
    }

    /// Sets the thinking of the choice: that of the first name with text, never of two of them.
    ///
    /// The notes get the string with the thinking, if another chunk that differs only there has its thinking there,
    /// too. If the text of one name is empty, the next one counts: once two have text, no single place decides.
    pub(crate) fn tell(&mut self, choice: &mut Choice<'a>, notes: &mut Notes<'a>) {
        let Self { named, details, blocks } = self;
        let mut silent = None;
        for said in named {
            let is_first = choice.thinking.is_none();
            match said {
                Said::Nothing => {}
                Said::String(string) if string.raw.is_empty() => {
                    // `"reasoning":""` beside text: the next chunk may have its thinking here.
                    if is_first && silent.is_none() {
                        silent = Some(*string);
                    }
                }
                Said::String(string) if is_first => {
                    notes.thinking = Some(*string);
                    choice.thinking = Some(string.text());
                    choice.halves[1] = string.halves();
                }
                Said::String(_) => notes.is_ambiguous = true,
                Said::Structure(words) => {
                    notes.is_ambiguous = true;
                    if is_first && !words.is_empty() {
                        choice.thinking = Some(Cow::Owned(mem::take(words)));
                    }
                }
            }
        }
        notes.thinking = notes.thinking.or(silent);
        // Details and blocks repeat what has a name, so they count only without it.
        if choice.thinking.is_none() && !details.is_empty() {
            choice.thinking = Some(Cow::Owned(mem::take(details)));
        }
        if choice.thinking.is_none() && !blocks.is_empty() {
            choice.thinking = Some(Cow::Owned(mem::take(blocks)));
            choice.rare().thinks_in_blocks = true;
        }
    }
}

/// Returns the text of a detail, from `text` or `summary`.
pub(crate) fn words_of_detail(detail: &Value) -> &str {
    let words = ["text", "summary"].into_iter();
    words
        .filter_map(|member| detail.get(member)?.as_str())
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

#[cold]
fn read_structure<'a>(reader: &mut Reader<'a, '_>) -> Read<Said<'a>> {
    let mut words = String::new();
    read_words(reader, &mut words)?;
    Ok(Said::Structure(words))
}

/// Appends a string, an object's `text`, or the items of a list.
pub(crate) fn read_words(reader: &mut Reader<'_, '_>, words: &mut String) -> Read<()> {
    match reader.peek() {
        Some(b'"') => words.extend(reader.text()?.map(JsonStr::text)),
        Some(b'[') => {
            let Some(mut items) = reader.array()? else { return Ok(()) };
            while reader.item(&mut items)? {
                read_words(reader, words)?;
            }
        }
        _ => {
            let Some(mut members) = reader.object()? else { return Ok(()) };
            while let Some(name) = reader.member(&mut members)? {
                match &*name {
                    "text" => words.extend(reader.text()?.map(JsonStr::text)),
                    _ => reader.skip()?,
                }
            }
        }
    }
    Ok(())
}
