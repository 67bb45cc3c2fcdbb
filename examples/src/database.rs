use std::env;

use services::{Postgres, Unavailable};

/// The variable that names a database.
const URL: &str = "OPEN_AGENT_POSTGRES_URL";

/// A PostgreSQL database: a named one, or one of a server that runs as long as this value.
#[derive(Debug)]
pub struct Database {
    url: String,
    /// Stops when dropped.
    _server: Option<Postgres>,
}

impl Database {
    /// Returns the named database, or else the one in the environment, or else starts a server. `None` where no server is
    /// installed, except in CI.
    pub fn find(named: Option<String>) -> Result<Option<Self>, Unavailable> {
        if let Some(url) = named.or_else(|| env::var(URL).ok()) {
            return Ok(Some(Self { url, _server: None }));
        }
        match Postgres::start() {
            Ok(server) => Ok(Some(Self { url: server.url(), _server: Some(server) })),
            Err(Unavailable::Missing(_)) if !services::is_required() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the connection string.
    pub fn url(&self) -> &str {
        &self.url
    }
}
