//! Arguments that are nearly JSON, read as what was plainly meant.

use std::iter::Peekable;
use std::str::CharIndices;

use oa_types::held;
use serde_json::{Map, Number, Value};

/// The deepest nesting that is read, as in serde_json.
const DEPTH: usize = 128;

/// Reads an object from text that is cut off or slightly broken; none if it is not plain what was
/// meant.
///
/// Open strings, arrays and objects are closed where the text ends; a member without its value goes.
/// Understood beside JSON: code fences around the object, trailing commas, comments, single quotes,
/// bare keys, line breaks in strings, `\'`, `True`, `False` and `None`. The characters of a string stay
/// what they are: an escape that JSON does not know is doubt.
///
/// An object that would take more than `room` bytes is none, either.
pub(crate) fn object(text: &str, room: usize) -> Option<Map<String, Value>> {
    let text = text.trim().trim_start_matches('`');
    let text = text.strip_prefix("json").unwrap_or(text).trim_start();
    if !text.starts_with('{') {
        return None;
    }
    // Strings grow to twice their length at most, beside what they grew from.
    let room = room.checked_sub(text.len().saturating_mul(3))?;
    let mut reader = Reader { text, characters: text.char_indices().peekable(), room };
    let Value::Object(object) = reader.value(0)? else {
        return None;
    };
    reader.space();
    // Whatever follows may be another object or prose: then nothing is plain.
    let rest = reader.rest().trim_end_matches('`').trim();
    rest.is_empty().then_some(object)
}

struct Reader<'a> {
    text: &'a str,
    characters: Peekable<CharIndices<'a>>,
    /// The number of bytes that may still be held.
    room: usize,
}

impl Reader<'_> {
    /// Reads a value, or none if there is none here. Where the text ends, what is open is closed.
    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            '{' => self.members(depth),
            '[' => self.items(depth),
            quote @ ('"' | '\'') => Some(Value::String(self.string(quote)?)),
            _ => self.word(),
        }
    }

    fn members(&mut self, depth: usize) -> Option<Value> {
        self.next();
        self.hold(held::OBJECT)?;
        let mut object = Map::new();
        loop {
            self.space();
            let name = match self.peek() {
                None => break,
                Some('}') => {
                    self.next();
                    break;
                }
                Some(',') => {
                    self.next();
                    continue;
                }
                Some(quote @ ('"' | '\'')) => self.string(quote)?,
                Some(_) => self.bare_key()?,
            };
            self.space();
            match self.peek() {
                None => break,
                Some(':') => self.next(),
                Some(_) => return None,
            };
            self.space();
            if self.peek().is_none() {
                break;
            }
            self.hold(held::MEMBER)?;
            let value = self.value(depth + 1)?;
            object.insert(name, value);
            self.between('}')?;
        }
        Some(Value::Object(object))
    }

    fn items(&mut self, depth: usize) -> Option<Value> {
        self.next();
        self.hold(held::LIST)?;
        let mut list = Vec::new();
        loop {
            self.space();
            match self.peek() {
                None => break,
                Some(']') => {
                    self.next();
                    break;
                }
                Some(',') => {
                    self.next();
                }
                Some(_) => {
                    self.hold(held::ITEM)?;
                    list.push(self.value(depth + 1)?);
                    self.between(']')?;
                }
            }
        }
        Some(Value::Array(list))
    }

    /// Counts bytes that are held; none if they do not fit.
    fn hold(&mut self, bytes: usize) -> Option<()> {
        self.room = self.room.checked_sub(bytes)?;
        Some(())
    }

    /// After a value comes a comma, the end of what is open, or the end of the text.
    fn between(&mut self, close: char) -> Option<()> {
        self.space();
        match self.peek() {
            None => Some(()),
            Some(next) if next == ',' || next == close => Some(()),
            Some(_) => None,
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.next();
        let mut string = String::new();
        while let Some(character) = self.next() {
            match character {
                '\\' => match self.next() {
                    None => break,
                    Some('b') => string.push('\u{8}'),
                    Some('f') => string.push('\u{c}'),
                    Some('n') => string.push('\n'),
                    Some('r') => string.push('\r'),
                    Some('t') => string.push('\t'),
                    Some('u') => match self.code_unit() {
                        Some(unit) => self.push_unit(unit, &mut string),
                        None if self.peek().is_none() => break,
                        None => return None,
                    },
                    Some(same @ ('"' | '\'' | '\\' | '/')) => string.push(same),
                    // A path, or a pattern: whether its backslash was meant is anybody's guess.
                    Some(_) => return None,
                },
                _ if character == quote => return Some(string),
                _ => string.push(character),
            }
        }
        Some(string)
    }

    fn push_unit(&mut self, unit: u32, string: &mut String) {
        let mut code = unit;
        if (0xD800..0xDC00).contains(&unit) {
            let mut ahead = self.characters.clone();
            let marks = [ahead.next(), ahead.next()].map(|next| next.map(|(_, c)| c));
            let digits =
                (0..4).try_fold(0, |unit, _| Some(unit << 4 | ahead.next()?.1.to_digit(16)?));
            if let ([Some('\\'), Some('u')], Some(second @ 0xDC00..=0xDFFF)) = (marks, digits) {
                self.characters = ahead;
                code = 0x10000 + ((unit - 0xD800) << 10) + (second - 0xDC00);
            }
        }
        string.push(char::from_u32(code).unwrap_or('\u{fffd}'));
    }

    fn code_unit(&mut self) -> Option<u32> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek()?.to_digit(16)?;
            self.next();
            unit = unit << 4 | digit;
        }
        Some(unit)
    }

    fn bare_key(&mut self) -> Option<String> {
        let key = self.take_while(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'));
        (!key.is_empty()).then_some(key)
    }

    /// Reads a number, or a word of JSON or Python; one that is cut off is none.
    fn word(&mut self) -> Option<Value> {
        let word = self.take_while(|c| c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'));
        match &*word {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            number => serde_json::from_str::<Number>(number).ok().map(Value::Number),
        }
    }

    /// Passes over white space and comments.
    fn space(&mut self) {
        loop {
            match self.peek() {
                Some(character) if character.is_whitespace() => {
                    self.next();
                }
                Some('/') if self.rest().starts_with("//") => {
                    self.take_while(|character| character != '\n');
                }
                Some('/') if self.rest().starts_with("/*") => {
                    let length = self.rest()[2..].find("*/").map_or(usize::MAX, |end| end + 4);
                    let end = self.position().saturating_add(length);
                    while self.characters.next_if(|(at, _)| *at < end).is_some() {}
                }
                _ => return,
            }
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some((_, character)) = self.characters.next_if(|(_, c)| wanted(*c)) {
            taken.push(character);
        }
        taken
    }

    fn position(&mut self) -> usize {
        self.characters.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn rest(&mut self) -> &str {
        let at = self.position();
        &self.text[at..]
    }

    fn peek(&mut self) -> Option<char> {
        self.characters.peek().map(|(_, character)| *character)
    }

    fn next(&mut self) -> Option<char> {
        self.characters.next().map(|(_, character)| character)
    }
}
