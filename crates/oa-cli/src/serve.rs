//! `oa serve`.

use std::future::ready;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::time::Duration;

use open_agent::serve::AgentServer;
use tokio::net::TcpListener;
use tokio::time::sleep;

use crate::agent::{self, Person};
use crate::args::{PORT, ServeArgs};
use crate::failure::{Failure, Result};
use crate::output::tell;
use crate::places;
use crate::runtime::Interrupts;
use crate::settings::Settings;

const TOKEN: &str = "\
Set one: OPEN_AGENT_TOKEN=$(openssl rand -hex 16), or `token` in the configuration file. Or listen on 127.0.0.1.";

/// The time after Ctrl-C within which answers in progress may end without a remark.
const QUICK: Duration = Duration::from_millis(300);

/// Runs the command until a signal ends it.
pub(crate) fn run(args: &ServeArgs, settings: &Settings) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let result = runtime.block_on(serve(args, settings));
    // A tool that blocks must not keep the program from exiting.
    runtime.shutdown_background();
    result
}

async fn serve(args: &ServeArgs, settings: &Settings) -> Result<()> {
    let address = address(&args.listen);
    let listener = TcpListener::bind(&address).await;
    let listener = listener.map_err(|error| {
        let is_taken = error.kind() == io::ErrorKind::AddrInUse;
        let failure = wrong(error).at(&address);
        if is_taken {
            failure.advise("Use another port: --listen 127.0.0.1:0 picks a free one.")
        } else {
            failure
        }
    })?;
    let addr = listener.local_addr()?;
    let is_local = addr.ip().to_canonical().is_loopback();
    if !is_local && settings.secret("token").is_none() {
        let why = format!("{addr} is reachable from other machines, and no token is set");
        return Err(Failure::usage(why).advise(TOKEN));
    }
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
        server = server.session_store(places::sessions(settings)?);
    }
    // Register the signal handlers before the address is announced.
    let end = told_to_end()?;
    let mut interrupts = Interrupts::new()?;
    let failed = |error| wrong(error).at("the flag --allow-origin");
    let mut served = pin!(server.serve_until(listener, end));
    tokio::select! {
        biased;
        // A wrong origin is reported at once.
        ended = &mut served => return ended.map_err(failed),
        () = ready(()) => {}
    }
    let model = agent.options.model();
    tell(&format!("{} with {model}: http://{addr}/ (press Ctrl-C to stop)", args.name));
    tokio::select! {
        ended = served => ended.map_err(failed)?,
        () = async {
            interrupts.next().await;
            sleep(QUICK).await;
            tell("Answers in progress may end first. Press Ctrl-C again to stop them.");
            interrupts.next().await;
        } => return Err(Failure::interrupted("stopped")),
    }
    #[cfg(feature = "mcp")]
    if let Some(mcp) = agent.mcp {
        mcp.close().await;
    }
    Ok(())
}

/// Returns the failure of an operation whose invalid input is wrong usage.
fn wrong(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidInput => Failure::usage(error.to_string()),
        _ => error.into(),
    }
}

/// Returns an address with a port: a number alone is a port on this machine, and an address alone gets the default port.
fn address(listen: &str) -> String {
    if listen.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("127.0.0.1:{listen}");
    }
    match listen.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, PORT).to_string(),
        Err(_) if !listen.contains(':') => format!("{listen}:{PORT}"),
        Err(_) => listen.to_owned(),
    }
}

/// Registers handlers for Ctrl-C and, on Unix, SIGTERM. The future waits for one of them.
fn told_to_end() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    #[cfg(unix)]
    let (mut interrupt, mut terminate) = {
        use tokio::signal::unix::{SignalKind, signal};

        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        // If that fails, only killing the process ends it.
        #[cfg(not(unix))]
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn a_port_or_an_address_alone_is_enough() {
        for (given, expected) in [
            ("9000", "127.0.0.1:9000"),
            ("99999", "127.0.0.1:99999"),
            ("0.0.0.0", "0.0.0.0:8787"),
            ("::1", "[::1]:8787"),
            ("localhost", "localhost:8787"),
            ("[::1]:9000", "[::1]:9000"),
            ("localhost:9000", "localhost:9000"),
        ] {
            assert_eq!(address(given), expected);
        }
    }
}
