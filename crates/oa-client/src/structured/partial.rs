mod error;
mod escape;

use serde_json::{Map, Value};

pub use self::error::PartialJsonError;
use self::escape::{is_whole, more_of_escape};

/// How many arrays and objects may be open at once: as many as serde_json takes.
const DEPTH: usize = 127;
/// How long the names on the way to the place that is being read may be together, in bytes. Each token
/// looks them up.
const NAMES: usize = 4096;

/// JSON text read as it arrives: at any moment there is the value that has come so far.
///
/// A value only ever grows: texts become longer, lists and objects get more behind what they have, and
/// what is complete never changes. Numbers, `true`, `false` and `null` appear once they are complete, a
/// member once its value begins. Each byte is looked at once, however the text is cut.
///
/// What serde_json takes is taken, and is the same value, but for three things that keep a value from
/// growing or the work from being linear: a member given twice, more than 127 levels, and names on
/// the way to one place of more than 4,096 bytes together.
///
/// ```
/// use oa_client::PartialJson;
/// use serde_json::json;
///
/// let mut read = PartialJson::new();
/// assert_eq!(read.push(r#"{"title": "Rai"#), "");
/// assert_eq!(read.value(), Some(&json!({"title": "Rai"})));
/// assert_eq!(read.push(r#"n", "days": [1, 2"#), "");
/// assert_eq!(read.value(), Some(&json!({"title": "Rain", "days": [1]})));
/// assert_eq!(read.push("]} and so on"), " and so on");
/// assert_eq!(read.finish()?, json!({"title": "Rain", "days": [1, 2]}));
/// # Ok::<(), oa_client::PartialJsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PartialJson {
    root: Option<Value>,
    /// The way to the innermost list or object that is open.
    open: Vec<Step>,
    names: usize,
    state: State,
    growth: u64,
}

/// One open list or object, and where in it something is being read.
#[derive(Clone, Debug)]
enum Step {
    Item(usize),
    Member(String),
}

#[derive(Clone, Debug, Default)]
enum State {
    /// A value is next; in a list that is empty so far it may also end.
    #[default]
    Value,
    FirstItem,
    /// A name is next; in an object that is empty so far it may also end.
    Name,
    FirstName,
    Colon,
    /// A comma is next, or the end of what is open.
    Between,
    /// Inside a text, with the escape that has begun.
    Text {
        role: Role,
        escape: String,
    },
    /// A number, or a word such as `true`.
    Word(String),
    Complete,
    Failed(PartialJsonError),
}

/// What a text is.
#[derive(Clone, Debug)]
enum Role {
    Name(String),
    Value,
}

impl PartialJson {
    /// Creates a reader of one value.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads more text. Returns what stands behind the value once that is complete; until then nothing.
    /// What follows a mistake is not read.
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
                Err(what) => {
                    let error = PartialJsonError { path: self.path(), what };
                    self.state = State::Failed(error);
                }
            }
        }
    }

    /// Returns the value so far, if it has begun.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.root.as_ref()
    }

    /// Returns whether the value is complete. A number that nothing follows is not, before
    /// [`finish`](Self::finish).
    #[must_use]
    pub fn is_complete(&self) -> bool {
        matches!(self.state, State::Complete)
    }

    /// Returns what was wrong with the text, if anything was.
    #[must_use]
    pub fn error(&self) -> Option<&PartialJsonError> {
        match &self.state {
            State::Failed(error) => Some(error),
            _ => None,
        }
    }

    /// Ends the text and returns the value.
    ///
    /// # Errors
    ///
    /// What was wrong with the text, or that it ended too early.
    pub fn finish(mut self) -> Result<Value, PartialJsonError> {
        if matches!(self.state, State::Word(_)) && self.open.is_empty() {
            // As if something followed it.
            self.push(" ");
        }
        match (self.state, self.root) {
            (State::Failed(error), _) => Err(error),
            (State::Complete, Some(value)) => Ok(value),
            (_, None) => Err(PartialJsonError::new("there is no value")),
            (..) => {
                let path = spelled(&self.open);
                Err(PartialJsonError { path, what: "the text ends before the value".to_owned() })
            }
        }
    }

    /// A number that is another one whenever the value has grown.
    pub(crate) fn growth(&self) -> u64 {
        self.growth
    }

    /// Reads one token, or the part of a text that there is; returns what follows.
    fn step<'a>(&mut self, rest: &'a str) -> Result<&'a str, String> {
        match &mut self.state {
            State::Text { .. } => return self.text(rest),
            State::Word(word) => {
                let end = rest.find(|next: char| !is_of_word(next)).unwrap_or(rest.len());
                word.push_str(&rest[..end]);
                let word = match &rest[end..] {
                    "" => return Ok(""),
                    _ => std::mem::take(word),
                };
                self.word(&word)?;
                return Ok(&rest[end..]);
            }
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
                self.state = State::Text { role, escape };
            }
            (State::Name | State::FirstName, _) => return Err(expected("a name in quotes", next)),
            (State::Colon, ':') => self.state = State::Value,
            (State::Colon, _) => return Err(expected("`:`", next)),
            (State::Between, _) => self.between(next)?,
            (State::Text { .. } | State::Word(_) | State::Complete | State::Failed(_), _) => {}
        }
        Ok(behind)
    }

    /// Begins a value.
    fn begin<'a>(&mut self, next: char, rest: &'a str, behind: &'a str) -> Result<&'a str, String> {
        match next {
            '"' => {
                self.put(Value::String(String::new()));
                self.state = State::Text { role: Role::Value, escape: String::new() };
            }
            '{' | '[' => {
                if self.open.len() == DEPTH {
                    return Err(format!("more than {DEPTH} levels"));
                }
                if next == '{' {
                    self.put(Value::Object(Map::new()));
                    self.open.push(Step::Member(String::new()));
                    self.state = State::FirstName;
                } else {
                    self.put(Value::Array(Vec::new()));
                    self.open.push(Step::Item(0));
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

    /// After a value: more of the list or object, or its end.
    fn between(&mut self, next: char) -> Result<(), String> {
        match (self.open.last_mut(), next) {
            (Some(Step::Item(place)), ',') => {
                *place += 1;
                self.state = State::Value;
            }
            (Some(Step::Member(name)), ',') => {
                self.names -= name.len();
                name.clear();
                self.state = State::Name;
            }
            (Some(Step::Item(_)), ']') | (Some(Step::Member(_)), '}') => self.close(),
            (Some(Step::Item(_)), _) => return Err(expected("`,` or `]`", next)),
            (_, _) => return Err(expected("`,` or `}`", next)),
        }
        Ok(())
    }

    /// Ends the innermost list or object.
    fn close(&mut self) {
        if let Some(Step::Member(name)) = self.open.pop() {
            self.names -= name.len();
        }
        self.value_ended();
    }

    fn value_ended(&mut self) {
        self.state = if self.open.is_empty() { State::Complete } else { State::Between };
    }

    /// Reads as much of a text as there is.
    fn text<'a>(&mut self, rest: &'a str) -> Result<&'a str, String> {
        let State::Text { role, escape } = &mut self.state else { return Ok(rest) };
        if !escape.is_empty() {
            let taken = more_of_escape(escape, rest);
            if !is_whole(escape) {
                return Ok("");
            }
            let escape = std::mem::take(escape);
            let words: String = serde_json::from_str(&format!("\"{escape}\""))
                .map_err(|_| format!("`{}` is no escape", escape.escape_debug()))?;
            self.say(&words);
            return Ok(&rest[taken..]);
        }
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let end = rest.bytes().position(|byte| is_special(&byte)).unwrap_or(rest.len());
        if end > 0 {
            self.say(&rest[..end]);
            return Ok(&rest[end..]);
        }
        match rest.as_bytes()[0] {
            b'\\' => escape.push('\\'),
            b'"' => match role {
                Role::Name(name) => {
                    let name = std::mem::take(name);
                    self.name(name)?;
                }
                Role::Value => self.value_ended(),
            },
            _ => return Err("a line break or another control character in a text".to_owned()),
        }
        Ok(&rest[1..])
    }

    /// Takes more words of the text that is being read.
    fn say(&mut self, words: &str) {
        if let State::Text { role: Role::Name(name), .. } = &mut self.state {
            name.push_str(words);
        } else if let Some(Value::String(text)) = self.place() {
            text.push_str(words);
            self.growth += 1;
        }
    }

    /// Takes the name of a member.
    fn name(&mut self, name: String) -> Result<(), String> {
        let last = self.open.pop();
        let taken =
            matches!(self.place(), Some(Value::Object(members)) if members.contains_key(&name));
        self.open.extend(last);
        if taken {
            return Err(format!("`{}` is given twice", excerpt(&name)));
        }
        self.names += name.len();
        if self.names > NAMES {
            self.names -= name.len();
            return Err(format!("names of more than {NAMES} bytes"));
        }
        if let Some(Step::Member(last)) = self.open.last_mut() {
            *last = name;
        }
        self.state = State::Colon;
        Ok(())
    }

    /// Takes a whole number or word.
    fn word(&mut self, word: &str) -> Result<(), String> {
        let value: Value = word.parse().map_err(|_| format!("`{}` is no value", excerpt(word)))?;
        self.put(value);
        self.value_ended();
        Ok(())
    }

    /// Puts a value to the place that is being read.
    fn put(&mut self, value: Value) {
        self.growth += 1;
        let Some(step) = self.open.pop() else {
            self.root = Some(value);
            return;
        };
        match (self.place(), &step) {
            (Some(Value::Array(items)), Step::Item(_)) => items.push(value),
            (Some(Value::Object(members)), Step::Member(name)) => {
                members.insert(name.clone(), value);
            }
            _ => {}
        }
        self.open.push(step);
    }

    /// The value at the end of the way.
    fn place(&mut self) -> Option<&mut Value> {
        self.open.iter().try_fold(self.root.as_mut()?, |value, step| match step {
            Step::Item(place) => value.get_mut(*place),
            Step::Member(name) => value.get_mut(&**name),
        })
    }

    fn path(&self) -> String {
        spelled(&self.open)
    }
}

fn is_of_word(next: char) -> bool {
    next.is_ascii_alphanumeric() || matches!(next, '+' | '-' | '.')
}

fn expected(what: &str, found: char) -> String {
    format!("expected {what}, found `{}`", found.escape_debug())
}

fn excerpt(words: &str) -> String {
    words.chars().take(40).flat_map(char::escape_debug).collect()
}

/// The way as `stops[2].name`.
fn spelled(way: &[Step]) -> String {
    let mut path = String::new();
    for step in way {
        match step {
            Step::Item(place) => path.push_str(&format!("[{place}]")),
            Step::Member(name) if name.is_empty() => {}
            Step::Member(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&excerpt(name));
            }
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// Reads a text cut at these places; returns all that there was to see on the way, and the end.
    fn read(text: &str, cuts: u64) -> (Vec<Value>, Result<Value, PartialJsonError>) {
        let mut json = PartialJson::new();
        let mut seen = Vec::new();
        let mut piece = String::new();
        let mut rest = String::new();
        for (place, next) in text.chars().enumerate() {
            piece.push(next);
            if cuts >> (place % 64) & 1 == 1 {
                rest.push_str(json.push(&piece));
                seen.extend(json.value().cloned());
                piece.clear();
            }
        }
        rest.push_str(json.push(&piece));
        seen.extend(json.value().cloned());
        let end = json.finish();
        match end {
            Ok(_) if !rest.trim_matches([' ', '\t', '\n', '\r']).is_empty() => {
                (seen, Err(PartialJsonError::new("something follows")))
            }
            end => (seen, end),
        }
    }

    /// Whether a value is the beginning of another.
    fn begins(part: &Value, whole: &Value) -> bool {
        match (part, whole) {
            (Value::String(part), Value::String(whole)) => whole.starts_with(&**part),
            (Value::Array(part), Value::Array(whole)) => {
                let Some((last, before)) = part.split_last() else { return true };
                whole.starts_with(before)
                    && whole.get(before.len()).is_some_and(|whole| begins(last, whole))
            }
            (Value::Object(part), Value::Object(whole)) => {
                let growing = part.iter().filter(|(name, part)| whole.get(*name) != Some(part));
                let growing: Vec<_> = growing.collect();
                growing.len() <= 1
                    && growing.iter().all(|(name, part)| {
                        whole.get(*name).is_some_and(|whole| begins(part, whole))
                    })
            }
            (part, whole) => part == whole,
        }
    }

    fn has_twice(value: &str) -> bool {
        read(value, 0).1.is_err_and(|error| error.what.contains("twice"))
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from),
            "[\\x00-\\x1f\"\\\\\u{1f600}é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                vec(inner.clone(), 0..5).prop_map(Value::from),
                btree_map("[a-c\"é\\\\]{0,2}", inner, 0..5)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// Writes every character of a text as an escape.
    fn escaped(text: &str) -> String {
        text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()
    }

    proptest! {
        #[test]
        fn a_value_only_grows_and_ends_as_it_was_meant(
            value in value(),
            cuts in any::<u64>(),
            pretty in any::<bool>(),
        ) {
            let text = match pretty {
                true => serde_json::to_string_pretty(&value).unwrap(),
                false => value.to_string(),
            };
            let (seen, end) = read(&text, cuts);
            prop_assert_eq!(end, Ok(value.clone()));
            for pair in seen.windows(2) {
                prop_assert!(begins(&pair[0], &pair[1]), "{} then {}", pair[0], pair[1]);
            }
            for part in seen {
                prop_assert!(begins(&part, &value), "{part} of {value}");
            }
        }

        #[test]
        fn it_takes_what_serde_json_takes_and_nothing_else(
            text in "([\\[\\]{},: \n]|\"a\"|\"b|\"|\\\\u[dD][89cC]0|0|e|-|1|\\.|true|null|\\\\|\t){0,14}",
            cuts in any::<u64>(),
        ) {
            prop_assume!(!has_twice(&text));
            let ours = read(&text, cuts).1.ok();
            prop_assert_eq!(ours, serde_json::from_str(&text).ok());
        }

        #[test]
        fn broken_text_is_broken_wherever_it_is_cut(
            value in value(),
            place in any::<prop::sample::Index>(),
            put in "[\\]}\"\\\\,:x ]",
            cuts in any::<u64>(),
        ) {
            let text = value.to_string();
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let at = *place.get(&places);
            let text = format!("{}{put}{}", &text[..at], &text[at..]);
            prop_assume!(!has_twice(&text));
            prop_assert_eq!(read(&text, cuts).1.ok(), serde_json::from_str(&text).ok());
        }

        #[test]
        fn escapes_of_any_character(text in "\\PC{0,6}", cuts in any::<u64>()) {
            let json = format!("[\"{}\"]", escaped(&text));
            prop_assert_eq!(read(&json, cuts).1, Ok(json!([text])));
        }
    }

    #[test]
    fn what_can_be_seen_after_each_byte() {
        let mut json = PartialJson::new();
        let mut seen: Vec<String> = Vec::new();
        for next in r#" {"a": [tru, "#.replace("tru", "true").chars().chain(r#"-1.5], "bc": "x\u00e9"}"#.chars()) {
            assert_eq!(json.push(&next.to_string()), "");
            let value = json.value().map(ToString::to_string).unwrap_or_default();
            if seen.last() != Some(&value) {
                seen.push(value);
            }
        }
        insta::assert_snapshot!(seen.join("\n"), @r#"

        {}
        {"a":[]}
        {"a":[true]}
        {"a":[true,-1.5]}
        {"a":[true,-1.5],"bc":""}
        {"a":[true,-1.5],"bc":"x"}
        {"a":[true,-1.5],"bc":"xé"}
        "#);
        assert!(json.is_complete());
    }

    #[test]
    fn as_deep_as_serde_json_goes() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for depth in [DEPTH, DEPTH + 1] {
            let text = nested(depth);
            let theirs = serde_json::from_str::<Value>(&text).ok();
            assert_eq!(read(&text, 0).1.ok(), theirs);
            assert_eq!(theirs.is_some(), depth == DEPTH);
        }
    }

    #[test]
    fn names_are_bounded_on_the_way_and_not_in_all() {
        let name = "n".repeat(NAMES);
        let fits = format!("[{{\"{name}\": 1}}, {{\"{name}\": 2}}]");
        assert!(read(&fits, 0).1.is_ok());
        let error = read(&format!("{{\"a\": {{\"{name}\": 1}}}}"), 0).1.unwrap_err();
        assert_eq!(error.to_string(), "`a`: names of more than 4096 bytes");
        assert_eq!(error.path(), "a");
    }
}
