//! `oa serve`.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use open_agent::serve::AgentServer;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::signal::unix::{SignalKind, signal};
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

/// The delay between Ctrl-C and the note that answers are still in progress.
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
        let failure = Failure::from(error).at(&address);
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
    // Register the signal handlers before the address is announced, which a wrong origin prevents.
    let (told, interrupts) = (told_to_end()?, Interrupts::new()?);
    let model = agent.options.model();
    let ready = format!("{} with {model}: http://{addr}/ (press Ctrl-C to stop)", args.name);
    let end = async move {
        tell(&ready);
        told.await;
    };
    tokio::select! {
        served = server.serve_until(listener, end) => {
            served.map_err(|error| Failure::from(error).at("the flag --allow-origin"))?;
        }
        () = interrupted_twice(interrupts) => return Err(Failure::interrupted("stopped")),
    }
    #[cfg(feature = "mcp")]
    if let Some(mcp) = agent.mcp {
        mcp.close().await;
    }
    Ok(())
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

/// Waits for the second Ctrl-C. After the first, answers in progress have a few seconds to finish.
async fn interrupted_twice(mut interrupts: Interrupts) {
    interrupts.next().await;
    sleep(QUICK).await;
    tell("Waiting for answers in progress. Press Ctrl-C again to stop now.");
    interrupts.next().await;
}

/// Registers handlers for Ctrl-C and, on Unix, SIGTERM. The future waits for one of them.
fn told_to_end() -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut interrupts = Interrupts::new()?;
    #[cfg(unix)]
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(async move {
        #[cfg(unix)]
        tokio::select! {
            () = interrupts.next() => {}
            _ = terminate.recv() => {}
        }
        #[cfg(not(unix))]
        interrupts.next().await;
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
