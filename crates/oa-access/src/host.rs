//! Names of hosts.

use std::net::Ipv4Addr;

use http::header::HOST;
use http::request::Parts;
use http::uri::Authority;

use crate::header::single;

/// Returns the host that a request names, with its port. Requests of HTTP/2 have no `Host`: their `:authority` is in the
/// URI.
#[must_use]
pub fn requested_host(request: &Parts) -> Option<&str> {
    if request.headers.contains_key(HOST) {
        return single(&request.headers, HOST);
    }
    request.uri.authority().map(Authority::as_str)
}

/// Returns true for a name of this machine, with any port: `localhost` and the names below it, which browsers resolve to
/// loopback addresses (RFC 6761, section 6.3), 127.0.0.0/8 and `[::1]`.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    let name = without_port(host).to_ascii_lowercase();
    name == "localhost"
        || name == "[::1]"
        || name.ends_with(".localhost")
        || name.parse().is_ok_and(|address: Ipv4Addr| address.is_loopback())
}

/// Returns a host without its port.
#[must_use]
pub fn without_port(host: &str) -> &str {
    // The colons of an IPv6 address are within brackets.
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
