use std::io;
use std::path::{Path, PathBuf};

use crate::{Server, Unavailable};

#[cfg(unix)]
use cluster::Cluster;
#[cfg(not(unix))]
use nothing::Cluster;

#[cfg(unix)]
mod cluster;
#[cfg(not(unix))]
mod nothing;

const MISSING: &str =
    "no PostgreSQL here: `apt-get install postgresql` brings the server that these tests start";

/// A PostgreSQL server with an empty database, from Debian's package.
#[derive(Debug)]
pub struct Postgres {
    cluster: Cluster,
}

impl Postgres {
    /// Starts a server for tests. It does not wait for the disk: a killed process loses nothing by that.
    ///
    /// # Errors
    ///
    /// `Missing` if no server is installed, `Failed` if it does not start.
    pub fn start() -> Result<Self, Unavailable> {
        Self::start_with(&["fsync=off"], &[])
    }

    /// Starts a server with these settings (`NAME=VALUE`) and additional files in its data folder.
    ///
    /// # Errors
    ///
    /// The same as [`start`](Self::start).
    pub fn start_with(settings: &[&str], files: &[(&str, &[u8])]) -> Result<Self, Unavailable> {
        Cluster::start(settings, files).map(|cluster| Self { cluster })
    }

    /// Returns the connection string, with the password of a superuser.
    #[must_use]
    pub fn url(&self) -> String {
        self.cluster.url()
    }

    /// Returns the port on 127.0.0.1, which stays the same when the server is started again.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.cluster.port()
    }

    /// Kills the server as `kill -9` does; a process that serves a connection notices it and ends as well.
    ///
    /// # Errors
    ///
    /// If it cannot be killed.
    pub fn kill(&mut self) -> io::Result<()> {
        self.cluster.kill()
    }

    /// Stops the server, ending its connections.
    ///
    /// # Errors
    ///
    /// If it does not stop.
    pub fn stop(&mut self) -> io::Result<()> {
        self.cluster.stop()
    }

    /// Starts the server again after [`kill`](Self::kill) or [`stop`](Self::stop), with all its data.
    ///
    /// # Errors
    ///
    /// `Failed` if it does not start.
    pub fn start_again(&mut self) -> Result<(), Unavailable> {
        self.cluster.start_again()
    }

    /// Stops a server that was detached.
    pub(crate) fn stop_detached(folder: &Path) -> io::Result<()> {
        Cluster::stop_detached(folder)
    }
}

impl Server for Postgres {
    fn variables(&self) -> Vec<(&'static str, String)> {
        vec![("OPEN_AGENT_POSTGRES_URL", self.url())]
    }

    fn detach(self: Box<Self>) -> io::Result<PathBuf> {
        self.cluster.detach()
    }
}
