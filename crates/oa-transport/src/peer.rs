use std::fmt;

use http::uri::Scheme;
use http::{HeaderValue, Uri};

/// Whom a connection leads to: what idle connections are kept by.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Peer {
    is_https: bool,
    /// In lower case; an IPv6 address with its brackets.
    host: Box<str>,
    port: u16,
}

impl Peer {
    /// Reads whom an address leads to, or says why it leads nowhere.
    pub(crate) fn new(uri: &Uri) -> Result<Self, String> {
        let scheme =
            uri.scheme().ok_or("the request's URI is not absolute: it begins with no http://")?;
        let is_https = *scheme == Scheme::HTTPS;
        if !is_https && *scheme != Scheme::HTTP {
            return Err(format!("the request's URI is neither http nor https: {scheme}"));
        }
        let host = uri.host().unwrap_or_default().to_ascii_lowercase();
        if host.is_empty() {
            return Err("the request's URI names no host".to_owned());
        }
        let peer = Self {
            is_https,
            host: host.into(),
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(format!(
                "the request's URI holds a user name or password, which belong into a header: {peer}"
            ));
        }
        Ok(peer)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.is_https
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The host as resolvers want it: an IPv6 address without brackets.
    pub(crate) fn bare_host(&self) -> &str {
        self.host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(&self.host)
    }

    /// The value of a `Host` header, without the port where it goes without saying.
    pub(crate) fn host_header(&self) -> HeaderValue {
        let value = if self.port == if self.is_https { 443 } else { 80 } {
            HeaderValue::from_str(&self.host)
        } else {
            HeaderValue::try_from(self.to_string())
        };
        value.expect("a URI's host is visible ASCII")
    }

    /// The address for a connector, without the path.
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
