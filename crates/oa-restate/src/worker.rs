use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;
use std::{fmt, io};

use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use oa_client::AgentOptions;
use oa_session::SessionStore;
use restate_sdk::endpoint::{Endpoint, ServiceOptions};
use restate_sdk::service::IntoServiceDefinition;
use tokio::net::{TcpListener, TcpSocket};

use crate::agents::{Inner, Shared};
use crate::batch::AgentBatch;
use crate::calls::AgentTool;
use crate::control::{AgentInterrupt, Control};
use crate::event::EventSink;
use crate::inbox::AgentInbox;
use crate::limits::Limits;
use crate::name;
use crate::object::Agent;
use crate::register::{self, RegisterError, Registered};
use crate::tap;
use crate::warning::{WarningSink, WorkerWarning};

/// A process that performs the steps of agents for the engine: model requests, tools, hooks.
///
/// It holds no state: every worker at an address can continue the turns of any other. Start as many as you like.
///
/// ```no_run
/// use oa_client::AgentOptions;
/// use oa_restate::AgentWorker;
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = AgentOptions::builder()
///     .base_url("http://127.0.0.1:11434/v1")
///     .model("qwen3:8b")
///     .auto_execute_tools(true)
///     .build()?;
/// let worker = AgentWorker::new(agent).ingress("http://127.0.0.1:8080");
/// let listener = AgentWorker::listen("127.0.0.1:9080".parse()?)?;
/// // The engine queries the worker during registration, so it must already be serving.
/// let serving = tokio::spawn(worker.clone().serve(listener));
/// worker.register("http://127.0.0.1:9070", "http://127.0.0.1:9080").await?;
/// serving.await??;
/// # Ok(())
/// # }
/// ```
///
/// # Differences from a client
///
/// - The agent's own retries are the only ones: a request that failed after them is recorded as failed.
/// - Each call runs in its own executor, on any worker. The number of concurrent calls is limited per turn; per-tool
///   caps, rates and caches apply per worker. Full results of truncated calls are not kept.
/// - The events of [structured output](crate::SessionPrompt::output) show answers as the model gave them, with the calls
///   of the output tool.
/// - Durable turns do not detect servers that truncate prompts.
/// - A call of a sub-agent that waits for approval is in the [status](crate::Status) of the sub-agent's session, and
///   not in that of the calling session. Its [events](Self::events) name the session.
/// - A sub-agent starts with what is left of the budgets of the agents above it. Those that run at once do not see
///   what the others spend until they have ended, so together they can exceed a budget by more than an answer each.
#[derive(Clone)]
#[must_use = "a worker does nothing until it serves"]
pub struct AgentWorker {
    main: AgentOptions,
    named: BTreeMap<String, AgentOptions>,
    limits: Limits,
    sink: Option<Arc<dyn EventSink>>,
    ingress: Option<String>,
    store: Option<Arc<dyn SessionStore>>,
    warnings: Option<Arc<WarningSink>>,
}

impl AgentWorker {
    /// The maximum number of attempts at an invocation. By default, the engine pauses a session after 70, which is too
    /// few for a night without workers; a paused session cannot be reached.
    const ATTEMPTS: u64 = u32::MAX as u64;

    /// The time for steps in progress to end after the worker is asked to stop.
    const LAST_STEPS: Duration = Duration::from_secs(10);

    /// The pause after a failed accept.
    const NEXT_ACCEPT: Duration = Duration::from_millis(50);

    /// The time after which the engine suspends handlers that only wait for an interrupt.
    const IDLE: Duration = Duration::from_secs(5);

    /// Creates a worker of an agent, without an ingress and with the default limits.
    pub fn new(agent: AgentOptions) -> Self {
        let limits = Limits::default().held();
        let (named, sink, ingress, store, warnings) = (BTreeMap::new(), None, None, None, None);
        Self { main: agent, named, limits, sink, ingress, store, warnings }
    }

    /// Adds another agent. A call of a tool with this name, by any agent of the worker, is a turn of this agent in a
    /// separate session. It takes the argument `prompt`, and the text of its last answer is the result of the call. If
    /// the answer may be incomplete, the result is `{"text": "..", "incomplete": "<reason>"}`; without text, it is an
    /// error. Its calls also need the permission of the agents that it runs [within](AgentOptions::within). A
    /// [prompt](crate::SessionPrompt::agent) can also name it.
    pub fn agent(mut self, name: impl Into<String>, agent: AgentOptions) -> Self {
        self.named.insert(name.into(), agent);
        self
    }

    /// Sets the limits of sizes and times. Sizes that the engine could not hold are reduced.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits.held();
        self
    }

    /// Publishes events as they happen, outside the journal.
    pub fn events(mut self, sink: impl EventSink + 'static) -> Self {
        self.sink = Some(Arc::new(sink));
        self
    }

    /// Stores conversations in a session store, such as PostgreSQL, instead of in the engine's state. All workers at an
    /// address must use the same store. The id of a stored session is the key of the session; other programs may read
    /// it, and write to it between turns.
    ///
    /// Each turn is appended [once](SessionStore::append_once) when it ends, even if the worker dies between the append
    /// and its journal entry. While the store cannot be reached, turns wait for it. If another writer changes the
    /// session during a turn, `prompt` returns 409 and the messages of the turn are not kept. Sessions of sub-agents'
    /// calls stay in the engine for the duration of the call.
    pub fn session_store(mut self, store: impl SessionStore + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Calls a function for each warning, in addition to the log by `tracing`. It must not block.
    pub fn on_warning(mut self, tell: impl Fn(&WorkerWarning) + Send + Sync + 'static) -> Self {
        self.warnings = Some(Arc::new(tell));
        self
    }

    /// Sets the address of the engine's ingress, such as `http://127.0.0.1:8080`, so that an interrupt reaches a
    /// request or a tool in progress. Without it, an interrupt takes effect when the request in progress is over.
    pub fn ingress(mut self, url: &str) -> Self {
        self.ingress = Some(url.to_owned());
        self
    }

    /// Returns a digest of everything that determines the steps of a turn: limits, tools, hooks and a store. Turns that
    /// were begun with another digest may not be able to continue here; the worker [warns](Self::on_warning) when it
    /// continues one.
    #[must_use]
    pub fn digest(&self) -> String {
        let named = self.named.iter().map(|(name, options)| (&**name, options));
        let agents = [("", &self.main)].into_iter().chain(named);
        name::digest(agents, &self.limits, self.store.is_some())
    }

    /// Binds a listener that several workers on this machine can share, by `SO_REUSEPORT`. Its connections set
    /// `TCP_NODELAY`: otherwise each step takes 20 milliseconds longer.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime with I/O.
    pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // Accepted connections inherit it.
        socket.set_nodelay(true)?;
        socket.set_reuseaddr(true)?;
        #[cfg(unix)]
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(1024)
    }

    /// Registers this worker with the engine, at an address where it is already serving.
    ///
    /// # Errors
    ///
    /// If the engine does not answer, or does not accept the worker.
    pub async fn register(&self, admin: &str, worker: &str) -> Result<Registered, RegisterError> {
        register::register(admin, worker, &self.digest()).await
    }

    /// Serves until SIGTERM or Ctrl-C. Steps in progress then have ten seconds to end; unfinished ones are restarted by
    /// another worker.
    ///
    /// # Errors
    ///
    /// If signals cannot be received.
    pub async fn serve(self, listener: TcpListener) -> io::Result<()> {
        let end = ended()?;
        self.serve_until(listener, end).await;
        Ok(())
    }

    /// Serves until a future completes; otherwise like [`serve`](Self::serve).
    pub async fn serve_until(self, listener: TcpListener, end: impl Future<Output = ()>) {
        let endpoint = self.endpoint();
        let graceful = GracefulShutdown::new();
        let mut end = std::pin::pin!(end);
        loop {
            let accepted = {
                let mut accept = std::pin::pin!(listener.accept());
                // Polls the end first, so that a stream of connections cannot delay it.
                poll_fn(|cx| match end.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(None),
                    Poll::Pending => accept.as_mut().poll(cx).map(Some),
                })
                .await
            };
            let stream = match accepted {
                None => break,
                Some(Ok((stream, _))) => stream,
                Some(Err(_)) => {
                    // Usually a lack of file descriptors, which closing connections release.
                    tokio::time::sleep(Self::NEXT_ACCEPT).await;
                    continue;
                }
            };
            let endpoint = endpoint.clone();
            let service = service_fn(move |request| {
                ready(Ok::<_, Infallible>(tap::handle(&endpoint, request)))
            });
            let connection = http2::Builder::new(TokioExecutor::new())
                .serve_connection(TokioIo::new(stream), service);
            // The engine reopens a broken connection.
            tokio::spawn(graceful.watch(connection));
        }
        // From here on, the other workers that share the address get all new connections.
        drop(listener);
        let _ = tokio::time::timeout(Self::LAST_STEPS, graceful.shutdown()).await;
    }

    fn endpoint(self) -> Endpoint {
        let digest = self.digest();
        let Self { main, named, limits, sink, ingress, store, warnings } = self;
        let control = ingress.as_deref().map(Control::new);
        let (known, metadata) = (Mutex::default(), digest.clone());
        let shared = Shared::new(Inner {
            main,
            named,
            limits,
            sink,
            control,
            store,
            digest,
            warnings,
            known,
        });
        let options = || {
            ServiceOptions::new()
                .abort_timeout(limits.longest_step)
                .retry_policy_max_attempts(Self::ATTEMPTS)
                .metadata(register::DIGEST, &*metadata)
        };
        // Only handlers call these services, so the ingress does not offer them.
        let private = || options().ingress_private(true);
        let (object, tools) = (Agent(shared.clone()), AgentTool(shared));
        Endpoint::builder()
            .bind(object.into_service_definition().options(options()))
            .bind(AgentBatch.into_service_definition().options(options()))
            .bind(tools.into_service_definition().options(private()))
            .bind(AgentInbox.into_service_definition().options(private()))
            .bind(
                AgentInterrupt
                    .into_service_definition()
                    .options(private().inactivity_timeout(Self::IDLE)),
            )
            .build()
    }
}

impl fmt::Debug for AgentWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentWorker")
            .field("main", &self.main)
            .field("named", &self.named)
            .field("limits", &self.limits)
            .field("ingress", &self.ingress)
            .finish_non_exhaustive()
    }
}

/// Returns a future that completes when this process is asked to stop.
#[cfg(unix)]
fn ended() -> io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(poll_fn(move |cx| {
        let is_over = terminate.poll_recv(cx).is_ready() || interrupt.poll_recv(cx).is_ready();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    }))
}

#[cfg(not(unix))]
fn ended() -> io::Result<impl Future<Output = ()>> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
