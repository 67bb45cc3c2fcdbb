use std::any::Any;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{ReplaceBoolSchemas, Transform};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments::ArgumentError;
use crate::builder::ToolBuilder;
use crate::context::ToolContext;
use crate::fn_tool::{FnTool, Handler};
use crate::located::read_value;
use crate::tool::BlockingHandler;
use crate::tool_error::ToolError;

impl ToolBuilder {
    /// Builds a tool from an async closure with typed arguments: the fields are the parameters, their doc
    /// comments the descriptions.
    ///
    /// The handler gets only the arguments that the schema names, because rules, hooks and people know no others: a value
    /// under serde's `alias` of a field, or for a field that the schema skips, is removed before they see the call.
    /// Schemas with `additionalProperties`, such as those of maps and of flattened maps, allow any name.
    ///
    /// The result may be anything that implements `Serialize`: a number, a struct of your own, a [`Value`]. One that JSON
    /// cannot represent, such as a map with lists as keys, is an error of the call.
    ///
    /// ```
    /// use oa_tools::tool;
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct AddArgs {
    ///     /// The first number.
    ///     a: f64,
    ///     b: f64,
    /// }
    ///
    /// let add = tool("add", "Add two numbers")
    ///     .typed(|args: AddArgs| async move { Ok(args.a + args.b) });
    /// assert_eq!(add.input_schema()["properties"]["a"]["description"], "The first number.");
    /// ```
    pub fn typed<T, R, F, Fut>(self, handler: F) -> FnTool
    where
        T: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + 'static,
        F: Fn(T) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        self.typed_with_context(move |args, _| handler(args))
    }

    /// Builds a tool from an async closure that takes typed arguments and the call's context.
    pub fn typed_with_context<T, R, F, Fut>(self, handler: F) -> FnTool
    where
        T: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + 'static,
        F: Fn(T, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let handler = move |args, cx| match read(args) {
            Ok(args) => {
                let result = handler(args, cx);
                Box::pin(async move { into_value(result.await?) }) as _
            }
            Err(error) => Box::pin(std::future::ready(Err(error))) as _,
        };
        self.schema(schema_of::<T>()).finish(Handler::Async(Box::new(handler)), Some(reads::<T>))
    }

    /// Builds a tool from a blocking closure with typed arguments. An executor runs it on its blocking pool.
    ///
    /// ```
    /// use oa_tools::{Tool, tool};
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct ReadArgs {
    ///     path: String,
    /// }
    ///
    /// let read = tool("read", "Reads a file")
    ///     .typed_blocking(|args: ReadArgs| Ok(std::fs::read_to_string(args.path)?));
    /// assert!(read.blocking().is_some());
    /// ```
    pub fn typed_blocking<T, R, F>(self, handler: F) -> FnTool
    where
        T: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + 'static,
        F: Fn(T) -> Result<R, ToolError> + Send + Sync + 'static,
    {
        self.typed_blocking_with_context(move |args, _| handler(args))
    }

    /// Builds a tool from a blocking closure that takes typed arguments and the call's context.
    ///
    /// A thread cannot be stopped from outside, so long work should poll
    /// [`is_cancelled`](ToolContext::is_cancelled).
    pub fn typed_blocking_with_context<T, R, F>(self, handler: F) -> FnTool
    where
        T: DeserializeOwned + JsonSchema + 'static,
        R: Serialize + 'static,
        F: Fn(T, ToolContext) -> Result<R, ToolError> + Send + Sync + 'static,
    {
        let handler = BlockingHandler::new(move |args, cx| into_value(handler(read(args)?, cx)?));
        self.schema(schema_of::<T>()).finish(Handler::Blocking(handler), Some(reads::<T>))
    }
}

/// Returns the result of a tool as JSON.
///
/// # Errors
///
/// If JSON cannot represent it, such as a map with lists as keys.
#[cfg_attr(
    not(feature = "macros"),
    expect(unreachable_pub, reason = "the expansion of `#[tool]` calls it")
)]
pub fn to_value<R: Serialize>(result: R) -> Result<Value, ToolError> {
    serde_json::to_value(result)
        .map_err(|error| ToolError::from(error).context("the result cannot be written as JSON"))
}

/// Returns the result of a typed handler as JSON, without a copy if it is JSON already.
fn into_value<R: Serialize + 'static>(result: R) -> Result<Value, ToolError> {
    let mut result = Some(result);
    match (&mut result as &mut dyn Any).downcast_mut::<Option<Value>>() {
        Some(value) => Ok(value.take().unwrap_or_default()),
        None => to_value(result),
    }
}

fn read<T: DeserializeOwned>(args: Value) -> Result<T, ToolError> {
    serde_json::from_value(args)
        .map_err(|error| ToolError::from(error).context("invalid arguments"))
}

fn reads<T: DeserializeOwned>(args: &Value) -> Result<(), ArgumentError> {
    // From a reference: the value is only read here, and read again by the handler, which consumes it.
    read_value::<T>(args).map(drop)
}

/// Returns the JSON Schema of a type, with subschemas inlined where possible, because servers that compile schemas into
/// grammars often fail on references. Those of a recursive type lead to `$defs`. Any value is `{}`, not `true`, which
/// llama.cpp rejects (QUIRKS row 138).
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::default().with(|settings| settings.inline_subschemas = true);
    let mut generator = settings.into_generator();
    // Not as a root schema: in that, a recursive type would refer to `#`.
    let mut schema = generator.subschema_for::<T>();
    let definitions = generator.take_definitions(false);
    if !definitions.is_empty() {
        schema.insert("$defs".to_owned(), definitions.into());
    }
    let mut booleans = ReplaceBoolSchemas::default();
    booleans.skip_additional_properties = true;
    booleans.transform(&mut schema);
    let mut schema = schema.to_value();
    if let Some(members) = schema.as_object_mut() {
        members.shift_remove("title");
    }
    schema
}
