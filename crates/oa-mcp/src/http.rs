use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, WWW_AUTHENTICATE,
};
use http::{Method, Request, Response, StatusCode, Uri};
use oa_contain::Contained;
use oa_mcp_data::client::Mirrors;
use oa_mcp_data::{
    AnswerError, RequiredPages, Resumption, forgets_session, key_problem, may_send_again,
    read_json, redirected, take_result, wants_another_key,
};
use oa_sse::Parser;
use oa_transport::{ApiKey, RequestBody, ResponseBody, retry_after};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinHandle, JoinSet};
use tokio::time::{Instant, timeout, timeout_at};
use tower::Service;

use crate::error::{Error, ErrorKind};
use crate::link::{Kind, Link, OUTGOING, Outgoing};
use crate::listener::panicked;

mod news;
mod spec;

pub(crate) use spec::{Ask, HttpSpec, header};

/// The maximum bytes of an error body that are read.
const ERROR_BODY: usize = 64 * 1024;
/// The maximum characters of it in an error.
const EXCERPT: usize = 300;
/// The longest time that a stream is read after its answer. The server should end it, so that the connection can be used
/// again, but not all do.
const LINGER: Duration = Duration::from_millis(250);
/// The longest wait for the request that ends a session.
const GOODBYE: Duration = Duration::from_secs(2);
/// The maximum number of redirects that one request follows.
const REDIRECTS: u32 = 3;
const UNRESUMED: &str = "the answer's stream broke off and cannot be resumed";
const OLD_TRANSPORT: &str = "this is a URL of the old SSE transport, which is not supported: look for one of streamable HTTP, such as /mcp";
const EVENTS: &str = "text/event-stream";
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// Starts the task that carries messages. It ends when the connection is closed and the server has been notified.
pub(crate) fn start(
    spec: &HttpSpec,
    link: &Arc<Link>,
    outgoing: mpsc::Receiver<Outgoing>,
    longest_pause: Duration,
) -> Result<JoinHandle<()>, Error> {
    let uri = Uri::from_str(&spec.url).map_err(|_| Error::config("the URL is not valid"))?;
    let key = Mutex::new(spec.bearer.clone());
    let (spec, link) = (spec.clone(), Arc::clone(link));
    let answered = watch::Sender::new(());
    let (session, asking) = (Mutex::default(), tokio::sync::Mutex::default());
    let carrier = Carrier { spec, uri, link, session, key, asking, answered, longest_pause };
    Ok(tokio::spawn(Arc::new(carrier).run(outgoing)))
}

/// The headers of a request that differ from the connection's.
enum About<'a> {
    /// The last event received on a stream.
    After(HeaderValue),
    Message(&'a Outgoing),
    Nothing,
}

struct Carrier {
    spec: HttpSpec,
    uri: Uri,
    link: Arc<Link>,
    /// The session id that the server assigned.
    session: Mutex<Option<HeaderValue>>,
    /// The current key: the configured one, or the callback's.
    key: Mutex<Option<ApiKey>>,
    /// Held while the callback is asked for a key.
    asking: tokio::sync::Mutex<()>,
    /// Signals that the server has answered a request.
    answered: watch::Sender<()>,
    /// The longest pause that a server may ask for.
    longest_pause: Duration,
}

impl Carrier {
    async fn run(self: Arc<Self>, mut outgoing: mpsc::Receiver<Outgoing>) {
        let mut posts = JoinSet::new();
        let mut open: Vec<(i64, AbortHandle)> = Vec::new();
        // The queue is empty as soon as its messages are on their way, so it does not bound the answers that the
        // server asks for and does not take.
        let places = Arc::new(Semaphore::new(OUTGOING));
        loop {
            let message = tokio::select! {
                biased;
                () = self.link.closing.cancelled() => break,
                message = outgoing.recv() => message,
                Some(_) = posts.join_next() => continue,
            };
            let Some(message) = message else { break };
            open.retain(|(_, handle)| !handle.is_finished());
            if let Kind::Cancel(id) = message.of
                && let Some(place) = open.iter().position(|(other, _)| *other == id)
            {
                open.swap_remove(place).1.abort();
            }
            let of = message.of;
            if matches!(of, Kind::Cancel(_)) && self.link.is_stateless() {
                // Dropping the response has already canceled the request.
                continue;
            }
            let place = (of == Kind::Answer).then(|| Arc::clone(&places).try_acquire_owned());
            if let Some(Err(_)) = place {
                self.link.end(Link::unread());
                break;
            }
            let carrier = Arc::clone(&self);
            let (posted, is_posted) = oneshot::channel();
            let handle = posts.spawn(async move {
                let _place = place;
                carrier.post(message, posted).await;
            });
            if of == Kind::Initialized {
                // Some servers refuse a request that overtakes it on another connection.
                tokio::select! {
                    () = self.link.closing.cancelled() => break,
                    _ = timeout(GOODBYE, is_posted) => {}
                }
            }
            if let Kind::Request(id) = of {
                open.push((id, handle));
            }
        }
        posts.abort_all();
        self.link.end(Link::closed());
        let session = self.session().clone();
        if session.is_some() {
            // Servers that do not support it answer 405.
            let _ =
                timeout(GOODBYE, self.ask(Method::DELETE, RequestBody::empty(), &About::Nothing))
                    .await;
        }
    }

    /// Posts a message. `posted` is dropped once the server has answered it.
    async fn post(self: Arc<Self>, message: Outgoing, posted: oneshot::Sender<()>) {
        if let Some(written) = &message.written {
            written.store(true, std::sync::atomic::Ordering::Release);
        }
        if message.of == Kind::Subscribe {
            return self.listen(Some(&message)).await;
        }
        // Aborting this task drops the response, which closes its stream.
        let outcome = self.posted(&message).await;
        drop(posted);
        match (outcome, message.of) {
            // The connection lists tools by itself.
            (Ok(()), Kind::Request(_)) if message.method != "tools/list" => {
                self.answered.send_replace(());
            }
            (Ok(()), Kind::Initialized) => self.listen(None).await,
            // Only a request has a caller that waits for the error.
            (Err(error), Kind::Request(id)) => {
                if error.is_untaken() {
                    // Other requests of the session get the same status themselves and are repeated, too.
                    self.link.retire();
                }
                self.link.fail(id, error);
            }
            (Err(error), Kind::Initialized) => {
                // Some servers refuse all notifications, or those without parameters.
                self.link.warn(format!("the server refused notifications/initialized: {error}"));
                self.listen(None).await;
            }
            _ => {}
        }
    }

    async fn posted(&self, message: &Outgoing) -> Result<(), Error> {
        let response = self.send(message).await?;
        let (status, has_session) = (response.status(), self.session().is_some());
        // The answer of the standard.
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(forgotten(404));
        }
        if !status.is_success() {
            let has_challenge = challenges(&response).next().is_some();
            let (mut error, body) = self.refused(response).await;
            let path = self.uri.path().trim_end_matches('/');
            if path.ends_with("/sse") && matches!(status.as_u16(), 404 | 405) {
                error = error.with_note(OLD_TRANSPORT);
            }
            if has_session && forgets_session(status.as_u16(), has_challenge, &body) {
                return Err(forgotten(status.as_u16()));
            }
            return match message.of {
                Kind::Request(id) if self.link.take_refusal(id, body, &error) => Ok(()),
                _ => Err(error),
            };
        }
        if let Some(session) =
            response.headers().get(&SESSION).filter(|_| message.mirrors.is_none())
        {
            self.session().get_or_insert_with(|| session.clone());
        }
        let Kind::Request(id) = message.of else { return Ok(()) };
        self.answer(id, response).await?;
        if self.link.is_open(id) {
            return Err(Error::protocol("the server ended its response without the answer"));
        }
        Ok(())
    }

    async fn answer(&self, id: i64, response: Response<ResponseBody>) -> Result<(), Error> {
        if is_of(&response, EVENTS) {
            return self.stream(Some(id), response.into_body()).await;
        }
        let (is_json, status) = (is_of(&response, "application/json"), response.status().as_u16());
        let (limit, mut bytes) = (self.link.limits.message_bytes, Vec::new());
        if !read(&mut response.into_body(), limit, &mut bytes).await.map_err(broken)? {
            return Err(Error::too_long(limit));
        }
        // Some servers do not set a content type, and then Go guesses plain text.
        if self.link.incoming(&bytes, Some(id)).is_ok() {
            return Ok(());
        }
        let other = format!("the answer is neither JSON nor an event stream (status {status})");
        let what = if is_json { "the answer is not a protocol message" } else { &*other };
        Err(self.not_understood(what, &bytes).with_status(status))
    }

    async fn send(&self, message: &Outgoing) -> Result<Response<ResponseBody>, Error> {
        let body = RequestBody::new(message.bytes.clone());
        self.ask(Method::POST, body, &About::Message(message)).await
    }

    /// Reads an event stream. If it breaks off before the answer, it is resumed where the server allows it.
    async fn stream(&self, id: Option<i64>, body: ResponseBody) -> Result<(), Error> {
        let limit = self.link.limits.message_bytes;
        let mut limits = oa_sse::Limits::default();
        limits.event_bytes = limit;
        // Shared by all connections: it keeps the id of the last complete event and the retry time.
        let mut parser = Parser::with_limits(limits);
        let mut end = self.events(id, &mut parser, body).await;
        let mut resumption = Resumption::new(id.is_some());
        loop {
            if let Err(error) = &end
                && error.kind() == ErrorKind::Limit
            {
                return Err(error.clone());
            }
            let is_answered = id.is_some_and(|id| !self.link.is_open(id));
            // The stateless version has no session in which a stream could be resumed.
            if is_answered || parser.last_event_id().is_empty() || self.link.is_stateless() {
                return end;
            }
            if end.is_ok() && parser.retry().is_some() {
                resumption.polled();
            }
            let Some(pause) = resumption.pause(parser.last_event_id(), parser.retry()) else {
                let why = "the answer's stream broke off, and again after it was resumed";
                return Err(Error::new(ErrorKind::Closed, why));
            };
            tokio::time::sleep(pause).await;
            // The call was taken, which the error of the resumption alone would not show.
            end = self.resume(id, &mut parser).await.map_err(|error| error.of(UNRESUMED))?;
        }
    }

    /// Resumes a stream after its last event. After the inner error it may be tried again.
    async fn resume(
        &self,
        id: Option<i64>,
        parser: &mut Parser,
    ) -> Result<Result<(), Error>, Error> {
        let Ok(last) = HeaderValue::from_str(parser.last_event_id()) else {
            return Err(Error::protocol("the server's event id is not a valid header value"));
        };
        let asked = self.ask(Method::GET, RequestBody::empty(), &About::After(last)).await;
        let response = match asked {
            Ok(response) if response.status().is_success() => response,
            // A restarting server is briefly unreachable, also for a proxy in front of it.
            Ok(response) if matches!(response.status().as_u16(), 502..=504) => {
                return Ok(Err(self.refused(response).await.0));
            }
            Ok(response) => return Err(self.refused(response).await.0),
            Err(error) if error.kind() == ErrorKind::Closed => return Ok(Err(error)),
            Err(error) => return Err(error),
        };
        if !is_of(&response, EVENTS) {
            let status = response.status();
            let bytes = start_of(&mut response.into_body()).await;
            let what = format!("the rest of the answer is not an event stream (status {status})");
            return Err(self.not_understood(&what, &bytes));
        }
        Ok(self.events(id, parser, response.into_body()).await)
    }

    async fn events(
        &self,
        id: Option<i64>,
        parser: &mut Parser,
        mut body: ResponseBody,
    ) -> Result<(), Error> {
        let too_large = |_| Error::too_long(self.link.limits.message_bytes);
        let mut linger = None;
        loop {
            if linger.is_none() && id.is_some_and(|id| !self.link.is_open(id)) {
                linger = Some(Instant::now() + LINGER);
            }
            let next = match linger {
                None => body.chunk().await,
                Some(end) => timeout_at(end, body.chunk()).await.unwrap_or(Ok(None)),
            };
            let chunk = match next {
                Ok(Some(chunk)) => chunk,
                end => {
                    self.last_event(id, parser);
                    return end.map(drop).map_err(broken);
                }
            };
            parser.push(chunk);
            while let Some(event) = parser.next_event().map_err(too_large)? {
                let data = event.raw_data();
                // Events of other types are no messages. Some servers keep a stream open with them.
                let is_message = event.is_named("message") && !data.is_empty();
                if is_message && self.link.incoming(data, id).is_err() {
                    self.link.garbage(data)?;
                }
            }
        }
    }

    /// Reads an event without its blank line at the end of a stream, as some servers send it, if it is a whole message.
    /// Any other is discarded: the resumed stream sends it again in full.
    fn last_event(&self, id: Option<i64>, parser: &mut Parser) {
        let last = parser.last_event_id().to_owned();
        parser.finish_lenient();
        let is_read = matches!(parser.next_event(), Ok(Some(event)) if event.is_named("message")
            && read_json(event.raw_data(), self.link.limits.message_values).is_ok()
            && self.link.incoming(event.raw_data(), id).is_ok());
        parser.finish();
        if !is_read {
            // The resumed stream begins after the event before it.
            parser.push(format!("id: {last}\n\n").into());
            let _ = parser.next_event();
            parser.finish();
        }
    }

    /// Sends a request. After a pause that the server asks for, or with another key if its own is not enough, it is sent
    /// again once.
    async fn ask(
        &self,
        method: Method,
        body: RequestBody,
        about: &About<'_>,
    ) -> Result<Response<ResponseBody>, Error> {
        let key = self.key().clone();
        let mut response = self.sent(method.clone(), body.clone(), about, key.as_ref()).await?;
        let about_method = if let About::Message(message) = about { &message.method } else { "" };
        let repeats = may_send_again(response.status().as_u16(), about_method);
        let pause = pause_of(&response).filter(|_| repeats && method != Method::DELETE);
        if let Some(pause) = pause.filter(|pause| *pause <= self.longest_pause) {
            drop(response);
            tokio::time::sleep(pause).await;
            response = self.sent(method.clone(), body.clone(), about, key.as_ref()).await?;
        }
        let status = response.status().as_u16();
        let may_ask = wants_another_key(status, challenges(&response));
        let Some(ask) = self.spec.ask.as_ref().filter(|_| may_ask) else { return Ok(response) };
        // A list may be split over several headers.
        let challenge = challenges(&response).collect::<Vec<_>>().join(", ");
        if challenge.is_empty() && self.session().is_some() {
            let (_, body) = self.refused(response).await;
            if forgets_session(status, false, &body) {
                return Err(forgotten(status));
            }
        }
        // A key expires for all requests at once, and only the first of them asks for another.
        let asking = self.asking.lock().await;
        let mut next = self.key().clone();
        if next.as_ref().map(ApiKey::expose) == key.as_ref().map(ApiKey::expose) {
            next = Some(self.another_key(ask.clone(), challenge, status).await?);
        }
        drop(asking);
        self.sent(method, body, about, next.as_ref()).await
    }

    /// Asks the callback for a key, and keeps it.
    async fn another_key(&self, ask: Ask, challenge: String, status: u16) -> Result<ApiKey, Error> {
        let problem = key_problem([&*challenge], &self.link.secrets.get());
        // Also contains a panic before the callback returns its future.
        let asking = Contained::new(Box::pin(async move { (ask.0)(challenge).await }));
        let refused = |why: &str| Error::new(ErrorKind::Rejected, why).with_status(status);
        let key = asking.await.map_err(|panic| {
            let why = panicked("on_unauthorized", &panic);
            refused(&self.link.secrets.get().excerpt(&why, EXCERPT))
        })?;
        let key = key.ok_or_else(|| match problem {
            Some(problem) => refused(&format!("the server requires a different key: {problem}")),
            None => refused("the server requires a different key (status 401)"),
        })?;
        self.link.secrets.add_key(key.expose());
        *self.key() = Some(key.clone());
        Ok(key)
    }

    async fn sent(
        &self,
        method: Method,
        body: RequestBody,
        about: &About<'_>,
        key: Option<&ApiKey>,
    ) -> Result<Response<ResponseBody>, Error> {
        let mut request = Request::new(body);
        let accept = match method {
            Method::GET => EVENTS,
            _ => "application/json, text/event-stream",
        };
        *request.uri_mut() = self.uri.clone();
        let headers = request.headers_mut();
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        if method == Method::POST {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &self.spec.headers {
            headers.append(name, value.clone());
        }
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key.header_value());
        }
        if let Some(session) = &*self.session() {
            headers.insert(SESSION, session.clone());
        }
        let hello = self.link.hello_said();
        if let Some(version) = hello.and_then(|hello| HeaderValue::from_str(&hello.version).ok()) {
            headers.insert(VERSION, version);
        }
        match about {
            About::Nothing => {}
            About::After(last) => drop(headers.insert(LAST_EVENT, last.clone())),
            About::Message(message) => {
                for (name, value) in message.mirrors.iter().flat_map(Mirrors::headers) {
                    let name = HeaderName::from_str(name);
                    if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
                        headers.insert(name, value);
                    }
                }
            }
        }
        *request.method_mut() = method;
        let mut transport = self.spec.transport.clone();
        let mut redirects = 0;
        loop {
            let response = transport.call(request.clone()).await.map_err(|error| {
                let said = self.link.secrets.get().excerpt(&error.to_string(), EXCERPT);
                Error::new(ErrorKind::Closed, format!("the server cannot be reached: {said}"))
            })?;
            // Not kept for later requests: some servers redirect calls by their arguments, even with status 308.
            let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let (url, status) = (request.uri().to_string(), response.status().as_u16());
            let next = place.and_then(|place| redirected(&url, status, place)?.parse().ok());
            let Some(next) = next.filter(|_| redirects < REDIRECTS) else { return Ok(response) };
            *request.uri_mut() = next;
            redirects += 1;
        }
    }

    /// Returns the error for an unsuccessful response, and its body: JSON, or its text.
    async fn refused(&self, response: Response<ResponseBody>) -> (Error, Value) {
        let (status, secrets) = (response.status(), self.link.secrets.get());
        let mut what = format!("the server answered with status {status}");
        // Not followed, as it may be that of another server: a request carries keys.
        let place = response.headers().get(LOCATION).filter(|_| status.is_redirection());
        if let Some(Ok(place)) = place.map(HeaderValue::to_str) {
            what = format!("{what} and redirects to {}", secrets.excerpt(place, EXCERPT));
        }
        if let Some(problem) = key_problem(challenges(&response), &secrets) {
            what = format!("{what} ({problem})");
        }
        if let Some(pause) = pause_of(&response).filter(|pause| !pause.is_zero()) {
            what = format!("{what} and asks to wait for {pause:?}");
        }
        let bytes = start_of(&mut response.into_body()).await;
        let as_text = |_| String::from_utf8_lossy(&bytes).into();
        let mut body: Value = serde_json::from_slice(&bytes).unwrap_or_else(as_text);
        // Without a code, the error is not one of the protocol, but perhaps one of OAuth.
        let has_code = body.pointer("/error/code").is_some_and(Value::is_number);
        let error = match take_result(&mut body, &secrets) {
            Err(AnswerError::Refused { code, message }) if has_code => {
                let pages = RequiredPages::read(&body);
                Error::rejected(code, format!("{what}: {message}")).with_pages(pages)
            }
            _ => self.not_understood(&what, &bytes).with_kind(ErrorKind::Rejected),
        };
        (error.with_status(status.as_u16()), body)
    }

    fn not_understood(&self, what: &str, bytes: &[u8]) -> Error {
        let excerpt = self.link.secrets.get().excerpt(&String::from_utf8_lossy(bytes), EXCERPT);
        let colon = if excerpt.is_empty() { "" } else { ": " };
        Error::protocol(format!("{what}{colon}{excerpt}"))
    }

    fn key(&self) -> MutexGuard<'_, Option<ApiKey>> {
        self.key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is mapped over errors")]
fn broken(error: oa_transport::Error) -> Error {
    Error::new(ErrorKind::Closed, format!("the response broke off: {error}"))
}

/// Returns the error for a session that has ended: the request was not taken, so it can always be repeated.
fn forgotten(status: u16) -> Error {
    let message = format!("the server has forgotten the session (status {status})");
    Error::new(ErrorKind::Closed, message).with_status(status).untaken(true)
}

/// Returns the pause that an overloaded server asks for.
fn pause_of(response: &Response<ResponseBody>) -> Option<Duration> {
    let is_overloaded = matches!(response.status().as_u16(), 429 | 503);
    is_overloaded.then(|| retry_after(response.headers()))?
}

fn challenges(response: &Response<ResponseBody>) -> impl Iterator<Item = &str> {
    let challenges = response.headers().get_all(WWW_AUTHENTICATE).iter();
    challenges.filter_map(|challenge| challenge.to_str().ok())
}

fn is_of(response: &Response<ResponseBody>, wanted: &str) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(wanted))
}

/// Reads a body of at most `most` bytes; false if it is longer.
async fn read(
    body: &mut ResponseBody,
    most: usize,
    bytes: &mut Vec<u8>,
) -> Result<bool, oa_transport::Error> {
    while let Some(chunk) = body.chunk().await? {
        let room = most - bytes.len();
        bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Reads the beginning of a body for an error.
async fn start_of(body: &mut ResponseBody) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = read(body, ERROR_BODY, &mut bytes).await;
    bytes
}
