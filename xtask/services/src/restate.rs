use std::io;
use std::path::{Path, PathBuf};

use crate::{Server, Unavailable};

#[cfg(unix)]
use node::Node;
#[cfg(not(unix))]
use nothing::Node;

#[cfg(unix)]
mod node;
#[cfg(not(unix))]
mod nothing;

const MISSING: &str = "no Restate here: its server comes from npm, which is not installed";

/// A Restate server without data, from npm. It is installed below `target` at first use.
#[derive(Debug)]
pub struct Restate {
    node: Node,
}

impl Restate {
    /// Starts a server.
    ///
    /// # Errors
    ///
    /// `Missing` if it is not installed and cannot be, `Failed` if it does not start.
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_with("")
    }

    /// Starts a server with more tables in its configuration, as TOML.
    ///
    /// # Errors
    ///
    /// The same as [`start`](Self::start).
    pub fn start_with(configuration: &str) -> Result<Self, Unavailable> {
        Node::start(configuration).map(|node| Self { node })
    }

    /// Returns the address of the admin interface.
    #[must_use]
    pub fn admin_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.node.admin())
    }

    /// Returns the address at which handlers are called.
    #[must_use]
    pub fn ingress_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.node.ingress())
    }

    /// Returns the end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.node.log()
    }

    /// Kills the server as `kill -9` does.
    ///
    /// # Errors
    ///
    /// If it cannot be killed.
    pub fn kill(&mut self) -> io::Result<()> {
        self.node.kill()
    }

    /// Starts the server again after [`kill`](Self::kill), with all its data and at the same addresses.
    ///
    /// # Errors
    ///
    /// `Failed` if it does not start.
    pub fn start_again(&mut self) -> Result<(), Unavailable> {
        self.node.start_again()
    }

    /// Stops a server that was detached.
    pub(crate) fn stop_detached(folder: &Path) -> io::Result<()> {
        Node::stop_detached(folder)
    }
}

impl Server for Restate {
    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("OPEN_AGENT_RESTATE_URL", self.ingress_url()),
            ("OPEN_AGENT_RESTATE_ADMIN_URL", self.admin_url()),
        ]
    }

    fn detach(self: Box<Self>) -> io::Result<PathBuf> {
        self.node.detach()
    }
}
