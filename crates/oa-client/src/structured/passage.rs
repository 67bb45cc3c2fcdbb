//! The one JSON object in the text of an answer.

use serde_json::Value;

use super::partial::PartialJson;

/// Finds a JSON object in text as it arrives.
///
/// Models put words and code fences around what they were asked for. What stands before the first `{`
/// and behind the object is passed over, as long as no other `{` stands there: then it is not plain
/// which object is meant, and there is none. A text that begins with `<think>` begins for good behind
/// `</think>`. Nothing inside the object is mended.
#[derive(Debug, Default)]
pub(crate) struct Passage {
    place: Place,
    /// What may be half a mark.
    held: String,
    json: PartialJson,
    is_ambiguous: bool,
}

#[derive(Debug, Default)]
enum Place {
    /// Nothing but white space so far.
    #[default]
    Start,
    Thinking,
    Before,
    Inside,
    Behind,
}

const OPENS: &str = "<think>";
const CLOSES: &str = "</think>";

impl Passage {
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            rest = match self.place {
                Place::Start => self.start(rest),
                Place::Thinking => self.think(rest),
                Place::Before => match rest.find('{') {
                    Some(at) => {
                        self.place = Place::Inside;
                        &rest[at..]
                    }
                    None => "",
                },
                Place::Inside => {
                    let behind = self.json.push(rest);
                    if self.json.is_complete() {
                        self.place = Place::Behind;
                    }
                    behind
                }
                Place::Behind => {
                    self.is_ambiguous |= rest.contains('{');
                    ""
                }
            };
        }
    }

    /// What was found so far.
    pub(crate) fn json(&self) -> &PartialJson {
        &self.json
    }

    /// Ends the text: the object, or why there is none, in words for the model.
    pub(crate) fn finish(self) -> Result<Value, String> {
        if self.is_ambiguous {
            return Err("there is another `{` behind the JSON object".to_owned());
        }
        match self.place {
            Place::Inside | Place::Behind => {
                self.json.finish().map_err(|error| format!("this is not JSON: {error}"))
            }
            Place::Start | Place::Thinking | Place::Before => {
                Err("there is no JSON object in the answer".to_owned())
            }
        }
    }

    /// Finds out whether the text begins with thinking.
    fn start<'a>(&mut self, rest: &'a str) -> &'a str {
        let rest = if self.held.is_empty() { rest.trim_start() } else { rest };
        let missing = &OPENS[self.held.len()..];
        let same = missing.bytes().zip(rest.bytes()).take_while(|(one, other)| one == other);
        let same = same.count();
        if same == missing.len() {
            self.held.clear();
            self.place = Place::Thinking;
        } else if same == rest.len() {
            self.held.push_str(rest);
        } else {
            // What was held back has no brace in it.
            self.held.clear();
            self.place = Place::Before;
            return rest;
        }
        &rest[same..]
    }

    /// Passes over thinking up to the mark that closes it.
    fn think<'a>(&mut self, rest: &'a str) -> &'a str {
        for (at, next) in rest.char_indices() {
            // No proper beginning of the mark ends with another but its first letter.
            if CLOSES[self.held.len()..].starts_with(next) {
                self.held.push(next);
            } else {
                self.held.clear();
                if next == '<' {
                    self.held.push(next);
                }
            }
            if self.held == CLOSES {
                self.held.clear();
                self.place = Place::Before;
                return &rest[at + next.len_utf8()..];
            }
        }
        ""
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn found(text: &str) -> Result<Value, String> {
        let mut passage = Passage::default();
        passage.push(text);
        passage.finish()
    }

    #[test]
    fn what_stands_around_the_one_object_is_passed_over() {
        let object = json!({"a": {"b": "}{"}});
        for text in [
            r#"{"a":{"b":"}{"}}"#,
            "\n ```json\n{\"a\": {\"b\": \"}{\"}}\n```\n",
            "Here you are: {\"a\": {\"b\": \"}{\"}} Anything else?",
            "<think>Is it {\"a\": 1}? < No. <</think>\n{\"a\": {\"b\": \"}{\"}}",
            "<thin {\"a\": {\"b\": \"}{\"}}",
        ] {
            assert_eq!(found(text), Ok(object.clone()), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_nothing_and_says_why() {
        for (text, why) in [
            ("", "there is no JSON object in the answer"),
            ("I cannot know that.", "there is no JSON object in the answer"),
            ("<think>{\"a\": 1}", "there is no JSON object in the answer"),
            ("{\"a\": 1} or {\"a\": 2}", "there is another `{` behind the JSON object"),
            ("{\"a\": 1}}, {", "there is another `{` behind the JSON object"),
            ("{\"a\": [1, {\"b\": x}]}", "this is not JSON: `a[1].b`: `x` is no value"),
            ("{\"a\": \"cut o", "this is not JSON: `a`: the text ends before the value"),
            (
                "Use {name} like this: {\"a\": 1}",
                "this is not JSON: expected a name in quotes, found `n`",
            ),
            ("{\"a\": 1, \"a\": 2}", "this is not JSON: `a` is given twice"),
        ] {
            assert_eq!(found(text), Err(why.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn cuts_change_nothing(text in "(<think>|</think>|[{}<>/\"a: ]|\n){0,12}", cuts in any::<u64>()) {
            let mut passage = Passage::default();
            let mut piece = String::new();
            for (place, next) in text.chars().enumerate() {
                piece.push(next);
                if cuts >> (place % 64) & 1 == 1 {
                    passage.push(&piece);
                    piece.clear();
                }
            }
            passage.push(&piece);
            prop_assert_eq!(passage.finish(), found(&text));
        }
    }
}
