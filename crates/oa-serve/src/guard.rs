//! Request checks: the token, the `Origin` and the `Host` header, and the body.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, WWW_AUTHENTICATE};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use subtle::ConstantTimeEq;
use tokio::time::timeout;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// The longest plain text that is used as an error message, in bytes.
const LONGEST_MESSAGE: usize = 4 << 10;

/// The header that tells the libraries of OpenAI not to repeat a request.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The header with the version of a stream of the AI SDK.
pub(crate) const STREAM_VERSION: HeaderName =
    HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// The access rules of the server.
#[derive(Clone, Default)]
pub(crate) struct Access {
    token: Option<String>,
    /// The allowed origins, as browsers write them.
    origins: Vec<String>,
    allows_any_origin: bool,
    /// An origin that no browser sends.
    wrong_origin: Option<String>,
    only_local_hosts: bool,
}

impl Access {
    pub(crate) fn set_token(&mut self, token: String) {
        self.token = Some(token);
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(crate) fn allow_origin(&mut self, origin: String) {
        match as_sent(&origin) {
            _ if origin == "*" => self.allows_any_origin = true,
            Some(origin) => self.origins.push(origin),
            None => self.wrong_origin = Some(origin),
        }
    }

    pub(crate) fn allows_any_origin(&self) -> bool {
        self.allows_any_origin
    }

    /// Returns an allowed origin that no browser sends.
    pub(crate) fn wrong_origin(&self) -> Option<&str> {
        self.wrong_origin.as_deref()
    }

    /// Accepts only requests whose `Host` is a local name or that of an allowed origin, as a defense against DNS
    /// rebinding.
    pub(crate) fn only_local_hosts(&mut self) {
        self.only_local_hosts = true;
    }

    /// Returns the CORS layer; `None` if no other origin is allowed.
    pub(crate) fn cors(&self) -> Option<CorsLayer> {
        let origins = if self.allows_any_origin {
            AllowOrigin::any()
        } else if self.origins.is_empty() {
            return None;
        } else {
            let origins =
                self.origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
            AllowOrigin::list(origins)
        };
        let methods = [Method::GET, Method::POST, Method::PATCH, Method::DELETE];
        Some(
            CorsLayer::new()
                .allow_origin(origins)
                .allow_methods(methods)
                // The clients send headers of their own: the `openai` package eight `x-stainless-*`. There are no
                // cookies, so a header gives a page no rights that it does not have.
                .allow_headers(AllowHeaders::mirror_request())
                // What clients read: whether to repeat a request, the version of a stream, the kind of token.
                .expose_headers([SHOULD_RETRY, STREAM_VERSION, WWW_AUTHENTICATE])
                // Chrome asks before a page of the internet reaches this machine or its network.
                .allow_private_network(true),
        )
    }

    /// Returns the status and message for a request that is refused.
    fn refuses(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<(StatusCode, &'static str)> {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        // Requests of HTTP/2 have no `Host`: their `:authority` is in the URI.
        let authority = || uri.authority().map(Authority::as_str);
        let host = text(HOST).or_else(authority).unwrap_or_default();
        // A proxy on this machine passes on the name under which it is reached. A page that rebinds its name to a
        // loopback address has another one.
        let is_named = || {
            self.origins.iter().any(|origin| {
                origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(host))
            })
        };
        if self.only_local_hosts && !is_local(host) && !is_named() {
            let message = "this server accepts only requests for localhost or a loopback address";
            return Some((StatusCode::FORBIDDEN, message));
        }
        // GET, HEAD and OPTIONS only read, and CORS keeps their answers from pages of other origins.
        if let Some(origin) = headers.get(ORIGIN)
            && !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
        {
            let origin = origin.to_str().unwrap_or_default();
            // Schemes are not compared: behind a proxy with TLS, the server does not know its own.
            let is_own = origin
                .split_once("://")
                .is_some_and(|(_, origin)| !origin.is_empty() && origin.eq_ignore_ascii_case(host));
            let is_allowed =
                self.allows_any_origin || self.origins.iter().any(|allowed| allowed == origin);
            if !is_own && !is_allowed {
                let message = "this origin is not allowed to use this server";
                return Some((StatusCode::FORBIDDEN, message));
            }
        }
        let token = self.token.as_ref()?;
        let given = text(AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
        });
        // In constant time for tokens of equal length, so that a token cannot be guessed byte by byte.
        let is_right =
            given.is_some_and(|given| bool::from(given.as_bytes().ct_eq(token.as_bytes())));
        (!is_right).then_some((StatusCode::UNAUTHORIZED, "missing or wrong bearer token"))
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("has_token", &self.has_token())
            .field("origins", &self.origins)
            .finish_non_exhaustive()
    }
}

/// Returns an origin as browsers send it: in lower case, without a slash at the end and the scheme's own port (RFC 6454,
/// section 6.2). Returns `None` if it is not `scheme://host[:port]`.
fn as_sent(origin: &str) -> Option<String> {
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

/// Returns true for a name of this machine, with any port.
fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(address) => return address.split(']').next() == Some("::1"),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    // Browsers resolve names below `localhost` to loopback addresses (RFC 6761, section 6.3).
    name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().ends_with(".localhost")
        || name.parse().is_ok_and(|address: std::net::Ipv4Addr| address.is_loopback())
}

/// Refuses requests that the access rules do not allow.
pub(crate) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    match access.refuses(request.method(), request.uri(), request.headers()) {
        None => next.run(request).await,
        Some((status, message)) => {
            let mut response = (status, message).into_response();
            if status == StatusCode::UNAUTHORIZED {
                let scheme = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            response
        }
    }
}

/// Refuses bodies that are not JSON: a page of another origin can send other types without a preflight request.
pub(crate) async fn json_bodies(request: Request, next: Next) -> Response {
    let headers = request.headers();
    let has_body = !matches!(*request.method(), Method::GET | Method::HEAD | Method::DELETE);
    let content_type = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = content_type.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    if has_body && !kind.trim().eq_ignore_ascii_case("application/json") {
        let message = "the body must be JSON, with `content-type: application/json`";
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, message).into_response();
    }
    next.run(request).await
}

/// The maximum size of a request body, and the time limit for receiving it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

/// Reads the request body within its limits.
pub(crate) async fn whole_bodies(
    State(limit): State<BodyLimit>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    match timeout(limit.time, to_bytes(body, limit.bytes)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(_)) => {
            let message = format!("a request can have at most {} bytes", limit.bytes);
            (StatusCode::PAYLOAD_TOO_LARGE, message).into_response()
        }
        Err(_) => {
            let message = "the request body did not arrive in time";
            (StatusCode::REQUEST_TIMEOUT, message).into_response()
        }
    }
}

/// Rewrites plain-text errors as JSON.
pub(crate) async fn json_errors(response: Response) -> Response {
    let status = response.status();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let is_text = kind.is_none_or(|kind| kind.starts_with("text/plain"));
    if !(status.is_client_error() || status.is_server_error()) || !is_text {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = to_bytes(body, LONGEST_MESSAGE).await.unwrap_or_default();
    let mut message = String::from_utf8_lossy(&text).into_owned();
    if message.is_empty() {
        message = status.canonical_reason().unwrap_or("error").to_lowercase();
    }
    let error = json!({ "message": message, "type": "invalid_request_error", "code": null });
    let body = Json(json!({ "error": error })).into_response();
    parts.headers.extend(body.headers().clone());
    // It is the length of the text.
    parts.headers.remove(axum::http::header::CONTENT_LENGTH);
    Response::from_parts(
        parts,
        Body::from(to_bytes(body.into_body(), usize::MAX).await.unwrap_or_default()),
    )
}
