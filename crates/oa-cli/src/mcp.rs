//! `oa mcp`.

use std::sync::Arc;

use open_agent::Tool;
use open_agent::mcp::{Connected, ToolServer, ToolServerHandle};
use open_agent::tools::Registry;

use crate::agent::{self, Tools};
use crate::failure::{Failure, Result, with_causes};
use crate::output::tell;
use crate::settings::Settings;

/// Runs the command, until its input ends.
pub(crate) fn run(settings: &Settings) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let result = runtime.block_on(serve(settings));
    // A tool that blocks must not keep the program from exiting.
    runtime.shutdown_background();
    result
}

async fn serve(settings: &Settings) -> Result<()> {
    let Tools { list, mcp } = agent::tools(settings).await?;
    let offered = offered(&list, mcp.as_ref())?;
    for failure in mcp.iter().flat_map(|mcp| mcp.failures()) {
        tell(&format!("MCP server {}", failure.error()));
    }
    // A server without tools may add some later.
    let has_server = mcp.as_ref().is_some_and(|mcp| mcp.connections().len() > 0);
    if offered.is_empty() && !has_server {
        return Err(Failure::usage("there are no tools: add some with --tools or --mcp"));
    }
    let server = ToolServer::new(offered).name("oa").version(env!("CARGO_PKG_VERSION"));
    let handle = server.handle();
    tokio::select! {
        served = server.serve_stdio() => served?,
        () = follow(&list, mcp.as_ref(), &handle) => {}
    }
    if let Some(mcp) = mcp {
        mcp.close().await;
    }
    Ok(())
}

/// Returns the built-in tools and the current tools of the configured servers.
fn offered(list: &[Arc<dyn Tool>], mcp: Option<&Connected>) -> Result<Registry> {
    let tools = list.iter().cloned().chain(mcp.iter().flat_map(|mcp| mcp.tools()));
    Registry::from_tools(tools).map_err(|error| Failure::usage(with_causes(&error)))
}

/// Updates the tools offered to the client whenever the tool lists of the servers change. Never returns.
async fn follow(list: &[Arc<dyn Tool>], mcp: Option<&Connected>, handle: &ToolServerHandle) {
    let Some(servers) = mcp else { return std::future::pending().await };
    loop {
        servers.changed().await;
        match offered(list, mcp) {
            Ok(tools) => handle.set_tools(tools),
            Err(failure) => tell(&format!("the tools were not updated: {failure}")),
        }
    }
}
