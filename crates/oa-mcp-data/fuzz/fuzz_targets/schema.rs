//! A schema of a server is offered in each form or refused with a reason. Arguments that are accepted are accepted again,
//! unchanged, and the offered schema accepts them, too.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oa_mcp_data::{Schema, SchemaForm};
use oa_tools::check_arguments;
use serde_json::{Map, Value, json};

/// The input's bytes as choices, so that each input is JSON. An input that has ended chooses 0.
struct Choices<'a>(std::slice::Iter<'a, u8>);

impl Choices<'_> {
    fn of(&mut self, count: usize) -> usize {
        self.0.next().map_or(0, |byte| usize::from(*byte) % count)
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 12] =
            ["a", "b", "c", "", "A", "é", "type", "object", "string", "integer", "$ref", "default"];
        WORDS[self.of(WORDS.len())]
    }

    fn number(&mut self) -> Value {
        const NUMBERS: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 0.5, -1.0, 1e20, -0.0];
        match self.of(13) {
            at if at < NUMBERS.len() => json!(NUMBERS[at]),
            8 => json!(u64::MAX),
            9 => json!(i64::MIN),
            // A bound of draft 4.
            12 => json!(true),
            small => json!(small - 10),
        }
    }

    fn list(&mut self, mut item: impl FnMut(&mut Self) -> Value) -> Value {
        (0..self.of(4)).map(|_| item(self)).collect()
    }

    fn members(&mut self, mut item: impl FnMut(&mut Self) -> Value) -> Value {
        let members = (0..self.of(4)).map(|_| (self.word().to_owned(), item(self)));
        Value::Object(members.collect::<Map<_, _>>())
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.of(if depth == 0 { 5 } else { 7 }) {
            0 => Value::Null,
            1 => json!(true),
            2 => json!(false),
            3 => self.number(),
            4 => json!(self.word()),
            5 => self.list(|this| this.value(depth - 1)),
            _ => self.members(|this| this.value(depth - 1)),
        }
    }

    /// One of the types, or beyond `known` a word that is none.
    fn of_type(&mut self, known: usize) -> Value {
        const TYPES: [&str; 9] =
            ["object", "string", "number", "integer", "boolean", "array", "null", "any", ""];
        json!(TYPES[self.of(known)])
    }

    fn schema(&mut self, depth: usize) -> Value {
        let mut schema = Map::new();
        for _ in 0..self.of(5) {
            let (keyword, value) = match self.of(if depth == 0 { 10 } else { 18 }) {
                0 => ("type", self.of_type(9)),
                1 => ("type", self.list(|this| this.of_type(7))),
                2 => ("enum", self.list(|this| this.value(1))),
                3 => ("const", self.value(1)),
                4 => ("default", self.value(2)),
                5 => {
                    const BOUNDS: [&str; 8] = [
                        "minimum",
                        "maximum",
                        "exclusiveMinimum",
                        "exclusiveMaximum",
                        "minLength",
                        "maxLength",
                        "minItems",
                        "maxItems",
                    ];
                    (BOUNDS[self.of(BOUNDS.len())], self.number())
                }
                6 => ("required", self.list(|this| json!(this.word()))),
                7 => {
                    const TARGETS: [&str; 6] =
                        ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/$defs/", "x.json"];
                    ("$ref", json!(TARGETS[self.of(TARGETS.len())]))
                }
                8 => ("pattern", json!(["^a+$", "[", "\\d", "(?=a)"][self.of(4)])),
                // A keyword with any value at all.
                9 => (self.word(), self.value(1)),
                10 => ("properties", self.members(|this| this.schema_or_not(depth - 1))),
                11 => ("additionalProperties", self.schema_or_not(depth - 1)),
                12 => ("items", self.schema_or_not(depth - 1)),
                13 => ("prefixItems", self.list(|this| this.schema_or_not(depth - 1))),
                14 => ("not", self.schema_or_not(depth - 1)),
                at => {
                    let parts = self.list(|this| this.schema_or_not(depth - 1));
                    (["anyOf", "oneOf", "allOf"][at - 15], parts)
                }
            };
            schema.insert(keyword.to_owned(), value);
        }
        Value::Object(schema)
    }

    fn schema_or_not(&mut self, depth: usize) -> Value {
        match self.of(8) {
            0 => json!(true),
            1 => json!(false),
            2 => self.value(1),
            _ => self.schema(depth),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data.iter());
    let mut schema = choices.schema(4);
    schema["type"] = json!("object");
    schema["$defs"] = json!({ "a": choices.schema(2), "b": choices.schema(1) });
    for form in [SchemaForm::Repaired, SchemaForm::Portable, SchemaForm::Strict] {
        let Ok(read) = Schema::read(Some(&schema), form, 64 * 1024) else { continue };
        // A strict form may exist only once references are gone.
        if form != SchemaForm::Strict {
            let again = Schema::read(Some(&read.offered), form, 128 * 1024);
            let again = again.map(|again| again.offered);
            assert_eq!(again, Ok(read.offered.clone()), "{form:?} {schema}");
        }
        if form == SchemaForm::Repaired {
            for _ in 0..4 {
                let arguments = choices.members(|this| this.value(3));
                if let Ok(accepted) = check_arguments(&read.checked, arguments) {
                    let again = check_arguments(&read.checked, accepted.clone());
                    assert_eq!(again.ok().as_ref(), Some(&accepted), "{schema}");
                    let offered = check_arguments(&read.offered, accepted.clone());
                    assert!(offered.is_ok(), "{schema} as {}: {accepted}", read.offered);
                }
            }
        }
    }
});
