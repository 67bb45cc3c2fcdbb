use http::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use oa_transport::ApiKey;

use crate::tool_server::http::refusal::Refusal;
use oa_mcp_data::client::{Mirrors, VERSIONS};

/// The negotiated protocol version.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The loopback names.
const LOOPBACK: [&str; 3] = ["127.0.0.1", "[::1]", "localhost"];

/// Checks requests before their body is read, without I/O.
///
/// Any web page can send requests to the loopback address, either from its own origin or under a DNS name that it has
/// pointed there. The first has a foreign `Origin`, the second a foreign `Host`.
#[derive(Clone, Default)]
pub(crate) struct Guard {
    hosts: Vec<String>,
    bearer: Option<ApiKey>,
}

impl Guard {
    pub(crate) fn allow_host(&mut self, host: &str) {
        self.hosts.push(host.to_ascii_lowercase());
    }

    pub(crate) fn set_bearer(&mut self, key: ApiKey) {
        self.bearer = Some(key);
    }

    /// Checks a request's host, origin and token.
    pub(crate) fn admit(&self, parts: &Parts) -> Result<(), Refusal> {
        let forbidden = |why: &'static str| Refusal::new(StatusCode::FORBIDDEN, why);
        let host = match text(&parts.headers, HOST) {
            Some(host) => Some(host),
            // HTTP/2 has it in the URI.
            None => parts.uri.authority().map(http::uri::Authority::as_str),
        };
        if !host.is_some_and(|host| self.knows(host)) {
            return Err(forbidden("the host is not allowed"));
        }
        if parts.headers.contains_key(ORIGIN) {
            let origin = text(&parts.headers, ORIGIN).and_then(|origin| origin.split_once("://"));
            if !origin.is_some_and(|(_, host)| self.knows(host)) {
                return Err(forbidden("the origin is not allowed"));
            }
        }
        let Some(key) = &self.bearer else { return Ok(()) };
        let given = text(&parts.headers, AUTHORIZATION).and_then(|value| {
            let (scheme, given) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| given.trim_start())
        });
        if given.is_some_and(|given| is_same(given.as_bytes(), key.expose().as_bytes())) {
            return Ok(());
        }
        Err(Refusal::new(StatusCode::UNAUTHORIZED, "the bearer token is missing or wrong"))
    }

    fn knows(&self, host: &str) -> bool {
        let host = without_port(host).to_ascii_lowercase();
        LOOPBACK.contains(&&*host) || self.hosts.contains(&host)
    }
}

pub(crate) fn check_message(headers: &HeaderMap, most_bytes: usize) -> Result<(), Refusal> {
    let of = text(headers, CONTENT_TYPE).unwrap_or_default();
    if !of.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let why = "the content type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    if !(accepts(headers, "application/json") && accepts(headers, "text/event-stream")) {
        let why = "the client must accept application/json and text/event-stream";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why));
    }
    let length = text(headers, CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| usize::try_from(length).is_ok_and(|length| length <= most_bytes))
        || !headers.contains_key(CONTENT_LENGTH)
    {
        return Ok(());
    }
    Err(too_large(most_bytes))
}

/// Returns true if the version in a request's header is not one with sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    check_version(headers).is_err()
}

/// Returns the headers that repeat parts of the body.
pub(crate) fn mirrors(headers: &HeaderMap) -> Mirrors {
    let of = |name| text(headers, name).map(|value| value.trim().to_owned());
    let mut mirrors = Mirrors::default();
    (mirrors.version, mirrors.method, mirrors.name) = (of(VERSION), of(METHOD), of(NAME));
    mirrors
}

pub(crate) fn check_stream(headers: &HeaderMap) -> Result<(), Refusal> {
    check_version(headers)?;
    if accepts(headers, "text/event-stream") {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream"))
}

pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_known = |value: &str| VERSIONS.contains(&value);
    if !headers.contains_key(&VERSION) || text(headers, VERSION).is_some_and(is_known) {
        return Ok(());
    }
    let why = format!("the version of the protocol must be one of {}", VERSIONS.join(", "));
    Err(Refusal::new(StatusCode::BAD_REQUEST, why))
}

pub(crate) fn too_large(most_bytes: usize) -> Refusal {
    let why = format!("the body has more than {most_bytes} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

/// Returns true if the `Accept` headers include this media type or a wildcard for it.
fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let family = wanted.split('/').next().unwrap_or_default();
    headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|of| {
            let of = of.split(';').next().unwrap_or_default().trim();
            of == "*/*"
                || of.eq_ignore_ascii_case(wanted)
                || of.strip_suffix("/*").is_some_and(|of| of.eq_ignore_ascii_case(family))
        })
    })
}

/// Returns the value of a header that occurs exactly once.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    // Of a header that occurs twice, a proxy in front may have checked the other value.
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() {
        return None;
    }
    value.to_str().ok()
}

fn without_port(host: &str) -> &str {
    // The colons of an IPv6 address are within brackets.
    match host.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => host,
    }
}

/// Compares in constant time, which does not reveal where the values differ.
fn is_same(given: &[u8], key: &[u8]) -> bool {
    let differences = given.iter().zip(key).fold(0, |seen, (one, other)| seen | (one ^ other));
    given.len() == key.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn admit(guard: &Guard, headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        guard.admit(&parts).map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn foreign_hosts_and_origins_are_refused() {
        let mut guard = Guard::default();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8000", "[::1]", "[::1]:8000"] {
            assert_eq!(admit(&guard, &[("host", host)]), 200, "{host}");
        }
        for host in ["", "attacker.example", "localhost.attacker.example", "127.0.0.1.a:80", "::1"]
        {
            assert_eq!(admit(&guard, &[("host", host)]), 403, "{host}");
        }
        assert_eq!(admit(&guard, &[]), 403);
        assert_eq!(admit(&guard, &[("host", "localhost"), ("host", "a.example")]), 403);
        let from = |origin| [("host", "localhost:80"), ("origin", origin)];
        assert_eq!(admit(&guard, &from("http://localhost:6274")), 200);
        for origin in ["http://attacker.example", "null", "", "localhost", "http://localhost@a.b"] {
            assert_eq!(admit(&guard, &from(origin)), 403, "{origin}");
        }
        guard.allow_host("Tools.example");
        assert_eq!(admit(&guard, &[("host", "tools.example:443")]), 200);
        let from = [("host", "tools.example"), ("origin", "https://TOOLS.example")];
        assert_eq!(admit(&guard, &from), 200);
    }

    #[test]
    fn bearer_token_must_match_exactly() {
        let mut guard = Guard::default();
        guard.set_bearer(ApiKey::new("sk-0123456789").unwrap());
        let with = |value| [("host", "localhost"), ("authorization", value)];
        assert_eq!(admit(&guard, &with("Bearer sk-0123456789")), 200);
        assert_eq!(admit(&guard, &with("bearer sk-0123456789")), 200);
        for value in ["Bearer sk-012345678", "Bearer sk-01234567890", "Basic sk-0123456789", "x"] {
            assert_eq!(admit(&guard, &with(value)), 401, "{value}");
        }
        assert_eq!(admit(&guard, &[("host", "localhost")]), 401);
    }

    fn check(headers: &[(&str, &str)]) -> u16 {
        let mut request = Request::post("/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let headers = request.body(()).unwrap().into_parts().0.headers;
        check_message(&headers, 10).map_or_else(|refusal| refusal.status().as_u16(), |()| 200)
    }

    #[test]
    fn message_headers_are_checked() {
        let json = ("content-type", "application/json; charset=utf-8");
        let both = ("accept", "application/json, text/event-stream;q=0.9");
        assert_eq!(check(&[json, both]), 200);
        assert_eq!(check(&[json, ("accept", "*/*")]), 200);
        assert_eq!(check(&[json, ("accept", "application/*"), ("accept", "text/*")]), 200);
        assert_eq!(check(&[("content-type", "text/plain"), both]), 415);
        assert_eq!(check(&[json, ("accept", "application/json")]), 406);
        assert_eq!(check(&[json, both, ("mcp-protocol-version", "2025-06-18")]), 200);
        assert_eq!(
            check(&[json, both, ("mcp-protocol-version", "1999-01-01")]),
            200,
            "the body tells"
        );
        assert_eq!(check(&[json, both, ("content-length", "10")]), 200);
        assert_eq!(check(&[json, both, ("content-length", "11")]), 413);
        assert_eq!(check(&[json, both, ("content-length", "99999999999999999999999")]), 413);
    }
}
