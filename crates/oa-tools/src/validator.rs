use std::fmt;
use std::sync::Arc;

use jsonschema::paths::{Location, LocationSegment};
use jsonschema::{ValidationError, Validator};
use serde_json::Value;

use crate::arguments::{ArgumentError, ArgumentProblem, found};
use crate::error::Error;
use crate::excerpt::Excerpt;

/// The longest message about one argument, in characters.
const LENGTH: usize = 300;

/// A compiled JSON Schema that checks arguments by every keyword, patterns and formats included.
///
/// With the feature `jsonschema`, every [`FnTool`](crate::FnTool) has one. A [`Tool`](crate::Tool) of your own applies one in
/// [`prepare`](crate::Tool::prepare), after [`check_arguments`](crate::check_arguments), which completes the arguments. Clones
/// share the compiled schema.
///
/// The draft of JSON Schema is the one that `$schema` names, or else 2020-12. Unknown formats are ignored. Bounds apply
/// without the exceptions of `check_arguments`: also to defaults, and if no value can satisfy them.
///
/// ```
/// use oa_tools::SchemaValidator;
/// use serde_json::json;
///
/// let validator = SchemaValidator::new(&json!({
///     "type": "object",
///     "properties": { "to": { "type": "string", "format": "email" } },
/// }))?;
/// assert!(validator.validate(&json!({ "to": "ada@example.com" })).is_ok());
/// let error = validator.validate(&json!({ "to": "Ada" })).unwrap_err();
/// assert_eq!(error.to_string(), "`to`: string \"Ada\" is not a \"email\"");
/// # Ok::<(), oa_tools::Error>(())
/// ```
#[derive(Clone)]
pub struct SchemaValidator(Arc<Validator>);

impl SchemaValidator {
    /// Compiles a schema.
    ///
    /// # Errors
    ///
    /// `Config` if the schema is not valid, has a pattern that is not a regular expression, or refers to another document.
    pub fn new(schema: &Value) -> Result<Self, Error> {
        Self::compile(schema).map_err(Error::config)
    }

    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        // Offline: a schema of an MCP server must not make this program read files or fetch addresses.
        let validator = jsonschema::options().should_validate_formats(true).offline().build(schema);
        validator
            .map(|validator| Self(Arc::new(validator)))
            .map_err(|error| format!("invalid schema: {}", problem_of(&error)))
    }

    /// Checks arguments without changing them.
    ///
    /// # Errors
    ///
    /// Lists the problems by path, for the model to fix.
    pub fn validate(&self, arguments: &Value) -> Result<(), ArgumentError> {
        let problems = self.0.iter_errors(arguments).map(|error| problem_of(&error));
        ArgumentError::from_problems(problems).map_or(Ok(()), Err)
    }
}

impl fmt::Debug for SchemaValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaValidator").finish_non_exhaustive()
    }
}

fn problem_of(error: &ValidationError<'_>) -> ArgumentProblem {
    let found = found(error.instance());
    // The library quotes values in full; `found` has an excerpt.
    let mut message = error.masked_with(found).to_string();
    if let Some((end, _)) = message.char_indices().nth(LENGTH) {
        message.truncate(end);
        message.push_str("...");
    }
    ArgumentProblem { path: path_of(error.instance_path()), message }
}

/// Writes a path as in other problems: `stops[2].name`.
fn path_of(location: &Location) -> String {
    let mut path = String::new();
    for segment in location {
        match segment {
            LocationSegment::Property(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&Excerpt::new(&name).to_string());
            }
            LocationSegment::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}
