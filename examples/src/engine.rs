use std::env;

use services::{Restate, Unavailable};

/// The variables that name a server.
const URL: &str = "OPEN_AGENT_RESTATE_URL";
const ADMIN_URL: &str = "OPEN_AGENT_RESTATE_ADMIN_URL";

/// The engine of durable agents: one in the environment, or one that runs as long as this value.
#[derive(Debug)]
pub struct Engine {
    url: String,
    admin_url: String,
    /// Stops when dropped.
    _server: Option<Restate>,
}

impl Engine {
    /// Returns the engine in the environment, or else starts one. `None` where none can be installed, except in CI.
    pub fn find() -> Result<Option<Self>, Unavailable> {
        if let (Ok(url), Ok(admin_url)) = (env::var(URL), env::var(ADMIN_URL)) {
            return Ok(Some(Self { url, admin_url, _server: None }));
        }
        match Restate::start() {
            Ok(server) => {
                let (url, admin_url) = (server.ingress_url(), server.admin_url());
                Ok(Some(Self { url, admin_url, _server: Some(server) }))
            }
            Err(Unavailable::Missing(_)) if !services::is_required() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the address at which handlers are called.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address of the admin interface.
    pub fn admin_url(&self) -> &str {
        &self.admin_url
    }
}
