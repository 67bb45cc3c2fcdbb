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
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let is_name = |c: char| c.is_ascii_graphic() && !"/?#@*\\\"".contains(c);
    // Only the port and an IPv6 address, which is in brackets, have colons.
    let name = without_port(host);
    let is_host = !host.ends_with(':') && (!name.contains(':') || name.ends_with(']'));
    let is_valid = !scheme.is_empty() && scheme.chars().all(is_letter);
    let is_valid = is_valid && is_host && !name.is_empty() && host.chars().all(is_name);
    is_valid.then(|| format!("{scheme}://{host}"))
}
