//! Request checks: the token, the `Origin` and the `Host` header, and the body.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, WWW_AUTHENTICATE,
};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use oa_access::{Access, Denial};
use serde_json::json;
use tokio::time::timeout;
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

/// The longest plain text that is used as an error message, in bytes.
const LONGEST_MESSAGE: usize = 4 << 10;

/// The header that tells the libraries of OpenAI not to repeat a request.
pub(crate) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
/// The header with the version of a stream of the AI SDK.
pub(crate) const STREAM_VERSION: HeaderName =
    HeaderName::from_static("x-vercel-ai-ui-message-stream");

/// Returns the CORS layer; `None` if no other origin is allowed.
pub(crate) fn cors(access: &Access) -> Option<CorsLayer> {
    let origins = if access.allows_any_origin() {
        AllowOrigin::any()
    } else if access.origins().is_empty() {
        return None;
    } else {
        let origins = access.origins().iter().map(|origin| HeaderValue::from_str(origin));
        AllowOrigin::list(origins.filter_map(Result::ok))
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

/// Refuses requests that the access rules do not allow.
pub(crate) async fn check(
    State(access): State<Arc<Access>>,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let Err(denial) = access.check(&parts) else {
        return next.run(Request::from_parts(parts, body)).await;
    };
    let mut response = (denial.status(), denial.reason()).into_response();
    if denial == Denial::Token {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

/// Refuses bodies that are not JSON: a page of another origin can send other types without a preflight request.
pub(crate) async fn json_bodies(request: Request, next: Next) -> Response {
    let headers = request.headers();
    // No route reads the body of a request with another method.
    let has_body = matches!(*request.method(), Method::PATCH | Method::POST);
    let coding = headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes);
    if coding.is_some_and(|coding| !coding.eq_ignore_ascii_case(b"identity")) {
        let message = "the body must not be compressed";
        let accepted = [(ACCEPT_ENCODING, "identity")];
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, accepted, message).into_response();
    }
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
    match timeout(limit.time, whole(body, limit.bytes)).await {
        Ok(Ok(body)) => next.run(Request::from_parts(parts, Body::from(body))).await,
        Ok(Err(fault)) => fault.into_response(),
        Err(_) => {
            let message = "the request body did not arrive in time";
            (StatusCode::REQUEST_TIMEOUT, message).into_response()
        }
    }
}

/// Reads a body of at most this many bytes. `to_bytes` has one error for a body that is too large and one that breaks off.
async fn whole(body: Body, most: usize) -> Result<Vec<u8>, (StatusCode, String)> {
    let too_large =
        || (StatusCode::PAYLOAD_TOO_LARGE, format!("a request can have at most {most} bytes"));
    // A body of known length is refused before any of it is read.
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let broken = |_| (StatusCode::BAD_REQUEST, "the request body is incomplete".to_owned());
    let (mut whole, mut pieces) = (Vec::new(), body.into_data_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(broken)?;
        if piece.len() > most - whole.len() {
            return Err(too_large());
        }
        whole.extend_from_slice(&piece);
    }
    Ok(whole)
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
    let error = Json(json!({ "error": error })).into_response();
    // It is the length of the text.
    parts.headers.remove(CONTENT_LENGTH);
    parts.headers.extend(error.headers().clone());
    Response::from_parts(parts, error.into_body())
}
