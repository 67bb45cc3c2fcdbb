mod assembly;
mod budgets;
mod permissions;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use oa_aggregate::{ArgumentRepair, Quirks, ThinkTags};
use oa_chat::{
    AnswerStream, AnyChat, ChatOptions, ChatRequest, EndpointBuilder, Error, Limits, OnBadChunk,
    Provider, RetryConfig, ServerProfile, SystemRole, Thinking, Timeout, ToolMode,
};
use oa_executor::ExecutorOptions;
use oa_hooks::{Hooks, Permission};
use oa_tools::Tool;
use oa_transport::RequestBody;
use oa_turn::Mode;
use oa_types::Temperature;
use oa_types::wire::ToolChoice;
use serde_json::Value;
use tower::Service;

use crate::settings::AgentConfig;

/// Builds [`AgentOptions`](crate::AgentOptions). Errors are reported by [`build`](Self::build).
#[derive(Debug, Default)]
#[must_use = "a builder does nothing until `build` is called"]
pub struct AgentOptionsBuilder {
    endpoint: EndpointBuilder,
    service: Option<AnyChat>,
    retry: RetryConfig,
    /// The model, which may also be named by a profile or the environment.
    model: Option<String>,
    chat: ChatOptions,
    config: AgentConfig,
    unanswered: Option<(Timeout, Permission)>,
    calls_per_minute: Option<u32>,
    executor: Option<ExecutorOptions>,
    /// The options that were set and act only while tools are run.
    auto_only: Vec<&'static str>,
    unusable: Option<String>,
    error: Option<Error>,
}

impl AgentOptionsBuilder {
    /// Names the model. Without a name `OPEN_AGENT_MODEL` counts.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Sets the address, `http://` or `https://`, that `/chat/completions` is appended to; a slash at
    /// the end is harmless. Without one the address of the [`provider`](Self::provider) counts that is
    /// named; if none is, `OPEN_AGENT_BASE_URL`, then LM Studio's.
    pub fn base_url(mut self, base_url: impl Into<String>) -> Self {
        self.endpoint = self.endpoint.base_url(base_url);
        self
    }

    /// Names the server, for its usual address and its quirks.
    pub fn provider(mut self, provider: Provider) -> Self {
        self.endpoint = self.endpoint.provider(provider);
        self
    }

    /// Takes what was learned of a server and a model: address, model, provider, and what they want to
    /// be different. What is set here by name wins over it, and it wins over the environment. What it
    /// says of its model does not count for another one.
    ///
    /// At [`build`](Self::build) it is an error if a profile contradicts itself, another provider is
    /// named without an address, or tools are offered to a model whose server refuses them.
    pub fn profile(mut self, profile: ServerProfile) -> Self {
        self.endpoint = self.endpoint.profile(profile.clone());
        self.config.server_profile = Some(profile);
        self
    }

    /// Reads a file that the doctor has written, at once, as a [`profile`](Self::profile). A file that
    /// cannot be used is an error at [`build`](Self::build).
    pub fn profile_file(mut self, path: impl AsRef<Path>) -> Self {
        match ServerProfile::read(path) {
            Ok(profile) => self.profile(profile),
            Err(error) => {
                self.error.get_or_insert(error);
                self
            }
        }
    }

    /// Sets the first message of every request.
    pub fn system_prompt(mut self, prompt: impl Into<String>) -> Self {
        let prompt: String = prompt.into();
        self.chat.system_prompt = (!prompt.is_empty()).then(|| prompt.into());
        self
    }

    /// Says how the system prompt is sent: as a message of its own, unless a model knows no such role.
    pub fn system_role(mut self, role: SystemRole) -> Self {
        self.chat.system_role = role;
        self
    }

    /// Sets the key that is sent as `Authorization: Bearer`, to this server and no other. One of at least
    /// 8 bytes is masked wherever the server repeats it; a shorter one is taken for a word.
    pub fn api_key(mut self, key: impl AsRef<str>) -> Self {
        self.endpoint = self.endpoint.api_key(key);
        self
    }

    /// Adds a header to every request; it replaces a default one of the same name.
    /// [`EndpointBuilder::header`](crate::EndpointBuilder::header) lists the headers that are refused, and
    /// the values that are masked where the server repeats them.
    pub fn header(mut self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.endpoint = self.endpoint.header(name, value);
        self
    }

    /// Bounds the answer, in tokens.
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.chat.parameters.max_tokens = Some(tokens);
        self
    }

    /// Sets how freely the model chooses its words, from 0 to 2.
    pub fn temperature(mut self, temperature: f32) -> Self {
        match Temperature::new(temperature) {
            Ok(temperature) => self.chat.parameters.temperature = Some(temperature.value()),
            Err(error) => self.refuse(error.to_string()),
        }
        self
    }

    /// Sets the nucleus sampling bound, above 0 and up to 1.
    pub fn top_p(mut self, top_p: f32) -> Self {
        if top_p > 0.0 && top_p <= 1.0 {
            self.chat.parameters.top_p = Some(top_p);
        } else {
            self.refuse(format!("top_p is not above 0 and up to 1: {top_p}"));
        }
        self
    }

    /// Adds a text at which the answer ends.
    pub fn stop(mut self, stop: impl Into<String>) -> Self {
        self.chat.parameters.stop.push(stop.into());
        self
    }

    /// Sets the seed of the server's sampling.
    pub fn seed(mut self, seed: u64) -> Self {
        self.chat.parameters.seed = Some(seed);
        self
    }

    /// Offers a tool to the model. Two of one name are an error at [`build`](Self::build).
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

    /// Has the client run the model's calls and go on, until the model is done or a limit is reached.
    pub fn auto_execute_tools(mut self, auto: bool) -> Self {
        self.config.turn.mode = if auto { Mode::Auto } else { Mode::Manual };
        self
    }

    /// Bounds the rounds of calls for one prompt in auto mode, 5 by default. Calls that are asked for
    /// after the last round are answered with "not run", and the turn ends.
    pub fn max_tool_iterations(mut self, rounds: u32) -> Self {
        if rounds == 0 {
            self.refuse("max_tool_iterations is 0".to_owned());
        }
        self.config.turn.max_rounds = rounds;
        self.auto_only("max_tool_iterations")
    }

    /// Hands out only the text of the last answer, in one piece. For auto mode.
    pub fn final_text_only(mut self, final_text: bool) -> Self {
        self.config.turn.final_text_only = final_text;
        self.auto_only("final_text_only")
    }

    /// Sets how calls are run in auto mode: 8 at once, without timeout, 10,000 characters of each
    /// result by default.
    pub fn executor(mut self, options: ExecutorOptions) -> Self {
        self.executor = Some(options);
        self.auto_only("executor")
    }

    /// Shares a value with all tools, which the model neither sees nor sets: see
    /// [`ToolContext::state`](oa_tools::ToolContext::state). It replaces one of the same type.
    pub fn state<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.config.state.insert(value);
        self
    }

    /// Has these hooks asked before a prompt is sent, before a call runs or is handed out, and about
    /// results. Hooks set before are replaced; [`Hooks::merge`] joins several.
    pub fn hooks(mut self, hooks: Hooks) -> Self {
        self.config.hooks = hooks;
        self
    }

    /// Sets how the model calls tools: by the server's function calling, or in text. By default it is function
    /// calling, until the server says that the model has none; from then on it is text.
    pub fn tool_mode(mut self, mode: ToolMode) -> Self {
        self.config.turn.inline_results = matches!(mode, ToolMode::MarkersInline);
        self.chat.tool_mode = mode;
        self
    }

    /// Has calls recognized in text that the server should have read and did not, in the forms that
    /// models are trained to (QUIRKS row 31). Off by default, because text that only quotes a call would be
    /// run as one. Where calls are text anyway it is an error at [`build`](Self::build).
    pub fn recognize_calls(mut self, recognize: bool) -> Self {
        self.chat.recognize_calls = recognize;
        self
    }

    /// Sets whether tools may or must be called: `"auto"`, `"none"`, `"required"`, the name of a tool, or a
    /// [`ToolChoice`]. It is an error at [`build`](Self::build) without tools, where calls are text, and if the tool
    /// is not offered.
    pub fn tool_choice(mut self, choice: impl Into<ToolChoice>) -> Self {
        self.chat.parameters.tool_choice = Some(choice.into());
        self
    }

    /// Says whether several tools may be called in one answer. Without tools it is an error at
    /// [`build`](Self::build).
    pub fn parallel_tool_calls(mut self, parallel: bool) -> Self {
        self.chat.parameters.parallel_tool_calls = Some(parallel);
        self
    }

    /// Sets the form of the answer: a [`ResponseFormat`](crate::ResponseFormat), or any JSON such as
    /// `{"type": "json_object"}`. Answers are not checked by it;
    /// [`Client::send_for`](crate::Client::send_for) does that.
    pub fn response_format(mut self, format: impl Into<Value>) -> Self {
        self.chat.parameters.response_format = Some(format.into());
        self
    }

    /// Merges members into every request, for what has no option here. They win over options.
    pub fn extra_body(mut self, members: Value) -> Self {
        match members {
            Value::Object(members) => {
                for taken in ["messages", "stream"] {
                    if members.contains_key(taken) {
                        self.refuse(format!("extra_body may not set {taken:?}"));
                    }
                }
                self.chat.parameters.extra_body.extend(members);
            }
            _ => self.refuse("extra_body is no JSON object".to_owned()),
        }
        self
    }

    /// Bounds the silence once an answer has begun: whole seconds, a `Duration`, or `None`; 60 seconds
    /// by default. Any byte ends a silence. This is no limit on the whole answer: see
    /// [`total_timeout`](Self::total_timeout).
    pub fn idle_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.idle = self.timeout_of("idle_timeout", timeout);
        self
    }

    /// Another name of [`idle_timeout`](Self::idle_timeout): it bounds silence, not the whole answer.
    pub fn timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.idle = self.timeout_of("timeout", timeout);
        self
    }

    /// As [`idle_timeout`](Self::idle_timeout), but only content ends the silence; none by default.
    pub fn content_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.content = self.timeout_of("content_timeout", timeout);
        self
    }

    /// Bounds the wait for an answer to begin; 300 seconds by default, because loading a model takes
    /// minutes and is not a dead server.
    pub fn first_token_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.first_token = self.timeout_of("first_token_timeout", timeout);
        self
    }

    /// Bounds the wait for a connection; 5 seconds by default. Not for a transport of your own.
    pub fn connect_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.endpoint = self.endpoint.connect_timeout(timeout);
        self
    }

    /// Bounds the whole of one request, from when it is made until its answer has ended: all its tries with
    /// their pauses, and all servers of a router. None by default. A retry whose pause would take longer
    /// is not waited for. A turn may have many requests: see [`max_run_time`](Self::max_run_time).
    pub fn total_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.chat.timeouts.total = self.timeout_of("total_timeout", timeout);
        self
    }

    /// Sets how failed requests are tried again; 2 retries by default.
    pub fn retry(mut self, retry: RetryConfig) -> Self {
        self.retry = retry;
        self
    }

    /// Sets what a server may make the client hold.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.chat.limits = limits;
        self
    }

    /// Says how much the model is to think: `true`, `false`, or an effort such as `"low"`. Needs a
    /// [`provider`](Self::provider) that can be told, because each is told in a way of its own; without
    /// one it is an error at [`build`](Self::build). Whom a [`chat_service`](Self::chat_service) asks is
    /// not known until then: there a request to a server that cannot be told is the error.
    pub fn thinking(mut self, thinking: impl Into<Thinking>) -> Self {
        self.chat.thinking = Some(thinking.into());
        self
    }

    /// Says whether thinking stands between tags in the text; by default it does with providers that
    /// are known for it, and otherwise tags are text.
    pub fn think_tags(mut self, tags: ThinkTags) -> Self {
        self.chat.think_tags = Some(tags);
        self
    }

    /// Says what the server does differently and its bytes cannot tell: which choices are the answer, and
    /// whether each piece of text repeats all before it (QUIRKS rows 53 and 55). Its `think_tags` and
    /// `repair` count where [`think_tags`](Self::think_tags) and
    /// [`lenient_tool_json`](Self::lenient_tool_json) say nothing.
    pub fn quirks(mut self, quirks: Quirks) -> Self {
        self.endpoint = self.endpoint.quirks(quirks);
        self
    }

    /// Mends arguments whose JSON is cut off or slightly broken.
    pub fn lenient_tool_json(mut self, lenient: bool) -> Self {
        self.chat.repair = Some(if lenient { ArgumentRepair::On } else { ArgumentRepair::Off });
        self
    }

    /// Sets what to do about a chunk of an answer that is not JSON. By default it is reported, as
    /// [`AgentEvent::Problem`](crate::AgentEvent::Problem) and in the log, and the answer goes on.
    pub fn on_bad_chunk(mut self, policy: OnBadChunk) -> Self {
        self.chat.on_bad_chunk = policy;
        self
    }

    /// Trusts these certificates, in PEM, beside those that the system trusts: for a server with a
    /// certificate of your own making. Not for a transport of your own.
    #[cfg(feature = "tls")]
    pub fn root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.endpoint = self.endpoint.root_certificates(pem);
        self
    }

    /// Sends requests over a service of your own in place of the built-in transport: one with
    /// middleware, or a model in memory.
    ///
    /// Tower's limits and timeouts fit around any transport. A rate limit cannot be cloned, so a buffer goes around it,
    /// and all clients that have a clone share the limit:
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

    /// Has requests answered by a chat service of your own: an [`Endpoint`](crate::Endpoint) with layers
    /// around it, or something that chooses among several. Whatever belongs to a server (address,
    /// provider, key, headers, transport) is set there, and an error here at [`build`](Self::build).
    /// Retries are made around it.
    pub fn chat_service<S>(mut self, service: S) -> Self
    where
        S: Service<ChatRequest, Response = AnswerStream> + Clone + Send + Sync + 'static,
        S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
        S::Future: Send,
    {
        self.service = Some(AnyChat::new(service));
        self
    }

    /// Takes note of an option that acts only while tools are run.
    fn auto_only(mut self, option: &'static str) -> Self {
        self.auto_only.push(option);
        self
    }

    /// Returns the time of an option; none at all is an error.
    fn timeout_of(&mut self, option: &str, timeout: impl Into<Timeout>) -> Option<Duration> {
        let timeout = timeout.into();
        if timeout.is_zero() {
            self.refuse(Timeout::zero(option));
        }
        timeout.duration()
    }

    /// Keeps the first error.
    fn refuse(&mut self, message: String) {
        self.error.get_or_insert_with(|| Error::config(message));
    }
}
