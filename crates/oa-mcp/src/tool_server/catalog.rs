use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use oa_executor::{ExecutorOptions, ToolExecutor};
use oa_tools::{Registry, State};
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore};

use crate::tool_server::live::Live;
use oa_mcp_data::client::{STATELESS, VERSIONS, complete, describe_tool};

/// The server's information about itself and its current tools.
pub(crate) struct Catalog {
    about: About,
    /// The server's name and version, in the protocol's form.
    pub(crate) server: Arc<Value>,
    pub(crate) state: State,
    pub(crate) live: Arc<Live>,
    options: ExecutorOptions,
    current: Mutex<Arc<Offer>>,
    /// Held exclusively by a call to an exclusive tool.
    floor: RwLock<()>,
}

/// A snapshot of the offered tools.
pub(crate) struct Offer {
    revision: u64,
    pub(crate) executor: ToolExecutor,
    /// The result of `tools/list` for versions with a handshake, followed by the stateless one.
    list: String,
    list_stateless: String,
    gates: HashMap<String, Gate>,
}

#[derive(Clone, Default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
}

/// The concurrency limits of a tool, across all clients.
struct Gate {
    is_exclusive: bool,
    /// The number of slots and their semaphore. A new list with the same number keeps the semaphore.
    places: Option<(usize, Arc<Semaphore>)>,
}

/// A call's permission to run now. Dropping it lets others run.
pub(crate) struct Turn<'a> {
    _place: Option<OwnedSemaphorePermit>,
    _shared: Option<RwLockReadGuard<'a, ()>>,
    _alone: Option<RwLockWriteGuard<'a, ()>>,
}

impl Offer {
    fn new(live: &Live, before: Option<&Self>, options: &ExecutorOptions, server: &Value) -> Self {
        let (revision, registry) = live.registry();
        let mut offered = Registry::new();
        let mut gates = HashMap::new();
        let mut listed = Vec::new();
        for tool in &registry {
            // Nothing here can provide the result of an external tool, and a name is offered only once.
            if tool.is_external() || offered.add_shared(tool.clone()).is_err() {
                continue;
            }
            listed.push(describe_tool(&**tool));
            let name = tool.name().to_owned();
            let known = before.and_then(|before| before.gates.get(&name)?.places.clone());
            let places = tool.max_parallel().map(|most| {
                let most = most.clamp(1, Semaphore::MAX_PERMITS);
                let known = known.filter(|(of, _)| *of == most);
                known.unwrap_or_else(|| (most, Arc::new(Semaphore::new(most))))
            });
            gates.insert(name, Gate { is_exclusive: tool.is_exclusive(), places });
        }
        // Only zero values are refused, and there are none.
        let executor = ToolExecutor::with_options(offered.clone(), options.clone())
            .unwrap_or_else(|_| ToolExecutor::new(offered));
        let list = json!({ "tools": listed });
        // Tools may change at any time, so a list is stale as soon as it is sent.
        let cacheable = json!({ "tools": listed, "ttlMs": 0, "cacheScope": "public" });
        Self {
            revision,
            executor,
            list: list.to_string(),
            list_stateless: complete(cacheable, server).to_string(),
            gates,
        }
    }

    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.executor.tools().contains(tool)
    }

    pub(crate) fn list(&self, is_stateless: bool) -> &str {
        if is_stateless { &self.list_stateless } else { &self.list }
    }
}

impl Catalog {
    pub(crate) fn new(
        live: Arc<Live>,
        about: About,
        state: State,
        options: ExecutorOptions,
    ) -> Self {
        let server = json!({ "name": about.name, "version": about.version });
        let current = Mutex::new(Arc::new(Offer::new(&live, None, &options, &server)));
        let server = Arc::new(server);
        Self { about, server, state, live, options, current, floor: RwLock::new(()) }
    }

    pub(crate) fn offer(&self) -> Arc<Offer> {
        // The locks are taken in this order: protocol, `current`, the state of `live`.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.revision != self.live.revision() {
            let offer = Offer::new(&self.live, Some(&current), &self.options, &self.server);
            *current = Arc::new(offer);
        }
        Arc::clone(&current)
    }

    /// Returns the result of `initialize`.
    pub(crate) fn hello(&self, version: &str) -> Value {
        let mut hello = self.capabilities();
        hello["protocolVersion"] = version.into();
        hello["serverInfo"] = Value::clone(&self.server);
        hello
    }

    /// Returns the result of `server/discover`.
    pub(crate) fn discovery(&self) -> Value {
        let mut discovery = self.capabilities();
        let versions: Vec<_> =
            std::iter::once(STATELESS).chain(VERSIONS.into_iter().rev()).collect();
        discovery["supportedVersions"] = versions.into();
        discovery["ttlMs"] = 0.into();
        discovery["cacheScope"] = "public".into();
        complete(discovery, &self.server)
    }

    fn capabilities(&self) -> Value {
        let mut said =
            json!({ "capabilities": { "tools": { "listChanged": true }, "logging": {} } });
        if let Some(instructions) = &self.about.instructions {
            said["instructions"] = instructions.as_str().into();
        }
        said
    }

    /// Waits until a tool may run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives up the place in the queue.
    pub(crate) async fn turn(&self, offer: &Offer, tool: &str) -> Turn<'_> {
        let mut turn = Turn { _place: None, _shared: None, _alone: None };
        let gate = offer.gates.get(tool);
        // The tool's own queue first: calls that wait there must not block an exclusive one.
        if let Some((_, places)) = gate.and_then(|gate| gate.places.as_ref()) {
            turn._place = Arc::clone(places).acquire_owned().await.ok();
        }
        if gate.is_some_and(|gate| gate.is_exclusive) {
            turn._alone = Some(self.floor.write().await);
        } else {
            turn._shared = Some(self.floor.read().await);
        }
        turn
    }
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use oa_tools::tool;

    use super::*;

    #[test]
    fn tool_hints_follow_category_and_caching() {
        let nothing = |_| ready(Ok(Value::Null));
        let of_sum = json!({ "properties": { "sum": { "type": "integer" } } });
        let registry = Registry::from_tools([
            tool("add", "Adds").param("a", "integer").output_schema(of_sum).build(nothing),
            tool("look", "Looks").category("read").cacheable().build(nothing),
            tool("ask", "Asks a person").external(),
        ]);
        let live = Arc::new(Live::new(registry.unwrap()));
        let options = ExecutorOptions::new();
        let catalog = Catalog::new(live, About::default(), State::new(), options);
        let offer = catalog.offer();
        let listed: Value = serde_json::from_str(offer.list(false)).unwrap();
        assert_eq!(
            listed,
            json!({ "tools": [
                {
                    "name": "add",
                    "description": "Adds",
                    "inputSchema": { "type": "object", "properties": { "a": { "type": "integer" } }, "required": ["a"] },
                    "outputSchema": { "type": "object", "properties": { "sum": { "type": "integer" } } },
                },
                {
                    "name": "look",
                    "description": "Looks",
                    "inputSchema": { "type": "object", "properties": {}, "required": [] },
                    "annotations": { "readOnlyHint": true, "idempotentHint": true },
                    "_meta": { "open-agent/category": "read" },
                },
            ] })
        );
        assert!(!offer.offers("ask"));
        let stateless: Value = serde_json::from_str(offer.list(true)).unwrap();
        assert_eq!(stateless["tools"], listed["tools"]);
        assert_eq!(
            (&stateless["resultType"], &stateless["ttlMs"]),
            (&json!("complete"), &json!(0))
        );
    }
}
