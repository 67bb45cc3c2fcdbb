//! Return values of functions.

use std::collections::BTreeMap;
use std::num::ParseIntError;
use std::{fmt, io};

use oa_macros::tool;
use oa_tools::{FnTool, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{call, execute};

/// A `Result` that does not look like one, of two types that JSON has forms for.
type Outcome = Result<u8, String>;

#[derive(Serialize)]
struct Weather {
    degrees: i8,
}

/// Returns nothing.
#[tool]
async fn nothing() {}

/// Returns nothing, or fails.
#[tool]
async fn nothing_or_error(fail: bool) -> io::Result<()> {
    if fail { Err(io::Error::other("the disk is gone")) } else { Ok(()) }
}

/// Returns a struct.
#[tool]
async fn weather() -> Weather {
    Weather { degrees: -3 }
}

/// Returns what is not named.
#[tool]
fn unnamed() -> impl Serialize + use<> {
    [1, 2]
}

/// Returns JSON.
#[tool]
fn value() -> Result<Value, ToolError> {
    Ok(json!({ "a": [1] }))
}

/// Parses a number.
#[tool]
fn parse(text: String) -> Result<i64, ParseIntError> {
    text.parse()
}

/// Returns an error of text.
#[tool]
async fn text(fail: bool) -> Result<Option<u8>, &'static str> {
    if fail { Err("no") } else { Ok(None) }
}

/// Returns a result by another name.
#[tool]
async fn outcome(fail: bool) -> Outcome {
    if fail { Err("no".to_owned()) } else { Ok(1) }
}

/// The same on a thread.
#[tool]
fn blocking_outcome(fail: bool) -> Outcome {
    if fail { Err("no".to_owned()) } else { Ok(1) }
}

/// The same in parentheses.
#[tool]
#[allow(unused_parens)]
fn outcome_in_parentheses(fail: bool) -> (Outcome) {
    if fail { Err("no".to_owned()) } else { Ok(1) }
}

/// Returns what JSON has no form for.
#[tool]
async fn unwritable() -> BTreeMap<Vec<u8>, u8> {
    BTreeMap::from([(vec![1], 2)])
}

#[test]
fn return_values_become_json() {
    let plain = |tool: FnTool| execute(&tool, json!({})).unwrap();
    assert_eq!(plain(nothing::tool()), json!(null));
    assert_eq!(plain(weather::tool()), json!({ "degrees": -3 }));
    assert_eq!(plain(unnamed::tool()), json!([1, 2]));
    assert_eq!(plain(value::tool()), json!({ "a": [1] }));
    assert_eq!(execute(&parse::tool(), json!({ "text": "17" })).unwrap(), json!(17));
}

#[test]
fn aliased_results_are_errors_too() {
    let fail = |tool: FnTool| {
        let succeeded = execute(&tool, json!({ "fail": false })).unwrap();
        (succeeded, execute(&tool, json!({ "fail": true })).unwrap_err())
    };
    assert_eq!(fail(nothing_or_error::tool()), (json!(null), "the disk is gone".to_owned()));
    assert_eq!(fail(text::tool()), (json!(null), "no".to_owned()));
    assert_eq!(fail(outcome::tool()), (json!(1), "no".to_owned()));
    assert_eq!(fail(blocking_outcome::tool()), (json!(1), "no".to_owned()));
    assert_eq!(fail(outcome_in_parentheses::tool()), (json!(1), "no".to_owned()));
    let error = execute(&parse::tool(), json!({ "text": "x" })).unwrap_err();
    assert_eq!(error, "invalid digit found in string");
}

#[test]
fn unserializable_results_are_errors() {
    let error = execute(&unwritable::tool(), json!({})).unwrap_err();
    assert_eq!(error, "the result cannot be written as JSON: key must be a string");
}

#[derive(Debug)]
struct Layered;

impl fmt::Display for Layered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("outer")
    }
}

impl std::error::Error for Layered {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&fmt::Error)
    }
}

/// Fails with a cause.
#[tool]
async fn layered() -> Result<(), Layered> {
    Err(Layered)
}

/// Fails for good.
#[tool]
async fn for_good() -> Result<(), ToolError> {
    Err(ToolError::new("gone").retryable(false))
}

#[test]
fn error_causes_and_hints_are_kept() {
    let fails = |tool: FnTool| call(&tool, json!({}), oa_tools::State::new()).unwrap_err();
    assert_eq!(fails(layered::tool()).causes(), [fmt::Error.to_string()]);
    assert_eq!(fails(for_good::tool()).retry_hint(), Some(false));
}
