use std::collections::HashMap;

use oa_tools::{Registry, State, Tool};
use serde_json::{Map, Value, json};
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit};

/// The entry of a tool's `_meta` that has its category.
const CATEGORY: &str = "open-agent/category";

/// The tools that are offered, and what the server says about itself.
pub(crate) struct Catalog {
    registry: Registry,
    about: About,
    pub(crate) state: State,
    /// The result of `tools/list`, which never changes.
    list: String,
    gates: HashMap<String, Gate>,
    /// Held alone by a call of an exclusive tool. `None` if there is no such tool.
    floor: Option<RwLock<()>>,
}

#[derive(Clone, Default)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) instructions: Option<String>,
}

/// The limits on calls of a tool that run at once, over all clients.
struct Gate {
    is_exclusive: bool,
    places: Option<Semaphore>,
}

/// A call's turn; dropping it lets others run.
pub(crate) struct Turn<'a> {
    _place: Option<SemaphorePermit<'a>>,
    _shared: Option<RwLockReadGuard<'a, ()>>,
    _alone: Option<RwLockWriteGuard<'a, ()>>,
}

impl Catalog {
    pub(crate) fn new(registry: &Registry, about: About, state: State) -> Self {
        let mut offered = Registry::new();
        let mut gates = HashMap::new();
        let mut listed = Vec::new();
        for tool in registry {
            // Whoever has the result of an external tool is not here, and its name is taken once already.
            if tool.is_external() || offered.add_shared(tool.clone()).is_err() {
                continue;
            }
            listed.push(describe(&**tool));
            let places = tool.max_parallel().map(|most| Semaphore::new(most.max(1)));
            gates
                .insert(tool.name().to_owned(), Gate { is_exclusive: tool.is_exclusive(), places });
        }
        let has_exclusive = gates.values().any(|gate| gate.is_exclusive);
        Self {
            registry: offered,
            about,
            state,
            list: json!({ "tools": listed }).to_string(),
            gates,
            floor: has_exclusive.then(|| RwLock::new(())),
        }
    }

    /// Returns the tools that are offered.
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn offers(&self, tool: &str) -> bool {
        self.registry.contains(tool)
    }

    pub(crate) fn list(&self) -> &str {
        &self.list
    }

    /// Returns the result of `initialize`.
    pub(crate) fn hello(&self, version: &str) -> Value {
        let mut hello = json!({
            "protocolVersion": version,
            "capabilities": { "tools": {}, "logging": {} },
            "serverInfo": { "name": self.about.name, "version": self.about.version },
        });
        if let Some(instructions) = &self.about.instructions {
            hello["instructions"] = instructions.as_str().into();
        }
        hello
    }

    /// Waits until a tool may run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the place in the queue up.
    pub(crate) async fn turn(&self, tool: &str) -> Turn<'_> {
        let mut turn = Turn { _place: None, _shared: None, _alone: None };
        let gate = self.gates.get(tool);
        // The tool's own queue first: calls that wait in it must not keep an exclusive one waiting.
        if let Some(places) = gate.and_then(|gate| gate.places.as_ref()) {
            turn._place = places.acquire().await.ok();
        }
        if let Some(floor) = &self.floor {
            if gate.is_some_and(|gate| gate.is_exclusive) {
                turn._alone = Some(floor.write().await);
            } else {
                turn._shared = Some(floor.read().await);
            }
        }
        turn
    }
}

fn describe(tool: &dyn Tool) -> Value {
    let mut described = json!({
        "name": tool.name(),
        "description": tool.description(),
        "inputSchema": of_object(tool.input_schema()),
    });
    if let Some(schema) = tool.output_schema() {
        described["outputSchema"] = of_object(schema);
    }
    let mut hints = Map::new();
    if tool.category() == Some("read") {
        hints.insert("readOnlyHint".to_owned(), true.into());
    }
    if tool.is_cacheable() {
        hints.insert("idempotentHint".to_owned(), true.into());
    }
    if !hints.is_empty() {
        described["annotations"] = hints.into();
    }
    if let Some(category) = tool.category() {
        described["_meta"] = json!({ CATEGORY: category });
    }
    described
}

/// Returns a schema that says that it is one of an object, as the protocol asks.
fn of_object(schema: &Value) -> Value {
    let mut schema = schema.clone();
    schema["type"] = "object".into();
    schema
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use oa_tools::tool;

    use super::*;

    #[test]
    fn tools_are_described_with_what_they_promise() {
        let nothing = |_| ready(Ok(Value::Null));
        let of_sum = json!({ "properties": { "sum": { "type": "integer" } } });
        let registry = Registry::from_tools([
            tool("add", "Adds").param("a", "integer").output_schema(of_sum).build(nothing),
            tool("look", "Looks").category("read").cacheable().build(nothing),
            tool("ask", "Asks a person").external(),
        ]);
        let catalog = Catalog::new(&registry.unwrap(), About::default(), State::new());
        let listed: Value = serde_json::from_str(catalog.list()).unwrap();
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
        assert!(!catalog.offers("ask"));
    }
}
