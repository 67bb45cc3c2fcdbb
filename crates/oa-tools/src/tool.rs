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

/// What [`Tool::call`] returns: a boxed future of the tool's result.
pub type ToolFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, ToolError>> + Send + 'a>>;

/// What [`Tool::execute`] returns: a boxed future of the tool's result, or an ordinary error.
pub type ExecuteFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, Error>> + Send + 'a>>;

/// Something that a model can call.
///
/// A closure is made a tool by [`tool`](crate::tool()); a type with state of its own implements this. It
/// is object safe, and tools are passed around as `Arc<dyn Tool>`.
///
/// ```
/// use oa_tools::{Tool, ToolContext, ToolFuture};
/// use serde_json::{Value, json};
///
/// struct Dice { schema: Value, sides: u32 }
///
/// impl Tool for Dice {
///     fn name(&self) -> &str { "dice" }
///     fn description(&self) -> &str { "Tells how many sides the die has" }
///     fn input_schema(&self) -> &Value { &self.schema }
///     fn call(&self, _input: Value, _cx: ToolContext) -> ToolFuture<'_> {
///         Box::pin(async move { Ok(json!({ "sides": self.sides })) })
///     }
/// }
///
/// let dice = Dice { schema: json!({ "type": "object", "properties": {} }), sides: 6 };
/// assert_eq!(dice.to_openai_format()["function"]["name"], "dice");
/// ```
pub trait Tool: Send + Sync {
    /// Returns the name that the model calls it by: 1 to 64 of `a-z`, `A-Z`, `0-9`, `_`, `-`.
    fn name(&self) -> &str;

    /// Returns what it does, in words for the model.
    fn description(&self) -> &str;

    /// Returns the JSON Schema of its arguments, an object schema.
    fn input_schema(&self) -> &Value;

    /// Runs the tool with arguments that [`prepare`](Self::prepare) has returned.
    ///
    /// # Cancel safety
    ///
    /// Whoever runs a tool may drop the future at any await; the context says so before, where that is
    /// possible. A tool that must finish a step does it in a task of its own.
    fn call(&self, input: Value, cx: ToolContext) -> ToolFuture<'_>;

    /// Completes arguments and checks them: fills in defaults and converts what has one meaning only.
    ///
    /// An agent calls it before hooks, rules and permissions look at a call, and again for input that one of them
    /// has changed; the tool then runs with exactly what they saw last. It must be idempotent: arguments that it
    /// has returned come back unchanged when it is called with them.
    ///
    /// # Errors
    ///
    /// Lists what does not fit the schema, by path, for the model to fix.
    fn prepare(&self, input: Value) -> Result<Value, ArgumentError> {
        check_arguments(self.input_schema(), input)
    }

    /// Returns the handler to be run on a thread that may block, if the tool is one that blocks.
    ///
    /// [`call`](Self::call) runs it where it is polled; an executor runs this on its blocking pool.
    fn blocking(&self) -> Option<BlockingHandler> {
        None
    }

    /// Returns the group that permissions speak of.
    fn category(&self) -> Option<&str> {
        None
    }

    /// Returns whether it must run alone: what was called before has ended, what comes after waits.
    fn is_exclusive(&self) -> bool {
        false
    }

    /// Returns how many calls of it may run at once, within the calls of one answer; `None` leaves that to the executor.
    fn max_parallel(&self) -> Option<usize> {
        None
    }

    /// Returns whether the same arguments always give the same result, so that it may be kept.
    fn is_cacheable(&self) -> bool {
        false
    }

    /// Returns how long it may run; `None` leaves that to the executor.
    fn timeout(&self) -> Option<Duration> {
        None
    }

    /// Checks that a model can be offered it.
    ///
    /// # Errors
    ///
    /// `Config` for a name that servers refuse, a schema that is no object schema, or a tool of which no call may run.
    fn check(&self) -> Result<(), Error> {
        check_name(self.name())?;
        if self.max_parallel() == Some(0) {
            return Err(Error::config(format!("the tool {}: {NO_CALL}", self.name())));
        }
        let schema = self.input_schema();
        let is_object = schema.get("type").is_none_or(|of| match of {
            Value::Array(types) => types.iter().any(|of| of == "object"),
            of => of == "object",
        });
        if schema.is_object() && is_object {
            return Ok(());
        }
        let name = self.name();
        Err(Error::config(format!("the schema of the tool {name} does not describe an object")))
    }

    /// Returns what a model is told about it.
    fn spec(&self) -> ToolSpec {
        ToolSpec::new(self.name(), self.description(), self.input_schema().clone())
    }

    /// Returns what a model is told about it, as it stands in a request.
    fn to_openai_format(&self) -> Value {
        json!({ "type": "function", "function": self.spec() })
    }

    /// Runs it alone, outside any conversation: checks the arguments and calls it with a context in
    /// which nothing is shared. A blocking handler blocks here, and no timeout applies.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the arguments do not fit, `Tool` if it fails.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops that of the tool.
    fn execute(&self, input: Value) -> ExecuteFuture<'_> {
        Box::pin(async move {
            let input =
                self.prepare(input).map_err(|error| Error::arguments(self.name(), &error))?;
            let cx = ToolContext::new("", self.name());
            self.call(input, cx).await.map_err(|error| Error::tool(&error))
        })
    }
}

/// Why a tool whose cap is zero is refused.
pub(crate) const NO_CALL: &str = "max_parallel is 0, so no call of it could run";

/// A tool behind a pointer is that tool.
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
        }
    )*};
}

pass_on!(Arc, Box);

impl fmt::Debug for dyn Tool + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// The work of a tool that blocks, apart from the tool, so that it can be moved to another thread.
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

    /// Runs it here and now.
    ///
    /// # Errors
    ///
    /// What the closure returns.
    pub fn run(&self, input: Value, cx: ToolContext) -> Result<Value, ToolError> {
        (self.0)(input, cx)
    }
}

impl fmt::Debug for BlockingHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockingHandler").finish_non_exhaustive()
    }
}
