//! Tools of MCP servers: whatever their schemas are, the server takes the request.

use std::fs;
use std::sync::Arc;

use oa_mcp::{Connected, McpServer, Servers};
use open_agent::{Tool, ToolMode, json};
use serde_json::{Map, Value};
use services::McpPackages;

use crate::answer::ask;
use crate::server::{Server, Wanted, check};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/schemas.sh");
const LIST: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/schemas.json");
/// As seen with llama.cpp: schemas that it refuses, those that hang it or take all its memory, and those that it
/// accepts; and those that no server can do anything with.
const SCHEMAS: &str = include_str!("schemas.json");
/// The tools of one request with a grammar for all of them.
const TOGETHER: usize = 8;
const PROMPT: &str = "Call the tool.";

fn schemas(kind: &str) -> Map<String, Value> {
    let all: Value = serde_json::from_str(SCHEMAS).expect("schemas.json");
    all[kind].as_object().cloned().expect("schemas by name")
}

async fn connect(server: McpServer) -> Connected {
    Servers::new().add(server.required()).connect().await.expect("a server of MCP")
}

/// Returns the reason why the server rejected a request. Any answer counts as accepted, even one that is cut or
/// makes no sense.
async fn refusal(server: &Server, tools: &[Arc<dyn Tool>], mode: ToolMode) -> Option<String> {
    let mut options = server.options().seed(3).max_tokens(24).tool_mode(mode.clone());
    options = options.tools(tools.iter().cloned());
    if mode == ToolMode::Native {
        options = options.extra_body(json!({ "tool_choice": "required" }));
    }
    let error = ask(&options.build().expect("options"), PROMPT).await.err()?;
    // The model's own words, which mean nothing.
    (!error.to_string().contains("model produced output")).then(|| error.to_string())
}

/// Offers each tool, and some together; returns the number of tools.
async fn check_tools(server: &Server, connected: &Connected) -> usize {
    let tools = connected.tools();
    for tool in &tools {
        let why = refusal(server, std::slice::from_ref(tool), ToolMode::Native).await;
        assert_eq!(why, None, "{}: {}", tool.name(), tool.input_schema());
    }
    for some in tools.chunks(TOGETHER) {
        let names: Vec<_> = some.iter().map(|tool| tool.name()).collect();
        assert_eq!(refusal(server, some, ToolMode::Native).await, None, "{names:?}");
        assert_eq!(refusal(server, some, ToolMode::Constrained).await, None, "{names:?}");
    }
    tools.len()
}

#[test]
fn rejected_schemas_are_repaired() {
    check(Wanted::Tiny, async |server| {
        let offered = ["refused", "worse", "accepted"].map(schemas);
        let count = offered.iter().map(Map::len).sum::<usize>();
        let left_out = schemas("left_out");
        let all = offered.iter().chain([&left_out]).flatten();
        let list: Value =
            all.map(|(name, schema)| json!({ "name": name, "inputSchema": schema })).collect();
        fs::write(LIST, list.to_string()).unwrap();
        let connected = connect(McpServer::stdio("s", SCRIPT).arg(LIST)).await;
        assert_eq!(connected.tools().len(), count);
        let warnings = connected.connection("s").map(oa_mcp::Connection::warnings);
        // An empty schema may be one that the server has lost.
        let is_empty = |schema: &&Value| schema.as_object().is_some_and(Map::is_empty);
        let empty = offered.iter().flat_map(Map::values).filter(is_empty).count();
        assert_eq!(warnings.map_or(0, |warnings| warnings.len()), left_out.len() + empty);
        let taken = check_tools(server, &connected).await;
        println!("{taken} tools alone and together, with a grammar and without");
        connected.close().await;

        // As they are, the server rejects each of the refused schemas.
        for (name, schema) in schemas("refused") {
            let tool =
                json!({ "type": "function", "function": { "name": name, "parameters": schema } });
            let as_it_is = json!({ "tools": [tool], "tool_choice": "required" });
            let options = server.options().seed(3).max_tokens(24).extra_body(as_it_is).build();
            let error = ask(&options.unwrap(), PROMPT).await.expect_err(&name);
            assert_eq!(error.status(), Some(400), "{name}: {error}");
        }
    });
}

#[test]
fn reference_server_tools_are_accepted() {
    check(Wanted::Tiny, async |server| {
        let Some(packages) = services::or_skip(McpPackages::install()) else { return };
        let entry = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        let entry = packages.folder().join(entry);
        let program = McpServer::stdio("e", "node").args([&*entry.to_string_lossy(), "stdio"]);
        let connected = connect(program).await;
        assert!(connected.tools().len() > 10, "{connected:?}");
        let taken = check_tools(server, &connected).await;
        println!("{taken} tools alone and together, with a grammar and without");
        connected.close().await;
    });
}
