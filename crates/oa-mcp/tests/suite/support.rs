//! Servers that are started, and tools that are called.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use oa_mcp::{Connected, Limits, McpServer, Servers};
use oa_tools::{Emission, Tool, ToolContext};
use serde_json::{Value, json};

/// A key that must be seen nowhere.
pub(crate) const CANARY: &str = "sk-canary-0123456789abcdef";

/// The scripted server in one of its modes.
pub(crate) fn scripted(mode: &str) -> McpServer {
    let mut limits = Limits::default();
    limits.restart_delay = Duration::from_millis(10);
    McpServer::stdio("s", env!("CARGO_BIN_EXE_oa-mcp-scripted"))
        .arg(mode)
        .env("CANARY", CANARY)
        .limits(limits)
        .required()
}

/// The number of repetitions of a long test: a small one, or that of `OPEN_AGENT_SOAK`.
pub(crate) fn soak(few: usize) -> usize {
    let count = std::env::var("OPEN_AGENT_SOAK").ok().and_then(|count| count.parse().ok());
    count.unwrap_or(few)
}

pub(crate) fn with_limits(mut change: impl FnMut(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    limits.restart_delay = Duration::from_millis(10);
    change(&mut limits);
    limits
}

pub(crate) async fn connect(server: McpServer) -> Result<Connected, oa_mcp::Error> {
    Servers::new().add(server).connect().await
}

pub(crate) fn tool(connected: &Connected, name: &str) -> Option<Arc<dyn Tool>> {
    connected.tools().into_iter().find(|tool| tool.name() == name)
}

/// Calls the tool `do`: its result, or the words of its error.
pub(crate) async fn call(connected: &Connected, what: &str) -> Result<Value, String> {
    call_with(connected, json!({ "what": what }), ToolContext::new("c", "s__do")).await
}

pub(crate) async fn call_with(
    connected: &Connected,
    input: Value,
    cx: ToolContext,
) -> Result<Value, String> {
    let Some(tool) = tool(connected, "s__do") else {
        return Err("there is no tool s__do".to_owned());
    };
    tool.call(input, cx).await.map_err(|error| error.to_string())
}

/// A context whose emissions are kept.
pub(crate) fn listening() -> (ToolContext, Arc<Mutex<Vec<Emission>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&seen);
    let emitter =
        move |emission| sink.lock().unwrap_or_else(PoisonError::into_inner).push(emission);
    (ToolContext::new("c", "s__do").with_emitter(Arc::new(emitter)), seen)
}

/// The URI of an absolute path. On Windows, it has a drive.
pub(crate) fn file_uri(path: &str) -> String {
    let path = std::path::absolute(path).expect("a path").display().to_string();
    let slash = if cfg!(windows) { "/" } else { "" };
    format!("file://{slash}{}", path.replace('\\', "/").replace(' ', "%20"))
}

/// Waits until something is so, for at most five seconds.
pub(crate) async fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..500 {
        if is_so() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    is_so()
}
