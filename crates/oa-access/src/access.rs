//! The rules of one server.

use std::fmt;

use http::header::ORIGIN;
use http::request::Parts;
use http::{Method, StatusCode};

use crate::header::{has_token, single};
use crate::host::{is_loopback, requested_host};
use crate::origin::origin_as_sent;

/// The rules by which a server accepts requests. Without any, it accepts those of programs and of its own pages.
#[derive(Clone, Default)]
pub struct Access {
    token: Option<String>,
    /// As browsers write them.
    origins: Vec<String>,
    allows_any_origin: bool,
    only_local_hosts: bool,
}

/// The rule that a request breaks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Denial {
    /// The request names a host that is not local.
    Host,
    /// The request comes from a page of another origin.
    Origin,
    /// The bearer token is missing or wrong.
    Token,
}

impl Access {
    /// Creates rules without a token or allowed origins, for any host.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the bearer token that every request must carry.
    pub fn set_token(&mut self, token: impl Into<String>) {
        self.token = Some(token.into());
    }

    /// Returns true if a token is set.
    #[must_use]
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Allows pages of this origin to send requests, such as `https://app.example`; `*` allows all. Returns false, and
    /// allows nothing, if no browser sends such an origin.
    pub fn allow_origin(&mut self, origin: &str) -> bool {
        if origin == "*" {
            self.allows_any_origin = true;
            return true;
        }
        let origin = origin_as_sent(origin);
        self.origins.extend(origin.clone());
        origin.is_some()
    }

    /// Returns the allowed origins, as browsers send them.
    #[must_use]
    pub fn origins(&self) -> &[String] {
        &self.origins
    }

    /// Returns true if pages of all origins may send requests.
    #[must_use]
    pub fn allows_any_origin(&self) -> bool {
        self.allows_any_origin
    }

    /// Accepts only requests whose host is a [local name](crate::is_loopback) or that of an allowed origin, as a defense
    /// against DNS rebinding.
    pub fn only_local_hosts(&mut self) {
        self.only_local_hosts = true;
    }

    /// Checks the head of a request.
    ///
    /// The origin is checked unless the method only reads (GET, HEAD, OPTIONS): browsers keep such answers from pages of
    /// other origins.
    ///
    /// # Errors
    ///
    /// The first rule that the request breaks.
    pub fn check(&self, request: &Parts) -> Result<(), Denial> {
        let host = requested_host(request).unwrap_or_default();
        // A proxy on this machine passes on the name under which it is reached. A page that rebinds its name to a
        // loopback address has another one.
        let is_named = || self.origins.iter().any(|origin| is_at(origin, host));
        if self.only_local_hosts && !is_loopback(host) && !is_named() {
            return Err(Denial::Host);
        }
        let only_reads = matches!(request.method, Method::GET | Method::HEAD | Method::OPTIONS);
        if request.headers.contains_key(ORIGIN) && !only_reads {
            let origin = single(&request.headers, ORIGIN).unwrap_or_default();
            let is_allowed = || self.origins.iter().any(|allowed| allowed == origin);
            if !self.allows_any_origin && !is_at(origin, host) && !is_allowed() {
                return Err(Denial::Origin);
            }
        }
        match &self.token {
            Some(token) if !has_token(&request.headers, token) => Err(Denial::Token),
            _ => Ok(()),
        }
    }
}

impl Denial {
    /// Returns the status of the answer: 401 for a missing token, otherwise 403.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
        }
    }

    /// Returns the reason, in words for the sender.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Host => {
                "this server accepts only requests for localhost, a loopback address, or the host of an allowed origin"
            }
            Self::Origin => "this origin is not allowed to use this server",
            Self::Token => "missing or wrong bearer token",
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl std::error::Error for Denial {}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("has_token", &self.has_token())
            .field("origins", &self.origins)
            .field("allows_any_origin", &self.allows_any_origin)
            .field("only_local_hosts", &self.only_local_hosts)
            .finish()
    }
}

/// Returns true if an origin is at this host and port. Schemes are not compared: behind a proxy with TLS, a server does
/// not know its own.
fn is_at(origin: &str, host: &str) -> bool {
    let name = origin.split_once("://").map(|(_, name)| name);
    name.is_some_and(|name| !name.is_empty() && name.eq_ignore_ascii_case(host))
}
