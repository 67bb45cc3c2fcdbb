//! The host and port of a server.

/// A host and a port, for `server.address` and `server.port` in spans and metrics.
///
/// ```
/// use oa_chat::ServerAddress;
///
/// let address = ServerAddress::of("https://user:password@api.example.com/v1").unwrap();
/// assert_eq!((&*address.host, address.port), ("api.example.com", 443));
/// ```
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub struct ServerAddress {
    /// The host's name or number, without the brackets of IPv6.
    pub host: String,
    /// The port: that of the scheme, if the URL has none.
    pub port: u16,
}

impl ServerAddress {
    /// Returns the address in a base URL; `None` if there is none.
    ///
    /// It contains neither the credentials nor the path of the URL.
    #[must_use]
    pub fn of(base_url: &str) -> Option<Self> {
        let uri: http::Uri = base_url.parse().ok()?;
        let host = uri.host().filter(|host| !host.is_empty())?;
        let usual = if uri.scheme_str() == Some("https") { 443 } else { 80 };
        let port = uri.port_u16().unwrap_or(usual);
        Some(Self { host: host.trim_matches(['[', ']']).to_owned(), port })
    }
}

#[cfg(test)]
mod tests {
    use super::ServerAddress;

    #[test]
    fn addresses_lose_passwords_and_paths() {
        let parts = |url: &str| ServerAddress::of(url).map(|it| (it.host, it.port));
        let is = |host: &str, port| Some((host.to_owned(), port));
        assert_eq!(parts("http://localhost:11434/v1"), is("localhost", 11_434));
        assert_eq!(parts("https://user:hunter2@api.example.com/v1"), is("api.example.com", 443));
        assert_eq!(parts("http://[::1]/v1"), is("::1", 80));
        assert_eq!(parts(""), None);
        assert_eq!(parts("/v1"), None);
    }
}
