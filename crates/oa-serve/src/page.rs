//! The web page, whose files are embedded in the program.

use std::hash::{DefaultHasher, Hash, Hasher};

use axum::Router;
use axum::extract::OriginalUri;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

/// The page loads nothing from other servers, and text never becomes markup or script. Images are data or blob URLs.
const POLICY: &str = "default-src 'self'; img-src 'self' data: blob:; media-src data:; base-uri 'self'; \
    form-action 'none'; frame-ancestors 'none'; object-src 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

const INDEX: &str = include_str!("page/index.html");
/// The element in the page that sets the location of its other files.
const BASE: &str = r#"<base href="./">"#;

macro_rules! files {
    ($($kind:ident: $($name:literal)*;)*) => {
        &[$($((concat!("/", $name), $kind, include_str!(concat!("page/", $name))),)*)*]
    };
}

/// Path, content type and text of each file except the page itself.
const FILES: &[(&str, &str, &str)] = files![
    CSS: "colors.css" "entries.css" "layout.css";
    SCRIPT: "announcer.js" "api.js" "app.js" "attachments.js" "call.js" "card.js" "code.js" "composer.js"
        "conversation.js" "dialogs.js" "draft.js" "element.js" "feed.js" "figure.js" "inline.js"
        "json.js" "markdown.js" "meters.js" "notice.js" "picture.js" "prose.js" "question.js"
        "scroller.js" "sidebar.js" "sse.js" "storage.js" "syntax.js" "text.js" "theme.js" "thread.js"
        "transcript.js" "value.js";
    SVG: "icon.svg";
];

/// Returns the routes of the page, which require no token because they serve only static files.
pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let index = |OriginalUri(uri): OriginalUri, headers: HeaderMap| async move {
        let page = INDEX.replacen(BASE, &base(uri.path()), 1);
        file(HTML, page, &headers)
    };
    FILES.iter().fold(Router::new().route("/", get(index)), |router, &(path, kind, text)| {
        router.route(path, get(move |headers: HeaderMap| async move { file(kind, text, &headers) }))
    })
}

/// Returns the `base` element for a page at this path.
///
/// In an application, the page may be at `/agent`, without a trailing slash; then its files are below that path, not
/// beside it. A relative URL also works behind a proxy that rewrites the path.
fn base(path: &str) -> String {
    let segment = path.rsplit('/').next().unwrap_or_default();
    if segment.is_empty() {
        return BASE.to_owned();
    }
    let segment = segment.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    format!(r#"<base href="./{segment}/">"#)
}

fn file<T>(kind: &'static str, text: T, request: &HeaderMap) -> Response
where
    T: AsRef<str> + IntoResponse,
{
    // Has fixed keys, unlike `RandomState`, so a tag stays valid when the server restarts.
    let mut hasher = DefaultHasher::new();
    text.as_ref().hash(&mut hasher);
    let tag = format!("\"{:016x}\"", hasher.finish());
    let is_known = request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|tags| tags.to_str().ok())
        .any(|tags| tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag));
    let mut response =
        if is_known { StatusCode::NOT_MODIFIED.into_response() } else { text.into_response() };
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Browsers revalidate on each load, so a new version takes effect at once.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(ETAG, tag);
    }
    response
}
