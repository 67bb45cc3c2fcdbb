//! A server, and an agent that calls its tool.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use oa_client::{AgentOptions, AgentOptionsBuilder, Client};
use oa_mcp::{Connected, McpServer, Servers};
use oa_testkit::{MemoryServer, Reply, Script};
use serde_json::json;

/// The server and the file in which it notes cancellations.
pub(crate) fn server() -> (McpServer, PathBuf) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = format!("mcp-{}-{count}", std::process::id());
    let notes = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(file);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.sh");
    (McpServer::stdio("s", script).arg(notes.to_string_lossy()).required(), notes)
}

/// The server as one of the version without a handshake, which asks in the place of a result.
pub(crate) fn server_of_rounds() -> McpServer {
    server().0.arg("rounds")
}

pub(crate) async fn connect(server: McpServer) -> Connected {
    let connected = Servers::new().add(server).connect().await;
    connected.unwrap_or_else(|error| panic!("{error}"))
}

/// A model that always says this.
pub(crate) fn model(reply: Reply) -> MemoryServer {
    MemoryServer::new(Script::new().otherwise(reply))
}

/// A model that calls the server's tool, and then says that it is done.
pub(crate) fn calls(what: &str) -> MemoryServer {
    let call = Reply::new().call("s__run", json!({ "what": what })).usage(8, 2);
    MemoryServer::new(Script::new().reply(call).otherwise(Reply::text("Done.").usage(8, 2)))
}

pub(crate) fn agent(model: &MemoryServer, connected: &Connected) -> AgentOptionsBuilder {
    AgentOptions::builder()
        .model("large")
        .transport(model.clone())
        .tool_source(connected.source())
        .auto_execute_tools(true)
}

pub(crate) fn client(options: AgentOptionsBuilder) -> Client {
    let client = options.build().and_then(Client::new);
    client.unwrap_or_else(|error| panic!("{error}"))
}

/// Returns the result of the only call in history.
pub(crate) fn result(client: &Client) -> String {
    let blocks = client.history().iter().flat_map(|message| &message.content);
    let mut results = blocks.filter_map(|block| match block {
        oa_types::ContentBlock::ToolResult(result) => Some(&result.content),
        _ => None,
    });
    let content = results.next().unwrap_or_else(|| panic!("no result"));
    content.as_str().map_or_else(|| content.to_string(), str::to_owned)
}
