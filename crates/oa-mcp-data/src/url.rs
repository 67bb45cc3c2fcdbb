/// Splits a URL into its credentials and the rest, without the query and the fragment.
///
/// ```
/// let (credentials, rest) = oa_mcp_data::split_credentials("https://ada:key@host/mcp?k=v");
/// assert_eq!((credentials, &*rest), ("ada:key", "https://host/mcp"));
/// ```
#[must_use]
pub fn split_credentials(url: &str) -> (&str, String) {
    let url = url.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return ("", url.to_owned()) };
    let host = rest.split('/').next().unwrap_or_default();
    match host.rsplit_once('@') {
        Some((credentials, _)) => {
            (credentials, format!("{scheme}://{}", &rest[credentials.len() + 1..]))
        }
        None => ("", url.to_owned()),
    }
}

/// Returns the address to which a server redirects a request to `url`, if it has the same origin, and the request keeps
/// its method and body: status 301, 307 or 308, as from `/mcp` to `/mcp/`. The scheme and the credentials are those of
/// `url`: behind a proxy, many servers take an `https` request for `http`.
///
/// ```
/// use oa_mcp_data::redirected;
///
/// let to = |place| redirected("https://ada:key@host/mcp?k=v", 307, place);
/// assert_eq!(to("http://HOST/mcp/?k=v").as_deref(), Some("https://ada:key@host/mcp/?k=v"));
/// assert_eq!(to("/mcp/").as_deref(), Some("https://ada:key@host/mcp/"));
/// assert_eq!(to("https://other/mcp/"), None);
/// assert_eq!(redirected("https://host/mcp", 302, "/login"), None);
/// ```
#[must_use]
pub fn redirected(url: &str, status: u16, place: &str) -> Option<String> {
    // Elsewhere, a POST may become a GET, or is at the page of a login.
    if !matches!(status, 301 | 307 | 308) {
        return None;
    }
    let (scheme, rest) = url.split(['?', '#']).next()?.split_once("://")?;
    let (own, path) = split_path(rest);
    let place = place.split('#').next()?;
    let is_scheme = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric());
    let absolute = place.split_once("://").filter(|(other, _)| is_scheme(other));
    let absolute = absolute.or_else(|| Some((scheme, place.strip_prefix("//")?)));
    let path = match absolute {
        Some((other, rest)) => {
            let (authority, path) = split_path(rest);
            let is_scheme = |known: &str| other.eq_ignore_ascii_case(known);
            let may_be =
                is_scheme(scheme) || scheme.eq_ignore_ascii_case("https") && is_scheme("http");
            if !may_be || host(scheme, own) != host(other, authority) {
                return None;
            }
            let slash = if path.starts_with('/') { "" } else { "/" };
            format!("{slash}{path}")
        }
        None if place.starts_with('/') => place.to_owned(),
        None if place.starts_with('?') => format!("{path}{place}"),
        None => {
            let first = place.split(['/', '?']).next()?;
            if matches!(first, "" | "." | "..") || first.contains(':') {
                return None;
            }
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{folder}/{place}")
        }
    };
    Some(format!("{scheme}://{own}{path}"))
}

/// Splits the authority from the path and the query.
fn split_path(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '\\']).unwrap_or(rest.len()))
}

/// Returns the host and the port of an authority, without the usual port of the scheme.
fn host(scheme: &str, authority: &str) -> String {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let usual = if scheme.eq_ignore_ascii_case("https") { ":443" } else { ":80" };
    host.strip_suffix(usual).unwrap_or(host).to_ascii_lowercase()
}

/// Returns the parts of a URL that may be keys: the password, or the user name without one, and the values of the query.
///
/// ```
/// let found: Vec<_> = oa_mcp_data::secrets_in_url("https://ada:key@host/mcp?k=v").collect();
/// assert_eq!(found, ["key", "v"]);
/// ```
pub fn secrets_in_url(url: &str) -> impl Iterator<Item = &str> {
    let (credentials, _) = split_credentials(url);
    let password = credentials.split_once(':').map_or(credentials, |(_, password)| password);
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let values = query.split('&').filter_map(|pair| Some(pair.split_once('=')?.1));
    std::iter::once(password).chain(values).filter(|part| !part.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_stay_within_the_origin() {
        let to = |url: &str, place: &str| redirected(url, 308, place);
        for (url, place, expected) in [
            ("http://h:8000/mcp", "http://h:8000/mcp/", "http://h:8000/mcp/"),
            ("http://h/mcp", "HTTP://H:80/mcp/", "http://h/mcp/"),
            ("https://h:443/mcp", "https://h/", "https://h:443/"),
            ("https://h/mcp", "http://h", "https://h/"),
            ("https://h/mcp", "http://h:80/a", "https://h/a"),
            ("https://h:8443/mcp", "http://h:8443/mcp/", "https://h:8443/mcp/"),
            ("http://[::1]:8000/mcp", "http://[::1]:8000/mcp/", "http://[::1]:8000/mcp/"),
            ("http://h/a/mcp?k=v", "//h/b?k=w#x", "http://h/b?k=w"),
            ("http://h/a/mcp?k=v", "b/", "http://h/a/b/"),
            ("http://h/a/mcp?k=v", "?k=w", "http://h/a/mcp?k=w"),
            ("http://h", "mcp", "http://h/mcp"),
            ("http://h/mcp", "/to?next=http://other/", "http://h/to?next=http://other/"),
        ] {
            assert_eq!(to(url, place).as_deref(), Some(expected), "{url} {place}");
        }
        for place in [
            "http://other/mcp",
            "http://h:81/mcp",
            "https://h/mcp",
            "http://h.other/mcp",
            "http://h@other/mcp",
            "http://h:80@other/mcp",
            "http://other\\@h/mcp",
            "//other/mcp",
            "ftp://h/mcp",
            "mailto:h",
            "../mcp",
            "./mcp",
            "",
            "#mcp",
        ] {
            assert_eq!(to("http://h/mcp", place), None, "{place}");
        }
        for status in [200, 300, 302, 303, 304, 400] {
            assert_eq!(redirected("http://h/mcp", status, "/mcp/"), None, "{status}");
        }
    }
}
