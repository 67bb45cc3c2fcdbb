//! The beginning of a conversation: `initialize`, or `server/discover` for the stateless version.
//!
//! `rmcp` always sends `initialize`. A stateless server is sent `server/discover` instead, and `rmcp` gets a synthetic
//! answer to its handshake, so it does not notice.

use oa_mcp_data::Hello;
use oa_mcp_data::client::{VERSIONS, enclose};
use rmcp::model::ServerJsonRpcMessage;
use serde_json::{Value, json};

use super::{Kind, Link, SUBSCRIBE};
use crate::error::{Error, ErrorKind};

/// The id of `server/discover` after a refused `initialize`; the ids of `rmcp` are below.
const DISCOVER: i64 = 1 << 32;
/// The id of a second `initialize`.
const INITIALIZE: i64 = DISCOVER + 1;

impl Link {
    /// Begins with the `initialize` of `rmcp`. Returns false if another request is sent instead.
    pub(super) fn begin(&self, id: i64) -> Result<bool, Error> {
        let mut state = self.lock();
        (state.beginning.initialize, state.beginning.waits) = (id, Some(id));
        drop(state);
        if self.begins_stateless {
            self.discover(id)?;
        }
        Ok(!self.begins_stateless)
    }

    /// Begins once more, with the version that the server has named.
    fn initialize(&self, version: &str) -> Result<(), Error> {
        self.lock().beginning.waits = Some(INITIALIZE);
        let capabilities = self.host.capabilities();
        let message = json!({
            "jsonrpc": "2.0", "id": INITIALIZE, "method": "initialize",
            "params": { "protocolVersion": version, "capabilities": capabilities, "clientInfo": about_us() },
        });
        self.queue(&message, Kind::Request(INITIALIZE))
    }

    fn discover(&self, id: i64) -> Result<(), Error> {
        let mut state = self.lock();
        (state.beginning.waits, state.beginning.is_discovery) = (Some(id), true);
        drop(state);
        let params = self.enclosed(json!({}));
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": params });
        self.queue(&message, Kind::Request(id))
    }

    /// Adds the metadata to the parameters that each request of the stateless version carries.
    pub(super) fn enclosed(&self, params: Value) -> Value {
        // Without a level, a stateless server sends no log lines.
        let level = self.on_log.as_ref().map(|_| "debug");
        enclose(params, &about_us(), &self.host.capabilities(), level)
    }

    /// Handles the answer to the request that began the conversation.
    pub(super) fn begun(&self, answer: Result<Value, Error>) {
        let mut state = self.lock();
        let is_discovery = state.beginning.is_discovery;
        let (bytes, secrets) = (self.limits.instruction_bytes, self.secrets.get());
        let hello = answer.and_then(|result| {
            let hello = match is_discovery {
                true => Hello::of_discovery(&result, &secrets, bytes),
                false => Hello::of_handshake(&result, &secrets, bytes),
            };
            hello.map_err(Error::protocol)
        });
        match hello {
            Ok(hello) => {
                // `rmcp` waits for an answer to `initialize`, whichever request the server answered. It is
                // told a version with a handshake, or it would add its own metadata to each request.
                let (id, is_stateless) = (state.beginning.initialize, hello.is_stateless());
                let version =
                    if is_stateless { VERSIONS[VERSIONS.len() - 1] } else { &*hello.version };
                let handshake = handshake(id, version);
                let beginning = &mut state.beginning;
                (beginning.waits, beginning.refusal, beginning.hello) = (None, None, Some(hello));
                drop(state);
                match handshake {
                    Ok(message) => drop(self.forward.send(message)),
                    Err(error) => {
                        self.end(Error::protocol(format!("the handshake failed: {error}")));
                    }
                }
            }
            Err(error) if !is_discovery && is_refusal(&error) => {
                let is_first = state.beginning.refusal.is_none();
                let other = Hello::other_version(&error.to_string()).filter(|_| is_first);
                state.beginning.refusal.get_or_insert(error);
                drop(state);
                let asked = other.map(|version| self.initialize(version));
                let asked = asked.unwrap_or_else(|| self.discover(DISCOVER));
                if let Err(error) = asked {
                    self.end(error);
                }
            }
            Err(error) => {
                drop(state);
                self.not_begun(error);
            }
        }
    }

    /// Ends a connection that could not begin.
    pub(super) fn not_begun(&self, error: Error) {
        let is_refused = error.code().is_some() && self.begins_stateless;
        let error = if is_refused { error.of("server/discover") } else { error };
        self.end(error.with_kind(ErrorKind::Connect));
    }

    /// Subscribes to changes of the list: a stateless server announces them only on request.
    pub(super) fn subscribe(&self) -> Result<(), Error> {
        if !self.hello_said().is_some_and(|hello| hello.tells_changes) {
            return Ok(());
        }
        let params = self.enclosed(json!({ "notifications": { "toolsListChanged": true } }));
        let message = json!({
            "jsonrpc": "2.0", "id": SUBSCRIBE, "method": "subscriptions/listen", "params": params,
        });
        self.queue(&message, Kind::Subscribe)
    }

    /// Takes the body of an HTTP error as the answer, if it is a protocol message: always in the stateless version, and
    /// in the others if it refuses the handshake. Returns false otherwise.
    #[cfg(feature = "http")]
    pub(crate) fn take_refusal(&self, id: i64, mut body: Value, error: &Error) -> bool {
        let state = self.lock();
        let (begins, is_stateless) =
            (state.beginning.waits == Some(id), state.beginning.is_stateless());
        drop(state);
        if is_stateless && error.code().is_some() {
            // Errors about the request as a whole have no id.
            self.response(id, &mut body);
            return true;
        }
        if begins && !is_stateless && is_refusal(error) {
            self.begun(Err(error.clone()));
            return true;
        }
        false
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.lock().beginning.is_stateless()
    }

    pub(crate) fn hello_said(&self) -> Option<Hello> {
        self.lock().beginning.hello.clone()
    }
}

/// Returns true if a server refuses the handshake, or its version.
fn is_refusal(error: &Error) -> bool {
    error.code().map_or_else(
        || Hello::refuses_version(error.status().unwrap_or_default(), &error.to_string()),
        Hello::is_refused,
    )
}

fn about_us() -> Value {
    json!({ "name": "open-agent", "version": env!("CARGO_PKG_VERSION") })
}

/// Returns a minimal answer to `initialize` for `rmcp`.
fn handshake(id: i64, version: &str) -> serde_json::Result<ServerJsonRpcMessage> {
    let result = json!({
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": { "name": "server", "version": "0" },
    });
    serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}
