//! Values as models write them: JSON, and what differs from it without doubt.

use serde_json::{Map, Number, Value};

/// As deep as `serde_json` goes.
const DEPTH: usize = 128;

/// A value before its type is known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// Without quotes: a number, a word, a text.
    Bare(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
    Quoted(String),
}

impl Token {
    /// The value that it is without a schema: in JSON, bare words are none.
    pub(crate) fn into_json(self) -> Result<Value, String> {
        Ok(match self {
            Self::Bare(word) => literal(&word)
                .ok_or_else(|| format!("{} is not a value: text needs quotes", quote(&word)))?,
            Self::List(items) => {
                items.into_iter().map(Self::into_json).collect::<Result<_, _>>()?
            }
            Self::Object(members) => {
                let mut object = Map::new();
                for (name, member) in members {
                    object.insert(name, member.into_json()?);
                }
                Value::Object(object)
            }
            Self::Quoted(text) => Value::String(text),
        })
    }
}

/// What a bare word is in JSON or in Python, if it is anything there. An integer that would lose digits is
/// nothing.
pub(crate) fn literal(word: &str) -> Option<Value> {
    match word {
        "true" | "True" => Some(Value::Bool(true)),
        "false" | "False" => Some(Value::Bool(false)),
        "null" | "None" => Some(Value::Null),
        _ => {
            let is_number = word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
            let number: Number = is_number.then(|| word.parse().ok())??;
            let is_whole = !word.contains(['.', 'e', 'E']);
            (!is_whole || !number.is_f64() || word == "-0").then_some(Value::Number(number))
        }
    }
}

/// The beginning of a text, on one line and in backticks, for an error.
pub(crate) fn quote(text: &str) -> String {
    format!("`{}`", shorten(text))
}

/// The beginning of a text, on one line, for an error.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}

/// What may stand without quotes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Bare {
    /// Text with everything but commas, brackets, double quotes, `=` and line breaks.
    Text,
    /// Single words.
    Word,
    /// Words with blanks between them.
    Words,
}

impl Bare {
    fn allows(self, c: char) -> bool {
        match self {
            Self::Text => !matches!(c, ',' | '[' | ']' | '{' | '}' | '"' | '=' | '\n' | '\r'),
            Self::Word => c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_'),
            Self::Words => {
                c.is_alphanumeric() || matches!(c, '+' | '-' | '.' | '_' | ' ' | '/' | '%' | '@')
            }
        }
    }
}

/// Reads values from left to right.
///
/// Beside JSON it takes single quotes, line breaks in strings, trailing commas, bare keys, and Python's
/// `True`, `False` and `None`. Nothing is closed that was left open.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Reads one value that is the whole text.
    pub(crate) fn whole(text: &'a str, bare: Bare) -> Result<Token, String> {
        let mut this = Self::new(text);
        let token = this.value(bare)?;
        this.spaces();
        match this.rest {
            "" => Ok(token),
            rest => Err(format!("{} is left over", quote(rest))),
        }
    }

    /// Returns the rest behind white space.
    pub(crate) fn rest(&mut self) -> &'a str {
        self.spaces();
        self.rest
    }

    /// Reads a sign if it comes next.
    pub(crate) fn sign(&mut self, sign: char) -> bool {
        self.spaces();
        let behind = self.rest.strip_prefix(sign);
        self.rest = behind.unwrap_or(self.rest);
        behind.is_some()
    }

    /// Reads a value.
    pub(crate) fn value(&mut self, bare: Bare) -> Result<Token, String> {
        self.nested(bare, DEPTH)
    }

    /// Reads a name: a word, or text in quotes. Nothing is read if none is there.
    pub(crate) fn key(&mut self) -> Result<Option<String>, String> {
        self.spaces();
        if self.rest.starts_with(['"', '\'']) {
            return self.string().map(Some);
        }
        let is_in_key = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '$' | '.');
        let length = self.rest.find(|c| !is_in_key(c)).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok((!key.is_empty()).then(|| key.to_owned()))
    }

    fn nested(&mut self, bare: Bare, depth: usize) -> Result<Token, String> {
        let depth = depth.checked_sub(1).ok_or("the arguments are nested too deeply")?;
        self.spaces();
        match self.rest.as_bytes().first() {
            Some(b'[') => self.list(bare, depth),
            Some(b'{') => self.object(bare, depth),
            Some(b'"' | b'\'') => self.string().map(Token::Quoted),
            _ => self.bare(bare),
        }
    }

    fn list(&mut self, bare: Bare, depth: usize) -> Result<Token, String> {
        self.sign('[');
        let mut items = Vec::new();
        while !self.sign(']') {
            items.push(self.nested(bare, depth)?);
            self.comma(']')?;
        }
        Ok(Token::List(items))
    }

    fn object(&mut self, bare: Bare, depth: usize) -> Result<Token, String> {
        self.sign('{');
        let mut members: Vec<(String, Token)> = Vec::new();
        while !self.sign('}') {
            let name = self.key()?.ok_or_else(|| self.unexpected("the name of a member"))?;
            if !self.sign(':') {
                return Err(self.unexpected(&format!("a colon behind {}", quote(&name))));
            }
            let value = self.nested(bare, depth)?;
            self.comma('}')?;
            members.push((name, value));
        }
        // Sorted, so that many members cost no square of it.
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("{} is given twice", quote(pair[0]))),
            None => Ok(Token::Object(members)),
        }
    }

    /// Behind a value comes a comma, or what closes.
    fn comma(&mut self, close: char) -> Result<(), String> {
        if self.sign(',') || self.rest.starts_with(close) {
            return Ok(());
        }
        Err(self.unexpected(&format!("a comma or `{close}`")))
    }

    fn bare(&mut self, bare: Bare) -> Result<Token, String> {
        let length = self.rest.find(|c| !bare.allows(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        let word = word.trim();
        if word.is_empty() {
            return Err(self.unexpected("a value"));
        }
        self.rest = rest;
        Ok(Token::Bare(word.to_owned()))
    }

    fn string(&mut self) -> Result<String, String> {
        let mut characters = self.rest.chars();
        let quote = characters.next();
        let mut string = String::new();
        loop {
            let plain = characters.as_str();
            let length = plain.find(['\\', '"', '\'']).ok_or("a string is not closed")?;
            string.push_str(&plain[..length]);
            characters = plain[length..].chars();
            match characters.next() {
                Some('\\') => string.push(escaped(&mut characters)?),
                mark if mark == quote => break,
                mark => string.extend(mark),
            }
        }
        self.rest = characters.as_str();
        Ok(string)
    }

    fn spaces(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn unexpected(&self, wanted: &str) -> String {
        match self.rest {
            "" => format!("expected {wanted}, found the end"),
            rest => format!("expected {wanted}, found {}", quote(rest)),
        }
    }
}

/// The character behind a backslash. One that JSON does not know is doubt: a path, or a pattern.
fn escaped(characters: &mut std::str::Chars<'_>) -> Result<char, String> {
    Ok(match characters.next() {
        Some(same @ ('"' | '\'' | '\\' | '/')) => same,
        Some('b') => '\u{8}',
        Some('f') => '\u{c}',
        Some('n') => '\n',
        Some('r') => '\r',
        Some('t') => '\t',
        Some('u') => {
            let first = unit(characters)?;
            let pair = match first {
                0xD800..=0xDBFF if characters.as_str().starts_with("\\u") => {
                    characters.nth(1);
                    vec![first, unit(characters)?]
                }
                _ => vec![first],
            };
            String::from_utf16(&pair)
                .ok()
                .and_then(|text| text.chars().next())
                .ok_or_else(|| "a string has half of a character written with \\u".to_owned())?
        }
        Some(other) => {
            return Err(format!("a string has `\\{other}`: write `\\\\` for a backslash"));
        }
        None => return Err("a string is not closed".to_owned()),
    })
}

fn unit(characters: &mut std::str::Chars<'_>) -> Result<u16, String> {
    let digits =
        characters.as_str().get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let unit = digits.ok_or("a string has \\u without four digits")?;
    characters.nth(3);
    Ok(unit)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn reads(text: &str, value: Value) {
        assert_eq!(Reader::whole(text, Bare::Word).and_then(Token::into_json), Ok(value), "{text}");
    }

    #[track_caller]
    fn refuses(text: &str, message: &str) {
        let error = Reader::whole(text, Bare::Word).and_then(Token::into_json).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }

    #[test]
    fn python_is_understood() {
        reads(
            "{'a': True, 'b': None, 'c': [1, 2.5,], }",
            json!({"a": true, "b": null, "c": [1, 2.5]}),
        );
        reads(r#"{a: 'it\'s "so"', "b": "it's"}"#, json!({"a": "it's \"so\"", "b": "it's"}));
        reads("\"two\nlines\"", json!("two\nlines"));
        reads(r#""\ud83d\ude42\u00e9\/""#, json!("🙂é/"));
    }

    #[test]
    fn a_value_that_may_be_read_in_two_ways_is_refused() {
        refuses(r#"{"a": "C:\Temp"}"#, "a string has `\\T`");
        refuses(r#"{"a": 1, "a": 2}"#, "`a` is given twice");
        refuses(r#"{"a": Oslo}"#, "`Oslo` is not a value");
        refuses(r#"{"a": 1 "b": 2}"#, "expected a comma");
        refuses(r#"{"a": [1, 2}"#, "expected a comma or `]`");
        refuses(r#"["a", ,]"#, "expected a value");
        refuses(r#""\ud83d""#, "half of a character");
        refuses("{'a': 'it's'}", "expected a comma");
        refuses("12345678901234567890123", "is not a value");
        refuses("007", "is not a value");
        refuses(&"[".repeat(200), "nested too deeply");
    }
}
