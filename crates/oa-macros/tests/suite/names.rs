//! Names and lints of an expansion, which do not conflict with user code.

// What users are strict about holds for an expansion as for the code around it.
#![deny(
    clippy::all,
    clippy::pedantic,
    dead_code,
    deprecated,
    missing_debug_implementations,
    missing_docs,
    nonstandard_style,
    unreachable_pub,
    unused,
    unused_qualifications
)]
// Of the functions here, not of their expansions.
#![allow(clippy::needless_pass_by_value, clippy::unused_async)]

use oa_macros::tool;
use oa_tools::ToolContext;
use serde_json::json;

use crate::execute;

/// Everything that an expansion names is elsewhere. (The derives for arguments need the prelude.)
mod strict {
    #![no_implicit_prelude]

    use ::oa_macros::tool;

    type Result = ::std::result::Result<::std::primitive::u8, ::std::string::String>;

    /// Counts.
    #[tool]
    pub(crate) async fn count(#[state] a: ::std::option::Option<&u8>) -> Result {
        ::std::result::Result::Ok(::std::option::Option::map_or(a, 0, |a| *a))
    }

    /// The same on a thread.
    #[tool(name = "count")]
    #[allow(clippy::unnecessary_wraps)]
    pub(crate) fn count_blocking() -> Result {
        ::std::result::Result::Ok(0)
    }
}

/// Has the names of the expansion's own variables.
#[tool]
async fn arguments(
    arguments: u8,
    context: u8,
    cx: &ToolContext,
    #[state] state: Option<&u8>,
) -> u8 {
    let _ = (cx, state);
    arguments + context
}

/// Has the other one.
#[tool]
fn context(arguments: Vec<u8>, context: &ToolContext) -> usize {
    let _ = context;
    arguments.len()
}

/// Is a word of the language.
#[tool]
async fn r#move(mut r#type: u8, #[default(Some(1))] _other: Option<u8>) -> u8 {
    r#type += 1;
    r#type
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    a: u8,
}

/// Takes a type with the name of the expansion's own.
#[tool]
async fn nested(a: Arguments, #[allow(unused_variables)] b: Option<u8>) -> u8 {
    a.a
}

/// Returns nothing of note.
#[tool]
async fn unit() -> Result<(), String> {
    Ok(())
}

/// The same, at once.
#[tool]
fn unit_at_once() {}

macro_rules! tools {
    ($($name:ident($ty:ty, $context:ty) -> $result:ty = $value:expr;)*) => {$(
        #[doc = concat!("Returns ", stringify!($value), ".")]
        #[tool]
        async fn $name(#[default($value)] a: $ty, _context: $context) -> $result {
            a
        }
    )*};
}

tools! {
    three(u8, &ToolContext) -> u8 = 3;
    four(Option<u8>, &ToolContext) -> Option<u8> = Some(4);
}

/// Is used no more, which is no reason to warn here.
#[tool]
#[deprecated(note = "use `unit`")]
fn outdated() -> Result<(), String> {
    Err("outdated".to_owned())
}

/// Is not on this system.
#[cfg(not(any(unix, windows)))]
#[tool]
fn nowhere() {}

/// Is not on this system either.
#[tool]
#[cfg(not(any(unix, windows)))]
fn nowhere_else() {}

#[test]
fn names_do_not_collide() {
    let run = |tool, input| execute(&tool, input).unwrap();
    assert_eq!(run(strict::count::tool(), json!({})), json!(0));
    assert_eq!(run(strict::count_blocking::tool(), json!({})), json!(0));
    assert_eq!(run(arguments::tool(), json!({ "arguments": 1, "context": 2 })), json!(3));
    assert_eq!(run(context::tool(), json!({ "arguments": [1, 2] })), json!(2));
    assert_eq!(run(nested::tool(), json!({ "a": { "a": 5 } })), json!(5));
    assert_eq!(run(unit::tool(), json!({})), json!(null));
    assert_eq!(run(unit_at_once::tool(), json!({})), json!(null));
    assert_eq!(r#move::tool().name(), "move");
    #[expect(deprecated)]
    let outdated = outdated::tool();
    assert_eq!(execute(&outdated, json!({})).unwrap_err(), "outdated");
    assert_eq!(run(r#move::tool(), json!({ "type": 1 })), json!(2));
}

#[test]
fn tool_works_inside_macro_rules() {
    assert_eq!(three::tool().description(), "Returns 3.");
    assert_eq!(execute(&three::tool(), json!({})).unwrap(), json!(3));
    assert_eq!(execute(&four::tool(), json!({})).unwrap(), json!(4));
}

#[test]
fn local_functions_see_local_types() {
    #[derive(serde::Deserialize, schemars::JsonSchema, serde::Serialize)]
    struct Local(u8);

    /// Takes a type that only this function sees.
    #[tool]
    async fn local(#[default(Local(1))] a: Local) -> Local {
        a
    }

    assert_eq!(execute(&local::tool(), json!({})).unwrap(), json!(1));
}
