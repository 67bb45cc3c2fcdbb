//! Where a delta has its thinking: servers name it in many ways, and often say it twice.

use std::borrow::Cow;

use serde_json::Value;

use crate::chunk::Choice;
use crate::form::Target;
use crate::json::{Read, Reader, Str};

/// The number of names that thinking has as a plain string.
const NAMES: usize = 3;

/// The thinking of one delta, under each of its names.
#[derive(Debug, Default)]
pub(crate) struct Reasoning<'a> {
    /// In the order in which they count: `reasoning_content`, `reasoning`, `reasoning_text`.
    named: [Said<'a>; NAMES],
    /// The words of `reasoning_details`.
    pub(crate) details: String,
    /// The words of `thinking_blocks`.
    pub(crate) blocks: String,
}

/// The thinking under one name.
#[derive(Debug, Default)]
enum Said<'a> {
    #[default]
    Nothing,
    String(Str<'a>),
    /// An object or a list, and its words (QUIRKS row 107).
    Structure(String),
}

/// The names in the order in which they count (QUIRKS rows 39 to 41 and 105).
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Content,
    Plain,
    Text,
}

impl<'a> Reasoning<'a> {
    /// Reads what stands under a name: a string, `{"text": ".."}`, or a list of these.
    pub(crate) fn read(&mut self, name: Name, reader: &mut Reader<'a, '_>) -> Read<()> {
        self.named[name as usize] = match reader.peek() {
            Some(b'{' | b'[') => {
                let mut words = String::new();
                read_words(reader, &mut words)?;
                Said::Structure(words)
            }
            _ => reader.string_or_absent()?.map_or(Said::Nothing, Said::String),
        };
        Ok(())
    }

    /// Hands the thinking to the choice: that of the first name that is not silent, never two of them.
    ///
    /// The target is told which string it was, if another chunk that differs there alone has its thinking
    /// there, too. Where one name falls silent the next one counts, so that no single place decides once
    /// two of them speak.
    pub(crate) fn tell(self, choice: &mut Choice<'a>, target: &mut Target<'a>) {
        let Self { named, details, blocks } = self;
        let speaking = named.iter().filter(|said| said.speaks()).count();
        let is_plain = !named.iter().any(|said| matches!(said, Said::Structure(_)));
        target.is_ambiguous = speaking > 1 || !is_plain;
        let mut silent = None;
        for said in named {
            match said {
                Said::Nothing => {}
                _ if choice.thinking.is_some() => {}
                Said::String(string) if string.raw.is_empty() => silent = silent.or(Some(string)),
                Said::String(string) => {
                    target.thinking = Some(string);
                    choice.thinking = Some(string.text());
                }
                Said::Structure(words) if words.is_empty() => {}
                Said::Structure(words) => choice.thinking = Some(Cow::Owned(words)),
            }
        }
        target.thinking = target.thinking.or(silent);
        if choice.thinking.is_none() && !details.is_empty() {
            choice.thinking = Some(Cow::Owned(details));
        }
        if choice.thinking.is_none() && !blocks.is_empty() {
            choice.thinking = Some(Cow::Owned(blocks));
            choice.rare().thinks_in_blocks = true;
        }
    }
}

impl Said<'_> {
    fn speaks(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::String(string) => !string.raw.is_empty(),
            Self::Structure(words) => !words.is_empty(),
        }
    }
}

/// The words of a detail, which stand in `text` or `summary`.
pub(crate) fn words_of_detail(detail: &Value) -> &str {
    let words = ["text", "summary"].into_iter();
    words
        .filter_map(|member| detail.get(member)?.as_str())
        .find(|text| !text.is_empty())
        .unwrap_or_default()
}

/// Appends the words of a string, of an object's `text`, or of the items of a list.
fn read_words(reader: &mut Reader<'_, '_>, words: &mut String) -> Read<()> {
    match reader.peek() {
        Some(b'"') => words.extend(reader.text()?.map(Str::text)),
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
                    "text" => words.extend(reader.text()?.map(Str::text)),
                    _ => reader.skip()?,
                }
            }
        }
    }
    Ok(())
}
