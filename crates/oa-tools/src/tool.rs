use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use oa_types::ToolSpec;
use serde_json::{Value, json};

use crate::arguments::{ArgumentError, check_arguments};
use crate::context::ToolContext;
use crate::error::Error;
use crate::name::check_name;
use crate::tool_error::ToolError;

/// The future returned by [`Tool::call`].
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send + 'a>>;

/// The future returned by [`Tool::execute`].
pub type ExecuteFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// A tool that a model can call.
///
/// [`tool`](crate::tool()) makes one from a closure; a type with state implements this trait. The trait is dyn
/// compatible, and tools are passed around as `Arc<dyn Tool>`.
///
/// ```
/// use oa_tools::{Tool, ToolContext, ToolFuture};
/// use serde_json::{Value, json};
///
/// struct Dice { schema: Value, sides: u32 }
///
/// impl Tool for Dice {
///     fn name(&self) -> &str { "dice" }
///     fn description(&self) -> &str { "Returns the number of sides of the die" }
///     fn input_schema(&self) -> &Value { &self.schema }
///     fn call(&self, _input: Value, _cx: ToolContext) -> ToolFuture<'_> {
///         Box::pin(async move { Ok(json!({ "sides": self.sides })) })
///     }
/// }
///
/// let dice = Dice { schema: json!({ "type": "object", "properties": {} }), sides: 6 };
/// assert_eq!(dice.to_openai_format()["function"]["name"], "dice");
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tool",
    note = "the tool of a function `name` with `#[tool]` is `name::tool()`",
    note = "a builder becomes a tool by `.build(..)`, `.typed(..)` or `.external()`"
)]
pub trait Tool: Send + Sync {
    /// Returns the name by which the model calls it: 1 to 64 characters from `a-z`, `A-Z`, `0-9`, `_`, `-`.
    fn name(&self) -> &str;

    /// Returns the description for the model.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of the arguments, an object schema.
    fn input_schema(&self) -> &Value;

    /// Returns the JSON Schema of the results, an object schema, if the tool declares one.
    ///
    /// Clients of an MCP server see it, and the server checks each result against it. Models do not see it.
    fn output_schema(&self) -> Option<&Value> {
        None
    }

    /// Runs the tool with arguments returned by [`prepare`](Self::prepare).
    ///
    /// # Cancel safety
    ///
    /// The caller may drop the future at any await point, after signaling the context's
    /// [`Cancel`](crate::Cancel) where possible. A step that must finish belongs in a separate task.
    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_>;

    /// Completes and checks arguments: fills in defaults and converts unambiguous values.
    ///
    /// An agent calls this before hooks, rules and permissions see a call, and again for input changed by one
    /// of them; the tool runs with exactly the arguments last seen. Must be idempotent: arguments that it
    /// returned pass again unchanged.
    ///
    /// # Errors
    ///
    /// Lists the mismatches with the schema by path, for the model to fix.
    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        check_arguments(self.input_schema(), input)
    }

    /// Returns the handler to run on a blocking thread, if the tool blocks.
    ///
    /// [`call`](Self::call) runs it on the polling thread; an executor runs this on its blocking pool.
    fn blocking(&self) -> Option<BlockingHandler> {
        None
    }

    /// Returns the category that permission rules refer to.
    fn category(&self) -> Option<&str> {
        None
    }

    /// Returns true if calls must run alone: earlier calls finish first, later ones wait.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Returns the maximum number of calls in one answer that may run at once; `None` leaves it to the executor.
    fn max_parallel(&self) -> Option<usize> {
        None
    }

    /// Returns true if equal arguments always give equal results, so that results may be cached.
    fn is_cacheable(&self) -> bool {
        false
    }

    /// Returns the timeout of a call; `None` leaves it to the executor.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Returns true if calls never run here, because another party supplies their results.
    fn is_external(&self) -> bool {
        false
    }

    /// Returns true if the tool runs an agent. The client then adds a `ParentAgent` to the [state](ToolContext::state)
    /// of each call, which connects the sub-agent to its caller.
    fn is_agent(&self) -> bool {
        false
    }

    /// Returns the tools of the agent that this tool runs, if it [is an agent](Self::is_agent) whose tools are known. An
    /// agent's permissions may refer to the tools of its sub-agents.
    fn agent_tools(&self) -> Option<Vec<Arc<dyn Tool>>> {
        None
    }

    /// Checks that the tool can be offered to a model.
    ///
    /// # Errors
    ///
    /// `Config` for a name that servers reject, an input or output schema that does not describe an object, or a
    /// `max_parallel` of 0.
    fn check(&self) -> Result<(), Error> {
        check_name(self.name())?;
        if self.max_parallel() == Some(0) {
            return Err(Error::config(format!("tool {}: {NO_CALL}", self.name())));
        }
        check_schemas(self)
    }

    /// Returns the tool as described to the model.
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name(), self.description(), self.input_schema().clone())
    }

    /// Returns the tool as described to the model, in OpenAI's wire format.
    fn to_openai_format(&self) -> Value {
        json!({ "type": "function", "function": self.spec() })
    }

    /// Runs the tool directly, outside any conversation: checks the arguments and calls it with an empty
    /// context. A blocking handler blocks the calling thread, and no timeout applies.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the arguments do not match the schema, `Tool` if the tool fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the tool's future.
    fn execute(&self, input: Value) -> ExecuteFuture<'_> {
        self.execute_with(input, ToolContext::new("", self.name()))
    }

    /// Runs the tool directly with a context of your own; otherwise like [`execute`](Self::execute).
    ///
    /// A test of a tool gives it [state](ToolContext::with_state), and records what it emits with
    /// [`Emissions`](crate::Emissions).
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    ///
    /// # Cancel safety
    ///
    /// As [`execute`](Self::execute).
    fn execute_with(&self, input: Value, cx: ToolContext) -> ExecuteFuture<'_> {
        Box::pin(async move {
            let input =
                self.prepare(input).map_err(|error| Error::arguments(self.name(), &error))?;
            self.call(input, cx).await.map_err(|error| Error::tool(&error))
        })
    }
}

/// Checks that a tool's schemas describe objects.
pub(crate) fn check_schemas<T: Tool + ?Sized>(tool: &T) -> Result<(), Error> {
    let name = tool.name();
    if tool.output_schema().is_some_and(|schema| !describes_object(schema)) {
        let message = format!("the output schema of tool {name} must describe an object");
        return Err(Error::config(message));
    }
    if describes_object(tool.input_schema()) {
        return Ok(());
    }
    Err(Error::config(format!("the schema of tool {name} must describe an object")))
}

pub(crate) fn describes_object(schema: &Value) -> bool {
    let is_object = schema.get("type").is_none_or(|of| match of {
        Value::Array(types) => types.iter().any(|of| of == "object"),
        of => of == "object",
    });
    schema.is_object() && is_object
}

/// The mistake reported for a limit of zero.
pub(crate) const NO_CALL: &str = "max_parallel must be at least 1";

/// Implements `Tool` for a pointer by forwarding every method.
macro_rules! pass_on {
    ($($pointer:ident),*) => {$(
        impl<T: Tool + ?Sized> Tool for $pointer<T> {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn description(&self) -> &str {
                (**self).description()
            }

            fn input_schema(&self) -> &Value {
                (**self).input_schema()
            }

            fn output_schema(&self) -> Option<&Value> {
                (**self).output_schema()
            }

            fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_> {
                (**self).call(input, cx)
            }

            fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
                (**self).prepare(input)
            }

            fn blocking(&self) -> Option<BlockingHandler> {
                (**self).blocking()
            }

            fn category(&self) -> Option<&str> {
                (**self).category()
            }

            fn is_exclusive(&self) -> bool {
                (**self).is_exclusive()
            }

            fn max_parallel(&self) -> Option<usize> {
                (**self).max_parallel()
            }

            fn is_cacheable(&self) -> bool {
                (**self).is_cacheable()
            }

            fn timeout(&self) -> Option<Duration> {
                (**self).timeout()
            }

            fn is_external(&self) -> bool {
                (**self).is_external()
            }

            fn is_agent(&self) -> bool {
                (**self).is_agent()
            }

            fn agent_tools(&self) -> Option<Vec<Arc<dyn Tool>>> {
                (**self).agent_tools()
            }

            fn check(&self) -> Result<(), Error> {
                (**self).check()
            }

            fn spec(&self) -> ToolSpec {
                (**self).spec()
            }

            fn to_openai_format(&self) -> Value {
                (**self).to_openai_format()
            }

            fn execute(&self, input: Value) -> ExecuteFuture<'_> {
                (**self).execute(input)
            }

            fn execute_with(&self, input: Value, cx: ToolContext) -> ExecuteFuture<'_> {
                (**self).execute_with(input, cx)
            }
        }
    )*};
}

pass_on!(Arc, Box);

impl fmt::Debug for dyn Tool + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// A blocking handler, separate from its tool so that it can move to another thread.
#[derive(Clone)]
pub struct BlockingHandler(Arc<Blocking>);

type Blocking = dyn Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync;

impl BlockingHandler {
    /// Wraps a closure.
    #[must_use]
    pub fn new<F>(handler: F) -> Self
    where
        F: Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        Self(Arc::new(handler))
    }

    /// Runs the handler on the current thread.
    ///
    /// # Errors
    ///
    /// The error returned by the closure.
    pub fn run(&self, input: Value, cx: ToolContext) -> Result<Value, ToolError> {
        (self.0)(input, cx)
    }
}

impl fmt::Debug for BlockingHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHandler").finish_non_exhaustive()
    }
}
