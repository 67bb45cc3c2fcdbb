use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use oa_access::Access;
use oa_client::AgentOptions;
use oa_session::SessionStore;
use tokio::net::{TcpListener, ToSocketAddrs, lookup_host};
use tokio::sync::watch;

use crate::connections;
use crate::conversations::{Conversations, now};
use crate::front_state::FrontState;
use crate::guard::{self, BodyLimit};
use crate::limits::ServeLimits;
use crate::served::Served;
use crate::{ag_ui, ai_sdk, native, openai, page};

/// An agent to serve over HTTP, with the options of the server.
///
/// ```
/// use oa_client::{AgentOptions, Client};
/// use oa_serve::AgentServer;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let agent = AgentOptions::builder().model("qwen3:8b").build()?;
/// let server = AgentServer::new(agent).name("Helper").bearer_token("a long secret");
/// let app: axum::Router = server.router(); // or: server.serve("127.0.0.1:8080").await?
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a server does nothing until it is served"]
pub struct AgentServer {
    agent: AgentOptions,
    name: String,
    store: Option<Arc<dyn SessionStore>>,
    limits: ServeLimits,
    access: Access,
    /// An allowed origin that no browser sends.
    wrong_origin: Option<String>,
    context_window: Option<u64>,
    housekeeping: Option<String>,
    allows_anyone: bool,
}

impl AgentServer {
    /// Creates a server that keeps conversations in memory, has no token, and allows only pages of its own origin.
    pub fn new(agent: AgentOptions) -> Self {
        Self {
            agent,
            name: "agent".to_owned(),
            store: None,
            limits: ServeLimits::default(),
            access: Access::new(),
            wrong_origin: None,
            context_window: None,
            housekeeping: None,
            allows_anyone: false,
        }
    }

    /// Sets the name of the agent that front ends show. `agent` by default.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the store for conversations. By default they are kept in memory and lost when the process ends.
    ///
    /// Conversations of the native interface are stored, chats of the AI SDK as `chat-ID`, and threads of AG-UI as
    /// `thread-ID`. OpenAI completions have no ids and are not stored.
    pub fn session_store(mut self, store: impl SessionStore + 'static) -> Self {
        self.store = Some(Arc::new(store));
        self
    }

    /// Sets the token that each request must send as `authorization: Bearer TOKEN`. None by default.
    ///
    /// Loading the page requires no token, because the page holds no data; its requests do.
    pub fn bearer_token(mut self, token: impl Into<String>) -> Self {
        self.access.set_token(token);
        self
    }

    /// Allows pages of another origin, such as `https://app.example.com`, to use this server; `*` allows those of all
    /// origins. No other origin is allowed by default.
    ///
    /// A server on a loopback address also accepts requests for the host of an allowed origin, as a reverse proxy on the
    /// same machine sends them. Text that is not an origin allows nothing, and [`serve`](Self::serve) reports it.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        let origin = origin.into();
        if !self.access.allow_origin(&origin) {
            self.wrong_origin = Some(origin);
        }
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: ServeLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the size of the model's context window in tokens, which front ends show as a meter.
    pub fn context_window(mut self, tokens: u64) -> Self {
        self.context_window = Some(tokens);
        self
    }

    /// Offers OpenAI clients a second model with this id: the agent's model without tools and system prompt. None by
    /// default.
    ///
    /// Front ends such as Open WebUI and LibreChat send prompts for titles, tags and follow-ups to the chat's model
    /// unless another model is set; an agent would use its tools to answer them.
    pub fn housekeeping_model(mut self, id: impl Into<String>) -> Self {
        self.housekeeping = Some(id.into());
        self
    }

    /// Allows [`serve`](Self::serve) to listen on addresses that other machines can reach without a
    /// [`bearer_token`](Self::bearer_token), for a server behind a proxy that authenticates its users.
    pub fn allow_anyone(mut self, allow: bool) -> Self {
        self.allows_anyone = allow;
        self
    }

    /// Returns the routes, to serve on their own or to nest into an application.
    pub fn router(self) -> Router {
        self.into_parts().0
    }

    /// Returns the routes and their conversations. Call [`Conversations::shutdown`] to let runs finish before the
    /// program exits.
    pub fn into_parts(self) -> (Router, Conversations) {
        let Self { agent, name, store, limits, access, context_window, housekeeping, .. } = self;
        let agent = with_state(&agent);
        let body = BodyLimit { bytes: limits.body_bytes, time: limits.request };
        let housekeeping =
            housekeeping.and_then(|id| Some((Arc::from(id), without_tools(&agent)?)));
        let conversations = Conversations::new(agent, store, limits);
        let served = Served {
            name: name.into(),
            context_window,
            conversations: conversations.clone(),
            housekeeping,
            created: now() / 1_000,
        };
        let cors = guard::cors(&access);
        let access = Arc::new(access);
        // The last layer runs first: access and content type are checked before any of the body is read.
        let guarded = |routes: Router<Served>| {
            routes
                .route_layer(from_fn_with_state(body, guard::whole_bodies))
                .route_layer(from_fn(guard::json_bodies))
                .route_layer(from_fn_with_state(Arc::clone(&access), guard::check))
        };
        // The AI SDK shows the error body to the user verbatim, so it stays plain text.
        let chat = guarded(ai_sdk::routes());
        let in_json = |routes| guarded(routes).layer(map_response(guard::json_errors));
        let router = Router::new()
            .nest("/api", in_json(native::routes()))
            .nest("/api/chat", chat)
            .merge(in_json(ag_ui::routes()))
            .nest("/v1", in_json(openai::routes()))
            .merge(page::routes())
            // `whole_bodies` has already limited the body.
            .layer(DefaultBodyLimit::disable())
            .with_state(served);
        // Preflight requests have no token, so they are answered before the token check.
        let router = match cors {
            Some(cors) => router.layer(cors),
            None => router,
        };
        (router, conversations)
    }

    /// Serves on an address until Ctrl-C or, on Unix, `SIGTERM`. Then it accepts no more connections, and runs end
    /// within [`ServeLimits::shutdown`].
    ///
    /// [`ServeLimits::connections`] bounds the number of connections, and each request must arrive within
    /// [`ServeLimits::request`].
    ///
    /// # Errors
    ///
    /// `InvalidInput` if there is no [token](Self::bearer_token) although other machines can reach the address or all
    /// [origins](Self::allow_origin) are allowed, and for text that is not an origin. The system's errors if the
    /// address cannot be resolved or bound.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the listener; runs in progress continue as long as the runtime does.
    pub async fn serve(self, addr: impl ToSocketAddrs) -> io::Result<()> {
        let addrs: Vec<SocketAddr> = lookup_host(addr).await?.collect();
        let listener = TcpListener::bind(&*addrs).await?;
        self.serve_until(listener, shutdown_signal()).await
    }

    /// Serves on a listener until `shutdown` completes. Otherwise like [`serve`](Self::serve).
    ///
    /// # Errors
    ///
    /// As [`serve`](Self::serve).
    ///
    /// # Cancel safety
    ///
    /// As [`serve`](Self::serve).
    pub async fn serve_until(
        self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let addr = listener.local_addr()?;
        let is_local = addr.ip().to_canonical().is_loopback();
        if let Some(problem) = self.problem_at(addr, is_local) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        let mut server = self;
        if is_local {
            // Without it, a page could reach the server under a name of its own that resolves to 127.0.0.1.
            server.access.only_local_hosts();
        }
        let limits = server.limits.clone();
        let (router, conversations) = server.into_parts();
        let (close, closing) = watch::channel(false);
        // Both at once: event streams keep their connections open until the runs have ended.
        tokio::join!(connections::serve(listener, router, &limits, closing), async {
            shutdown.await;
            close.send_replace(true);
            // Runs without viewers may still be in progress.
            conversations.shutdown().await;
        });
        Ok(())
    }

    /// Returns the reason not to serve at an address: a setting that would be unsafe there, or one that is wrong.
    fn problem_at(&self, addr: SocketAddr, is_local: bool) -> Option<String> {
        let is_open = !self.access.has_token() && !self.allows_anyone;
        if is_open && !is_local {
            let safe = "set a bearer token, or listen on 127.0.0.1";
            return Some(format!("{addr} is reachable from other machines: {safe}"));
        }
        if is_open && self.access.allows_any_origin() {
            let safe = "set a bearer token, or allow only some origins";
            return Some(format!(
                "any page in a browser on this machine could use the agent: {safe}"
            ));
        }
        let wrong = self.wrong_origin.as_deref()?;
        Some(format!("`{wrong}` is not an origin such as https://app.example.com"))
    }
}

/// Returns the agent with an empty [`FrontState`], so that its tools always find one.
fn with_state(agent: &AgentOptions) -> AgentOptions {
    agent.with_state(FrontState::default())
}

/// Returns the agent without tools and system prompt.
fn without_tools(agent: &AgentOptions) -> Option<AgentOptions> {
    agent.without_tools().ok()?.with_system_prompt("").ok()
}

/// Waits for Ctrl-C, or on Unix for `SIGTERM`.
async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

impl fmt::Debug for AgentServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentServer")
            .field("name", &self.name)
            .field("agent", &self.agent)
            .field("store", &self.store)
            .field("limits", &self.limits)
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
