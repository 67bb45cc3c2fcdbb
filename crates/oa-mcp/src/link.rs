use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use oa_mcp_data::client::{Mirrors, add_meta};
use oa_mcp_data::{
    AnswerError, Hello, Host, HostRequest, Ignoring, Limits, RequiredPages, Visits, read_integer,
    read_json, take_result,
};
use oa_tools::{Cancel, ToolContext};
use rmcp::model::{ClientRequest, EmptyResult, JsonRpcMessage, RequestId, ServerResult};
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::error::{Error, ErrorKind};
use crate::listener::OnLog;
use crate::secrets::KnownSecrets;

mod beginning;
mod notices;
mod questions;
#[cfg(test)]
mod tests;

/// The longest excerpt of a server's text in an error.
const EXCERPT: usize = 300;
/// The id of `subscriptions/listen`; the ids of `rmcp` are far below.
const SUBSCRIBE: i64 = 1 << 33;
/// The capacity of the queue of messages to write. If a server lets it fill up, its connection is closed.
pub(crate) const OUTGOING: usize = 256;

/// The state shared by a connection's transport, its requests and `rmcp`: which request waits for which answer.
///
/// Answers are extracted here, as JSON, before `rmcp` reads them: it silently drops malformed answers, and it logs
/// everything that it reads. Progress is extracted too, because `rmcp` handles each notification in its own task, which
/// changes the order. `rmcp` gets an empty answer instead, which completes its own bookkeeping.
pub(crate) struct Link {
    pub(crate) limits: Limits,
    pub(crate) secrets: Arc<KnownSecrets>,
    on_log: Option<OnLog>,
    pub(crate) host: Host,
    begins_stateless: bool,
    ignored: Arc<Ignoring>,
    state: Mutex<State>,
    outgoing: mpsc::Sender<Outgoing>,
    /// Answers for `rmcp`, one for each of its requests, so bounded by the number of calls.
    forward: mpsc::UnboundedSender<RxJsonRpcMessage<RoleClient>>,
    /// Counts the notifications that the list of tools has changed.
    pub(crate) changes: watch::Sender<u64>,
    /// The number of the server's questions that are waiting for an answer.
    pub(crate) asking: watch::Sender<usize>,
    /// The visits of pages that the server has reported.
    pub(crate) visits: watch::Sender<Visits>,
    /// No new requests may begin on this connection.
    is_retired: AtomicBool,
    /// Asks the transport to close the connection.
    pub(crate) closing: Cancel,
    /// The connection has ended.
    pub(crate) ended: Cancel,
}

/// The settings of a connection.
pub(crate) struct Setup {
    pub(crate) limits: Limits,
    pub(crate) secrets: Arc<KnownSecrets>,
    pub(crate) on_log: Option<OnLog>,
    /// The client's side, which decides what the server may ask for.
    pub(crate) host: Host,
    /// The server is assumed to be stateless.
    pub(crate) begins_stateless: bool,
    pub(crate) ignored: Arc<Ignoring>,
}

#[derive(Default)]
struct State {
    calls: HashMap<i64, Call>,
    /// The server's questions that are waiting for an answer, by id.
    asked: HashMap<String, Cancel>,
    beginning: Beginning,
    end: Option<Error>,
    garbage: u32,
    warnings: Vec<String>,
}

/// The state of the handshake.
#[derive(Default)]
struct Beginning {
    /// The id of the `initialize` request of `rmcp`.
    initialize: i64,
    /// The id of the request that is waiting for its answer.
    waits: Option<i64>,
    /// That request is `server/discover`.
    is_discovery: bool,
    /// The server's refusal of `initialize`.
    refusal: Option<Error>,
    hello: Option<Hello>,
}

impl Beginning {
    fn is_stateless(&self) -> bool {
        self.hello.as_ref().map_or(self.is_discovery, Hello::is_stateless)
    }
}

/// A request that is waiting for its answer.
pub(crate) struct Call {
    /// The parameters, which bypass `rmcp` because it logs what it sends.
    pub(crate) params: Value,
    /// The headers that repeat arguments.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) reply: oneshot::Sender<Result<Value, Error>>,
    /// The context that receives progress.
    pub(crate) cx: Option<ToolContext>,
    /// The queue for questions. Only tool calls have one.
    pub(crate) questions: Option<mpsc::Sender<Question>>,
    /// Signals progress.
    pub(crate) beat: Arc<Notify>,
    pub(crate) token: Option<Value>,
    pub(crate) written: Arc<AtomicBool>,
}

/// A question from the server. The task that dequeues it must answer with [`Link::reply`].
pub(crate) struct Question {
    pub(crate) id: Value,
    pub(crate) asked: HostRequest,
    /// The server no longer wants the answer.
    pub(crate) cancel: Cancel,
}

/// A holder that carries a [`Call`] through `rmcp` to the transport, in the extensions of the request.
#[derive(Clone)]
pub(crate) struct Ticket(Arc<Mutex<Option<Call>>>);

pub(crate) struct Outgoing {
    pub(crate) bytes: Vec<u8>,
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP answers by kind"))]
    pub(crate) of: Kind,
    /// The method; empty for an answer.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only HTTP sends again"))]
    pub(crate) method: String,
    /// The headers that repeat parts of the body, for a stateless server.
    pub(crate) mirrors: Option<Mirrors>,
    /// Set when the first byte may have been sent.
    pub(crate) written: Option<Arc<AtomicBool>>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// An answer to a request from the server.
    Answer,
    /// The cancellation of this request.
    Cancel(i64),
    Initialized,
    Notification,
    Request(i64),
    /// The request for change notifications, whose response never ends.
    Subscribe,
}

/// The error for input that is not a message.
pub(crate) struct Garbage;

impl Ticket {
    pub(crate) fn new(call: Call) -> Self {
        Self(Arc::new(Mutex::new(Some(call))))
    }

    /// Takes the call, unless it has been sent.
    pub(crate) fn take(&self) -> Option<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Takes the call's parameters, unless it has been sent or canceled.
    fn params(&self) -> Option<Value> {
        let mut call = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        call.as_mut().map(|call| call.params.take())
    }
}

impl Link {
    pub(crate) fn new(
        setup: Setup,
        outgoing: mpsc::Sender<Outgoing>,
        forward: mpsc::UnboundedSender<RxJsonRpcMessage<RoleClient>>,
    ) -> Self {
        let Setup { limits, secrets, on_log, host, begins_stateless, ignored } = setup;
        Self {
            limits,
            secrets,
            on_log,
            host,
            begins_stateless,
            ignored,
            state: Mutex::default(),
            outgoing,
            forward,
            changes: watch::Sender::new(0),
            asking: watch::Sender::new(0),
            visits: watch::Sender::default(),
            is_retired: AtomicBool::new(false),
            closing: Cancel::new(),
            ended: Cancel::new(),
        }
    }

    /// Sends a message from `rmcp`.
    pub(crate) fn send(&self, message: TxJsonRpcMessage<RoleClient>) -> Result<(), Error> {
        // Requests of ours come as a `CustomRequest` whose contents are in its ticket; `rmcp` adds the id and
        // the progress token. The handshake and notifications are its own.
        let (mut ticket, mut params) = (None, None);
        let of = match &message {
            JsonRpcMessage::Request(request) => {
                let RequestId::Number(id) = request.id else {
                    return Err(Error::protocol("a request has an id that is not a number"));
                };
                match &request.request {
                    ClientRequest::CustomRequest(custom) => {
                        ticket = custom.extensions.get::<Ticket>();
                        params = ticket.and_then(Ticket::params);
                        if params.is_none() {
                            // Canceled before it was sent.
                            self.settle(id);
                            return Ok(());
                        }
                    }
                    ClientRequest::InitializeRequest(_) if !self.begin(id)? => return Ok(()),
                    _ => {}
                }
                Kind::Request(id)
            }
            JsonRpcMessage::Notification(_) => Kind::Notification,
            _ => Kind::Answer,
        };
        let mut json = serde_json::to_value(&message)
            .map_err(|error| Error::protocol(format!("the message cannot be written: {error}")))?;
        if let Some(own) = params {
            let meta = json.pointer_mut("/params/_meta").map(Value::take);
            json["params"] = add_meta(own, meta);
        }
        let is_stateless = self.is_stateless();
        let of = match json.get("method").and_then(Value::as_str) {
            Some("notifications/initialized") if is_stateless => return self.subscribe(),
            Some("notifications/initialized") => Kind::Initialized,
            _ => of,
        };
        if is_stateless && matches!(of, Kind::Request(_)) {
            json["params"] = self.enclosed(json["params"].take());
        }
        let sent = match (ticket, of) {
            (Some(ticket), Kind::Request(id)) => {
                self.open(id, ticket, token_of(&message), self.encode(&json, of))
            }
            _ => self.queue(&json, of),
        };
        sent.inspect_err(|error| {
            if let Kind::Request(id) = of {
                self.fail(id, error.clone().untaken(true));
            }
        })
    }

    /// Opens a call and queues its request, unless it was canceled before.
    fn open(
        &self,
        id: i64,
        ticket: &Ticket,
        token: Option<Value>,
        mut request: Outgoing,
    ) -> Result<(), Error> {
        // One lock for all steps: whoever gives the call up finds either its ticket or an open call whose
        // request is queued, so that the cancellation cannot overtake the request.
        let mut state = self.lock();
        let Some(mut call) = ticket.take() else {
            drop(state);
            self.settle(id);
            return Ok(());
        };
        // `end` takes the calls and sets the error under one lock, so a request that begins meanwhile is
        // either among those calls or refused here; none is left to wait for its timeout.
        if let Some(end) = state.end.clone() {
            drop(state);
            let _ = call.reply.send(Err(end.clone().untaken(true)));
            return Err(end);
        }
        call.token = token;
        request.written = Some(Arc::clone(&call.written));
        if let Some(mirrors) = &mut request.mirrors {
            mirrors.arguments = mem::take(&mut call.headers);
        }
        // Before the message is queued: its answer may come at once.
        state.calls.insert(id, call);
        let sent = self.outgoing.try_send(request);
        drop(state);
        self.sent(sent)
    }

    fn queue(&self, json: &Value, of: Kind) -> Result<(), Error> {
        self.sent(self.outgoing.try_send(self.encode(json, of)))
    }

    fn encode(&self, json: &Value, of: Kind) -> Outgoing {
        let bytes = json.to_string().into_bytes();
        let method = json.get("method").and_then(Value::as_str);
        let mirrors = method.filter(|_| self.is_stateless());
        let mirrors = mirrors.map(|method| Mirrors::of(method, &json["params"]));
        let method = method.unwrap_or_default().to_owned();
        Outgoing { bytes, of, method, mirrors, written: None }
    }

    fn sent(&self, sent: Result<(), mpsc::error::TrySendError<Outgoing>>) -> Result<(), Error> {
        sent.map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                let error = Self::unread();
                self.end(error.clone());
                error
            }
            mpsc::error::TrySendError::Closed(_) => self.failure().unwrap_or_else(Self::closed),
        })
    }

    /// Returns the error for a server that takes no messages.
    pub(crate) fn unread() -> Error {
        Error::limit(format!("the server left {OUTGOING} messages unread"))
    }

    /// Cancels a request, and notifies the server if the request was sent.
    pub(crate) fn give_up(&self, id: i64, ticket: &Ticket, reason: &str) {
        // Not sent, so the server knows nothing of it; `send` finds the ticket empty and settles the request.
        if ticket.take().is_some() {
            return;
        }
        let open = self.lock().calls.remove(&id);
        if open.is_none() {
            return;
        }
        self.settle(id);
        let params = json!({ "requestId": id, "reason": reason });
        let notice =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        // A connection that has ended needs no notification.
        let _ = self.queue(&notice, Kind::Cancel(id));
    }

    pub(crate) fn fail(&self, id: i64, error: Error) {
        let (call, begins) = {
            let mut state = self.lock();
            (state.calls.remove(&id), state.beginning.waits == Some(id))
        };
        if let Some(call) = call {
            let _ = call.reply.send(Err(error));
            self.settle(id);
        } else if begins {
            self.not_begun(error);
        }
    }

    pub(crate) fn is_open(&self, id: i64) -> bool {
        let state = self.lock();
        state.calls.contains_key(&id) || state.beginning.waits == Some(id)
    }

    /// Reads input; anything invalid or unexpected in it is only counted. `within` is the request whose response
    /// carried it, if the transport knows.
    pub(crate) fn incoming(&self, bytes: &[u8], within: Option<i64>) -> Result<(), Garbage> {
        match read_json(bytes, self.limits.message_values) {
            Ok(Value::Object(message)) => self.message(Value::Object(message), within),
            // A batch, as of 2025-03-26. The messages behind an invalid one count, too: calls wait for them.
            Ok(Value::Array(batch)) if !batch.is_empty() => {
                let mut all = Ok(());
                for message in batch {
                    if self.message(message, within).is_err() {
                        all = Err(Garbage);
                    }
                }
                all
            }
            Ok(_) => Err(Garbage),
            // An answer that is nested too deep, for one: its call must not wait until it times out.
            Err(unreadable) => {
                let id = unreadable.id.filter(|_| !unreadable.has_method);
                let id = id.as_ref().and_then(read_integer).filter(|id| self.is_open(*id));
                let cause = self.secrets.get().excerpt(&unreadable.cause, 300);
                let error = match unreadable.is_too_large {
                    true => Error::limit(cause),
                    false => Error::protocol(format!("the answer is not valid JSON: {cause}")),
                };
                id.map(|id| self.fail(id, error)).ok_or(Garbage)
            }
        }
    }

    fn message(&self, mut message: Value, within: Option<i64>) -> Result<(), Garbage> {
        let id = message.get("id").filter(|id| !id.is_null()).cloned();
        let method = message.get("method").and_then(Value::as_str).map(str::to_owned);
        match (method, id) {
            (Some(method), Some(id)) => {
                let params = message.get("params").unwrap_or(&Value::Null);
                self.answer(&method, id, params, within);
            }
            (Some(method), None) => {
                self.notice(&method, message.get("params").unwrap_or(&Value::Null), within);
            }
            (None, id) => {
                let has = |name: &str| message.get(name).is_some();
                let (is_error, is_answer) = (has("error"), has("error") || has("result"));
                // An error in the response to a request is about that request, even if its id could not be read, and
                // one during the handshake is about that. The `jsonrpc` tells it from a log line.
                let begins = || self.lock().beginning.waits.filter(|_| has("jsonrpc"));
                let place = within.or_else(begins).filter(|_| is_error);
                match id.as_ref().and_then(read_integer).or(place) {
                    // JavaScript leaves out a result that is undefined. The `jsonrpc` tells it from a log line.
                    Some(id) if is_answer || has("jsonrpc") && self.is_open(id) => {
                        self.response(id, &mut message);
                    }
                    None if is_answer && id.is_some() => {
                        self.ignored.answers.fetch_add(1, Ordering::Relaxed);
                    }
                    _ => return Err(Garbage),
                }
            }
        }
        Ok(())
    }

    fn response(&self, id: i64, message: &mut Value) {
        let pages = RequiredPages::read(message);
        let answer = take_result(message, &self.secrets.get()).map_err(|error| match error {
            AnswerError::Malformed(why) => Error::protocol(why),
            AnswerError::Refused { code, message } => {
                Error::rejected(code, message).with_pages(pages)
            }
        });
        let mut state = self.lock();
        if let Some(call) = state.calls.remove(&id) {
            drop(state);
            let _ = call.reply.send(answer);
            self.settle(id);
        } else if state.beginning.waits == Some(id) {
            drop(state);
            self.begun(answer);
        } else if id == SUBSCRIBE {
            drop(state);
            if let Err(error) = answer {
                self.warn(format!("changes to the server's tools will be missed: {error}"));
            }
        } else {
            // Late, unknown and repeated ids are ignored.
            self.ignored.answers.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Completes a request for `rmcp`.
    fn settle(&self, id: i64) {
        let empty = ServerResult::EmptyResult(EmptyResult {});
        let _ = self.forward.send(JsonRpcMessage::response(empty, RequestId::Number(id)));
    }

    /// Counts a line that is not a message.
    pub(crate) fn garbage(&self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        self.ignored.lines.fetch_add(1, Ordering::Relaxed);
        let mut state = self.lock();
        state.garbage += 1;
        let (count, limit) = (state.garbage, self.limits.garbage_lines);
        drop(state);
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * EXCERPT)]);
        let excerpt = self.secrets.get().excerpt(&text, EXCERPT);
        if count == 1 {
            self.warn(format!(
                "the server printed output that is not a protocol message: {excerpt}"
            ));
        }
        if count > limit {
            let message = format!(
                "the server printed more than {limit} lines that are not messages: {excerpt}"
            );
            return Err(Error::limit(message));
        }
        Ok(())
    }

    /// Adds a warning about the panic of a callback.
    pub(crate) fn check(&self, called: Result<(), String>) {
        if let Err(panic) = called {
            self.warn(self.secrets.get().excerpt(&panic, EXCERPT));
        }
    }

    pub(crate) fn warn(&self, warning: String) {
        let mut state = self.lock();
        if state.warnings.len() < self.limits.warnings && !state.warnings.contains(&warning) {
            state.warnings.push(warning);
        }
    }

    pub(crate) fn warnings(&self) -> Vec<String> {
        self.lock().warnings.clone()
    }

    /// Ends the connection with this error, with which open calls fail. Only the first error counts, and the refusal
    /// of the handshake before it.
    pub(crate) fn end(&self, error: Error) {
        let calls = {
            let mut state = self.lock();
            // A server that refuses the handshake may exit, or never answer the request that follows.
            let first = state.beginning.refusal.take();
            state.end.get_or_insert_with(|| first.unwrap_or_else(|| error.clone()));
            state.asked.clear();
            self.asking.send_replace(0);
            mem::take(&mut state.calls)
        };
        for call in calls.into_values() {
            let is_untaken = !call.written.load(Ordering::Acquire);
            let _ = call.reply.send(Err(error.clone().untaken(is_untaken)));
        }
        self.closing.cancel();
        self.ended.cancel();
    }

    /// Makes the next request use another connection; open requests continue on this one.
    pub(crate) fn retire(&self) {
        self.is_retired.store(true, Ordering::Release);
    }

    /// Returns true if new requests may begin on this connection.
    pub(crate) fn is_usable(&self) -> bool {
        !self.is_retired.load(Ordering::Acquire) && !self.closing.is_cancelled()
    }

    pub(crate) fn failure(&self) -> Option<Error> {
        self.lock().end.clone()
    }

    pub(crate) fn closed() -> Error {
        Error::new(ErrorKind::Closed, "the connection is closed")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the progress token that `rmcp` gave a request.
fn token_of(message: &TxJsonRpcMessage<RoleClient>) -> Option<Value> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::CustomRequest(custom) = &request.request else { return None };
    let meta = custom.extensions.get::<rmcp::model::RequestMetaObject>()?;
    serde_json::to_value(meta).ok()?.get_mut("progressToken").map(Value::take)
}
