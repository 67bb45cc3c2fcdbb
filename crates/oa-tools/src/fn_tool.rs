use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use oa_types::ToolSpec;
use serde_json::{Map, Value};

use crate::arguments::{ArgumentError, check_arguments, remove_unnamed};
use crate::context::ToolContext;
use crate::error::Error;
use crate::name::check_name;
use crate::tool::{BlockingHandler, ExecuteFuture, Tool, ToolFuture, check_schemas};
use crate::tool_error::ToolError;

/// A tool built from a closure, the result of [`tool`](crate::tool()).
///
/// Clones share the tool. A mistake made while building is recorded and reported when the tool is
/// [checked](Tool::check), for example by [`Registry::add`](crate::Registry::add).
#[derive(Clone)]
pub struct FnTool(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) schema: Value,
    /// `None` if the schema is a mistake.
    #[cfg(feature = "jsonschema")]
    pub(crate) validator: Option<crate::validator::SchemaValidator>,
    pub(crate) output_schema: Option<Value>,
    pub(crate) defaults: Map<String, Value>,
    pub(crate) category: Option<String>,
    pub(crate) is_exclusive: bool,
    pub(crate) max_parallel: Option<usize>,
    pub(crate) is_cacheable: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) mistake: Option<String>,
    pub(crate) handler: Handler,
    /// Checks that a typed handler can deserialize arguments that match the schema.
    pub(crate) reads: Option<Reads>,
}

pub(crate) enum Handler {
    Async(Box<dyn Fn(Value, ToolContext) -> ToolFuture<'static> + Send + Sync>),
    Blocking(BlockingHandler),
    /// The result comes from outside.
    External,
}

pub(crate) type Reads = fn(&Value) -> Result<(), ArgumentError>;

impl FnTool {
    pub(crate) fn from_inner(inner: Inner) -> Self {
        Self(Arc::new(inner))
    }

    /// Returns the name by which the model calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the description for the model.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.description
    }

    /// Returns the JSON Schema of the arguments, as the model sees it.
    #[must_use]
    pub fn input_schema(&self) -> &Value {
        &self.0.schema
    }

    /// Returns the tool as described to the model.
    #[must_use]
    pub fn spec(&self) -> ToolSpec {
        Tool::spec(self)
    }

    /// Returns the tool as described to the model, in OpenAI's wire format.
    #[must_use]
    pub fn to_openai_format(&self) -> Value {
        Tool::to_openai_format(self)
    }

    /// Returns the first mistake made while building.
    ///
    /// # Errors
    ///
    /// `Config` for a name that servers reject, a parameter of unknown type, a default that does not match its
    /// schema, a setting for an undeclared parameter, or a schema that does not describe an object. With the feature
    /// `jsonschema`, also for an invalid schema.
    pub fn check(&self) -> Result<(), Error> {
        check_name(&self.0.name)?;
        match &self.0.mistake {
            Some(mistake) => Err(Error::config(format!("tool {}: {mistake}", self.0.name))),
            None => check_schemas(self),
        }
    }

    /// Runs the tool directly: see [`Tool::execute`].
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the arguments do not match the schema, `Tool` if the tool fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the tool's future.
    #[must_use]
    pub fn execute(&self, input: Value) -> ExecuteFuture<'_> {
        Tool::execute(self, input)
    }

    /// Runs the tool directly with a context of your own: see [`Tool::execute_with`].
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    ///
    /// As [`execute`](Self::execute).
    #[must_use]
    pub fn execute_with(&self, input: Value, cx: ToolContext) -> ExecuteFuture<'_> {
        Tool::execute_with(self, input, cx)
    }
}

impl Inner {
    /// Checks arguments and fills in the defaults of the schema, then those hidden from the model. Removes what a typed
    /// handler might read although the schema does not name it. Returns true with them if they must be checked again.
    fn complete(&self, input: Value) -> Result<(Value, bool), ArgumentError> {
        let mut input = check_arguments(&self.schema, input)?;
        // Before the hidden defaults, which the schema need not allow.
        #[cfg(feature = "jsonschema")]
        self.validate(&input)?;
        // `null` in place of all arguments is an object by now, so hidden defaults apply to it as well.
        let mut has_changed = self.reads.is_some() && remove_unnamed(&self.schema, &mut input)?;
        if let Some(members) = input.as_object_mut() {
            for (name, default) in &self.defaults {
                if !members.contains_key(name) {
                    members.insert(name.clone(), default.clone());
                    has_changed = true;
                }
            }
        }
        Ok((input, has_changed))
    }

    /// Validates arguments. Hidden defaults among them, filled in before, need not match.
    #[cfg(feature = "jsonschema")]
    fn validate(&self, input: &Value) -> Result<(), ArgumentError> {
        let Some(validator) = &self.validator else { return Ok(()) };
        let is_given = |(name, value): &(&String, &Value)| self.defaults.get(*name) != Some(value);
        validator.validate(input).or_else(|error| match input.as_object() {
            Some(members) if !members.iter().all(|member| is_given(&member)) => {
                let given = members.iter().filter(is_given);
                let given = given.map(|(name, value)| (name.clone(), value.clone()));
                validator.validate(&Value::Object(given.collect()))
            }
            _ => Err(error),
        })
    }
}

/// The number of completion passes after which the defaults count as never settling.
const PASSES: usize = 4;

impl Tool for FnTool {
    fn name(&self) -> &str {
        &self.0.name
    }

    fn description(&self) -> &str {
        &self.0.description
    }

    fn input_schema(&self) -> &Value {
        &self.0.schema
    }

    fn output_schema(&self) -> Option<&Value> {
        self.0.output_schema.as_ref()
    }

    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
        match &self.0.handler {
            Handler::Async(handler) => handler(input, cx),
            Handler::Blocking(handler) => Box::pin(async move { handler.run(input, cx) }),
            Handler::External => Box::pin(ready(Err(ToolError::new(
                "an external tool does not run: its caller adds the result",
            )))),
        }
    }

    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        let (mut input, mut has_changed) = self.0.complete(input)?;
        // Hidden defaults may enable defaults in the schema, and the other way around, and arguments without unnamed
        // members may match another alternative. Without such a change the arguments are settled: completing them by the
        // schema is idempotent.
        for _ in 0..PASSES {
            let mut is_settled = !has_changed;
            if has_changed {
                let (next, has_changed_again) = self.0.complete(input.clone())?;
                // A hidden `null` may be dropped by the schema and filled in again: a write without a change.
                is_settled = next == input;
                (input, has_changed) = (next, has_changed_again);
            }
            if is_settled {
                if let Some(reads) = self.0.reads {
                    reads(&input)?;
                }
                return Ok(input);
            }
        }
        Err(ArgumentError::new("the default values of this tool keep changing each other"))
    }

    fn blocking(&self) -> Option<BlockingHandler> {
        match &self.0.handler {
            Handler::Async(_) | Handler::External => None,
            Handler::Blocking(handler) => Some(handler.clone()),
        }
    }

    fn category(&self) -> Option<&str> {
        self.0.category.as_deref()
    }

    fn is_exclusive(&self) -> bool {
        self.0.is_exclusive
    }

    fn max_parallel(&self) -> Option<usize> {
        self.0.max_parallel
    }

    fn is_cacheable(&self) -> bool {
        self.0.is_cacheable
    }

    fn timeout(&self) -> Option<Duration> {
        self.0.timeout
    }

    fn is_external(&self) -> bool {
        matches!(self.0.handler, Handler::External)
    }

    fn check(&self) -> Result<(), Error> {
        self.check()
    }
}

impl fmt::Debug for FnTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool")
            .field("name", &self.0.name)
            .field("description", &self.0.description)
            .field("schema", &self.0.schema)
            .finish_non_exhaustive()
    }
}
