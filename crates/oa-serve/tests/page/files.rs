//! The files of the page over HTTP.

use std::collections::BTreeSet;
use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use oa_client::AgentOptions;
use oa_serve::AgentServer;
use tower::ServiceExt;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/page");

fn router() -> Router {
    let agent = AgentOptions::builder().model("any").build().expect("the options are valid");
    AgentServer::new(agent).bearer_token("secret").router()
}

async fn get(
    router: &Router,
    path: &str,
    headers: &[(&str, &str)],
) -> (StatusCode, HeaderMap, String) {
    let request = headers
        .iter()
        .fold(Request::get(path), |request, (name, value)| request.header(*name, *value));
    let request = request.body(Body::empty()).expect("the request is valid");
    let response = router.clone().oneshot(request).await.expect("routers do not fail");
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("the body ends").to_bytes();
    (head.status, head.headers, String::from_utf8_lossy(&body).into_owned())
}

fn names() -> BTreeSet<String> {
    let entries = Path::new(FOLDER).read_dir().expect("the folder is there");
    let names = entries.map(|entry| entry.expect("a file").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// The interface behind them needs one.
#[tokio::test]
async fn files_are_served_without_a_token() {
    let router = router();
    for name in names() {
        let (status, headers, body) = get(&router, &format!("/{name}"), &[]).await;
        if name == "index.html" {
            assert_eq!(status, StatusCode::NOT_FOUND, "the page has one address");
            continue;
        }
        assert_eq!(status, StatusCode::OK, "{name}");
        let kind = headers["content-type"].to_str().unwrap();
        let wanted = match name.rsplit('.').next().unwrap() {
            "css" => "text/css; charset=utf-8",
            "js" => "text/javascript; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(kind, wanted, "{name}");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["cache-control"], "no-cache");
        let path = Path::new(FOLDER).join(&name);
        assert_eq!(body, std::fs::read_to_string(path).unwrap(), "{name}");
        assert!(body.lines().count() <= 600, "{name} is too long");
    }
    let (status, ..) = get(&router, "/api/agent", &[]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn page_loads_nothing_from_elsewhere() {
    let (status, headers, page) = get(&router(), "/", &[]).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(headers["content-type"], "text/html; charset=utf-8");
    let policy = headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'self';"), "{policy}");
    for word in ["unsafe", "http:", "https:", "*"] {
        assert!(!policy.contains(word), "{policy}");
    }
    let address = page.split(['"', '\'']).find(|text| text.contains("//"));
    assert_eq!(address, None, "the page names it");
    for name in names().iter().filter(|name| name.ends_with(".js")) {
        let script = std::fs::read_to_string(Path::new(FOLDER).join(name)).unwrap();
        for word in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
            assert!(!script.contains(word), "{name} uses {word}");
        }
    }
}

#[tokio::test]
async fn current_copies_are_not_sent_again() {
    let router = router();
    for path in ["/", "/app.js"] {
        let (_, headers, _) = get(&router, path, &[]).await;
        let tag = headers["etag"].to_str().unwrap();
        for known in [tag, &format!("\"other\", W/{tag}")] {
            let (status, headers, body) = get(&router, path, &[("if-none-match", known)]).await;
            assert_eq!((status, &*body), (StatusCode::NOT_MODIFIED, ""), "{path}");
            assert_eq!(headers["etag"], tag);
        }
        let (status, ..) = get(&router, path, &[("if-none-match", "\"other\"")]).await;
        assert_eq!(status, StatusCode::OK);
    }
}

#[tokio::test]
async fn nested_page_finds_its_files() {
    let base = |page: &str| {
        let (_, rest) = page.split_once("<base href=\"").unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let router = router();
    assert_eq!(base(&get(&router, "/", &[]).await.2), "./");
    let service = Router::new().nest_service("/tools/agent", router.clone());
    for nested in [&Router::new().nest("/tools/agent", router), &service] {
        let (status, _, page) = get(nested, "/tools/agent", &[]).await;
        assert_eq!(status, StatusCode::OK);
        // Relative to `/tools/agent`, this is `/tools/agent/`.
        assert_eq!(base(&page), "./agent/");
        let (status, ..) = get(nested, "/tools/agent/app.js", &[]).await;
        assert_eq!(status, StatusCode::OK);
        let (status, ..) = get(nested, "/tools/agent/api/agent", &[]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let (status, _, page) = get(&service, "/tools/agent/", &[]).await;
    assert_eq!((status, &*base(&page)), (StatusCode::OK, "./"));
}
