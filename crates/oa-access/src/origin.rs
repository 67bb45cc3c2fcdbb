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
    let is_name = |c: char| c.is_ascii_graphic() && !"/?#@*\\\"".contains(c);
    let is_valid = !scheme.is_empty() && !host.is_empty() && host.chars().all(is_name);
    is_valid.then(|| format!("{scheme}://{host}"))
}
