//! `oa serve`.

use open_agent::serve::AgentServer;
use tokio::net::TcpListener;

use crate::agent::{self, Person};
use crate::args::ServeArgs;
use crate::failure::{Failure, Result};
use crate::output::tell;
use crate::places;
use crate::settings::Settings;

/// Runs the command, until it is told to end.
pub(crate) fn run(args: &ServeArgs, settings: &Settings) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args, settings));
    // A tool that blocks must not keep the program.
    runtime.shutdown_background();
    result
}

async fn serve(args: &ServeArgs, settings: &Settings) -> Result<()> {
    let listener = TcpListener::bind(&args.listen).await;
    let listener = listener.map_err(|error| Failure::from(error).at(&args.listen))?;
    let addr = listener.local_addr()?;
    let agent = agent::build(settings, Person::Later).await?;
    let mut server = AgentServer::new(agent.options.clone()).name(&args.name);
    if let Some(token) = settings.secret("token") {
        server = server.bearer_token(token);
    }
    if let Some(tokens) = settings.integer("context") {
        server = server.context_window(tokens);
    }
    for origin in &args.allow_origin {
        server = server.allow_origin(origin);
    }
    if !args.forget {
        server = server.store(places::sessions(settings)?);
    }
    let model = agent.options.model();
    tell(&format!("{} with {model}: http://{addr}/ (Ctrl-C ends it)", args.name));
    server.serve_until(listener, told_to_end()).await?;
    #[cfg(feature = "mcp")]
    if let Some(mcp) = agent.mcp {
        mcp.close().await;
    }
    Ok(())
}

/// Waits for Ctrl-C, or on Unix for a signal to terminate.
async fn told_to_end() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};

        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    // Without signals there is nothing to wait for but the end of the process.
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
