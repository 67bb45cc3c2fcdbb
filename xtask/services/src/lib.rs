//! The real servers that tests run against, for `cargo xtask services`, tests and examples.
//!
//! A server runs on a free loopback port with its files in the temporary directory. It stops, and its files are
//! removed, when its handle is dropped or this process dies in any way.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Once;

#[cfg(unix)]
mod account;
#[cfg(unix)]
mod daemon;
#[cfg(unix)]
mod guard;
mod mcp;
mod npm;
#[cfg(unix)]
mod place;
mod postgres;
mod restate;
mod target;

pub use mcp::McpPackages;
pub use postgres::Postgres;
pub use restate::Restate;

/// The reason why a server does not run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unavailable {
    /// It does not start.
    Failed(String),
    /// It is not installed; a sentence that says how to install it.
    Missing(String),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) | Self::Missing(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Unavailable {}

/// Returns true where a missing server is a failure: in CI on Linux, which installs all of them.
#[must_use]
pub fn is_required() -> bool {
    let in_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    in_ci && cfg!(target_os = "linux")
}

/// Returns the server, or `None` after one line on standard error if it is not installed.
///
/// # Panics
///
/// If it is installed and does not start, or if it is not installed and [required](is_required).
#[must_use]
pub fn or_skip<T>(started: Result<T, Unavailable>) -> Option<T> {
    static TOLD: Once = Once::new();

    match started {
        Ok(server) => Some(server),
        Err(Unavailable::Missing(message)) if !is_required() => {
            // Not with `eprintln!`, whose output tests capture.
            TOLD.call_once(|| {
                let _ = writeln!(io::stderr(), "skipped: {message}");
            });
            None
        }
        Err(unavailable) => panic!("{unavailable}"),
    }
}

/// A kind of server.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Service {
    /// Its name on the command line.
    pub name: &'static str,
    /// Starts one.
    pub start: fn() -> Result<Box<dyn Server>, Unavailable>,
    /// Stops one that was detached, whose files are in this folder.
    pub stop: fn(&Path) -> io::Result<()>,
}

/// A running server, which stops when it is dropped.
pub trait Server: fmt::Debug {
    /// Returns its addresses, and the environment variables in which programs find them.
    fn variables(&self) -> Vec<(&'static str, String)>;

    /// Keeps it running when this process ends, and returns the folder with its files.
    fn detach(self: Box<Self>) -> io::Result<std::path::PathBuf>;
}

/// Every kind of server.
pub const SERVICES: &[Service] = &[
    Service {
        name: "postgres",
        start: || Ok(Box::new(Postgres::start()?)),
        stop: Postgres::stop_detached,
    },
    Service {
        name: "restate",
        start: || Ok(Box::new(Restate::start()?)),
        stop: Restate::stop_detached,
    },
];
