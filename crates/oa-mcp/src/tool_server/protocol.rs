use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use oa_mcp_data::client::{
    Envelope, INVALID_PARAMS, INVALID_REQUEST, Incoming, LEVELS, METHOD_NOT_FOUND, News, Origin,
    ServerLimits, VERSIONS, answer, answer_with, complete, error, excerpt, level_place, notice,
    of_subscription, read, unavailable,
};
use oa_tools::{Cancel, LogLevel};
use serde_json::{Value, json};

use crate::tool_server::catalog::{Catalog, Offer};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
/// The memory that a JSON value, or a name in an object, takes in addition to its text.
const VALUE: usize = 80;

/// One client's conversation with the server, without I/O: messages in, steps out. Over HTTP, all clients of the
/// stateless version share one conversation.
///
/// Each request gets exactly one answer: from a [`Step::Answer`] or [`Step::Reject`], or from the call or subscription
/// that it starts, which checks [`finish`](Self::finish) before it answers. A request that the client canceled gets
/// none.
pub(crate) struct Protocol {
    catalog: Arc<Catalog>,
    limits: ServerLimits,
    is_ready: bool,
    level: Arc<Level>,
    /// The running calls, by the JSON of their ids.
    open: HashMap<String, Open>,
    /// The memory taken by their arguments.
    held: usize,
    started: u64,
}

struct Open {
    number: u64,
    bytes: usize,
    cancel: Cancel,
}

/// An action in response to a message.
pub(crate) enum Step {
    /// Send this answer to a request.
    Answer(String),
    /// Send this answer to a request that its version does not allow. Over HTTP, it has its own status.
    Reject(Rejection, String),
    Call(Box<Call>),
    /// Send changes to this subscription until it is canceled.
    Listen(Box<Subscription>),
    /// Cancel a call on behalf of the client.
    Cancel(Cancel),
    /// Send this answer to input that is not a request.
    Refuse(String),
}

/// The reason why a request is invalid in its version.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Rejection {
    Malformed,
    UnknownMethod,
}

/// A request that stays open to receive changes.
pub(crate) struct Subscription {
    id: Value,
    pub(crate) ticket: Ticket,
    wants_tools: bool,
    server: Arc<Value>,
    pub(crate) cancel: Cancel,
}

impl Subscription {
    /// Returns the first message, which lists the subscribed notifications.
    pub(crate) fn acknowledgment(&self) -> String {
        let mut filter = json!({});
        if self.wants_tools {
            filter["toolsListChanged"] = true.into();
        }
        let params = of_subscription(json!({ "notifications": filter }), &self.id);
        notice("notifications/subscriptions/acknowledged", &params)
    }

    /// Returns the notification for an event, if the client subscribed to it.
    pub(crate) fn notice(&self, news: &News) -> Option<String> {
        let is_wanted = self.wants_tools && *news == News::ToolsChanged;
        is_wanted.then(|| notice(TOOLS_CHANGED, &of_subscription(json!({}), &self.id)))
    }

    /// Returns the answer, which ends the subscription.
    pub(crate) fn end(&self) -> String {
        answer(&self.id, &of_subscription(complete(json!({}), &self.server), &self.id))
    }
}

/// A call to run.
pub(crate) struct Call {
    id: Value,
    pub(crate) ticket: Ticket,
    /// The tools that were offered when the call arrived.
    pub(crate) offer: Arc<Offer>,
    /// The server's information about itself, for a stateless client.
    server: Option<Arc<Value>>,
    pub(crate) tool: String,
    pub(crate) input: Value,
    /// The token for progress, if the client wants any.
    pub(crate) token: Option<Value>,
    pub(crate) level: Arc<Level>,
    pub(crate) cancel: Cancel,
}

impl Call {
    /// Returns the JSON of its id.
    pub(crate) fn key(&self) -> &str {
        &self.ticket.key
    }

    pub(crate) fn answer(&self, result: Value) -> String {
        match &self.server {
            Some(server) => answer(&self.id, &complete(result, server)),
            None => answer(&self.id, &result),
        }
    }

    /// Returns the answer for a call that ends without a result.
    pub(crate) fn unavailable(&self, why: &str) -> String {
        unavailable(&self.id, self.server.is_some(), why)
    }
}

/// The entry of a running call.
pub(crate) struct Ticket {
    key: String,
    number: u64,
}

/// The lowest level of log notifications that the client wants.
pub(crate) struct Level(AtomicU8);

impl Level {
    /// The level of a client that wants none.
    const NONE: u8 = u8::MAX;

    /// Returns the protocol's name of a level, if the client wants its lines.
    pub(crate) fn admit(&self, level: LogLevel) -> Option<&'static str> {
        let place = match level {
            LogLevel::Debug => 0,
            LogLevel::Warn => 3,
            LogLevel::Error => 4,
            _ => 1,
        };
        (place >= self.0.load(Ordering::Relaxed)).then(|| LEVELS[usize::from(place)])
    }
}

impl Protocol {
    pub(crate) fn new(catalog: Arc<Catalog>, limits: ServerLimits) -> Self {
        Self {
            catalog,
            limits,
            is_ready: false,
            level: Arc::new(Level(AtomicU8::new(1))),
            open: HashMap::new(),
            held: 0,
            started: 0,
        }
    }

    /// Returns true once the client has sent `initialize`.
    #[cfg(feature = "server-http")]
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// Reads one piece of input.
    pub(crate) fn receive(&mut self, bytes: &[u8], origin: Origin<'_>) -> Vec<Step> {
        let messages = match read(bytes, self.limits.message_values) {
            Ok(messages) if messages.len() > 1 && matches!(origin, Origin::Post(_)) => {
                let why = "the body must be a single message";
                return vec![Step::Refuse(error(&Value::Null, INVALID_REQUEST, why))];
            }
            Ok(messages) => messages,
            Err(refusal) => return vec![Step::Refuse(refusal)],
        };
        let mut steps = Vec::with_capacity(messages.len());
        for message in messages {
            match message {
                Incoming::Invalid { id: Value::Null, why } => {
                    steps.push(Step::Refuse(error(&Value::Null, INVALID_REQUEST, why)));
                }
                Incoming::Invalid { id, why } => {
                    steps.push(Step::Answer(error(&id, INVALID_REQUEST, why)));
                }
                Incoming::Notice { method, params } => steps.extend(self.notice(&method, &params)),
                Incoming::Request { id, method, params } => {
                    steps.push(self.request(id, &method, params, origin));
                }
                // An answer, although nothing was asked.
                _ => {}
            }
        }
        steps
    }

    fn request(&mut self, id: Value, method: &str, params: Value, origin: Origin<'_>) -> Step {
        match Envelope::read(&id, method, &params, origin) {
            Envelope::None => self.of_session(id, method, params),
            Envelope::Stateless { level } => {
                // Different clients may use the same ids.
                let of = matches!(origin, Origin::Post(_)).then_some(self.started + 1);
                self.stateless(id, method, params, level, of)
            }
            Envelope::Refused(answer) => Step::Reject(Rejection::Malformed, answer),
            _ => Step::Answer(error(&id, INVALID_REQUEST, "this kind of request is not supported")),
        }
    }

    fn stateless(
        &mut self,
        id: Value,
        method: &str,
        params: Value,
        level: Option<u8>,
        of: Option<u64>,
    ) -> Step {
        match method {
            "server/discover" => Step::Answer(answer(&id, &self.catalog.discovery())),
            "tools/list" => self.list(&id, &params, true),
            "tools/call" => {
                let level = Arc::new(Level(AtomicU8::new(level.unwrap_or(Level::NONE))));
                let server = Some(Arc::clone(&self.catalog.server));
                self.call(id, params, server, level, of)
            }
            "subscriptions/listen" => self.listen(id, &params, of),
            other => Step::Reject(Rejection::UnknownMethod, unknown_method(&id, other)),
        }
    }

    /// Answers a request of a conversation that began with `initialize`.
    fn of_session(&mut self, id: Value, method: &str, params: Value) -> Step {
        match method {
            "ping" => Step::Answer(answer(&id, &json!({}))),
            "initialize" => Step::Answer(self.initialize(&id, &params)),
            "logging/setLevel" | "tools/call" | "tools/list" if !self.is_ready => {
                Step::Answer(error(&id, INVALID_REQUEST, "the first request must be initialize"))
            }
            "tools/list" => self.list(&id, &params, false),
            "tools/call" => {
                let level = Arc::clone(&self.level);
                self.call(id, params, None, level, None)
            }
            "logging/setLevel" => {
                let Some(place) = params.get("level").and_then(level_place) else {
                    let why = format!("level must be one of {}", LEVELS.join(", "));
                    return Step::Answer(error(&id, INVALID_PARAMS, &why));
                };
                self.level.0.store(place, Ordering::Relaxed);
                Step::Answer(answer(&id, &json!({})))
            }
            other => Step::Answer(unknown_method(&id, other)),
        }
    }

    fn list(&self, id: &Value, params: &Value, is_stateless: bool) -> Step {
        if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
            return Step::Answer(error(
                id,
                INVALID_PARAMS,
                "invalid cursor: the list has one page",
            ));
        }
        Step::Answer(answer_with(id, self.catalog.offer().list(is_stateless)))
    }

    fn initialize(&mut self, id: &Value, params: &Value) -> String {
        let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
            return error(id, INVALID_PARAMS, "protocolVersion must be a string");
        };
        if self.is_ready {
            return error(id, INVALID_REQUEST, "initialize was already received");
        }
        self.is_ready = true;
        // A client that does not support our version ends the connection.
        let newest = VERSIONS[VERSIONS.len() - 1];
        let version = VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(newest);
        answer(id, &self.catalog.hello(version))
    }

    fn call(
        &mut self,
        id: Value,
        mut params: Value,
        server: Option<Arc<Value>>,
        level: Arc<Level>,
        of: Option<u64>,
    ) -> Step {
        let Some(tool) = params.get("name").and_then(Value::as_str) else {
            return Step::Answer(error(&id, INVALID_PARAMS, "name must be a string"));
        };
        let offer = self.catalog.offer();
        if !offer.offers(tool) {
            let why = format!("there is no tool {}", excerpt(tool));
            return Step::Answer(error(&id, INVALID_PARAMS, &why));
        }
        let tool = tool.to_owned();
        let (ticket, cancel) = match self.admit(&id, &params, of, server.is_some()) {
            Ok(admitted) => admitted,
            Err(step) => return step,
        };
        let token = params.pointer("/_meta/progressToken").cloned();
        let input = params.get_mut("arguments").map(Value::take).unwrap_or_default();
        Step::Call(Box::new(Call {
            id,
            ticket,
            offer,
            server,
            tool,
            input: if input.is_null() { json!({}) } else { input },
            token: token.filter(|token| token.is_string() || token.is_number()),
            level,
            cancel,
        }))
    }

    fn listen(&mut self, id: Value, params: &Value, of: Option<u64>) -> Step {
        let Some(filter) = params.get("notifications").filter(|filter| filter.is_object()) else {
            return Step::Answer(error(&id, INVALID_PARAMS, "notifications must be an object"));
        };
        let wants_tools = filter.get("toolsListChanged") == Some(&Value::Bool(true));
        match self.admit(&id, params, of, true) {
            Ok((ticket, cancel)) => {
                let server = Arc::clone(&self.catalog.server);
                let subscription = Subscription { id, ticket, wants_tools, server, cancel };
                Step::Listen(Box::new(subscription))
            }
            Err(step) => step,
        }
    }

    /// Opens a request that is answered later, if the limits allow it.
    fn admit(
        &mut self,
        id: &Value,
        params: &Value,
        of: Option<u64>,
        is_stateless: bool,
    ) -> Result<(Ticket, Cancel), Step> {
        // With a number, the key is like `7/"a"`. No `requestId` equals it, because it is not JSON: clients
        // without a session cannot cancel each other's calls. They cancel their own by closing the stream.
        let key = of.map_or_else(|| id.to_string(), |of| format!("{of}/{id}"));
        if self.open.contains_key(&key) {
            // With this id, the error would be taken for the answer to the running call.
            let why = format!("a call with the id {} is already running", excerpt(&key));
            return Err(Step::Refuse(error(&Value::Null, INVALID_REQUEST, &why)));
        }
        let bytes = held(params) + key.len();
        let (calls, limit) = (self.limits.calls, self.limits.call_bytes);
        if self.open.len() >= calls {
            let why = format!("{calls} calls are already running");
            return Err(Step::Answer(unavailable(id, is_stateless, &why)));
        }
        if self.held.saturating_add(bytes) > limit {
            let why = format!("the running calls take more than {limit} bytes");
            return Err(Step::Answer(unavailable(id, is_stateless, &why)));
        }
        self.started += 1;
        self.held += bytes;
        let cancel = Cancel::new();
        let open = Open { number: self.started, bytes, cancel: cancel.clone() };
        self.open.insert(key.clone(), open);
        Ok((Ticket { key, number: self.started }, cancel))
    }

    /// Returns the notification for an event, if a client that sent `initialize` wants it.
    pub(crate) fn announce(&self, news: &News) -> Option<String> {
        if !self.is_ready {
            return None;
        }
        match news {
            News::ToolsChanged => Some(notice(TOOLS_CHANGED, &json!({}))),
            News::Log(level, text) => {
                let level = self.level.admit(*level)?;
                let params = json!({ "level": level, "data": &**text });
                Some(notice("notifications/message", &params))
            }
            _ => None,
        }
    }

    fn notice(&mut self, method: &str, params: &Value) -> Option<Step> {
        if method != "notifications/cancelled" {
            return None;
        }
        let key = params.get("requestId")?.to_string();
        let open = self.open.remove(&key)?;
        self.held -= open.bytes;
        Some(Step::Cancel(open.cancel))
    }

    /// Ends a call. Returns true if it must be answered, false if it was already canceled or finished.
    pub(crate) fn finish(&mut self, ticket: &Ticket) -> bool {
        // The id of a canceled call may already belong to a new one, which must go on.
        if self.open.get(&ticket.key).is_none_or(|open| open.number != ticket.number) {
            return false;
        }
        if let Some(open) = self.open.remove(&ticket.key) {
            self.held -= open.bytes;
        }
        true
    }

    /// Returns the cancel signals of all running calls.
    pub(crate) fn running(&self) -> Vec<Cancel> {
        self.open.values().map(|open| open.cancel.clone()).collect()
    }
}

fn unknown_method(id: &Value, method: &str) -> String {
    error(id, METHOD_NOT_FOUND, &format!("unknown method {}", excerpt(method)))
}

/// Returns the approximate memory of a value.
fn held(value: &Value) -> usize {
    VALUE
        + match value {
            Value::Array(values) => values.iter().map(held).sum(),
            Value::Object(members) => {
                members.iter().map(|(name, value)| VALUE + name.len() + held(value)).sum()
            }
            Value::String(text) => text.len(),
            _ => 0,
        }
}
