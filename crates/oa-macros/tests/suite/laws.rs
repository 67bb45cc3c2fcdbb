//! With the same types, the attribute and the builder make the same tool.

use oa_macros::tool;
use oa_tools::{Cancel, FnTool, State, Tool, ToolContext, ToolError, tool};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::run;

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
enum Unit {
    Celsius,
    Kelvin { exact: bool },
}

struct Factor(i64);

const DESCRIPTION: &str = "Computes something of everything.";

fn compute(
    (a, b, c): (i8, Option<f64>, Vec<Unit>),
    (d, cx, factor): (u16, &ToolContext, &Factor),
) -> Result<Value, ToolError> {
    if cx.is_cancelled() {
        return Err("canceled".into());
    }
    let sum = i64::from(a).checked_mul(factor.0).ok_or("too large")? + i64::from(d);
    Ok(json!({ "sum": sum, "b": b, "c": c }))
}

/// Computes something of everything.
#[tool(category = "read", max_parallel = 3)]
async fn by_macro(
    /// A small number.
    a: i8,
    b: Option<f64>,
    #[default] c: Vec<Unit>,
    #[default(500)] d: u16,
    cx: &ToolContext,
    #[state] factor: &Factor,
) -> Result<Value, ToolError> {
    compute((a, b, c), (d, cx, factor))
}

/// Computes something of everything.
#[tool(name = "by_macro", category = "read", max_parallel = 3)]
fn blocking(
    /// A small number.
    a: i8,
    b: Option<f64>,
    #[default] c: Vec<Unit>,
    #[default(500)] d: u16,
    cx: &ToolContext,
    #[state] factor: &Factor,
) -> Result<Value, ToolError> {
    compute((a, b, c), (d, cx, factor))
}

#[derive(Deserialize, JsonSchema)]
struct Args {
    /// A small number.
    a: i8,
    b: Option<f64>,
    #[serde(default)]
    c: Vec<Unit>,
    #[serde(default = "d")]
    d: u16,
}

fn d() -> u16 {
    500
}

fn by_builder() -> FnTool {
    tool("by_macro", DESCRIPTION).category("read").max_parallel(3).typed_with_context(
        |args: Args, cx| async move {
            let factor = cx.require_state::<Factor>()?;
            compute((args.a, args.b, args.c), (args.d, &cx, factor))
        },
    )
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-200_i64..70_000).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!("Celsius")),
        any::<bool>().prop_map(|exact| json!({ "Kelvin": { "exact": exact } })),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| prop::collection::vec(inner, 0..3).prop_map(Value::from))
}

/// Mostly objects with some of the arguments, often of the right type.
fn any_input() -> impl Strategy<Value = Value> {
    let units = prop_oneof![
        Just(json!("Celsius")),
        any::<bool>().prop_map(|exact| json!({ "Kelvin": { "exact": exact } })),
    ];
    let or_any = |right: BoxedStrategy<Value>| {
        prop::option::of(prop_oneof![4 => right, 1 => any_json().boxed()])
    };
    let members = (
        or_any(any::<i8>().prop_map(Value::from).boxed()),
        or_any(any::<f64>().prop_map(Value::from).boxed()),
        or_any(prop::collection::vec(units, 0..3).prop_map(Value::from).boxed()),
        or_any(any::<u16>().prop_map(Value::from).boxed()),
        prop::option::of(any_json()),
    );
    let object = members.prop_map(|(a, b, c, d, e)| {
        let members = [("a", a), ("b", b), ("c", c), ("d", d), ("e", e)];
        let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(given.collect())
    });
    prop_oneof![9 => object, 1 => any_json()]
}

/// All that anybody learns of a call.
fn outcome(tool: &FnTool, input: &Value, cx: &ToolContext) -> Result<Value, String> {
    let input = tool.prepare(input.clone()).map_err(|error| format!("refused: {error}"))?;
    let result = run(tool.call(input.clone(), cx.clone()));
    let result = result.map_err(|error| format!("{error} {:?}", error.retry_hint()))?;
    Ok(json!([input, result]))
}

#[test]
fn macro_and_builder_specs_are_equal() {
    for by_macro in [by_macro::tool(), blocking::tool()] {
        let (one, other) = (by_macro.to_openai_format(), by_builder().to_openai_format());
        // As text, since the order of members counts.
        assert_eq!(one.to_string(), other.to_string());
        assert_eq!(by_macro.category(), by_builder().category());
        assert_eq!(by_macro.max_parallel(), by_builder().max_parallel());
    }
}

proptest! {
    #[test]
    fn macro_and_builder_outcomes_are_equal(
        input in any_input(),
        factor in prop::option::of(prop_oneof![Just(2), any::<i64>()]),
        is_cancelled in any::<bool>(),
    ) {
        let cancel = Cancel::new();
        if is_cancelled {
            cancel.cancel();
        }
        let state = factor.map_or_else(State::new, |factor| State::new().with(Factor(factor)));
        let cx = ToolContext::new("call_1", "by_macro").with_cancel(cancel).with_state(state);
        let expected = outcome(&by_builder(), &input, &cx);
        prop_assert_eq!(outcome(&by_macro::tool(), &input, &cx), expected.clone());
        prop_assert_eq!(outcome(&blocking::tool(), &input, &cx), expected);
    }
}
