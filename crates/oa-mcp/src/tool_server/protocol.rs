use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use oa_mcp_data::client::{
    Envelope, INVALID_PARAMS, INVALID_REQUEST, Incoming, LEVELS, Level, METHOD_NOT_FOUND, News,
    Origin, ServerLimits, VERSIONS, answer, answer_with, complete, error, excerpt,
    is_progress_token, level_place, memory_of, notice, of_subscription, read, unavailable,
};
use oa_tools::Cancel;
use serde_json::{Value, json};

use crate::tool_server::catalog::{Catalog, Offer};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

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
    is_over: bool,
    level: Arc<Level>,
    /// The running calls and the subscriptions, by the JSON of their ids.
    open: HashMap<String, Open>,
    /// The number of running calls.
    calls: usize,
    /// The open subscriptions, oldest first.
    subscriptions: BTreeMap<u64, Cancel>,
    /// The memory taken by their arguments.
    held: usize,
    started: u64,
}

struct Open {
    number: u64,
    /// The memory taken by the arguments of a call; `None` for a subscription, which keeps nothing of them.
    bytes: Option<usize>,
    cancel: Cancel,
}

/// An action in response to a message.
pub(crate) enum Step {
    /// Send this answer to a request.
    Answer(String),
    /// Send this answer to a request that its version does not allow. Over HTTP, it has its own status.
    Reject(#[cfg_attr(not(feature = "server-http"), expect(dead_code))] Rejection, String),
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

impl Protocol {
    pub(crate) fn new(catalog: Arc<Catalog>, limits: ServerLimits) -> Self {
        Self {
            catalog,
            limits,
            is_ready: false,
            is_over: false,
            level: Arc::new(Level::new(Some(1))),
            open: HashMap::new(),
            calls: 0,
            subscriptions: BTreeMap::new(),
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
        let (mut steps, mut answered) = (Vec::with_capacity(messages.len()), 0);
        let most = self.limits.result_bytes;
        for message in messages {
            let step = match message {
                Incoming::Invalid { id, why } => {
                    let refusal = error(&id, INVALID_REQUEST, why);
                    Some(if id.is_null() { Step::Refuse(refusal) } else { Step::Answer(refusal) })
                }
                Incoming::Notice { method, params } => self.notice(&method, &params),
                // A batch may ask for the whole list thousands of times.
                Incoming::Request { id, .. } if answered > most => {
                    let why = format!("the answers to the batch have more than {most} bytes");
                    Some(Step::Answer(unavailable(&id, false, &why)))
                }
                Incoming::Request { id, method, params } => {
                    Some(self.request(id, &method, params, origin))
                }
                // An answer, although nothing was asked.
                _ => None,
            };
            if let Some(Step::Answer(answer)) = &step {
                answered += answer.len();
            }
            steps.extend(step);
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
                let level = Arc::new(Level::new(level));
                let server = Some(Arc::clone(&self.catalog.server));
                self.call(id, params, server, level, of)
            }
            "subscriptions/listen" => self.listen(id, &params, of),
            other => Step::Reject(Rejection::UnknownMethod, unknown_method(&id, other)),
        }
    }

    /// Answers a request of a conversation that began with `initialize`.
    fn of_session(&mut self, id: Value, method: &str, params: Value) -> Step {
        let nothing = |what: &str| Step::Answer(answer(&id, &json!({ (what): [] })));
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
                self.level.set(place);
                Step::Answer(answer(&id, &json!({})))
            }
            // Some clients always ask for these, and take an error for a broken connection.
            "prompts/list" => nothing("prompts"),
            "resources/list" => nothing("resources"),
            "resources/templates/list" => nothing("resourceTemplates"),
            other => Step::Answer(unknown_method(&id, other)),
        }
    }

    fn list(&self, id: &Value, params: &Value, is_stateless: bool) -> Step {
        // Clients that write every member begin with an empty cursor.
        if params.get("cursor").is_some_and(|cursor| !cursor.is_null() && cursor != "") {
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
        // Clients that reconnect over the same pipe send it again.
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
        let key = match self.key(&id, of) {
            Ok(key) => key,
            Err(step) => return step,
        };
        if self.is_over {
            return Step::Answer(unavailable(&id, server.is_some(), "the session has ended"));
        }
        let (calls, limit) = (self.limits.calls, self.limits.call_bytes);
        let bytes = memory_of(&params) + key.len();
        if self.calls >= calls {
            let why = format!("{calls} calls are already running");
            return Step::Answer(unavailable(&id, server.is_some(), &why));
        }
        if self.held.saturating_add(bytes) > limit {
            let why = format!("the running calls take more than {limit} bytes");
            return Step::Answer(unavailable(&id, server.is_some(), &why));
        }
        self.calls += 1;
        self.held += bytes;
        let (ticket, cancel) = self.admit(key, Some(bytes));
        let token = params.pointer("/_meta/progressToken").cloned();
        let input = params.get_mut("arguments").map(Value::take).unwrap_or_default();
        Step::Call(Box::new(Call {
            id,
            ticket,
            offer,
            server,
            tool,
            input: if input.is_null() { json!({}) } else { input },
            token: token.filter(is_progress_token),
            level,
            cancel,
        }))
    }

    fn listen(&mut self, id: Value, params: &Value, of: Option<u64>) -> Step {
        let Some(filter) = params.get("notifications").filter(|filter| filter.is_object()) else {
            return Step::Answer(error(&id, INVALID_PARAMS, "notifications must be an object"));
        };
        let wants_tools = filter.get("toolsListChanged") == Some(&Value::Bool(true));
        let key = match self.key(&id, of) {
            Ok(key) => key,
            Err(step) => return step,
        };
        let (ticket, cancel) = self.admit(key, None);
        self.subscriptions.insert(ticket.number, cancel.clone());
        // The new one is not refused: over HTTP, one client could have all others refused forever.
        if self.subscriptions.len() > self.limits.subscriptions.max(1)
            && let Some((_, oldest)) = self.subscriptions.pop_first()
        {
            oldest.cancel();
        }
        let server = Arc::clone(&self.catalog.server);
        Step::Listen(Box::new(Subscription { id, ticket, wants_tools, server, cancel }))
    }

    /// Returns the key of a request that is answered later, unless its id is in use.
    fn key(&self, id: &Value, of: Option<u64>) -> Result<String, Step> {
        // With a number, the key is like `7/"a"`. No `requestId` equals it, because it is not JSON: clients
        // without a session cannot cancel each other's calls. They cancel their own by closing the stream.
        let key = of.map_or_else(|| id.to_string(), |of| format!("{of}/{id}"));
        if self.open.contains_key(&key) {
            // With this id, the error would be taken for the answer to the running call.
            let why = format!("a call with the id {} is already running", excerpt(&key));
            return Err(Step::Refuse(error(&Value::Null, INVALID_REQUEST, &why)));
        }
        Ok(key)
    }

    fn admit(&mut self, key: String, bytes: Option<usize>) -> (Ticket, Cancel) {
        self.started += 1;
        let (number, cancel) = (self.started, Cancel::new());
        self.open.insert(key.clone(), Open { number, bytes, cancel: cancel.clone() });
        (Ticket { key, number }, cancel)
    }

    fn remove(&mut self, key: &str) -> Option<Open> {
        let open = self.open.remove(key)?;
        match open.bytes {
            Some(bytes) => {
                self.calls -= 1;
                self.held -= bytes;
            }
            None => drop(self.subscriptions.remove(&open.number)),
        }
        Some(open)
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
        Some(Step::Cancel(self.remove(&key)?.cancel))
    }

    /// Ends a call. Returns true if it must be answered, false if it was already canceled or finished.
    pub(crate) fn finish(&mut self, ticket: &Ticket) -> bool {
        // The id of a canceled call may already belong to a new one, which must go on.
        if self.open.get(&ticket.key).is_none_or(|open| open.number != ticket.number) {
            return false;
        }
        self.remove(&ticket.key).is_some()
    }

    /// Ends the conversation: there are no calls from here on. Returns the cancel signals of the running ones.
    pub(crate) fn end(&mut self) -> Vec<Cancel> {
        self.is_over = true;
        self.open.values().map(|open| open.cancel.clone()).collect()
    }
}

fn unknown_method(id: &Value, method: &str) -> String {
    error(id, METHOD_NOT_FOUND, &format!("unknown method {}", excerpt(method)))
}
