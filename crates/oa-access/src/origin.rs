use crate::host::without_port;

/// Returns an origin as browsers send it: in lower case, without a slash at the end and the scheme's own port (RFC 6454,
/// section 6.2). Returns `None` if it is not `scheme://host[:port]`.
#[must_use]
pub fn origin_as_sent(origin: &str) -> Option<String> {
    let origin = origin.trim().to_ascii_lowercase();
    let (scheme, rest) = origin.split_once("://")?;
    let host = rest.strip_suffix('/').unwrap_or(rest);
    let host = match scheme {
        "http" => host.strip_suffix(":80").unwrap_or(host),
        "https" => host.strip_suffix(":443").unwrap_or(host),
        _ => host,
    };
    // RFC 3986, section 3.1.
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    let (name, port) = host.split_at(without_port(host).len());
    // Only an IPv6 address has colons, in brackets.
    let is_name = !name.is_empty()
        && (!name.contains(':') || name.starts_with('[') && name.ends_with(']'))
        && name.chars().all(|c| c.is_ascii_graphic() && !"/?#@*\\\"".contains(c));
    // Browsers write it without leading zeros (WHATWG URL, "serialize an integer").
    let is_port = port
        .strip_prefix(':')
        .is_none_or(|port| port.parse().is_ok_and(|number: u16| number.to_string() == port));
    (is_scheme && is_name && is_port).then(|| format!("{scheme}://{host}"))
}
