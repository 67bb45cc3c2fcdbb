//! Resources and prompts of a server.

use oa_mcp_data::{FilledPrompt, Pages, Prompt, Resource, ResourceContent};
use oa_tools::ToolContext;
use serde_json::{Map, Value, json};

use crate::connection::Connection;
use crate::error::Error;

impl Connection {
    /// Returns the resources of the server, in its order; empty if it offers none. At most
    /// [`Limits::entries`](crate::Limits::entries) are returned; if more exist, [`warnings`](Self::warnings) says so.
    ///
    /// # Errors
    ///
    /// Those of a call: errors of the connection, or the server's error with kind
    /// [`Rejected`](crate::ErrorKind::Rejected).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future asks the server to cancel the request.
    pub async fn resources(&self) -> Result<Vec<Resource>, Error> {
        self.library("resources/list", "resources", Resource::read).await
    }

    /// Returns the resource templates, whose URIs have placeholders such as `{id}`. Otherwise like
    /// [`resources`](Self::resources).
    ///
    /// # Errors
    ///
    /// As [`resources`](Self::resources).
    ///
    /// # Cancel safety
    ///
    /// As [`resources`](Self::resources).
    pub async fn resource_templates(&self) -> Result<Vec<Resource>, Error> {
        self.library("resources/templates/list", "resourceTemplates", Resource::read).await
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// As [`resources`](Self::resources); `Protocol` for an answer without contents.
    ///
    /// # Cancel safety
    ///
    /// As [`resources`](Self::resources).
    pub async fn read_resource(
        &self,
        uri: impl Into<String>,
    ) -> Result<Vec<ResourceContent>, Error> {
        let result = self.request("resources/read", json!({ "uri": uri.into() })).await?;
        let contents = result.get("contents").and_then(Value::as_array);
        let contents =
            contents.ok_or_else(|| self.no("contents of a resource", &result).of(self.name()))?;
        Ok(contents.iter().filter_map(ResourceContent::read).collect())
    }

    /// Returns the prompts of the server. Otherwise like [`resources`](Self::resources).
    ///
    /// # Errors
    ///
    /// As [`resources`](Self::resources).
    ///
    /// # Cancel safety
    ///
    /// As [`resources`](Self::resources).
    pub async fn prompts(&self) -> Result<Vec<Prompt>, Error> {
        self.library("prompts/list", "prompts", Prompt::read).await
    }

    /// Fills in a prompt and returns its messages, which can be sent or begin a conversation.
    ///
    /// The messages come from the server: show them to the user first unless you trust the server.
    ///
    /// ```no_run
    /// # async fn greet(connected: oa_mcp::Connected) -> Result<(), oa_mcp::Error> {
    /// // `no_run`, since it needs a server.
    /// let Some(connection) = connected.connection("everything") else { return Ok(()) };
    /// let filled = connection.get_prompt("args-prompt", [("city", "Oslo")]).await?;
    /// for message in filled.messages {
    ///     println!("{}: {}", message.role, message.text());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`resources`](Self::resources); `Protocol` for an answer without messages.
    ///
    /// # Cancel safety
    ///
    /// As [`resources`](Self::resources).
    pub async fn get_prompt(
        &self,
        name: impl Into<String>,
        arguments: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<FilledPrompt, Error> {
        let arguments = arguments.into_iter();
        let arguments: Map<String, Value> =
            arguments.map(|(name, text)| (name.into(), Value::String(text.into()))).collect();
        let params = json!({ "name": name.into(), "arguments": arguments });
        let result = self.request("prompts/get", params).await?;
        FilledPrompt::read(&result)
            .ok_or_else(|| self.no("messages of a prompt", &result).of(self.name()))
    }

    async fn library<T>(
        &self,
        method: &'static str,
        member: &'static str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let entries = self.entries(method, member).await.map_err(|error| error.of(self.name()))?;
        Ok(entries.iter().filter_map(read).collect())
    }

    async fn entries(
        &self,
        method: &'static str,
        member: &'static str,
    ) -> Result<Vec<Value>, Error> {
        let hello = self.hello().await?;
        let has_it = if member == "prompts" { hello.has_prompts } else { hello.has_resources };
        if !has_it {
            return Ok(Vec::new());
        }
        let limits = &self.server().limits;
        let mut pages = Pages::new(member, limits.pages);
        let (mut entries, mut bytes) = (Vec::new(), 0);
        while let Some(params) = pages.params() {
            let page = self.send(method, params, None).await?;
            bytes += page.to_string().len();
            if bytes > limits.message_bytes {
                let most = limits.message_bytes;
                return Err(Error::limit(format!(
                    "the list of {member} is longer than {most} bytes"
                )));
            }
            entries.extend(pages.take(page, &self.secrets()).map_err(Error::protocol)?);
            if entries.len() > limits.entries {
                entries.truncate(limits.entries);
                let most = limits.entries;
                self.keep_warnings(vec![format!(
                    "more than {most} {member}; later ones are left out"
                )]);
                return Ok(entries);
            }
        }
        self.keep_warnings(pages.rest().into_iter().collect());
        Ok(entries)
    }

    /// Lists the resources and the templates for a model, as the result of a tool.
    pub(crate) async fn list_for_model(&self) -> Result<Value, Error> {
        let mut resources = self.entries("resources/list", "resources").await?;
        // Some servers have only templates, and many refuse this request.
        let templates = self.entries("resources/templates/list", "resourceTemplates").await;
        resources.extend(templates.unwrap_or_default());
        let listed: Vec<_> =
            resources.iter().filter_map(Resource::read).map(|resource| resource.entry()).collect();
        Ok(json!({ "structuredContent": listed }))
    }

    pub(crate) async fn read_for_model(
        &self,
        uri: &Value,
        cx: &ToolContext,
    ) -> Result<Value, Error> {
        let params = json!({ "uri": uri });
        let mut result = self.send("resources/read", params, Some(cx.clone())).await?;
        let Some(Value::Array(contents)) = result.get_mut("contents").map(Value::take) else {
            return Err(self.no("contents of a resource", &result));
        };
        let blocks =
            contents.into_iter().map(|inside| json!({ "type": "resource", "resource": inside }));
        Ok(json!({ "content": blocks.collect::<Vec<_>>() }))
    }

    fn no(&self, what: &str, result: &Value) -> Error {
        let excerpt = self.secrets().excerpt(&result.to_string(), 200);
        Error::protocol(format!("the answer has no {what}: {excerpt}"))
    }
}
