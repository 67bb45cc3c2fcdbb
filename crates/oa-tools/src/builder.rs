use std::time::Duration;

use oa_types::Timeout;
use serde_json::Value;

use crate::arguments::check_arguments;
use crate::context::ToolContext;
use crate::fn_tool::{FnTool, Handler, Inner, Reads};
use crate::schema::Parameters;
use crate::tool::{BlockingHandler, NO_CALL, describes_object};
use crate::tool_error::ToolError;

/// Starts building a tool with this name and description, which the model reads.
///
/// ```
/// use oa_tools::tool;
/// use serde_json::json;
///
/// let search = tool("search", "Search the notes")
///     .param("query", "string")
///     .param("order", "string")
///     .values("order", ["newest", "oldest"])
///     .optional("order")
///     .param("limit", "integer")
///     .default("limit", 10)
///     .build(|args| async move { Ok(json!({ "found": args["limit"] })) });
///
/// assert_eq!(search.input_schema()["required"], json!(["query"]));
/// ```
pub fn tool(name: impl Into<String>, description: impl Into<String>) -> ToolBuilder {
    ToolBuilder {
        name: name.into(),
        description: description.into(),
        parameters: None,
        output_schema: None,
        category: None,
        is_exclusive: false,
        max_parallel: None,
        is_cacheable: false,
        timeout: None,
        mistake: None,
    }
}

impl FnTool {
    /// Creates a tool from a schema, complete or shorthand, and an async closure.
    ///
    /// ```
    /// use oa_tools::FnTool;
    /// use serde_json::json;
    ///
    /// let greet = FnTool::new("greet", "Greets", json!({ "name": "string" }), |args| async move {
    ///     Ok(json!(format!("Hello {}", args["name"].as_str().unwrap_or_default())))
    /// });
    /// assert_eq!(greet.input_schema()["required"], json!(["name"]));
    /// ```
    pub fn new<F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        schema: Value,
        handler: F,
    ) -> Self
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        tool(name, description).schema(schema).build(handler)
    }
}

/// A builder for a tool: set parameters first, then call one of the `build` methods with a handler.
///
/// The methods never fail. The first mistake is recorded, and [`Registry::add`](crate::Registry::add) or
/// [`FnTool::check`] reports it.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ToolBuilder {
    name: String,
    description: String,
    parameters: Option<Parameters>,
    output_schema: Option<Value>,
    category: Option<String>,
    is_exclusive: bool,
    max_parallel: Option<usize>,
    is_cacheable: bool,
    timeout: Option<Duration>,
    mistake: Option<String>,
}

impl ToolBuilder {
    /// Adds a required parameter with a type: `string`, `number`, `integer`, `boolean`, `array` or `object`.
    pub fn param(self, name: &str, of: &str) -> Self {
        self.param_with(name, of)
    }

    /// Adds a parameter with a JSON Schema: `json!({"type": "integer", "minimum": 1})`.
    ///
    /// Three keywords are removed from the schema before the model sees it: `default`, whose value is filled in
    /// when the model omits the parameter, and `"optional": true` or `"required": false`. Each makes the
    /// parameter optional.
    pub fn param_with(self, name: &str, schema: impl Into<Value>) -> Self {
        self.change(|parameters| parameters.add(name, schema.into()))
    }

    /// Makes a parameter optional.
    pub fn optional(self, name: &str) -> Self {
        self.change(|parameters| parameters.set_optional(name))
    }

    /// Makes a parameter optional and sets the value used when the model omits it.
    pub fn default(self, name: &str, value: impl Into<Value>) -> Self {
        self.change(|parameters| parameters.set_default(name, value.into()))
    }

    /// Restricts a parameter to these values (JSON Schema's `enum`, a reserved word in Rust).
    pub fn values(self, name: &str, values: impl IntoIterator<Item = impl Into<Value>>) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.change(|parameters| parameters.set(name, "enum", values))
    }

    /// Describes a parameter to the model.
    pub fn describe(self, name: &str, description: &str) -> Self {
        self.change(|parameters| parameters.set(name, "description", description.into()))
    }

    /// Sets all parameters at once, from a JSON Schema, which reaches the model unchanged, or from a shorthand.
    ///
    /// A shorthand maps names to types, or to schemas as in [`param_with`](Self::param_with): `{"q": "string",
    /// "limit": {"type": "integer", "default": 10}}`. A bare `{"type": "object"}` is a schema, not a parameter
    /// called `type`. More parameters may be added after this call, not before.
    pub fn schema(mut self, schema: Value) -> Self {
        if self.parameters.is_some() {
            return self.blame(
                "call schema() before adding parameters, because it replaces them".to_owned(),
            );
        }
        match Parameters::read(schema) {
            Ok(parameters) => self.parameters = Some(parameters),
            Err(mistake) => return self.blame(mistake),
        }
        self
    }

    /// Sets the JSON Schema of the results, which must be objects. Clients of an MCP server see it, and the server
    /// checks each result against it. Models do not see it.
    pub fn output_schema(mut self, schema: Value) -> Self {
        let is_object = describes_object(&schema);
        self.output_schema = Some(schema);
        if is_object {
            return self;
        }
        self.blame("the output schema must describe an object".to_owned())
    }

    /// Sets the category that permission rules refer to.
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.category = Some(category.into());
        self
    }

    /// Makes calls run alone, as a barrier between earlier and later calls.
    pub fn exclusive(mut self) -> Self {
        self.is_exclusive = true;
        self
    }

    /// Limits the number of calls that run at once. Further calls in the same answer wait in call order, while
    /// calls to other tools proceed. Zero is a mistake.
    pub fn max_parallel(mut self, calls: usize) -> Self {
        self.max_parallel = Some(calls);
        if calls == 0 { self.blame(NO_CALL.to_owned()) } else { self }
    }

    /// Declares that equal arguments always give equal results, so results may be cached.
    pub fn cacheable(mut self) -> Self {
        self.is_cacheable = true;
        self
    }

    /// Sets a timeout for each call, in seconds or as a `Duration`. `None` leaves it to the executor. Zero is a mistake.
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        let timeout = timeout.into();
        self.timeout = timeout.duration();
        if timeout.is_zero() { self.blame(Timeout::zero("timeout")) } else { self }
    }

    /// Builds a tool from an async closure that takes the arguments.
    pub fn build<F, Fut>(self, handler: F) -> FnTool
    where
        F: Fn(Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        self.build_with_context(move |args, _| handler(args))
    }

    /// Builds a tool from an async closure that takes the arguments and the call's context.
    ///
    /// ```
    /// use oa_tools::tool;
    /// use serde_json::json;
    ///
    /// let copy = tool("copy", "Copy files").build_with_context(|_, cx| async move {
    ///     for done in 1..=3 {
    ///         if cx.is_cancelled() {
    ///             return Err("stopped".into());
    ///         }
    ///         cx.emit_progress((done, 3));
    ///     }
    ///     Ok(json!("copied"))
    /// });
    /// # assert!(copy.check().is_ok());
    /// ```
    pub fn build_with_context<F, Fut>(self, handler: F) -> FnTool
    where
        F: Fn(Value, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let handler = move |args, cx| Box::pin(handler(args, cx)) as _;
        self.finish(Handler::Async(Box::new(handler)), None)
    }

    /// Builds a tool from a blocking closure. An executor runs it on its blocking pool.
    pub fn build_blocking<F>(self, handler: F) -> FnTool
    where
        F: Fn(Value) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        self.build_blocking_with_context(move |args, _| handler(args))
    }

    /// Builds a tool from a blocking closure that takes the arguments and the call's context.
    ///
    /// A thread cannot be stopped from outside, so long work should poll
    /// [`is_cancelled`](ToolContext::is_cancelled).
    pub fn build_blocking_with_context<F>(self, handler: F) -> FnTool
    where
        F: Fn(Value, ToolContext) -> Result<Value, ToolError> + Send + Sync + 'static,
    {
        self.finish(Handler::Blocking(BlockingHandler::new(handler)), None)
    }

    /// Builds an external tool, which has no handler: another party, such as a user, a browser or another process,
    /// supplies the result of each call. An agent decides on its calls like on any others, runs the other calls of the
    /// answer, and ends its turn until the results are added.
    ///
    /// ```
    /// use oa_tools::{Tool, tool};
    ///
    /// let ask_user = tool("ask_user", "Asks the user a question").param("question", "string").external();
    /// assert!(ask_user.is_external());
    /// ```
    #[must_use]
    pub fn external(self) -> FnTool {
        self.finish(Handler::External, None)
    }

    pub(crate) fn finish(mut self, handler: Handler, reads: Option<Reads>) -> FnTool {
        let parameters = self.parameters.take().unwrap_or_else(Parameters::new);
        let schema = Value::Object(parameters.schema);
        for (name, default) in &parameters.defaults {
            let parameter = &schema["properties"][name];
            // `null` is a default for any type: the handler gets it for an omitted parameter.
            if let Err(error) = check_arguments(parameter, default.clone())
                && !default.is_null()
            {
                self = self.blame(format!("default value of {name}: {error}"));
            }
        }
        #[cfg(feature = "jsonschema")]
        let validator = match crate::validator::SchemaValidator::compile(&schema) {
            Ok(validator) => Some(validator),
            Err(mistake) => {
                self = self.blame(mistake);
                None
            }
        };
        FnTool::from_inner(Inner {
            name: self.name,
            description: self.description,
            schema,
            #[cfg(feature = "jsonschema")]
            validator,
            output_schema: self.output_schema,
            defaults: parameters.defaults,
            category: self.category,
            is_exclusive: self.is_exclusive,
            max_parallel: self.max_parallel,
            is_cacheable: self.is_cacheable,
            timeout: self.timeout,
            mistake: self.mistake,
            handler,
            reads,
        })
    }

    fn change(mut self, change: impl FnOnce(&mut Parameters) -> Result<(), String>) -> Self {
        let parameters = self.parameters.get_or_insert_with(Parameters::new);
        match change(parameters) {
            Ok(()) => self,
            Err(mistake) => self.blame(mistake),
        }
    }

    /// Records a mistake, unless there is one already.
    fn blame(mut self, mistake: String) -> Self {
        self.mistake.get_or_insert(mistake);
        self
    }
}
