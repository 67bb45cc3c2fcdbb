use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use oa_tools::{Cancel, LogLevel};
use serde_json::{Value, json};

use crate::tool_server::catalog::Catalog;
use crate::tool_server::limits::ServerLimits;
use crate::tool_server::message::{
    INVALID_PARAMS, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, UNAVAILABLE, answer, answer_with,
    error, excerpt, read, values,
};

/// The versions of the protocol that are spoken, the newest last.
pub(crate) const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The levels of log notifications, as the protocol orders them.
const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
/// The memory that a JSON value takes beside its text.
const VALUE: usize = 80;

/// One client's conversation with the server, without I/O: messages in, steps out.
///
/// Each request gets exactly one answer: by a [`Step::Answer`], or by the call that a [`Step::Call`] starts, which asks
/// [`finish`](Self::finish) before it answers. A request that the client has canceled gets none.
pub(crate) struct Protocol {
    catalog: Arc<Catalog>,
    limits: ServerLimits,
    is_ready: bool,
    level: Arc<Level>,
    /// The calls that run, by the JSON of their ids.
    open: HashMap<String, Open>,
    /// The memory that their arguments take.
    held: usize,
    started: u64,
}

struct Open {
    number: u64,
    bytes: usize,
    cancel: Cancel,
}

/// A thing to do about a message.
pub(crate) enum Step {
    /// Send this answer to a request.
    Answer(String),
    Call(Box<Call>),
    /// Tell a call that the client does not want it any more.
    Cancel(Cancel),
    /// Send this answer to what is no request.
    Refuse(String),
}

/// A call to run.
pub(crate) struct Call {
    pub(crate) id: Value,
    pub(crate) ticket: Ticket,
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
}

/// The entry of a call that runs.
pub(crate) struct Ticket {
    key: String,
    number: u64,
}

/// The lowest level of log notifications that the client wants.
pub(crate) struct Level(AtomicU8);

impl Level {
    /// Returns the protocol's name of a level, if the client wants lines of it.
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

    /// Returns true once the client has said `initialize`.
    #[cfg(feature = "server-http")]
    pub(crate) fn is_ready(&self) -> bool {
        self.is_ready
    }

    #[cfg(feature = "server-http")]
    pub(crate) fn is_busy(&self) -> bool {
        !self.open.is_empty()
    }

    /// Reads what came in one piece.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Vec<Step> {
        let messages = match read(bytes, self.limits.message_values) {
            Ok(messages) => messages,
            Err(refusal) => return vec![Step::Refuse(refusal)],
        };
        // What all of a batch takes is charged to each of its calls: seldom, and never too little.
        let bytes = bytes.len() + VALUE * values(bytes);
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
                    steps.push(self.request(id, &method, params, bytes));
                }
                Incoming::Response => {}
            }
        }
        steps
    }

    fn request(&mut self, id: Value, method: &str, params: Value, bytes: usize) -> Step {
        match method {
            "ping" => Step::Answer(answer(&id, &json!({}))),
            "initialize" => Step::Answer(self.initialize(&id, &params)),
            "logging/setLevel" | "tools/call" | "tools/list" if !self.is_ready => {
                Step::Answer(error(&id, INVALID_REQUEST, "the first request must be initialize"))
            }
            "tools/list" if params.get("cursor").is_some_and(|cursor| !cursor.is_null()) => {
                Step::Answer(error(&id, INVALID_PARAMS, "the list has one page"))
            }
            "tools/list" => Step::Answer(answer_with(&id, self.catalog.list())),
            "tools/call" => self.call(id, params, bytes),
            "logging/setLevel" => {
                let level = params.get("level").and_then(Value::as_str);
                let place = level.and_then(|level| LEVELS.iter().position(|known| *known == level));
                let Some(place) = place.and_then(|place| u8::try_from(place).ok()) else {
                    let why = format!("level must be one of {}", LEVELS.join(", "));
                    return Step::Answer(error(&id, INVALID_PARAMS, &why));
                };
                self.level.0.store(place, Ordering::Relaxed);
                Step::Answer(answer(&id, &json!({})))
            }
            other => {
                let why = format!("there is no method {}", excerpt(other));
                Step::Answer(error(&id, METHOD_NOT_FOUND, &why))
            }
        }
    }

    fn initialize(&mut self, id: &Value, params: &Value) -> String {
        let Some(asked) = params.get("protocolVersion").and_then(Value::as_str) else {
            return error(id, INVALID_PARAMS, "protocolVersion must be a text");
        };
        if self.is_ready {
            return error(id, INVALID_REQUEST, "initialize was said before");
        }
        self.is_ready = true;
        // A client that does not know our version ends the connection.
        let newest = VERSIONS[VERSIONS.len() - 1];
        let version = VERSIONS.into_iter().find(|known| *known == asked).unwrap_or(newest);
        answer(id, &self.catalog.hello(version))
    }

    fn call(&mut self, id: Value, mut params: Value, bytes: usize) -> Step {
        let Some(tool) = params.get("name").and_then(Value::as_str) else {
            return Step::Answer(error(&id, INVALID_PARAMS, "name must be a text"));
        };
        if !self.catalog.offers(tool) {
            let why = format!("there is no tool {}", excerpt(tool));
            return Step::Answer(error(&id, INVALID_PARAMS, &why));
        }
        let tool = tool.to_owned();
        let key = id.to_string();
        if self.open.contains_key(&key) {
            // With this id it would be taken for the answer to the call that runs.
            let why = format!("a call with the id {} runs already", excerpt(&key));
            return Step::Refuse(error(&Value::Null, INVALID_REQUEST, &why));
        }
        let (calls, limit) = (self.limits.calls, self.limits.call_bytes);
        if self.open.len() >= calls {
            let why = format!("{calls} calls run already");
            return Step::Answer(error(&id, UNAVAILABLE, &why));
        }
        if self.held.saturating_add(bytes) > limit {
            let why = format!("the calls that run take more than {limit} bytes");
            return Step::Answer(error(&id, UNAVAILABLE, &why));
        }
        self.started += 1;
        self.held += bytes;
        let cancel = Cancel::new();
        let open = Open { number: self.started, bytes, cancel: cancel.clone() };
        self.open.insert(key.clone(), open);
        let token = params.pointer("/_meta/progressToken").cloned();
        let input = params.get_mut("arguments").map(Value::take).unwrap_or_default();
        Step::Call(Box::new(Call {
            id,
            ticket: Ticket { key, number: self.started },
            tool,
            input: if input.is_null() { json!({}) } else { input },
            token: token.filter(|token| token.is_string() || token.is_number()),
            level: Arc::clone(&self.level),
            cancel,
        }))
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

    /// Ends a call. Returns true if it is to be answered: nobody has canceled it, or finished it before.
    pub(crate) fn finish(&mut self, ticket: &Ticket) -> bool {
        if self.open.get(&ticket.key).is_none_or(|open| open.number != ticket.number) {
            return false;
        }
        if let Some(open) = self.open.remove(&ticket.key) {
            self.held -= open.bytes;
        }
        true
    }

    /// Returns the signals of all calls that run.
    pub(crate) fn running(&self) -> Vec<Cancel> {
        self.open.values().map(|open| open.cancel.clone()).collect()
    }
}
