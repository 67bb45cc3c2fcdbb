//! `#[tool]`: a documented Rust function as a tool for a language model.
//!
//! The crate `open-agent` exports the attribute with its feature `macros`, and [its page](macro@tool) documents it.
//!
//! # When to use this crate directly
//!
//! Only with `oa-tools` and its feature `macros`, without the rest of the SDK. The attribute is then written
//! `#[tool(crate = "oa_tools")]`.
//!
//! # Not included
//!
//! No schemas and no argument checks: the expansion calls the builder of `oa-tools`, and schemars and serde read the
//! types.

mod errors;

mod name;
mod options;

mod function;
mod parameter;
mod returned;

mod description;
mod expansion;

use proc_macro::TokenStream;

/// Turns a function into a tool: its doc comment is the description, and its parameters are the arguments.
///
/// The function itself is unchanged. The macro adds a type of the same name, whose function `tool()` returns the tool:
///
/// ```
/// # extern crate oa_tools as open_agent;
/// # use oa_macros::tool;
/// use open_agent::{ToolError, tool};
///
/// /// Divides two numbers.
/// #[tool]
/// async fn divide(
///     /// The number above the line.
///     dividend: f64,
///     divisor: f64,
/// ) -> Result<f64, ToolError> {
///     if divisor == 0.0 {
///         return Err("a number cannot be divided by zero".into());
///     }
///     Ok(dividend / divisor)
/// }
///
/// # fn main() {
/// let tool = divide::tool(); // for `AgentOptions::builder().tool(..)`
/// assert_eq!(tool.description(), "Divides two numbers.");
/// # assert!(tool.check().is_ok());
///
/// let quotient = divide(1.0, 4.0); // still a function, for tests and other callers
/// # drop(quotient);
/// # }
/// ```
///
/// The expansion is what you would write with the builder: a type that derives `Deserialize` and `JsonSchema`, and
/// `tool(name, description).typed(|arguments: Arguments| ..)`.
///
/// # Functions
///
/// An `async` function runs on the executor's task. Any other function may block, so the executor runs it on its
/// blocking pool. A tool must be a free function without generic parameters, and needs either docs or the option
/// `description`.
///
/// A function may return anything that implements `Serialize`, or a `Result` of that and an error. The error may be of
/// any type that `?` converts to a `ToolError`: any `std::error::Error`, `anyhow::Error`, `String` or `&str`.
///
/// # Parameters
///
/// | parameter | is |
/// | --- | --- |
/// | `city: String` | an argument of the model, of any type that is `Deserialize` and `JsonSchema` |
/// | `days: Option<u32>` | an argument that the model may omit |
/// | `#[default(3)] days: u32` | the same, with a default value; a string literal becomes a `String` or any type that it converts into. If the type is `Serialize`, the model sees the value, and hooks see it filled in |
/// | `#[default] days: u32` | the same, with `Default::default()` |
/// | `context: &ToolContext` | the context of the call, for progress and cancellation; the model does not see it |
/// | `#[state] db: &Db` | the value of that type set with `AgentOptionsBuilder::state`. Without one, a call fails with an error that names the type |
/// | `#[state] db: Option<&Db>` | the same, or `None` without one |
///
/// A parameter's docs are its description. `#[serde(..)]` and `#[schemars(..)]` apply to the field of the same name:
/// `#[serde(rename = "type")] kind: Kind`, `#[schemars(range(min = 1, max = 7))] days: u8`. Only arguments that the
/// schema names are read, so `#[serde(alias = ..)]` has no effect.
///
/// # Options
///
/// | option | sets |
/// | --- | --- |
/// | `name = ".."` | the name, instead of that of the function |
/// | `description = ..` | the description, instead of the docs: an expression |
/// | `category = ..` | the category that permission rules refer to |
/// | `timeout = ..` | the timeout of a call, a `Duration` |
/// | `max_parallel = ..` | how many calls run at once |
/// | `output_schema = ..` | the schema of the results, for clients of an MCP server |
/// | `exclusive` | that each call runs alone |
/// | `cacheable` | that equal arguments give equal results |
/// | `crate = ".."` | the path of `open-agent`, if it is not `::open_agent` |
///
/// # Errors
///
/// All mistakes are reported at once, each at the token that causes it.
///
/// # Examples
///
/// ```
/// # extern crate oa_tools as open_agent;
/// # use oa_macros::tool;
/// use std::time::Duration;
///
/// use open_agent::{ToolContext, tool};
///
/// struct Notes(Vec<String>);
///
/// /// Searches the notes.
/// #[tool(name = "search_notes", category = "read", timeout = Duration::from_secs(10))]
/// fn search(
///     /// A word to look for.
///     word: String,
///     #[default(10)] limit: usize,
///     context: &ToolContext,
///     #[state] notes: &Notes,
/// ) -> Vec<String> {
///     context.emit_status("searching");
///     notes.0.iter().filter(|note| note.contains(&word)).take(limit).cloned().collect()
/// }
///
/// # fn main() {
/// let schema = search::tool().input_schema().clone();
/// assert_eq!(schema["properties"]["limit"]["default"], 10);
/// assert_eq!(schema["properties"]["word"]["description"], "A word to look for.");
/// # }
/// ```
#[proc_macro_attribute]
pub fn tool(options: TokenStream, function: TokenStream) -> TokenStream {
    expansion::expand(options.into(), function.into()).into()
}
