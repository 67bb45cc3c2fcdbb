use std::fmt;

use http::uri::Scheme;
use http::{HeaderValue, Uri};

/// The destination of a connection: the key of idle connections.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Peer {
    is_https: bool,
    /// Lower case; an IPv6 address in brackets.
    host: Box<str>,
    port: u16,
}

impl Peer {
    /// Parses the destination of a URI; the error says why there is none.
    pub(crate) fn new(uri: &Uri) -> Result<Self, String> {
        let scheme =
            uri.scheme().ok_or("the request URI must be absolute and start with http://")?;
        let is_https = *scheme == Scheme::HTTPS;
        if !is_https && *scheme != Scheme::HTTP {
            return Err(format!("the request URI must be http or https, not {scheme}"));
        }
        let host = uri.host().unwrap_or_default();
        if host.is_empty() {
            return Err("the request URI has no host".to_owned());
        }
        let peer = Self {
            is_https,
            host: host.to_ascii_lowercase().into(),
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
        };
        // Last, so that the message can name the host: the URI itself must not be shown, it may hold a
        // password.
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if authority.contains('@') {
            return Err(format!(
                "the request URI contains a user name or password (use a header instead): {peer}"
            ));
        }
        // `http` reads `host:99999` as a URI without a port. With the default, the request and its key would go
        // to another server.
        if uri.port_u16().is_none() && !matches!(authority.strip_prefix(host), Some("" | ":")) {
            return Err(format!("the request URI has an invalid port: {authority}"));
        }
        Ok(peer)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the host for a resolver: an IPv6 address without brackets.
    pub(crate) fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// Returns the value of the `Host` header, without a default port.
    pub(crate) fn host_header(&self) -> HeaderValue {
        let value = if self.port == if self.is_https { 443 } else { 80 } {
            HeaderValue::from_str(&self.host)
        } else {
            HeaderValue::try_from(self.to_string())
        };
        value.expect("a URI's host is visible ASCII")
    }

    /// Returns the URI for a connector, without a path.
    pub(crate) fn uri(&self) -> Uri {
        let scheme = if self.is_https { "https" } else { "http" };
        Uri::try_from(format!("{scheme}://{self}/")).expect("it was taken from a URI")
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
