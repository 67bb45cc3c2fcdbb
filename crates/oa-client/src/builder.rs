mod assembly;
mod budgets;
mod context;
mod permissions;
mod signals;
mod steps;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use oa_aggregate::{ArgumentRepair, Quirks, ThinkTags};
use oa_chat::{
    AnswerStream, AnyChat, ChatOptions, ChatRequest, Endpoint, EndpointBuilder, Error, Limits,
    OnBadChunk, Provider, RetryConfig, ServerProfile, SystemRole, Thinking, Timeout, ToolMode,
};
use oa_executor::ExecutorOptions;
use oa_hooks::{Hooks, Permission};
use oa_tools::{SourcedTools, Tool, ToolSource};
use oa_transport::RequestBody;
use oa_turn::Mode;
use oa_types::Temperature;
use oa_types::wire::{ResultImages, ThinkingReplay, ToolChoice};
use serde_json::Value;
use tower::Service;

use crate::settings::AgentConfig;

/// A builder for [`AgentOptions`](crate::AgentOptions). Errors are reported by [`build`](Self::build).
/// Clones suit agents that differ in a few options; they share connections only over one [`transport`](Self::transport).
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct AgentOptionsBuilder {
    endpoint: EndpointBuilder,
    service: Option<AnyChat>,
    retry: RetryConfig,
    /// The model; a profile or the environment may set it too.
    model: Option<String>,
    chat: ChatOptions,
    config: AgentConfig,
    unanswered: Option<(Duration, Permission)>,
    calls_per_minute: Option<u32>,
    executor: Option<ExecutorOptions>,
    /// Options that were set but have no effect unless the client runs tools.
    auto_only: Vec<&'static str>,
    names_questions: bool,
    unusable: Option<String>,
    error: Option<Error>,
}

impl AgentOptionsBuilder {
    /// Sets the model. The default is `OPEN_AGENT_MODEL`.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the address, `http://` or `https://`, to which `/chat/completions` is appended; a trailing slash is fine.
    /// The default is the address of the [`provider`](Self::provider); without a provider, `OPEN_AGENT_BASE_URL`, then
    /// LM Studio's address. Without the feature `tls`, requests to an `https://` address fail with `Config`.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.endpoint = self.endpoint.base_url(base_url);
        self
    }

    /// Sets the provider, for its default address and its quirks.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.endpoint = self.endpoint.provider(provider);
        self
    }

    /// Applies a profile of a server and a model: address, model, provider, and their quirks. Other options override
    /// it, and it overrides the environment. Its facts about the model are ignored if another model is set.
    ///
    /// [`build`](Self::build) fails if the profile contradicts itself, if another provider is set without an address,
    /// or if tools are offered to a model whose server rejects them.
    pub fn profile(mut self, profile: ServerProfile) -> Self {
        self.endpoint = self.endpoint.profile(profile.clone());
        self.config.server_profile = Some(profile);
        self
    }

    /// Reads a [`profile`](Self::profile) immediately from a file that the doctor wrote. An invalid file is an error
    /// at [`build`](Self::build).
    pub fn profile_file(mut self, path: impl AsRef<Path>) -> Self {
        match ServerProfile::read(path) {
            Ok(profile) => self.profile(profile),
            Err(error) => {
                self.error.get_or_insert(error);
                self
            }
        }
    }

    /// Sets the system prompt, the first message of every request.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        let prompt: String = prompt.into();
        self.chat.system_prompt = (!prompt.is_empty()).then(|| prompt.into());
        self
    }

    /// Sets how the system prompt is sent: by default as a system message, which some models do not support.
    pub fn system_role(mut self, role: SystemRole) -> Self {
        self.chat.system_role = role;
        self
    }

    /// Sets where the images of tool results are sent. By default, they are sent in a user message after the results,
    /// which every server accepts. Send them inside the results if your server and its model support that.
    pub fn result_images(mut self, place: ResultImages) -> Self {
        self.chat.result_images = place;
        self
    }

    /// Sets the API key, sent as `Authorization: Bearer` to this server and no other; none by default. A key of at least 8
    /// bytes is masked wherever the server repeats it; a shorter one is not, because it could be an ordinary word.
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.endpoint = self.endpoint.api_key(key);
        self
    }

    /// Adds a header to every request, replacing a default header of the same name.
    /// [`EndpointBuilder::header`](oa_chat::EndpointBuilder::header) lists the headers that are rejected, and the
    /// values that are masked where the server repeats them.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.endpoint = self.endpoint.header(name, value);
        self
    }

    /// Sets the maximum length of an answer, in tokens. By default, the server decides.
    pub fn max_tokens(mut self, tokens: impl Into<Option<u32>>) -> Self {
        self.chat.parameters.max_tokens = tokens.into();
        self
    }

    /// Sets the sampling temperature, from 0 to 2. By default, the server decides.
    pub fn temperature(mut self, temperature: impl Into<Option<f32>>) -> Self {
        match temperature.into().map(Temperature::new).transpose() {
            Ok(it) => self.chat.parameters.temperature = it.map(Temperature::value),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Sets the nucleus sampling bound, above 0 and up to 1. By default, the server decides.
    pub fn top_p(mut self, top_p: impl Into<Option<f32>>) -> Self {
        let top_p = top_p.into();
        match top_p.filter(|it| !(*it > 0.0 && *it <= 1.0)) {
            Some(it) => self.refuse(format!("top_p must be above 0 and at most 1, not {it}")),
            None => self.chat.parameters.top_p = top_p,
        }
        self
    }

    /// Adds a sequence that ends the answer where the model writes it. For several, call this several times.
    pub fn stop(mut self, stop: impl Into<String>) -> Self {
        self.chat.parameters.stop.push(stop.into());
        self
    }

    /// Sets the seed of the server's sampling. By default, the server decides.
    pub fn seed(mut self, seed: impl Into<Option<u64>>) -> Self {
        self.chat.parameters.seed = seed.into();
        self
    }

    /// Offers a tool to the model. Duplicate names are an error at [`build`](Self::build).
    pub fn tool(mut self, tool: impl Tool + 'static) -> Self {
        if let Err(error) = self.config.tools.add(tool) {
            self.refuse(error.to_string());
        }
        self
    }

    /// Offers several tools to the model.
    pub fn tools<T: Tool + 'static>(self, tools: impl IntoIterator<Item = T>) -> Self {
        tools.into_iter().fold(self, Self::tool)
    }

    /// Offers the tools of a source whose tools may change while the agent runs. The source is asked before each
    /// request. A tool whose name is already taken is omitted. [`AgentSteps`](crate::AgentSteps) use the tools that the
    /// source had when the options were built.
    pub fn tool_source(mut self, source: impl ToolSource + 'static) -> Self {
        self.config.sources.push(SourcedTools::new(source));
        self
    }

    /// Sets whether the client runs the model's calls and continues, until the model is done or a limit is reached. Off
    /// by default: your program runs the calls.
    pub fn auto_execute_tools(mut self, auto: bool) -> Self {
        self.config.turn.mode = if auto { Mode::Auto } else { Mode::Manual };
        self
    }

    /// Limits the rounds of calls for one prompt in auto mode; 5 by default. Calls requested after the last round
    /// are answered with "not run", and the turn ends.
    pub fn max_tool_iterations(mut self, rounds: u32) -> Self {
        if rounds == 0 {
            self.refuse("max_tool_iterations must be at least 1".to_owned());
        }
        self.config.turn.max_rounds = rounds;
        self.auto_only("max_tool_iterations")
    }

    /// Sets whether only the text of the last answer is returned, in one piece. Off by default. Applies to auto mode.
    pub fn final_text_only(mut self, final_text: bool) -> Self {
        self.config.turn.final_text_only = final_text;
        self.auto_only_if(final_text, "final_text_only")
    }

    /// Sets how calls are run in auto mode. By default, up to 8 run at once, without a timeout, and 10,000 characters
    /// of each result are kept.
    pub fn executor(mut self, options: ExecutorOptions) -> Self {
        self.executor = Some(options);
        self.auto_only("executor")
    }

    /// Shares a value with all tools, which the model can neither see nor set: see
    /// [`ToolContext::state`](oa_tools::ToolContext::state). The value replaces an earlier one of the same type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.config.state.insert(value);
        self
    }

    /// Adds hooks, which run before a prompt is sent, before a call is run or returned, on results, and on finished
    /// answers. They run after the hooks that were added earlier, as with [`Hooks::merge`].
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.config.hooks = std::mem::take(&mut self.config.hooks).merge(hooks);
        self
    }

    /// Sets how the model calls tools. [`ToolMode::Auto`], the default, uses the server's function calling, and falls
    /// back to calls in the answer's text once the server says that the model does not support it.
    pub fn tool_mode(mut self, mode: ToolMode) -> Self {
        self.config.turn.inline_results = matches!(mode, ToolMode::MarkersInline);
        self.chat.tool_mode = mode;
        self
    }

    /// Recognizes calls in text or at the end of thinking that the server should have parsed (QUIRKS rows 31 and 152).
    /// A call that the server sends in both forms runs once. Off by default, because text that merely quotes a call
    /// would run as one. It is an error at [`build`](Self::build) if the tool mode already reads calls from text.
    pub fn recognize_calls(mut self, recognize: bool) -> Self {
        self.chat.recognize_calls = recognize;
        self
    }

    /// Sets whether tools may or must be called: `"auto"`, `"none"`, `"required"`, the name of a tool, or a
    /// [`ToolChoice`]. It is an error at [`build`](Self::build) if there are no tools, if the named tool is not
    /// offered, or if calls are written as text (except with [`ToolMode::Constrained`]).
    pub fn tool_choice(mut self, choice: impl Into<ToolChoice>) -> Self {
        self.chat.parameters.tool_choice = Some(choice.into());
        self
    }

    /// Sets whether the model may call several tools in one answer. Without tools, [`build`](Self::build) fails.
    pub fn parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.chat.parameters.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the response format: a [`ResponseFormat`](crate::ResponseFormat), or any JSON object such as
    /// `{"type": "json_object"}`. Answers are not validated; [`Client::send_for`](crate::Client::send_for) does that.
    pub fn response_format(mut self, format: impl Into<Value>) -> Self {
        match format.into() {
            format @ Value::Object(_) => self.chat.parameters.response_format = Some(format),
            _ => self.refuse("response_format must be a JSON object".to_owned()),
        }
        self
    }

    /// Merges members into the JSON of every request, for settings that have no option here. They override options.
    /// `{"stream": false}` is for servers whose streams lose calls (QUIRKS row 141): answers arrive in one piece.
    pub fn extra_body(mut self, members: Value) -> Self {
        match members {
            Value::Object(members) => {
                let is_taken =
                    |name| members.get(name).is_some_and(|of| name != "stream" || *of != false);
                for taken in ["messages", "stream"].into_iter().filter(|name| is_taken(*name)) {
                    self.refuse(format!("extra_body may not set {taken:?}"));
                }
                self.chat.parameters.extra_body.extend(members);
            }
            _ => self.refuse("extra_body must be a JSON object".to_owned()),
        }
        self
    }

    /// Limits the silence once an answer has begun: whole seconds, a `Duration`, or `None`; 60 seconds by
    /// default. Any byte resets it. For a limit on the whole answer see [`total_timeout`](Self::total_timeout).
    pub fn idle_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.idle = self.timeout_of("idle_timeout", timeout);
        self
    }

    /// Alias of [`idle_timeout`](Self::idle_timeout): it limits silence, not the whole answer.
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.idle = self.timeout_of("timeout", timeout);
        self
    }

    /// Like [`idle_timeout`](Self::idle_timeout), but only content resets it; none by default.
    pub fn content_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.content = self.timeout_of("content_timeout", timeout);
        self
    }

    /// Limits the wait for an answer to begin; 300 seconds by default, because loading a model takes minutes.
    pub fn first_token_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.first_token = self.timeout_of("first_token_timeout", timeout);
        self
    }

    /// Limits the wait for a connection; 5 seconds by default. Does not apply to your own transport.
    pub fn connect_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.endpoint = self.endpoint.connect_timeout(timeout);
        self
    }

    /// Limits the time of one request, from its start to the end of its answer, including all retries, their delays,
    /// and all servers of a router. There is no limit by default. A retry whose delay would exceed the limit is not
    /// made. A turn may have many requests: to limit a turn, see [`max_run_time`](Self::max_run_time).
    pub fn total_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.total = self.timeout_of("total_timeout", timeout);
        self
    }

    /// Sets how failed requests are retried; 2 retries by default.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.retry = retry;
        self
    }

    /// Limits the memory that a server's answer may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.chat.limits = limits;
        self
    }

    /// Sets how much the model should think: `true`, `false`, or an effort such as `"low"`. Requires a
    /// [`provider`](Self::provider), because each has its own member for it (QUIRKS row 146); otherwise
    /// [`build`](Self::build) fails, or with a [`chat_service`](Self::chat_service) the request. A model that cannot do
    /// it is asked without, and [`AgentEvent::ThinkingRefused`](crate::AgentEvent::ThinkingRefused) reports that.
    pub fn thinking(mut self, thinking: impl Into<Thinking>) -> Self {
        self.chat.thinking = Some(thinking.into());
        self
    }

    /// Sets the member in which the model reads its own thinking again, such as between the calls of a turn. By default,
    /// that of the provider, and none for an unknown server (QUIRKS row 94).
    pub fn thinking_replay(mut self, replay: ThinkingReplay) -> Self {
        self.chat.thinking_replay = Some(replay);
        self
    }

    /// Sets how think tags in the text are treated. By default they mark thinking for providers known to send them,
    /// and are text for all others.
    pub fn think_tags(mut self, tags: ThinkTags) -> Self {
        self.chat.think_tags = Some(tags);
        self
    }

    /// Sets quirks of the server that cannot be detected: which choices make up the answer, and whether each chunk of
    /// text repeats all the text before it (QUIRKS rows 53 and 55). Its `think_tags` and `repair` apply unless
    /// [`think_tags`](Self::think_tags) and [`lenient_tool_json`](Self::lenient_tool_json) are set.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.endpoint = self.endpoint.quirks(quirks);
        self
    }

    /// Sets whether arguments whose JSON is cut off or slightly broken are repaired. Off by default: such a call
    /// becomes a [`ToolUseError`](oa_types::ToolUseError) and does not run. With repair, a value may lack its end.
    pub fn lenient_tool_json(mut self, lenient: bool) -> Self {
        self.chat.repair = Some(if lenient { ArgumentRepair::On } else { ArgumentRepair::Off });
        self
    }

    /// Sets how chunks of an answer that are not JSON are handled. By default they are reported, as
    /// [`AgentEvent::Problem`](crate::AgentEvent::Problem) and in the log, and the answer continues.
    pub fn on_bad_chunk(mut self, policy: OnBadChunk) -> Self {
        self.chat.on_bad_chunk = policy;
        self
    }

    /// Trusts these PEM certificates in addition to the system's, for a server with a self-signed certificate. Does not
    /// apply to your own transport.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.endpoint = self.endpoint.root_certificates(pem);
        self
    }

    /// Sends requests through your own service instead of the built-in one: with middleware, or a model in memory.
    ///
    /// Tower's limits and timeouts can wrap any transport. A rate limit cannot be cloned, so wrap it in a buffer. All
    /// clients that use a clone of the buffer share the limit:
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use oa_client::{AgentOptions, Client};
    /// use tower::ServiceBuilder;
    /// # use oa_testkit::{MemoryServer, Reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> oa_client::Result<()> {
    /// # let transport = MemoryServer::new(Reply::text("Hello!"));
    /// let limited = ServiceBuilder::new()
    ///     .buffer(16)
    ///     .rate_limit(60, Duration::from_secs(60))
    ///     .concurrency_limit(4)
    ///     .timeout(Duration::from_secs(30)) // until the head of the response
    ///     .service(transport); // `oa_transport::Transport`, say
    /// let options = AgentOptions::builder().model("qwen3:8b").transport(limited).build()?;
    /// let mut client = Client::new(options)?;
    /// assert_eq!(client.ask("Say hello.").await?.text, "Hello!");
    /// # Ok(())
    /// # }
    /// ```
    pub fn transport<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>> + 'static,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.endpoint = self.endpoint.transport(service);
        self
    }

    /// Sends requests to a prepared endpoint. Several agents may share one, with its connections, its key, and what was
    /// learned about the server. As with [`chat_service`](Self::chat_service), server settings belong to the endpoint.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.service = Some(endpoint.into());
        self
    }

    /// Sends requests to your own chat service, such as an [`Endpoint`] with layers around it, or a router. Server
    /// settings (address, provider, key, headers, transport) belong to the service; setting them here is an error at
    /// [`build`](Self::build). The client retries around the service.
    pub fn chat_service<S>(mut self, service: S) -> Self
    where
        S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        S::Future: Send,
    {
        self.service = Some(AnyChat::new(service));
        self
    }

    /// Accepts names in hooks and permissions that no tool has, for MCP hosts: they see the servers' questions.
    #[doc(hidden)]
    pub fn for_questions(self) -> Self {
        Self { names_questions: true, ..self }
    }

    /// Records an option that has no effect unless tools are run.
    fn auto_only(mut self, option: &'static str) -> Self {
        self.auto_only.push(option);
        self
    }

    /// The same for an option that has just been turned on or off.
    fn auto_only_if(mut self, is_on: bool, option: &'static str) -> Self {
        self.auto_only.retain(|earlier| *earlier != option);
        if is_on { self.auto_only(option) } else { self }
    }

    /// Returns the duration of a timeout option; zero is an error.
    fn timeout_of(&mut self, option: &str, timeout: impl Into<Timeout>) -> Option<Duration> {
        let timeout = timeout.into();
        if timeout.is_zero() {
            self.refuse(Timeout::zero(option));
        }
        timeout.duration()
    }

    /// Returns the value of a limit; zero is an error.
    fn at_least_one<T: Default + PartialEq>(
        &mut self,
        option: &str,
        limit: impl Into<Option<T>>,
    ) -> Option<T> {
        let limit = limit.into();
        if limit == Some(T::default()) {
            self.refuse(format!("{option} must be at least 1"));
        }
        limit
    }

    /// Keeps the first error.
    fn refuse(&mut self, message: String) {
        self.error.get_or_insert_with(|| Error::config(message));
    }
}
