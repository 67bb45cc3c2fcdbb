use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oa_mcp_data::{
    Elicitation, ElicitationAnswer, Limits, Offers, Pins, Root, Sampled, Sampling, SchemaForm,
    ToolSelection,
};
use oa_redact::Secrets;
use oa_tools::{LogLevel, ToolContext, ToolError};
use oa_types::Timeout;

#[cfg(feature = "http")]
use crate::http::HttpSpec;
use crate::listener::{OnLog, OnStderr};
use crate::stdio_spec::StdioSpec;

/// The configuration of one server: how it is started or reached, and which of its tools are offered.
///
/// Connecting fails with a `Config` error if a server at a URL has an option that is only for programs, such as
/// [`env`](Self::env), or a program has an option that is only for servers at a URL, such as `bearer`.
///
/// ```
/// use oa_mcp::McpServer;
///
/// let files = McpServer::stdio("files", "npx")
///     .args(["-y", "@modelcontextprotocol/server-filesystem", "/srv/shared"])
///     .env("LOG_LEVEL", "warning")
///     .allow_only(["read_*", "list_directory"]);
/// assert_eq!(files.name(), "files");
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it is connected"]
pub struct McpServer {
    pub(crate) name: String,
    pub(crate) target: Target,
    pub(crate) prefix: Option<String>,
    pub(crate) selection: ToolSelection,
    pub(crate) pins: Option<Pins>,
    pub(crate) offers_resources: bool,
    pub(crate) schemas: SchemaForm,
    pub(crate) is_required: bool,
    pub(crate) trusts_annotations: bool,
    pub(crate) connect_timeout: Duration,
    pub(crate) call_timeout: Duration,
    pub(crate) max_call_time: Duration,
    pub(crate) limits: Limits,
    pub(crate) on_log: Option<OnLog>,
    pub(crate) on_stderr: Option<OnStderr>,
    pub(crate) offers: Offers,
    pub(crate) is_stateless: bool,
    /// The first option that this kind of server does not have.
    misplaced: Option<&'static str>,
}

#[derive(Clone)]
pub(crate) enum Target {
    #[cfg(feature = "http")]
    Http(HttpSpec),
    Stdio(StdioSpec),
}

impl McpServer {
    /// Creates a server that runs as a child process and communicates over its standard input and output.
    ///
    /// The child inherits only `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`, `LANG`, `LC_ALL`, `LC_CTYPE`,
    /// `TMPDIR` and `TZ` from the environment; [`env`](Self::env) and [`inherit_env`](Self::inherit_env) add more. It
    /// runs in its own process group (on Windows, a job), which ends with the connection.
    ///
    /// The program is a path, or a name that is looked up in `PATH`. On Windows, a name without an extension also finds
    /// scripts: `npx` starts `npx.cmd`.
    pub fn stdio(name: impl Into<String>, program: impl Into<String>) -> Self {
        let spec = StdioSpec { program: program.into(), ..StdioSpec::default() };
        Self::new(name.into(), Target::Stdio(spec))
    }

    /// Creates a server at a URL, reached over streamable HTTP. An `https://` URL needs the feature `tls`.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        Self::new(name.into(), Target::Http(HttpSpec::new(url.into())))
    }

    fn new(name: String, target: Target) -> Self {
        Self {
            name,
            target,
            prefix: None,
            selection: ToolSelection::default(),
            pins: None,
            offers_resources: false,
            schemas: SchemaForm::default(),
            is_required: false,
            trusts_annotations: false,
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(60),
            max_call_time: Duration::from_secs(600),
            limits: Limits::default(),
            on_log: None,
            on_stderr: None,
            offers: Offers::default(),
            is_stateless: false,
            misplaced: None,
        }
    }

    /// Uses protocol version 2026-07-28 from the start. It is stateless: there is no handshake, and over HTTP no
    /// session that a server could forget.
    ///
    /// By default, the client first tries the newest version with a handshake, and falls back to this one if the server
    /// refuses.
    pub fn stateless(mut self) -> Self {
        self.is_stateless = true;
        self
    }

    /// Adds an argument of the program.
    pub fn arg(self, arg: impl Into<String>) -> Self {
        self.args([arg])
    }

    /// Adds arguments of the program.
    pub fn args(self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with_stdio("args", |spec| spec.args.extend(args.into_iter().map(Into::into)))
    }

    /// Sets a variable of the program's environment. The value counts as a secret: it is masked in errors and never
    /// printed.
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_stdio("env", |spec| spec.env.push((name.into(), value.into())))
    }

    /// Passes the named variables of the current environment to the program, if they are set. Their values count as
    /// secrets.
    pub fn inherit_env(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with_stdio("inherit_env", |spec| {
            spec.inherited.extend(names.into_iter().map(Into::into));
        })
    }

    /// Sets the program's working directory. The default is that of the current process.
    pub fn current_dir(self, dir: impl Into<PathBuf>) -> Self {
        self.with_stdio("current_dir", |spec| spec.dir = Some(dir.into()))
    }

    #[cfg_attr(
        not(feature = "http"),
        expect(unused_variables, reason = "all servers are programs")
    )]
    fn with_stdio(mut self, option: &'static str, change: impl FnOnce(&mut StdioSpec)) -> Self {
        match &mut self.target {
            Target::Stdio(spec) => change(spec),
            #[cfg(feature = "http")]
            Target::Http(_) => _ = self.misplaced.get_or_insert(option),
        }
        self
    }

    /// Sends this key as `Authorization: Bearer`.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn bearer(self, key: oa_transport::ApiKey) -> Self {
        self.with_http("bearer", |spec| spec.bearer = Some(key))
    }

    /// Sends this header with each request. The value counts as a secret.
    ///
    /// # Errors
    ///
    /// `Config` if the name or the value is not valid in a header.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn header(
        self,
        name: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Result<Self, crate::Error> {
        let header = crate::http::header(name.as_ref(), value.as_ref())?;
        Ok(self.with_http("header", |spec| spec.headers.push(header)))
    }

    /// Sets a callback for a new key when the server answers 401, or 403 because the key lacks a scope: it gets the
    /// `WWW-Authenticate` headers, joined by commas, and the request is retried once with the key that it returns. On
    /// `None`, or if the callback panics, the request fails. Requests that were refused together wait for the same key.
    ///
    /// The key is kept for later requests, until a new session begins.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn on_unauthorized<F, R>(self, ask: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Option<oa_transport::ApiKey>> + Send + 'static,
    {
        self.with_http("on_unauthorized", |spec| spec.ask = Some(crate::http::Ask::new(ask)))
    }

    /// Sends requests through this transport, for example one that trusts your own certificate.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn transport(self, transport: oa_transport::Transport) -> Self {
        self.with_http("transport", |spec| spec.transport = transport)
    }

    #[cfg(feature = "http")]
    fn with_http(mut self, option: &'static str, change: impl FnOnce(&mut HttpSpec)) -> Self {
        match &mut self.target {
            Target::Stdio(_) => _ = self.misplaced.get_or_insert(option),
            Target::Http(spec) => change(spec),
        }
        self
    }

    /// Sets the prefix of the server's tool names, `<prefix>__<name>`. The default is the server's name; an empty
    /// prefix leaves the names unchanged.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Offers only these tools, given by their names on the server. A `*` at the end matches any suffix. Here and in
    /// [`disallow`](Self::disallow) and [`rename`](Self::rename), a name that no tool has is a
    /// [warning](crate::Connection::warnings).
    pub fn allow_only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.selection.allow_only(names);
        self
    }

    /// Leaves out these tools, given by their names on the server, even if they are allowed. A `*` at the end matches
    /// any suffix.
    pub fn disallow(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.selection.disallow(names);
        self
    }

    /// Offers a tool under another name: `<prefix>__<to>`. Filters and pins use the name on the server.
    pub fn rename(mut self, tool: impl Into<String>, to: impl Into<String>) -> Self {
        self.selection.rename(tool, to);
        self
    }

    /// Offers only tools that have not changed since they were pinned. Store
    /// [`Connection::pins`](crate::Connection::pins) and pass them to the next connection; empty pins pin all current
    /// tools. See [`Pins`].
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Offers the model two more tools, `<prefix>__list_resources` and `<prefix>__read_resource`, if the server has
    /// resources. By default only your program reads them, with
    /// [`Connection::resources`](crate::Connection::resources).
    pub fn resource_tools(mut self) -> Self {
        self.offers_resources = true;
        self
    }

    /// Sets the form of schemas that are sent to the model server. The default is [`SchemaForm::Repaired`], which only
    /// repairs what model servers reject.
    pub fn schemas(mut self, form: SchemaForm) -> Self {
        self.schemas = form;
        self
    }

    /// Makes [`Servers::connect`](crate::Servers::connect) return an error if this server cannot be connected to,
    /// instead of adding it to [`Connected::failures`](crate::Connected::failures).
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Trusts the server's annotations of its tools. A read-only tool gets the category `read` instead of `mcp`, so
    /// that rules which allow `read` allow it; the executor's retry policy may repeat a call to an idempotent tool if
    /// the server timed out or died.
    pub fn trust_annotations(mut self) -> Self {
        self.trusts_annotations = true;
        self
    }

    /// Sets the timeout for starting the server, the handshake and listing the tools together; 30 seconds by default.
    pub fn connect_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.connect_timeout = timeout.into().or_max();
        self
    }

    /// Sets the idle timeout of a call: the longest wait for its answer or the next progress report; 60 seconds by
    /// default.
    pub fn call_timeout(mut self, timeout: impl Into<Timeout>) -> Self {
        self.call_timeout = timeout.into().or_max();
        self
    }

    /// Sets the total timeout of a call; 10 minutes by default.
    pub fn max_call_time(mut self, time: impl Into<Timeout>) -> Self {
        self.max_call_time = time.into().or_max();
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets a callback for the server's log notifications. It gets the level and the text, cut to 2,000 characters.
    ///
    /// It runs on the task that reads messages, so it must return quickly. A panic is contained, and added to
    /// [`warnings`](crate::Connection::warnings).
    pub fn on_log(mut self, on_log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.on_log = Some(OnLog::new(on_log));
        self
    }

    /// Sets a callback for the program's error output. It gets one line at a time, with secrets masked, and cut after
    /// 64 KiB. A panic is contained, and added to [`warnings`](crate::Connection::warnings).
    pub fn on_stderr(mut self, on_stderr: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(OnStderr::new(on_stderr));
        self
    }

    /// Announces a folder to the server as a root to work in. A relative path is resolved against the current
    /// directory. This is advisory: it does not limit the server's access.
    pub fn root(mut self, folder: impl AsRef<Path>) -> Self {
        self.offers.roots.extend(Root::new(folder.as_ref()));
        self
    }

    /// Sets the callback for questions to the user, which a server may ask while one of its tools runs. Without a
    /// callback, such questions are refused. In version 2026-07-28, the server may also ask before it returns a prompt
    /// or a resource; your program's own requests for these have a context without state.
    ///
    /// The callback gets the question and the context of the call. Call timeouts are paused while a question is open.
    /// The callback's future is dropped if the call is interrupted or the server cancels the question. A call asks one
    /// question at a time.
    ///
    /// If a server refuses a call until the user has visited pages (error -32042), the callback is asked about each
    /// page. If it accepts all of them, the call waits until the server reports the visits, at most the
    /// [`call_timeout`](Self::call_timeout), and is sent again, once.
    ///
    /// Hooks and permission rules do not see the question unless you wrap the callback with `McpHost` of `oa-agents`.
    ///
    /// ```
    /// use oa_mcp::{ElicitationAnswer, McpServer};
    ///
    /// let server = McpServer::stdio("booking", "booking-mcp").on_elicitation(|question, _| async move {
    ///     println!("{} asks: {}", question.server, question.message);
    ///     ElicitationAnswer::Decline // or the user's answer
    /// });
    /// # drop(server);
    /// ```
    pub fn on_elicitation<F, R>(mut self, ask: F) -> Self
    where
        F: Fn(Elicitation, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = ElicitationAnswer> + Send + 'static,
    {
        self.offers.on_elicitation =
            Some(Arc::new(move |question, cx| Box::pin(ask(question, cx))));
        self
    }

    /// Sets the callback for requests to a model, which a server may make while one of its tools runs. Without it, such
    /// requests are refused.
    ///
    /// The callback gets the request and the context of the call; its error is sent to the server. Version 2026-07-28
    /// cannot express such an error, so in that version the call fails with kind
    /// [`Refused`](crate::ErrorKind::Refused). Otherwise, this works like [`on_elicitation`](Self::on_elicitation).
    /// With `McpHost` of `oa-agents`, an agent's model answers, under the agent's permissions and budgets.
    pub fn on_sampling<F, R>(mut self, sample: F) -> Self
    where
        F: Fn(Sampling, ToolContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Sampled, ToolError>> + Send + 'static,
    {
        self.offers.on_sampling = Some(Arc::new(move |request, cx| Box::pin(sample(request, cx))));
        self
    }

    /// Returns the server's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the prefix of the server's tool names.
    pub(crate) fn name_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns true if the server may ask questions.
    pub(crate) fn may_ask(&self) -> bool {
        self.offers.on_elicitation.is_some() || self.offers.on_sampling.is_some()
    }

    pub(crate) fn is_program(&self) -> bool {
        matches!(self.target, Target::Stdio(_))
    }

    /// Checks that all options are those of this kind of server, and that no timeout is zero.
    pub(crate) fn check(&self) -> Result<(), crate::Error> {
        let Self { connect_timeout, call_timeout, max_call_time, .. } = *self;
        let times = [connect_timeout, call_timeout, max_call_time].map(|time| time.is_zero());
        if let Some(at) = times.iter().position(|is_zero| *is_zero) {
            let option = ["connect_timeout", "call_timeout", "max_call_time"][at];
            return Err(crate::Error::config(Timeout::zero(option)).of(&self.name));
        }
        let Some(option) = self.misplaced else { return Ok(()) };
        let kinds = if self.is_program() {
            "servers at a URL, and this one is a program"
        } else {
            "programs, and this server is at a URL"
        };
        Err(crate::Error::config(format!("`{option}` is an option of {kinds}")).of(&self.name))
    }

    /// Returns the longest pause of an overloaded server after which a request is sent again. It leaves time for the answer.
    #[cfg(feature = "http")]
    pub(crate) fn longest_pause(&self) -> Duration {
        let shortest = self.connect_timeout.min(self.call_timeout).min(self.max_call_time);
        (shortest / 2).min(Duration::from_secs(30))
    }

    pub(crate) fn secrets(&self) -> Secrets {
        match &self.target {
            Target::Stdio(spec) => {
                let mut secrets = Secrets::new();
                for (_, value) in spec.variables() {
                    secrets.add_key(&value);
                    // Error output is masked line by line.
                    value.lines().map(str::trim).for_each(|line| secrets.add_key(line));
                }
                secrets
            }
            #[cfg(feature = "http")]
            Target::Http(spec) => spec.secrets(),
        }
    }
}

/// Shows the names of variables and headers but not their values, and omits arguments, which may contain a key.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut f = f.debug_struct("McpServer");
        f.field("name", &self.name);
        match &self.target {
            Target::Stdio(spec) => {
                let names: Vec<_> =
                    spec.env.iter().map(|(name, _)| name).chain(&spec.inherited).collect();
                f.field("program", &spec.program).field("env", &names);
            }
            #[cfg(feature = "http")]
            Target::Http(spec) => {
                f.field("http", spec);
            }
        }
        f.finish_non_exhaustive()
    }
}
