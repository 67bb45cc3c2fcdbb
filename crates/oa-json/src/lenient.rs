use serde_json::{Map, Value};

use crate::error::Result;
use crate::limits::Limits;
use crate::syntax::{Build, Doubt, Syntax};
use crate::value::given_twice;

/// A value as written, before unquoted words are given a type. A schema may require a string for `007`, or a number for
/// `"3"`.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "a value can be written in no other way")]
pub enum LenientValue {
    /// `[..]`.
    Array(Vec<Self>),
    /// `{..}`, with its members in order. Names are unique.
    Object(Vec<(String, Self)>),
    /// Text in quotes.
    Quoted(String),
    /// Unquoted text, which may be a number, `true` or `None`: see [`literal`](crate::literal()).
    Word(String),
}

impl LenientValue {
    /// Reads a text that is exactly one value, with the words of JSON and Python.
    ///
    /// # Errors
    ///
    /// As [`LenientReader::value`] and [`LenientReader::end`].
    pub fn read(text: &str, limits: Limits) -> Result<Self> {
        let mut reader = LenientReader::with_limits(text, limits);
        let value = reader.value()?;
        reader.end()?;
        Ok(value)
    }

    /// Converts to a JSON value by notation alone, without a schema.
    ///
    /// # Errors
    ///
    /// [`Syntax`](crate::ErrorKind::Syntax) for an unquoted word that [`literal`](crate::literal()) does not know.
    pub fn into_value(self) -> Result<Value> {
        Ok(match self {
            Self::Array(items) => {
                items.into_iter().map(Self::into_value).collect::<Result<Value>>()?
            }
            Self::Object(members) => {
                let mut object = Map::new();
                for (name, member) in members {
                    object.insert(name, member.into_value()?);
                }
                Value::Object(object)
            }
            Self::Quoted(text) => Value::String(text),
            Self::Word(word) => Value::word(&word, Doubt::Refuse)?,
        })
    }
}

impl Build for LenientValue {
    type Members = Vec<(String, Self)>;

    // A list has room for four at first, and for twice what it has later.
    fn item_cost(count: usize) -> usize {
        let places = if count == 1 { 4 } else { 2 };
        places * size_of::<Self>()
    }

    fn member_cost(count: usize) -> usize {
        let places = if count == 1 { 4 } else { 2 };
        // The names are sorted once, by reference.
        places * size_of::<(String, Self)>() + size_of::<&str>()
    }

    fn array(items: Vec<Self>) -> Self {
        Self::Array(items)
    }

    fn insert(members: &mut Self::Members, name: String, value: Self, _: Doubt) -> Result<()> {
        members.push((name, value));
        Ok(())
    }

    fn object(members: Self::Members, _: Doubt) -> Result<Self> {
        // Sorted, because comparing each name with all others would take quadratic time.
        let mut names: Vec<&str> = members.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(given_twice(pair[0])),
            None => Ok(Self::Object(members)),
        }
    }

    fn string(text: String) -> Self {
        Self::Quoted(text)
    }

    fn word(word: &str, _: Doubt) -> Result<Self> {
        Ok(Self::Word(word.to_owned()))
    }
}

/// A reader for loosely written JSON values and the text between them, from left to right.
///
/// Besides JSON, it accepts single quotes, line breaks in strings, `\'`, trailing commas, unquoted names, and unquoted
/// words. Ambiguity is an error: unclosed values, duplicate members and unknown escapes are rejected. To read a truncated
/// value, use [`repair`](crate::repair()).
///
/// ```
/// use oa_json::{LenientReader, LenientValue};
/// use serde_json::json;
///
/// let mut reader = LenientReader::new("city='New York', days=[1, 2,]");
/// assert_eq!(reader.name()?.as_deref(), Some("city"));
/// assert!(reader.take('='));
/// assert_eq!(reader.value()?, LenientValue::Quoted("New York".to_owned()));
/// assert!(reader.take(',') && reader.name()?.is_some() && reader.take('='));
/// assert_eq!(reader.value()?.into_value()?, json!([1, 2]));
/// reader.end()?;
/// # Ok::<(), oa_json::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct LenientReader<'a>(Syntax<'a>);

impl<'a> LenientReader<'a> {
    /// Creates a reader whose words consist of letters, digits, `+`, `-`, `.` and `_`.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self::with_limits(text, Limits::default())
    }

    /// Creates a reader with other limits.
    #[must_use]
    pub fn with_limits(text: &'a str, limits: Limits) -> Self {
        Self(Syntax::new(text, Doubt::Refuse, limits))
    }

    /// Sets the characters that unquoted words may contain. White space around a word is dropped.
    ///
    /// ```
    /// use oa_json::{LenientReader, LenientValue};
    ///
    /// let mut reader = LenientReader::new("New York, USA").words(|c| c.is_alphabetic() || c == ' ');
    /// assert_eq!(reader.value()?, LenientValue::Word("New York".to_owned()));
    /// # Ok::<(), oa_json::Error>(())
    /// ```
    #[must_use]
    pub fn words(mut self, is_of_word: fn(char) -> bool) -> Self {
        self.0.set_bare(is_of_word);
        self
    }

    /// Skips white space and returns the rest of the text.
    pub fn rest(&mut self) -> &'a str {
        self.0.rest()
    }

    /// Reads a character if it comes next, after white space. Returns true if it did.
    pub fn take(&mut self, wanted: char) -> bool {
        self.0.take(wanted)
    }

    /// Reads a name if one comes next: letters, digits, `_`, `-`, `$` and `.`, or a quoted string.
    ///
    /// # Errors
    ///
    /// As [`value`](Self::value), for a quoted string.
    pub fn name(&mut self) -> Result<Option<String>> {
        self.0.name()
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// [`Unfinished`](crate::ErrorKind::Unfinished) if the text ends too early,
    /// [`Duplicate`](crate::ErrorKind::Duplicate) for a repeated name, [`TooDeep`](crate::ErrorKind::TooDeep) and
    /// [`TooLarge`](crate::ErrorKind::TooLarge) if a limit is exceeded, and [`Syntax`](crate::ErrorKind::Syntax) for
    /// everything else. After an error, the position in the text is unspecified.
    pub fn value(&mut self) -> Result<LenientValue> {
        self.0.value()
    }

    /// Checks that only white space is left.
    ///
    /// # Errors
    ///
    /// [`Ambiguous`](crate::ErrorKind::Ambiguous) if anything else is.
    pub fn end(&mut self) -> Result<()> {
        self.0.end()
    }
}

/// Reads one value as [`LenientReader`] does, with the words of JSON and Python.
///
/// ```
/// use oa_json::{Limits, read_lenient};
/// use serde_json::json;
///
/// let read = |text| read_lenient(text, Limits::default());
/// assert_eq!(read("{'a': True, b: [1, None,]}")?, json!({"a": true, "b": [1, null]}));
/// assert!(read("{'a': [1, 2").is_err());
/// # Ok::<(), oa_json::Error>(())
/// ```
///
/// # Errors
///
/// As [`LenientReader::value`] and [`LenientReader::end`], and [`Syntax`](crate::ErrorKind::Syntax) for an unquoted word
/// that [`literal`](crate::literal()) does not know.
pub fn read_lenient(text: &str, limits: Limits) -> Result<Value> {
    let mut syntax = Syntax::new(text, Doubt::Refuse, limits);
    let value = syntax.value()?;
    syntax.end()?;
    Ok(value)
}
