mod path;

use serde_json::{Map, Value};

use self::path::{Path, Step};
use crate::error::{Error, ErrorKind, Result};
use crate::escape::{Escape, EscapeError, lone_surrogate, unescaped, unknown_escape};
use crate::excerpt::quoted;
use crate::limits::{Limits, MAX_DEPTH};

/// Reads JSON text while it arrives, and provides the value so far at any time.
///
/// Feed it text with [`push`](Self::push), read [`value`](Self::value) at any time, and end with
/// [`finish`](Self::finish). A value only grows: strings get longer, arrays and objects get more items and members at
/// their end, and complete parts never change. Numbers, `true`, `false` and `null` appear once they are complete, a
/// member once its value starts. The result does not depend on how the text is split. Time is linear in the text.
///
/// It accepts the same texts as serde_json and gives the same values, with three exceptions that keep values growing and
/// time linear: it rejects duplicate members, more than [`MAX_DEPTH`] levels, and whatever exceeds its [`Limits`].
///
/// ```
/// use oa_json::PartialReader;
/// use serde_json::json;
///
/// let mut reader = PartialReader::new();
/// assert_eq!(reader.push(r#"{"title": "Rai"#), "");
/// assert_eq!(reader.value(), Some(&json!({"title": "Rai"})));
/// assert_eq!(reader.push(r#"n", "days": [1, 2"#), "");
/// assert_eq!(reader.value(), Some(&json!({"title": "Rain", "days": [1]})));
/// assert_eq!(reader.push("]} and so on"), " and so on");
/// assert_eq!(reader.finish()?, json!({"title": "Rain", "days": [1, 2]}));
/// # Ok::<(), oa_json::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PartialReader {
    root: Option<Value>,
    /// The arrays and objects that are open.
    path: Path,
    state: State,
    limits: Limits,
    /// An upper bound on the memory of the value, in bytes.
    held: usize,
    revision: u64,
}

#[derive(Clone, Debug, Default)]
enum State {
    /// A value is next.
    #[default]
    Value,
    /// A value is next, or the end of an array that is empty.
    FirstItem,
    /// A name is next.
    Name,
    /// A name is next, or the end of an object that is empty.
    FirstName,
    Colon,
    /// A comma is next, or the end of the open array or object.
    Between,
    /// Inside a string, with the escape that has begun.
    String {
        role: Role,
        escape: String,
    },
    /// A number, or a word such as `true`.
    Word(String),
    Complete,
    Failed(Error),
}

/// The role of a string: a member's name or a value.
#[derive(Clone, Debug)]
enum Role {
    Name(String),
    Value,
}

impl PartialReader {
    /// Creates a reader of one value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reader with other limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Reads more text. Returns the text after the value once the value is complete, and an empty text until then. Text
    /// after an error is ignored.
    pub fn push<'a>(&mut self, text: &'a str) -> &'a str {
        let mut rest = text;
        loop {
            if matches!(self.state, State::Complete) {
                return rest;
            }
            if rest.is_empty() || matches!(self.state, State::Failed(_)) {
                return "";
            }
            match self.step(rest) {
                Ok(next) => rest = next,
                Err(error) => self.state = State::Failed(error.at(self.path.to_string())),
            }
        }
    }

    /// Returns the value so far; `None` until it starts.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// Returns true if the value is complete. A number at the end of the text is incomplete until
    /// [`finish`](Self::finish), because more digits may follow.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Returns the error that stopped the reader, if there was one.
    #[must_use]
    pub fn error(&self) -> Option<&Error> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Returns a number that changes whenever the value does.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Ends the text and returns the value.
    ///
    /// # Errors
    ///
    /// [`Missing`](ErrorKind::Missing) if there is no value, [`Unfinished`](ErrorKind::Unfinished) if it is incomplete,
    /// and otherwise the error that stopped the reader.
    pub fn finish(mut self) -> Result<Value> {
        if matches!(self.state, State::Word(_)) && self.path.depth() == 0 {
            // Completes it as if something followed it.
            self.push(" ");
        }
        // Inside an array or object, a number at the end is left alone: the value is incomplete anyway.
        match (self.state, self.root) {
            (State::Failed(error), _) => Err(error),
            (State::Complete, Some(value)) => Ok(value),
            (_, None) => {
                Err(Error::new(ErrorKind::Missing, "expected a JSON value, found nothing"))
            }
            (..) => {
                let message = "the text ends before the value is complete";
                Err(Error::new(ErrorKind::Unfinished, message).at(self.path.to_string()))
            }
        }
    }

    /// Reads one token, or as much of a string as there is; returns what follows.
    fn step<'a>(&mut self, rest: &'a str) -> Result<&'a str> {
        match &mut self.state {
            State::String { .. } => return self.string(rest),
            State::Word(_) => return self.word(rest),
            _ => {}
        }
        let rest = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        let Some(next) = rest.chars().next() else { return Ok("") };
        let behind = &rest[next.len_utf8()..];
        match (&self.state, next) {
            (State::FirstItem, ']') | (State::FirstName, '}') => self.close(),
            (State::Value | State::FirstItem, _) => return self.begin(next, rest, behind),
            (State::Name | State::FirstName, '"') => {
                let (role, escape) = (Role::Name(String::new()), String::new());
                self.state = State::String { role, escape };
            }
            (State::Name | State::FirstName, _) => return Err(expected("a name in quotes", next)),
            (State::Colon, ':') => self.state = State::Value,
            (State::Colon, _) => return Err(expected("`:`", next)),
            (State::Between, _) => self.between(next)?,
            (State::String { .. } | State::Word(_) | State::Complete | State::Failed(_), _) => {}
        }
        Ok(behind)
    }

    /// Begins a value.
    fn begin<'a>(&mut self, next: char, rest: &'a str, behind: &'a str) -> Result<&'a str> {
        match next {
            '"' => {
                self.hold(SMALLEST_STRING)?;
                self.put(Value::String(String::new()))?;
                self.state = State::String { role: Role::Value, escape: String::new() };
            }
            '{' | '[' => {
                if self.path.depth() == MAX_DEPTH {
                    return Err(Error::too_deep());
                }
                if next == '{' {
                    self.put(Value::Object(Map::new()))?;
                    self.path.open(Step::Member { name: String::new(), count: 0 });
                    self.state = State::FirstName;
                } else {
                    self.put(Value::Array(Vec::new()))?;
                    self.path.open(Step::Item(0));
                    self.state = State::FirstItem;
                }
            }
            _ if is_of_word(next) => {
                self.state = State::Word(String::new());
                return Ok(rest);
            }
            _ => return Err(expected("a value", next)),
        }
        Ok(behind)
    }

    /// After a value: more of the array or object, or its end.
    fn between(&mut self, next: char) -> Result<()> {
        match (self.path.last(), next) {
            (Some(Step::Item(_)), ',') => self.state = State::Value,
            (Some(Step::Member { .. }), ',') => self.state = State::Name,
            (Some(Step::Item(_)), ']') | (Some(Step::Member { .. }), '}') => {
                self.close();
                return Ok(());
            }
            (Some(Step::Item(_)), _) => return Err(expected("`,` or `]`", next)),
            (_, _) => return Err(expected("`,` or `}`", next)),
        }
        self.path.next();
        Ok(())
    }

    /// Ends the innermost array or object.
    fn close(&mut self) {
        self.path.close();
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.state = if self.path.depth() == 0 { State::Complete } else { State::Between };
    }

    /// Reads as much of a string as there is.
    fn string<'a>(&mut self, rest: &'a str) -> Result<&'a str> {
        let State::String { role, escape } = &mut self.state else { return Ok(rest) };
        // One piece per call: an escape, plain text, or the closing quote.
        if !escape.is_empty() || rest.starts_with('\\') {
            return self.escape(rest);
        }
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let end = rest.bytes().position(|byte| is_special(&byte)).unwrap_or(rest.len());
        if end > 0 {
            self.extend(&rest[..end])?;
            return Ok(&rest[end..]);
        }
        if !rest.starts_with('"') {
            return Err(unescaped(rest));
        }
        match role {
            Role::Name(name) => {
                let name = std::mem::take(name);
                self.name(name)?;
            }
            Role::Value => self.value_ended(),
        }
        Ok(&rest[1..])
    }

    /// Reads as much of an escape as has arrived. An incomplete one is kept, 11 bytes at most.
    fn escape<'a>(&mut self, rest: &'a str) -> Result<&'a str> {
        let State::String { escape, .. } = &mut self.state else { return Ok(rest) };
        // `\ud83d` and `\ude42` in two pieces: `escape` keeps the first and gets what it lacks.
        let begun = escape.len();
        let read = if begun == 0 {
            Escape::read(rest)
        } else {
            // No more than is missing, so that a long text is not copied.
            escape.extend(rest.chars().take(12 - begun));
            Escape::read(escape)
        };
        let text = if begun == 0 { rest } else { escape.as_str() };
        match read {
            Ok(Escape { character: Some(character), length }) => {
                escape.clear();
                // No underflow: the `begun` bytes alone were incomplete, so a whole escape is longer. A lone
                // surrogate may be shorter, but is an error.
                self.extend(character.encode_utf8(&mut [0; 4]))?;
                Ok(&rest[length - begun..])
            }
            Ok(_) => Err(lone_surrogate(text)),
            Err(EscapeError::Unknown) => Err(unknown_escape(text)),
            Err(EscapeError::Incomplete) => {
                // All of `rest` is kept: an escape of 12 bytes would be complete, so nothing was left over.
                if begun == 0 {
                    escape.push_str(rest);
                }
                Ok("")
            }
        }
    }

    /// Appends to the string that is being read.
    fn extend(&mut self, text: &str) -> Result<()> {
        match &mut self.state {
            State::String { role: Role::Name(name), .. } => {
                // Checked before its end: an unfinished name could be as long as the text.
                let bytes = self.path.bytes() + name.len() + text.len();
                if bytes > self.limits.path_bytes {
                    let most = self.limits.path_bytes;
                    let message = format!("the path to this value is longer than {most} bytes");
                    return Err(Error::new(ErrorKind::TooLarge, message));
                }
                name.push_str(text);
            }
            State::String { role: Role::Value, .. } => {
                // A string may have twice the room that it needs.
                self.hold(2 * text.len())?;
                if let Some(Value::String(string)) = self.path.find(self.root.as_mut()) {
                    string.push_str(text);
                    self.revision += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the name of a member.
    fn name(&mut self, name: String) -> Result<()> {
        if let Some(Value::Object(members)) = self.path.find_open(self.root.as_mut())
            && members.contains_key(&name)
        {
            let message = format!("{} appears twice", quoted(&name));
            return Err(Error::new(ErrorKind::Duplicate, message));
        }
        self.path.enter(name);
        self.state = State::Colon;
        Ok(())
    }

    /// Reads as much of a number or word as there is.
    fn word<'a>(&mut self, rest: &'a str) -> Result<&'a str> {
        let end = rest.find(|next: char| !is_of_word(next)).unwrap_or(rest.len());
        self.hold(2 * end)?;
        let State::Word(word) = &mut self.state else { return Ok(rest) };
        word.push_str(&rest[..end]);
        // At the end of a piece, more digits may follow.
        if end == rest.len() {
            return Ok("");
        }
        let word = std::mem::take(word);
        let value: Value = word
            .parse()
            .map_err(|_| Error::syntax(format!("{} is not a JSON value", quoted(&word))))?;
        // A number holds no memory beyond itself. All of `word` was charged, piece by piece.
        self.held -= 2 * word.len();
        self.put(value)?;
        self.value_ended();
        Ok(&rest[end..])
    }

    /// Puts a value in the place that is being read.
    fn put(&mut self, value: Value) -> Result<()> {
        // Before the value is put there, because that may double a list.
        let bytes = self.path.cost();
        self.hold(bytes)?;
        self.revision += 1;
        if self.path.depth() == 0 {
            self.root = Some(value);
        } else {
            self.path.insert(self.root.as_mut(), value);
        }
        Ok(())
    }

    /// Counts memory before it is taken. The sum depends on the text alone and not on its cuts, so that a text
    /// which does not fit is refused however it arrives.
    fn hold(&mut self, bytes: usize) -> Result<()> {
        let most = self.limits.held_bytes;
        if bytes > most.saturating_sub(self.held) {
            return Err(Error::too_large(most));
        }
        self.held += bytes;
        Ok(())
    }
}

/// A string that grows begins with this room, in bytes.
const SMALLEST_STRING: usize = 8;

fn is_of_word(next: char) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.')
}

fn expected(what: &str, found: char) -> Error {
    Error::syntax(format!("expected {what}, found `{}`", found.escape_debug()))
}
