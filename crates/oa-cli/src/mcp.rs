//! `oa mcp`.

use open_agent::mcp::ToolServer;
use open_agent::tools::Registry;

use crate::agent;
use crate::args::McpArgs;
use crate::failure::{Failure, Result, with_causes};
use crate::output::tell;
use crate::settings::Settings;

/// Runs the command, until its input ends.
pub(crate) fn run(_: &McpArgs, settings: &Settings) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let result = runtime.block_on(serve(settings));
    // A tool that blocks must not keep the program.
    runtime.shutdown_background();
    result
}

async fn serve(settings: &Settings) -> Result<()> {
    let mut tools = agent::tools(settings).await?;
    tools.list.extend(tools.mcp.iter().flat_map(|mcp| mcp.tools()));
    if tools.list.is_empty() {
        return Err(Failure::usage("there are no tools: name some by --tools or --mcp"));
    }
    for failure in tools.mcp.iter().flat_map(|mcp| mcp.failures()) {
        tell(&format!("MCP server {}: {}", failure.server(), failure.error()));
    }
    let registry =
        Registry::from_tools(tools.list).map_err(|error| Failure::usage(with_causes(&error)))?;
    ToolServer::new(registry).name("oa").version(env!("CARGO_PKG_VERSION")).serve_stdio().await?;
    if let Some(mcp) = tools.mcp {
        mcp.close().await;
    }
    Ok(())
}
