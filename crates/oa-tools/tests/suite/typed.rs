//! Tools with typed arguments.

use std::collections::BTreeMap;
use std::sync::Mutex;

use insta::assert_snapshot;
use oa_tools::{ErrorKind, Tool, ToolContext, tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::wait;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Trip {
    /// Where to.
    city: String,
    #[serde(default = "one")]
    days: u8,
    unit: Option<Unit>,
    #[serde(default)]
    stops: Vec<Stop>,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
struct Stop {
    name: String,
}

fn one() -> u8 {
    1
}

/// A type whose schema allows more than it reads, as those of dates do.
#[derive(JsonSchema, Serialize)]
#[schemars(transparent)]
struct Date(String);

impl<'de> Deserialize<'de> for Date {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.len() {
            10 => Ok(Self(text)),
            _ => Err(serde::de::Error::custom(format_args!("{text:?} is not a date"))),
        }
    }
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Booking {
    from: Date,
    until: Option<Date>,
    #[serde(default)]
    nights: Vec<Night>,
    #[serde(default)]
    prices: BTreeMap<String, Date>,
    #[serde(default)]
    floors: BTreeMap<u8, Date>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
enum Night {
    Free,
    At(Date),
    Between { first: Date, last: (Date, Date) },
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(transparent)]
struct Wrapped(Booking);

#[test]
fn the_words_of_a_type_come_with_their_place() {
    let book = tool("book", "Books").typed(|wrapped: Wrapped| async move { Ok(wrapped) });
    let run = |input| match wait(book.execute(input)) {
        Ok(told) => told.to_string(),
        Err(error) => error.to_string().replace("invalid arguments for the tool book: ", ""),
    };
    let day = "2026-11-28";
    let rest = json!({ "first": day, "last": [day, "1"] });
    assert_eq!(run(json!({ "from": "soon" })), r#"`from`: "soon" is not a date"#);
    assert_eq!(run(json!({ "from": day, "until": "x" })), r#"`until`: "x" is not a date"#);
    for (nights, place) in [
        (json!([{ "At": "1" }]), "nights[0].At"),
        (json!(["Free", { "Between": rest }]), "nights[1].Between.last[1]"),
    ] {
        let said = run(json!({ "from": day, "nights": nights }));
        assert_eq!(said, format!("`{place}`: \"1\" is not a date"));
    }
    let prices = json!({ "from": day, "prices": { "a b": "1" } });
    assert_eq!(run(prices), r#"`prices.a b`: "1" is not a date"#);
    // A key that is a number cannot be followed, so only the words are left.
    let floors = json!({ "from": day, "floors": { "3": "1" } });
    assert_eq!(run(floors), r#""1" is not a date"#);

    let fits = json!({ "from": day, "nights": ["Free", { "At": day }], "floors": { "3": day } });
    assert!(run(fits).contains(&json!({ "floors": { "3": day } }).to_string()[1..]));
}

#[test]
fn the_type_gives_schema_and_arguments() {
    let trip = tool("trip", "Plans a trip").typed(|trip: Trip| async move { Ok(trip) });
    trip.check().unwrap();
    assert_snapshot!(trip.input_schema(), @r#"{"type":"object","properties":{"city":{"type":"string","description":"Where to."},"days":{"type":"integer","format":"uint8","minimum":0,"maximum":255,"default":1},"unit":{"type":["string","null"],"enum":["celsius","kelvin",null]},"stops":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]},"default":[]}},"required":["city"]}"#);
    let run = |input| wait(trip.execute(input));
    assert_eq!(
        run(json!({ "city": "Oslo", "stops": [{ "name": "a" }] })).unwrap(),
        json!({ "city": "Oslo", "days": 1, "unit": null, "stops": [{ "name": "a" }] })
    );
    assert_eq!(
        run(json!({ "city": "Oslo", "days": 2.0, "unit": "kelvin" })).unwrap(),
        json!({ "city": "Oslo", "days": 2, "unit": "kelvin", "stops": [] })
    );
    let refused = |input| trip.prepare(input).unwrap_err().to_string();
    assert_snapshot!(refused(json!({ "stops": [{}] })), @"`city`: required, but missing; expected string; `stops[0].name`: required, but missing; expected string");
    assert_snapshot!(refused(json!({ "city": "a", "unit": "f" })), @r#"`unit`: expected one of "celsius", "kelvin", null, found string "f""#);
    assert_snapshot!(refused(json!({ "city": "a", "days": 300 })), @"`days`: expected at most 255, found 300");
    assert_eq!(
        run(json!({ "city": "a", "days": -1 })).unwrap_err().kind(),
        ErrorKind::InvalidInput
    );
}

#[derive(Deserialize, JsonSchema)]
struct Tree {
    #[serde(default)]
    children: Vec<Self>,
}

#[test]
fn recursive_types_are_supported() {
    fn size(tree: &Tree) -> usize {
        1 + tree.children.iter().map(size).sum::<usize>()
    }
    let count = tool("count", "").typed_with_context(|tree: Tree, cx| async move {
        cx.emit_status("counting");
        Ok(size(&tree))
    });
    count.check().unwrap();
    let input = json!({ "children": [{}, { "children": [{}] }] });
    assert_eq!(wait(count.execute(input)).unwrap(), json!(4));
    assert!(count.prepare(json!({ "children": [{ "children": [3] }] })).is_err());
}

/// References of schemars are percent-encoded, as in `#/$defs/L%C3%B6we`.
#[derive(Deserialize, JsonSchema)]
struct Löwe {
    #[serde(default = "one")]
    age: u8,
    name: Option<String>,
    #[serde(default)]
    cubs: Vec<Self>,
}

#[derive(Deserialize, JsonSchema)]
struct Pride {
    oldest: Löwe,
}

#[test]
fn encoded_references_are_followed() {
    let count = tool("count", "").typed(|Pride { oldest }: Pride| async move {
        let named = oldest.cubs.iter().filter(|cub| cub.name.is_some()).count();
        Ok((oldest.age, named))
    });
    let schema = count.input_schema().to_string();
    assert!(schema.contains("L%C3%B6we"), "{schema}");
    let prepared = count.prepare(json!({ "oldest": { "age": 9.0, "cubs": [{ "name": "Leo" }] } }));
    let cub = json!({ "name": "Leo", "age": 1 });
    assert_eq!(prepared, Ok(json!({ "oldest": { "age": 9, "cubs": [cub] } })));
    let error = count.prepare(json!({ "oldest": { "cubs": [{ "age": "x" }] } })).unwrap_err();
    assert_eq!(error.to_string(), r#"`oldest.cubs[0].age`: expected integer, found string "x""#);
}

#[test]
fn blocking_handlers_are_typed_too() {
    let count = tool("count", "").typed_blocking(|tree: Tree| Ok(tree.children.len()));
    let named = tool("name", "").typed_blocking_with_context(|tree: Tree, cx| {
        Ok((cx.tool_name().to_owned(), tree.children.len()))
    });
    let input = || json!({ "children": [{}] });
    assert_eq!(wait(count.execute(input())).unwrap(), json!(1));
    assert_eq!(wait(named.execute(input())).unwrap(), json!(["name", 1]));
    assert_eq!(count.input_schema(), named.input_schema());
    assert!(count.prepare(json!({ "children": [3] })).is_err());

    // As an executor runs them, which has prepared the arguments before.
    let handler = named.blocking().unwrap();
    let run = |input| handler.run(input, ToolContext::new("c", "other"));
    assert_eq!(run(input()).unwrap(), json!(["other", 1]));
    assert_eq!(run(json!(3)).unwrap_err().message(), "invalid arguments");
}

#[test]
fn typed_and_param_exclude_each_other() {
    let both = tool("t", "").param("a", "string").typed(|_: Tree| async { Ok(json!(null)) });
    assert_eq!(both.check().unwrap_err().kind(), ErrorKind::Config);
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Deletion {
    #[serde(alias = "file")]
    path: Option<String>,
    #[serde(default)]
    #[schemars(skip)]
    is_forced: bool,
    #[serde(default)]
    also: Vec<Target>,
    #[serde(flatten)]
    limits: Option<DeletionLimits>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct DeletionLimits {
    #[serde(alias = "levels")]
    depth: Option<u8>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
#[serde(tag = "kind")]
enum Target {
    Link {
        #[serde(alias = "to")]
        target: Option<String>,
    },
    Mail {
        to: String,
    },
    Any(BTreeMap<String, u8>),
}

/// A rule about `path` must not miss it because the model has called it `file`.
#[test]
fn only_what_the_schema_names_is_read() {
    let delete = tool("delete", "").typed(|args: Deletion| async move { Ok(args) });
    let also = json!([{"kind": "Link", "to": "/etc"}, {"kind": "Mail", "to": "a"}]);
    let prepared = delete.prepare(json!({
        "file": "/etc/passwd", "is_forced": true, "levels": 9, "why": "because", "also": also,
    }));
    let also = json!([{"kind": "Link"}, {"kind": "Mail", "to": "a"}]);
    assert_eq!(prepared, Ok(json!({ "also": also })));
    let run = wait(delete.execute(json!({ "file": "a", "is_forced": true, "levels": 9 }))).unwrap();
    assert_eq!((&run["path"], &run["is_forced"]), (&json!(null), &json!(false)));
    assert_eq!(run.get("depth").cloned().unwrap_or_default(), json!(null));

    let named = json!({ "path": "a", "depth": 1, "also": [{ "kind": "Any", "x": 1 }] });
    assert_eq!(delete.prepare(named.clone()), Ok(named));
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Labels {
    #[serde(flatten)]
    labels: BTreeMap<String, Value>,
}

#[derive(Deserialize, JsonSchema, Serialize)]
struct Opening {
    any: Value,
    map: BTreeMap<String, Stop>,
    optional: Option<Labels>,
    pair: (Labels, Stop),
}

/// llama.cpp refuses a request with a tool that has booleans as schemas, or references to `#` (QUIRKS row 138).
#[test]
fn schemas_of_types_compile_to_grammars() {
    let schema = oa_tools::schema_of::<Opening>();
    assert_eq!(schema["properties"]["any"], json!({}));
    let schema = oa_tools::schema_of::<Tree>();
    let items = json!({ "$ref": "#/$defs/Tree" });
    assert_eq!(schema["properties"]["children"]["items"], items);
    assert_eq!(schema["$defs"]["Tree"]["properties"]["children"]["items"], items);
    assert_eq!(oa_tools::schema_of::<Value>(), json!({}));
    assert_eq!(oa_tools::schema_of::<BTreeMap<String, Value>>()["additionalProperties"], true);
    let count = tool("count", "").typed(|tree: Tree| async move { Ok(tree.children.len()) });
    let deep = json!({ "children": [{ "children": [{}] }, {}] });
    assert_eq!(wait(count.execute(deep)).unwrap(), json!(2));
    let wrong = json!({ "children": [{ "children": [5] }] });
    assert!(count.prepare(wrong).is_err());
}

#[test]
fn values_of_any_name_are_kept() {
    let open = tool("open", "").typed(|_: Opening| async { Ok(json!(null)) });
    let input = json!({
        "any": { "x": { "y": 1 } },
        "map": { "a": { "name": "b" } },
        "optional": { "x": { "y": 1 } },
        "pair": [{ "x": { "y": 1 } }, { "name": "b" }],
    });
    assert_eq!(open.prepare(input.clone()), Ok(input.clone()));
    let mut more = input.clone();
    more["map"]["a"]["x"] = json!(1);
    more["pair"][1]["x"] = json!(1);
    assert_eq!(open.prepare(more), Ok(input));
    let labels = tool("labels", "").typed(|_: Labels| async { Ok(json!(null)) });
    assert_eq!(labels.prepare(json!({ "x": [{ "y": 1 }] })), Ok(json!({ "x": [{ "y": 1 }] })));
}

/// The keys of a JSON object are strings.
#[test]
fn a_result_without_json_is_an_error() {
    let map = || BTreeMap::from([(vec![1], "a")]);
    let later = tool("map", "").typed(move |_: Tree| async move { Ok(map()) });
    let blocking = tool("map", "").typed_blocking(move |_: Tree| Ok(map()));
    let errors =
        [later, blocking].map(|tool| wait(tool.execute(json!({}))).unwrap_err().to_string());
    assert_snapshot!(errors[0], @"the result cannot be written as JSON: key must be a string");
    assert_eq!(errors[0], errors[1]);
}

#[test]
fn json_results_are_not_copied() {
    let text = "a".repeat(100);
    let address = text.as_ptr() as usize;
    let result = Mutex::new(Some(Value::String(text)));
    let whole =
        tool("whole", "").typed_blocking(move |_: Tree| Ok(result.lock().unwrap().take().unwrap()));
    let returned = wait(whole.execute(json!({}))).unwrap();
    assert_eq!(returned.as_str().unwrap().as_ptr() as usize, address);
}
