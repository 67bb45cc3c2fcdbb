use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use oa_aggregate::{ArgumentRepair, Quirks, ThinkTags};
use oa_chat::{
    ChatOptions, Endpoint, Limits, OnBadChunk, Provider, RetryConfig, ServerProfile, SystemRole,
    Thinking, ToolMode,
};
use oa_context::ContextPolicy;
use oa_executor::{CallRate, ExecutorOptions, ToolExecutor};
use oa_hooks::{Hooks, PermissionMode, Permissions};
use oa_tools::{Registry, Tool};
use oa_transport::ApiKey;
use oa_turn::Mode;
use oa_types::wire::{ResultImages, ThinkingReplay, ToolChoice};
use oa_types::{Cost, Price};
use serde_json::{Map, Value};

use crate::builder::AgentOptionsBuilder;
use crate::error::Result;
use crate::settings::Settings;
use crate::steps::AgentSteps;

/// The server, the model and the settings of an agent. Cheap to clone; clones share one connection pool.
///
/// ```
/// use oa_chat::Provider;
/// use oa_client::AgentOptions;
///
/// let options = AgentOptions::builder()
///     .provider(Provider::Ollama)
///     .model("qwen3:8b")
///     .temperature(0.2)
///     .build()?;
/// assert_eq!(options.base_url(), "http://localhost:11434/v1");
/// # Ok::<(), oa_client::Error>(())
/// ```
///
/// [`AgentOptions::default`] reads `OPEN_AGENT_MODEL` and `OPEN_AGENT_BASE_URL` from the environment. Without a
/// model, the first request fails and says so.
#[derive(Clone)]
pub struct AgentOptions(pub(crate) Arc<Settings>);

impl AgentOptions {
    /// Returns a builder with nothing set.
    pub fn builder() -> AgentOptionsBuilder {
        AgentOptionsBuilder::default()
    }

    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.0
    }

    /// Checks the options without sending anything.
    ///
    /// # Errors
    ///
    /// `Config` if there is no model, or if the address in the environment is invalid. Only [`AgentOptions::default`]
    /// creates such options; their first request fails with the same error.
    pub fn check(&self) -> Result<()> {
        self.0.check_usable()
    }

    /// Returns the server, unless a [`chat_service`](AgentOptionsBuilder::chat_service) chooses one.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.0.endpoint()
    }

    /// Returns the request options, which are the same for every server.
    #[must_use]
    pub fn chat_options(&self) -> &ChatOptions {
        self.0.chat.options()
    }

    /// Returns the model's name; empty if none is set.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.0.chat.parameters.model
    }

    /// Returns the address that paths are appended to; empty with a
    /// [`chat_service`](AgentOptionsBuilder::chat_service), which has its own.
    #[must_use]
    pub fn base_url(&self) -> &str {
        self.0.endpoint().map_or("", Endpoint::base_url)
    }

    /// Returns the provider, if one was set.
    #[must_use]
    pub fn provider(&self) -> Option<Provider> {
        self.0.endpoint()?.provider()
    }

    /// Returns the server profile, if one was set.
    #[must_use]
    pub fn profile(&self) -> Option<&ServerProfile> {
        self.0.config.server_profile.as_ref()
    }

    /// Returns the system prompt.
    #[must_use]
    pub fn system_prompt(&self) -> Option<&str> {
        self.0.chat.system_prompt.as_deref()
    }

    /// Returns how the system prompt is sent.
    #[must_use]
    pub fn system_role(&self) -> SystemRole {
        self.0.chat.system_role
    }

    /// Returns the API key; its `Debug` output hides it.
    #[must_use]
    pub fn api_key(&self) -> Option<&ApiKey> {
        self.0.endpoint()?.api_key()
    }

    /// Returns the value of an extra header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.0.endpoint()?.header(name)
    }

    /// Returns the maximum length of an answer, in tokens.
    #[must_use]
    pub fn max_tokens(&self) -> Option<u32> {
        self.0.chat.parameters.max_tokens
    }

    /// Returns the temperature.
    #[must_use]
    pub fn temperature(&self) -> Option<f32> {
        self.0.chat.parameters.temperature
    }

    /// Returns the nucleus sampling bound.
    #[must_use]
    pub fn top_p(&self) -> Option<f32> {
        self.0.chat.parameters.top_p
    }

    /// Returns the stop sequences.
    #[must_use]
    pub fn stop(&self) -> &[String] {
        &self.0.chat.parameters.stop
    }

    /// Returns the seed.
    #[must_use]
    pub fn seed(&self) -> Option<u64> {
        self.0.chat.parameters.seed
    }

    /// Returns the tools offered to the model.
    #[must_use]
    pub fn tools(&self) -> &Registry {
        &self.0.config.tools
    }

    /// Returns the tools that a request offers now, with those of [sources](crate::AgentOptionsBuilder::tool_source), or
    /// the old ones if it would fail. Excludes `read_result`, offered once a result has been truncated or cleared.
    #[must_use]
    pub fn next_tools(&self) -> Registry {
        let refreshed = self.0.refreshed(None).ok().flatten();
        let config = &refreshed.as_ref().unwrap_or(&self.0).config;
        config.without_reader(config.tools.clone())
    }

    /// Returns a tool by name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.0.config.tools.get(name)
    }

    /// Returns `true` if the client runs calls itself.
    #[must_use]
    pub fn auto_execute_tools(&self) -> bool {
        self.0.config.turn.mode == Mode::Auto
    }

    /// Returns the maximum number of rounds of calls for one prompt in auto mode.
    #[must_use]
    pub fn max_tool_iterations(&self) -> u32 {
        self.0.config.turn.max_rounds
    }

    /// Returns the maximum number of prompts of a client.
    #[must_use]
    pub fn max_turns(&self) -> Option<u32> {
        self.0.config.turn.max_turns
    }

    /// Returns the maximum number of calls run for one prompt.
    #[must_use]
    pub fn max_tool_calls(&self) -> Option<u32> {
        self.0.config.turn.max_calls
    }

    /// Returns the number of tokens per prompt after which no more calls run.
    #[must_use]
    pub fn max_run_tokens(&self) -> Option<u64> {
        self.0.config.turn.max_tokens
    }

    /// Returns the maximum number of tool calls started per minute.
    #[must_use]
    pub fn max_tool_calls_per_minute(&self) -> Option<u32> {
        self.0.executor.options().rate.as_ref().map(CallRate::calls)
    }

    /// Returns the price of tokens.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.0.config.price
    }

    /// Returns the cost per prompt after which no more calls run.
    #[must_use]
    pub fn max_run_cost(&self) -> Option<Cost> {
        self.0.config.turn.max_cost
    }

    /// Returns the maximum time of a turn, including tools.
    #[must_use]
    pub fn max_run_time(&self) -> Option<Duration> {
        self.0.config.max_run_time
    }

    /// Returns the number of identical calls with identical results after which the model is warned.
    #[must_use]
    pub fn repeat_guard(&self) -> Option<u32> {
        self.0.config.turn.repeat_guard
    }

    /// Returns `true` if a limit is followed by one last request without tools.
    #[must_use]
    pub fn last_answer_without_tools(&self) -> bool {
        self.0.config.turn.last_answer_without_tools
    }

    /// Returns `true` if only the text of the last answer is received.
    #[must_use]
    pub fn final_text_only(&self) -> bool {
        self.0.config.turn.final_text_only
    }

    /// Returns the maximum number of answers per prompt that hooks may refuse and let the model retry.
    #[must_use]
    pub fn max_answer_retries(&self) -> u32 {
        self.0.config.turn.max_answer_retries
    }

    /// Returns the mode and the limits of a turn, for [`Turn::new`](oa_turn::Turn::new).
    #[must_use]
    pub fn turn_options(&self) -> oa_turn::Options {
        self.0.config.turn
    }

    /// Creates an empty turn with these options, for a custom driver.
    #[must_use]
    pub fn turn(&self) -> oa_turn::Turn {
        self.0.config.turn(self.0.config.turn)
    }

    /// Returns the executor that runs calls, with the tools that are allowed.
    #[must_use]
    pub fn tool_executor(&self) -> &ToolExecutor {
        &self.0.executor
    }

    /// Returns the steps of the agent, for a custom driver.
    #[must_use]
    pub fn steps(&self) -> AgentSteps {
        AgentSteps::new(Arc::clone(&self.0))
    }

    /// Returns how calls are run in auto mode.
    #[must_use]
    pub fn executor(&self) -> &ExecutorOptions {
        self.0.executor.options()
    }

    /// Returns the policy for shortening the conversation during a turn.
    #[must_use]
    pub fn context(&self) -> Option<&ContextPolicy> {
        self.0.config.context.as_ref()
    }

    /// Returns `true` if [`archive_context`](AgentOptionsBuilder::archive_context) is set.
    #[must_use]
    pub fn archive_context(&self) -> bool {
        self.0.config.steps.archive.is_some()
    }

    /// Returns `true` if the model can read full results.
    #[must_use]
    pub fn offer_full_results(&self) -> bool {
        self.0.config.keeps_results
    }

    /// Returns where the images of results are sent.
    #[must_use]
    pub fn result_images(&self) -> ResultImages {
        self.0.chat.result_images
    }

    /// Returns the shared value of this type.
    #[must_use]
    pub fn state<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.0.config.state.get()
    }

    /// Returns the hooks.
    pub fn hooks(&self) -> &Hooks {
        &self.0.config.hooks
    }

    /// Returns how the model calls tools.
    #[must_use]
    pub fn tool_mode(&self) -> &ToolMode {
        &self.0.chat.tool_mode
    }

    /// Returns `true` if calls are recognized in text.
    #[must_use]
    pub fn recognize_calls(&self) -> bool {
        self.0.chat.recognize_calls
    }

    /// Returns the names of the allowed tools, as they were given; `None` if all are allowed.
    #[must_use]
    pub fn allowed_tools(&self) -> Option<Vec<&str>> {
        self.0.config.permissions.allowed()
    }

    /// Returns the names of the disallowed tools, as they were given.
    #[must_use]
    pub fn disallowed_tools(&self) -> Vec<&str> {
        self.0.config.permissions.disallowed()
    }

    /// Returns `true` if [`can_use_tool`](AgentOptionsBuilder::can_use_tool) is set.
    #[must_use]
    pub fn can_use_tool(&self) -> bool {
        self.0.config.permissions.asks()
    }

    /// Returns the permissions for tools.
    pub fn permissions(&self) -> &Permissions {
        &self.0.config.permissions
    }

    /// Returns the permission mode, which applies to calls that no rule matches.
    #[must_use]
    pub fn permission_mode(&self) -> PermissionMode {
        self.0.config.permissions.effective_mode()
    }

    /// Returns the tool choice.
    #[must_use]
    pub fn tool_choice(&self) -> Option<&ToolChoice> {
        self.0.chat.parameters.tool_choice.as_ref()
    }

    /// Returns `Some(true)` if several tools may be called in one answer; `None` if it was not set.
    #[must_use]
    pub fn parallel_tool_calls(&self) -> Option<bool> {
        self.0.chat.parameters.parallel_tool_calls
    }

    /// Returns the response format.
    #[must_use]
    pub fn response_format(&self) -> Option<&Value> {
        self.0.chat.parameters.response_format.as_ref()
    }

    /// Returns the members merged into each request.
    #[must_use]
    pub fn extra_body(&self) -> &Map<String, Value> {
        &self.0.chat.parameters.extra_body
    }

    /// Returns the maximum silence once an answer has begun.
    #[must_use]
    pub fn idle_timeout(&self) -> Option<Duration> {
        self.0.chat.timeouts.idle
    }

    /// Alias of [`idle_timeout`](Self::idle_timeout).
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.0.chat.timeouts.idle
    }

    /// Returns the maximum time without content once an answer has begun.
    #[must_use]
    pub fn content_timeout(&self) -> Option<Duration> {
        self.0.chat.timeouts.content
    }

    /// Returns the maximum time until an answer begins.
    #[must_use]
    pub fn first_token_timeout(&self) -> Option<Duration> {
        self.0.chat.timeouts.first_token
    }

    /// Returns the maximum time to connect.
    #[must_use]
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.0.endpoint()?.connect_timeout()
    }

    /// Returns the maximum time of a request, including its retries and the whole answer.
    #[must_use]
    pub fn total_timeout(&self) -> Option<Duration> {
        self.0.chat.timeouts.total
    }

    /// Returns the retry settings.
    #[must_use]
    pub fn retry(&self) -> &RetryConfig {
        self.0.backend.config()
    }

    /// Returns the limits on the memory that a server's answer may take.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.0.chat.limits
    }

    /// Returns how much the model should think.
    #[must_use]
    pub fn thinking(&self) -> Option<&Thinking> {
        self.0.chat.thinking.as_ref()
    }

    /// Returns `true` if the server is asked to report how far it has read the prompt.
    #[must_use]
    pub fn prompt_progress(&self) -> bool {
        self.0.chat.prompt_progress
    }

    /// Returns the member in which the model reads its own thinking; `None` if the provider decides.
    #[must_use]
    pub fn thinking_replay(&self) -> Option<ThinkingReplay> {
        self.0.chat.thinking_replay
    }

    /// Returns how think tags in the text are treated.
    #[must_use]
    pub fn think_tags(&self) -> ThinkTags {
        self.quirks().think_tags
    }

    /// Returns the server's quirks, with those known for the provider.
    #[must_use]
    pub fn quirks(&self) -> Quirks {
        self.0.chat.quirks_at(self.0.endpoint())
    }

    /// Returns how malformed chunks of an answer are handled.
    #[must_use]
    pub fn on_bad_chunk(&self) -> OnBadChunk {
        self.0.chat.on_bad_chunk
    }

    /// Returns `true` if broken argument JSON is repaired.
    #[must_use]
    pub fn lenient_tool_json(&self) -> bool {
        self.quirks().repair == ArgumentRepair::On
    }
}

impl Default for AgentOptions {
    /// Reads the environment. If its values cannot be used, the first request fails and says why.
    fn default() -> Self {
        AgentOptionsBuilder::from_environment()
    }
}

impl fmt::Debug for AgentOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
