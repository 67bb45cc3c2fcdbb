use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use oa_access::{Denial, has_token, is_loopback, requested_host, single, without_port};
use oa_transport::ApiKey;

use crate::tool_server::http::refusal::Refusal;
use oa_mcp_data::client::{Accepted, Mirrors, VERSIONS};

/// The negotiated protocol version.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

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
        if !requested_host(parts).is_some_and(|host| self.knows(host)) {
            return Err(forbidden("the host is not allowed"));
        }
        if parts.headers.contains_key(ORIGIN) {
            let origin = single(&parts.headers, ORIGIN).and_then(|origin| origin.split_once("://"));
            if !origin.is_some_and(|(_, host)| self.knows(host)) {
                return Err(forbidden("the origin is not allowed"));
            }
        }
        match &self.bearer {
            Some(key) if !has_token(&parts.headers, key.expose()) => {
                Err(Refusal::new(StatusCode::UNAUTHORIZED, Denial::Token.reason()))
            }
            _ => Ok(()),
        }
    }

    fn knows(&self, host: &str) -> bool {
        is_loopback(host) || self.hosts.contains(&without_port(host).to_ascii_lowercase())
    }
}

pub(crate) fn check_message(headers: &HeaderMap, most_bytes: usize) -> Result<(), Refusal> {
    let of = single(headers, CONTENT_TYPE).unwrap_or_default();
    if !of.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        let why = "the content type must be application/json";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, why));
    }
    let accepted = accepted(headers);
    if !accepted.json && !accepted.events {
        let why = "the client must accept application/json and text/event-stream";
        return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, why));
    }
    let length = single(headers, CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    let fits = length.is_some_and(|length| length <= most_bytes);
    let fits = fits || !headers.contains_key(CONTENT_LENGTH);
    if fits { Ok(()) } else { Err(too_large(most_bytes)) }
}

/// Returns true if the version in a request's header is not one with sessions.
pub(crate) fn is_stateless(headers: &HeaderMap) -> bool {
    check_version(headers).is_err()
}

/// Returns the headers that repeat parts of the body.
pub(crate) fn mirrors(headers: &HeaderMap) -> Mirrors {
    let of = |name| single(headers, name).map(|value| value.trim().to_owned());
    let mut mirrors = Mirrors::default();
    (mirrors.version, mirrors.method, mirrors.name) = (of(VERSION), of(METHOD), of(NAME));
    mirrors
}

pub(crate) fn check_stream(headers: &HeaderMap) -> Result<(), Refusal> {
    check_version(headers)?;
    if accepted(headers).events {
        return Ok(());
    }
    Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream"))
}

pub(crate) fn check_version(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_known = |value: &str| VERSIONS.contains(&value);
    if !headers.contains_key(&VERSION) || single(headers, VERSION).is_some_and(is_known) {
        return Ok(());
    }
    Err(wrong_version())
}

pub(crate) fn wrong_version() -> Refusal {
    let why = format!("the version of the protocol must be one of {}", VERSIONS.join(", "));
    Refusal::new(StatusCode::BAD_REQUEST, why)
}

pub(crate) fn too_large(most_bytes: usize) -> Refusal {
    let why = format!("the body has more than {most_bytes} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, why)
}

/// Returns the forms of answers that the client accepts.
pub(crate) fn accepted(headers: &HeaderMap) -> Accepted {
    Accepted::read(headers.get_all(ACCEPT).iter().map(|of| of.to_str().unwrap_or_default()))
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
        assert_eq!(check(&[json]), 200, "no header accepts everything");
        assert_eq!(check(&[json, ("accept", "application/*"), ("accept", "text/*")]), 200);
        assert_eq!(check(&[("content-type", "text/plain"), both]), 415);
        assert_eq!(check(&[json, ("accept", "application/json")]), 200);
        assert_eq!(check(&[json, ("accept", "text/event-stream")]), 200);
        assert_eq!(check(&[json, ("accept", "text/html")]), 406);
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
