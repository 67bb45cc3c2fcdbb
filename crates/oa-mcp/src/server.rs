use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use oa_mcp_data::{
    Elicitation, ElicitationAnswer, Offers, Pins, Root, Sampled, Sampling, SchemaForm,
};
use oa_redact::Secrets;
use oa_tools::{LogLevel, ToolContext, ToolError};

#[cfg(feature = "http")]
use crate::http::HttpSpec;
use crate::limits::Limits;
use crate::listener::{OnLog, OnStderr};
use crate::stdio_spec::StdioSpec;

/// One server as configured: how it is started or reached, and which of its tools are offered.
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
    pub(crate) allowed: Option<Vec<String>>,
    pub(crate) disallowed: Vec<String>,
    /// New names of tools, by the server's.
    pub(crate) renamed: Vec<(String, String)>,
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
}

#[derive(Clone)]
pub(crate) enum Target {
    #[cfg(feature = "http")]
    Http(HttpSpec),
    Stdio(StdioSpec),
}

impl McpServer {
    /// Creates a server that is started as a child process and spoken to over its standard input and output.
    ///
    /// The child gets an empty environment, and of ours only `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM`, `USER`, `LANG`,
    /// `LC_ALL`, `LC_CTYPE`, `TMPDIR` and `TZ`, and what is named by [`env`](Self::env) and
    /// [`inherit_env`](Self::inherit_env). It runs in a process group of its own, which ends with the connection.
    pub fn stdio(name: impl Into<String>, program: impl Into<String>) -> Self {
        let spec = StdioSpec {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            inherited: Vec::new(),
            dir: None,
        };
        Self::new(name.into(), Target::Stdio(spec))
    }

    /// Creates a server that is reached at a URL, over streamable HTTP.
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
            allowed: None,
            disallowed: Vec::new(),
            renamed: Vec::new(),
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
        }
    }

    /// Speaks version 2026-07-28 from the start, in which each request stands for itself: there is no handshake, and over HTTP
    /// no session that a server could forget.
    ///
    /// Without it, a server is asked for the newest version with a handshake, and for this one if it refuses that.
    pub fn stateless(mut self) -> Self {
        self.is_stateless = true;
        self
    }

    /// Adds an argument of the program. No effect on a server at a URL.
    pub fn arg(self, arg: impl Into<String>) -> Self {
        self.args([arg])
    }

    /// Adds arguments of the program. No effect on a server at a URL.
    pub fn args(self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with_stdio(|spec| spec.args.extend(args.into_iter().map(Into::into)))
    }

    /// Sets a variable of the program's environment. The value counts as a secret: it is masked in errors and never
    /// printed. No effect on a server at a URL.
    pub fn env(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.with_stdio(|spec| spec.env.push((name.into(), value.into())))
    }

    /// Hands on variables of our own environment by name, where they are set. Their values count as secrets. No effect
    /// on a server at a URL.
    pub fn inherit_env(self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.with_stdio(|spec| spec.inherited.extend(names.into_iter().map(Into::into)))
    }

    /// Sets the folder in which the program starts. The default is ours. No effect on a server at a URL.
    pub fn current_dir(self, dir: impl Into<PathBuf>) -> Self {
        self.with_stdio(|spec| spec.dir = Some(dir.into()))
    }

    fn with_stdio(mut self, change: impl FnOnce(&mut StdioSpec)) -> Self {
        match &mut self.target {
            Target::Stdio(spec) => change(spec),
            #[cfg(feature = "http")]
            Target::Http(_) => {}
        }
        self
    }

    /// Sends this key as `Authorization: Bearer`. No effect on a program.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn bearer(self, key: oa_transport::ApiKey) -> Self {
        self.with_http(|spec| spec.bearer = Some(key))
    }

    /// Sends this header with each request. The value counts as a secret. No effect on a program.
    ///
    /// # Errors
    ///
    /// `Config` for what cannot be sent as a header.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn header(
        self,
        name: impl AsRef<str>,
        value: impl AsRef<str>,
    ) -> Result<Self, crate::Error> {
        let header = crate::http::header(name.as_ref(), value.as_ref())?;
        Ok(self.with_http(|spec| spec.headers.push(header)))
    }

    /// Asks for another key when the server answers 401: the callback gets the `WWW-Authenticate` header, and the
    /// request is sent once more with the key that it returns. `None` leaves it at the error. No effect on a program.
    ///
    /// The key is kept for the requests that follow.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn on_unauthorized<F, R>(self, ask: F) -> Self
    where
        F: Fn(String) -> R + Send + Sync + 'static,
        R: Future<Output = Option<oa_transport::ApiKey>> + Send + 'static,
    {
        self.with_http(|spec| spec.ask = Some(crate::http::Ask::new(ask)))
    }

    /// Sends requests by this transport, for example one that trusts a certificate of your own. No effect on a program.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub fn transport(self, transport: oa_transport::Transport) -> Self {
        self.with_http(|spec| spec.transport = transport)
    }

    #[cfg(feature = "http")]
    fn with_http(mut self, change: impl FnOnce(&mut HttpSpec)) -> Self {
        if let Target::Http(spec) = &mut self.target {
            change(spec);
        }
        self
    }

    /// Sets the prefix of the names of its tools, `<prefix>__<name>`. The default is the server's name; an empty prefix
    /// leaves the names as they are.
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = Some(prefix.into());
        self
    }

    /// Offers only these tools, named as the server names them. A `*` at the end stands for any rest.
    pub fn allow_only(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.allowed.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Leaves these tools out, named as the server names them, even where they are allowed. A `*` at the end stands for
    /// any rest.
    pub fn disallow(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.disallowed.extend(names.into_iter().map(Into::into));
        self
    }

    /// Offers a tool under another name: `<prefix>__<to>`. Filters and pins go by the name that the server has for it.
    pub fn rename(mut self, tool: impl Into<String>, to: impl Into<String>) -> Self {
        self.renamed.push((tool.into(), to.into()));
        self
    }

    /// Offers only tools that are as they were when they were pinned. Keep [`Connection::pins`](crate::Connection::pins)
    /// and give them to the next connection; empty pins pin what is there. See [`Pins`].
    pub fn pins(mut self, pins: Pins) -> Self {
        self.pins = Some(pins);
        self
    }

    /// Offers the model two more tools, `<prefix>__list_resources` and `<prefix>__read_resource`, if the server has
    /// resources. By default only the program reads them: [`Connection::resources`](crate::Connection::resources).
    pub fn resource_tools(mut self) -> Self {
        self.offers_resources = true;
        self
    }

    /// Sets the form in which schemas go to the model server. The default is [`SchemaForm::AsIs`].
    pub fn schemas(mut self, form: SchemaForm) -> Self {
        self.schemas = form;
        self
    }

    /// Makes a failure to connect an error of [`Servers::connect`](crate::Servers::connect), instead of an entry in
    /// [`Connected::failures`](crate::Connected::failures).
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Believes what the server says about its tools: one that calls itself read-only has the category `read` instead of
    /// `mcp`, so that rules which allow `read` allow it; and a call of one that calls itself idempotent may be repeated by
    /// the executor's policy for retries if the server was silent or died.
    pub fn trust_annotations(mut self) -> Self {
        self.trusts_annotations = true;
        self
    }

    /// Sets how long starting, the handshake and the list of tools may take together. The default is 30 seconds.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long a call may be silent: until its answer, or between reports of progress. The default is 60 seconds.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Sets how long a call may take in all. The default is 10 minutes.
    pub fn max_call_time(mut self, time: Duration) -> Self {
        self.max_call_time = time;
        self
    }

    /// Sets the bounds.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the receiver of the server's log notifications: the level, and the text in at most 2,000 characters.
    ///
    /// It is called while messages are read, so it must return quickly.
    pub fn on_log(mut self, on_log: impl Fn(LogLevel, &str) + Send + Sync + 'static) -> Self {
        self.on_log = Some(OnLog::new(on_log));
        self
    }

    /// Sets the receiver of the program's error output, by line, with secrets masked. Lines longer than 8 KiB arrive in
    /// pieces. No effect on a server at a URL.
    pub fn on_stderr(mut self, on_stderr: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(OnStderr::new(on_stderr));
        self
    }

    /// Tells the server of a folder that it may work in. A relative path is taken from the current folder. It is only
    /// told; what it can reach is not limited by it.
    pub fn root(mut self, folder: impl AsRef<Path>) -> Self {
        self.offers.roots.push(Root::new(folder.as_ref()));
        self
    }

    /// Lets the server ask the person while one of its tools runs, and sets who answers. Without it, such questions are
    /// refused. In version 2026-07-28 it may also ask before it gives a prompt or a resource; the program's own requests for
    /// these have a context without a state.
    ///
    /// The callback gets the question and the context of the call. Meanwhile the times of calls stand still. An
    /// interrupt of the call, or the server taking the question back, drops the callback's future. A call asks one
    /// question at a time.
    ///
    /// A question by itself passes no hooks and no permission rules: wrap the callback by `McpHost` of `oa-agents`.
    ///
    /// ```
    /// use oa_mcp::{ElicitationAnswer, McpServer};
    ///
    /// let server = McpServer::stdio("booking", "booking-mcp").on_elicitation(|question, _| async move {
    ///     println!("{} asks: {}", question.server, question.message);
    ///     ElicitationAnswer::Decline // or what the person enters
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

    /// Lets the server ask a model while one of its tools runs, and sets which one answers. Without it, such requests
    /// are refused.
    ///
    /// The callback gets the request and the context of the call; an error is told to the server. In version 2026-07-28, which
    /// has no words for that, an error ends the call with kind [`Refused`](crate::ErrorKind::Refused). For everything else see
    /// [`on_elicitation`](Self::on_elicitation). `McpHost` of `oa-agents` has the model of an agent answer, by its
    /// permissions and from its budgets.
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

    /// Returns true if a tool of this name is to be offered.
    pub(crate) fn offers(&self, tool: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(start) => tool.starts_with(start),
            None => pattern == tool,
        };
        self.allowed.as_ref().is_none_or(|allowed| allowed.iter().any(fits))
            && !self.disallowed.iter().any(fits)
    }

    /// Returns the prefix of the names of its tools.
    pub(crate) fn name_prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or(&self.name)
    }

    /// Returns the name of a tool after the prefix.
    pub(crate) fn renamed<'a>(&'a self, tool: &'a str) -> &'a str {
        let renamed = self.renamed.iter().rfind(|(from, _)| from == tool);
        renamed.map_or(tool, |(_, to)| to)
    }

    /// Returns true if the server may ask questions.
    pub(crate) fn may_ask(&self) -> bool {
        self.offers.on_elicitation.is_some() || self.offers.on_sampling.is_some()
    }

    /// Returns true if the server is a child process.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.target, Target::Stdio(_))
    }

    /// Returns what must not be seen in errors.
    pub(crate) fn secrets(&self) -> Secrets {
        match &self.target {
            Target::Stdio(spec) => {
                let mut secrets = Secrets::new();
                for (_, value) in spec.variables() {
                    secrets.add_key(&value);
                }
                secrets
            }
            #[cfg(feature = "http")]
            Target::Http(spec) => spec.secrets(),
        }
    }
}

/// Shows names of variables and headers, not their values, and no arguments, which may contain a key.
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
