use std::convert::Infallible;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Buf;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use oa_transport::ApiKey;
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::Service;

use crate::tool_server::call::{Connection, Runner};
use crate::tool_server::http::body::Event;
use crate::tool_server::http::guard::{
    Guard, accepted, check_message, check_stream, check_version, is_stateless, mirrors, too_large,
    wrong_version,
};
use crate::tool_server::http::refusal::Refusal;
use crate::tool_server::http::session::{Session, number_of};
use crate::tool_server::protocol::{Rejection, Step};
use oa_mcp_data::client::{ClientSessions, Full, Mirrors, Origin, STATELESS, joined};

mod body;
mod guard;
mod refusal;
mod session;

pub use crate::tool_server::http::body::HttpBody;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// The capacity of the queue of messages of one response.
const MESSAGES: usize = 16;

/// A [`ToolServer`](crate::ToolServer) over streamable HTTP, as a tower service for hyper, axum and others.
///
/// By default it accepts only loopback names in `Host` and `Origin`, because other web pages could reach it otherwise;
/// [`allow_host`](Self::allow_host) adds names. It handles requests to any path, so mount it at one. Clones share the
/// sessions.
///
/// A call is answered with an event stream that ends with its result, everything else with JSON, unless the client
/// accepts only one of the two. Each session has one
/// `GET` stream for notifications outside of calls, which can be resumed with `Last-Event-ID`: changes of the tools,
/// and log lines of a [`ToolServerHandle`](crate::ToolServerHandle). Requests of version 2026-07-28 have no session.
#[derive(Clone)]
pub struct HttpService {
    guard: Guard,
    shared: Arc<Shared>,
}

struct Shared {
    runner: Arc<Runner>,
    sessions: Mutex<ClientSessions<Arc<Session>>>,
    /// The requests of all stateless clients.
    stateless: Arc<Connection>,
    bodies: Semaphore,
}

impl HttpService {
    pub(crate) fn new(runner: Runner) -> Self {
        let limits = &runner.limits;
        let sessions = Mutex::new(ClientSessions::new(limits.sessions.max(1), limits.session_idle));
        let bodies = Semaphore::new(limits.bodies.clamp(1, Semaphore::MAX_PERMITS));
        let runner = Arc::new(runner);
        let stateless = Arc::new(Connection::new(&runner));
        let shared = Shared { sessions, stateless, bodies, runner };
        Self { guard: Guard::default(), shared: Arc::new(shared) }
    }

    /// Allows clients to reach the server under a host name, given without a port: `tools.example`. Web pages from that
    /// host may send requests, too.
    #[must_use]
    pub fn allow_host(mut self, host: &str) -> Self {
        self.guard.allow_host(host);
        self
    }

    /// Sets the token that each request must carry: `Authorization: Bearer <key>`.
    #[must_use]
    pub fn bearer(mut self, key: ApiKey) -> Self {
        self.guard.set_bearer(key);
        self
    }

    /// Returns the number of open sessions, including idle ones that are about to end.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.shared.sessions().len()
    }

    async fn answer<B>(self, request: Request<B>) -> Response<HttpBody>
    where
        B: Body + Send,
        B::Data: Send,
    {
        let (parts, body) = request.into_parts();
        let accepted = accepted(&parts.headers);
        match self.dispatch(parts, body).await {
            Ok(response) => {
                let (mut parts, body) = response.into_parts();
                let (body, kind) = body.in_form(accepted).await;
                if let Some(kind) = kind {
                    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                }
                Response::from_parts(parts, body)
            }
            Err(refusal) => {
                let status = refusal.status();
                let mut response = json(status, refusal.into_body());
                if status == StatusCode::UNAUTHORIZED {
                    let challenge = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
                }
                if status == StatusCode::METHOD_NOT_ALLOWED {
                    response
                        .headers_mut()
                        .insert(ALLOW, HeaderValue::from_static("GET, POST, DELETE"));
                }
                response
            }
        }
    }

    async fn dispatch<B>(&self, parts: Parts, body: B) -> Result<Response<HttpBody>, Refusal>
    where
        B: Body + Send,
        B::Data: Send,
    {
        self.guard.admit(&parts)?;
        if parts.method == Method::POST {
            // What the headers can decide is decided before a body is read, unknown sessions included.
            check_message(&parts.headers, self.shared.runner.limits.body_bytes)?;
            if is_stateless(&parts.headers) {
                let message = self.shared.read(body).await?;
                return self.shared.post_alone(&mirrors(&parts.headers), &message);
            }
            let Some(id) = session_id(&parts)? else {
                return self.shared.open(&self.shared.read(body).await?);
            };
            self.shared.find(id)?;
            let message = self.shared.read(body).await?;
            // Once more: the session may have ended before all of the body was there.
            let session = self.shared.find(id)?;
            return self.shared.post(id, &session.connection, &message);
        }
        let version = mirrors(&parts.headers).version;
        if parts.method == Method::GET && version.as_deref() != Some(STATELESS) {
            check_stream(&parts.headers)?;
            let Some(id) = session_id(&parts)? else { return Err(no_session()) };
            let session = self.shared.find(id)?;
            return self.shared.follow(id, &session, &parts);
        }
        if parts.method == Method::DELETE {
            check_version(&parts.headers)?;
            let Some(id) = session_id(&parts)? else { return Err(no_session()) };
            let session = self.shared.sessions().remove(id).ok_or_else(unknown_session)?;
            session.connection.end();
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "messages must be sent with POST"))
    }
}

fn now() -> std::time::Instant {
    Instant::now().into_std()
}

impl Shared {
    fn sessions(&self) -> MutexGuard<'_, ClientSessions<Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &str) -> Result<Arc<Session>, Refusal> {
        let found = self.sessions().get(id, now(), is_busy);
        found.ok_or_else(unknown_session)
    }

    async fn read<B>(&self, body: B) -> Result<Vec<u8>, Refusal>
    where
        B: Body + Send,
        B::Data: Send,
    {
        let limits = &self.runner.limits;
        let reading = async {
            // Within the timeout, so a client waits no longer for its place than for its body.
            let _place = self.bodies.acquire().await;
            let mut body = Box::pin(body);
            let mut bytes = Vec::new();
            while let Some(frame) = std::future::poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
                let broken = |_| Refusal::new(StatusCode::BAD_REQUEST, "the body ended early");
                let Ok(mut data) = frame.map_err(broken)?.into_data() else { continue };
                if bytes.len() + data.remaining() > limits.body_bytes {
                    return Err(too_large(limits.body_bytes));
                }
                while data.has_remaining() {
                    let chunk = data.chunk();
                    bytes.extend_from_slice(chunk);
                    let read = chunk.len();
                    data.advance(read);
                }
            }
            Ok(bytes)
        };
        let why = "the body did not arrive in time";
        let late = |_| Refusal::new(StatusCode::REQUEST_TIMEOUT, why);
        tokio::time::timeout(limits.body_time, reading).await.map_err(late)?
    }

    /// Answers a message without a session, which must be `initialize`.
    fn open(&self, message: &[u8]) -> Result<Response<HttpBody>, Refusal> {
        let connection = Connection::new(&self.runner);
        let mut steps = connection.receive(message, Origin::Session);
        let answer = match (steps.pop(), steps.is_empty()) {
            (Some(Step::Answer(answer)), true) => answer,
            (Some(Step::Reject(_, refusal) | Step::Refuse(refusal)), true) => {
                return Err(Refusal::with_message(refusal));
            }
            _ => return Err(no_session()),
        };
        if !connection.is_ready() {
            // A ping needs no session. Any other request gets an error with its id.
            let is_error =
                serde_json::from_str::<Value>(&answer).is_ok_and(|it| it["error"].is_object());
            let status = if is_error { StatusCode::BAD_REQUEST } else { StatusCode::OK };
            return Ok(json(status, answer));
        }
        let id = new_id();
        let session = Arc::new(Session::new(connection));
        let added = self.sessions().add(id.clone(), session, now(), is_busy);
        added.map_err(|Full| {
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "too many sessions are busy")
        })?;
        let mut response = json(StatusCode::OK, answer);
        // Hexadecimal digits are a valid header value.
        if let Ok(id) = HeaderValue::from_str(&id) {
            response.headers_mut().insert(SESSION, id);
        }
        Ok(response)
    }

    fn post(
        self: &Arc<Self>,
        id: &str,
        connection: &Arc<Connection>,
        message: &[u8],
    ) -> Result<Response<HttpBody>, Refusal> {
        let (mut answers, mut refusals, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        for step in connection.receive(message, Origin::Session) {
            match step {
                Step::Answer(answer) => answers.push(answer),
                Step::Call(call) => calls.push(call),
                Step::Cancel(cancel) => cancel.cancel(),
                Step::Reject(_, refusal) | Step::Refuse(refusal) => refusals.push(refusal),
                // Only stateless requests begin a subscription.
                Step::Listen(_) => {}
            }
        }
        if calls.is_empty() && answers.is_empty() && refusals.len() == 1 {
            return Err(refusals.pop().map_or_else(no_session, Refusal::with_message));
        }
        answers.append(&mut refusals);
        if calls.is_empty() {
            return Ok(match answers.is_empty() {
                true => empty(StatusCode::ACCEPTED),
                false => json(StatusCode::OK, joined(answers)),
            });
        }
        let (out, messages) = mpsc::channel(MESSAGES.max(answers.len()));
        for answer in answers {
            // The queue has room for all of them.
            let _ = out.try_send(answer.into());
        }
        let mut running = JoinSet::new();
        for call in calls {
            let (shared, connection) = (Arc::clone(self), Arc::clone(connection));
            let (id, out) = (id.to_owned(), out.clone());
            running.spawn(async move {
                connection.run(call, &out).await;
                // A session is idle from the end of its last call.
                shared.sessions().touch(&id, now());
            });
        }
        Ok(stream(messages, running))
    }

    /// Answers a message of the stateless version.
    fn post_alone(&self, mirrors: &Mirrors, message: &[u8]) -> Result<Response<HttpBody>, Refusal> {
        let connection = Arc::clone(&self.stateless);
        let (out, messages) = mpsc::channel::<Event>(MESSAGES);
        let mut running = JoinSet::new();
        match connection.receive(message, Origin::Post(mirrors)).pop() {
            // Only a request states its version in the body, too.
            None if mirrors.version.as_deref() != Some(STATELESS) => return Err(wrong_version()),
            None => return Ok(empty(StatusCode::ACCEPTED)),
            Some(Step::Answer(answer)) => return Ok(json(StatusCode::OK, answer)),
            Some(Step::Reject(Rejection::UnknownMethod, answer)) => {
                return Ok(json(StatusCode::NOT_FOUND, answer));
            }
            Some(Step::Reject(Rejection::Malformed, answer) | Step::Refuse(answer)) => {
                return Err(Refusal::with_message(answer));
            }
            Some(Step::Cancel(cancel)) => {
                cancel.cancel();
                return Ok(empty(StatusCode::ACCEPTED));
            }
            Some(Step::Call(call)) => {
                running.spawn(async move { connection.run(call, &out).await });
            }
            Some(Step::Listen(subscription)) => {
                running.spawn(async move { connection.listen(subscription, &out).await });
            }
        }
        Ok(stream(messages, running))
    }

    /// Answers a request for a session's notification stream.
    fn follow(
        self: &Arc<Self>,
        id: &str,
        session: &Session,
        parts: &Parts,
    ) -> Result<Response<HttpBody>, Refusal> {
        let after = match parts.headers.get(LAST_EVENT).map(HeaderValue::to_str) {
            None => None,
            Some(Ok(event)) => {
                // A later one was never sent, and a stream after it would wait for it.
                let sent =
                    number_of(event).filter(|number| *number <= session.connection.live().last());
                Some(sent.ok_or_else(unknown_event)?)
            }
            Some(Err(_)) => return Err(unknown_event()),
        };
        let follower = session.follow(after);
        let (out, messages) = mpsc::channel(MESSAGES);
        let (shared, id) = (Arc::clone(self), id.to_owned());
        let touch = move || shared.sessions().touch(&id, now());
        let mut running = JoinSet::new();
        running.spawn(follower.run(out, touch));
        Ok(stream(messages, running))
    }
}

fn is_busy(session: &Arc<Session>) -> bool {
    // Called under the lock of the sessions, and takes that of the protocol; never the other way round.
    session.connection.is_busy()
}

fn stream(messages: mpsc::Receiver<Event>, running: JoinSet<()>) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::events(messages, running));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    // For proxies that would buffer events, or hold them back to compress them.
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body + Send + 'static,
    B::Data: Send,
{
    type Response = Response<HttpBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<HttpBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { Ok(this.answer(request).await) })
    }
}

/// Omits sessions and the key.
impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").field("sessions", &self.sessions()).finish_non_exhaustive()
    }
}

fn session_id(parts: &Parts) -> Result<Option<&str>, Refusal> {
    match parts.headers.get(SESSION) {
        Some(id) => id.to_str().map(Some).map_err(|_| unknown_session()),
        None => Ok(None),
    }
}

fn no_session() -> Refusal {
    let why = "the first message must be a single initialize; later ones need its mcp-session-id";
    Refusal::new(StatusCode::BAD_REQUEST, why)
}

fn unknown_event() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "there is no such event in this session")
}

fn unknown_session() -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, "there is no such session")
}

/// Returns a new session id of 128 bits. It is hard to guess but not a credential; use a bearer token for that.
fn new_id() -> String {
    let random = || RandomState::new().hash_one(Instant::now());
    format!("{:016x}{:016x}", random(), random())
}

fn json(status: StatusCode, text: String) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<HttpBody> {
    let mut response = Response::new(HttpBody::whole(String::new()));
    *response.status_mut() = status;
    response
}
